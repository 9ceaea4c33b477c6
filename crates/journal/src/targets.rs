//! Places that lines are written to: a file, standard output, a collector, or several of them.
//!
//! In: entries. Out: lines at the end of a chain. With a file, a line counts once the file has it;
//! the collector gets what counts.

use std::fmt;
use std::io::{self, Write};

use crate::chain::{Chain, Hash, Head};
use crate::entry::{Entry, Reason};
use crate::exporter::Exporter;
use crate::journal_file::JournalFile;
use crate::otlp::ExportedLine;

pub(crate) struct Targets {
    pub(crate) file: Option<JournalFile>,
    pub(crate) stdout: Option<Box<dyn Write + Send>>,
    pub(crate) exporter: Option<Exporter>,
    /// Lines that found no room in the exporter's queue.
    pub(crate) dropped: u64,
    /// Line `Started` of this process, without a time.
    pub(crate) origin: Entry,
    pub(crate) chain: Chain,
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Targets")
            .field("file", &self.file)
            .field("chain", &self.chain)
            .finish_non_exhaustive()
    }
}

impl Targets {
    /// Continues after the newest line that is known, and says so in a line.
    pub(crate) fn start(&mut self, anchor: Option<Head>) -> io::Result<()> {
        let tail = self.file.as_mut().map(JournalFile::open).transpose()?.unwrap_or_default();
        let mut newest = tail.head.unwrap_or_default();
        for head in [anchor, Some(self.chain.head())].into_iter().flatten() {
            if head.seq > newest.seq {
                newest = head;
            }
        }
        self.chain = Chain::after(newest);
        self.put_started(tail.torn)
    }

    /// Writes an entry. A file that a failure closed is opened again first.
    pub(crate) fn write(&mut self, entry: &Entry) -> io::Result<()> {
        if let Some(file) = self.file.as_mut().filter(|file| !file.is_open())
            && let Some(torn) = file.open()?.torn
        {
            self.put_started(Some(torn))?;
        }
        self.put(entry)
    }

    fn put_started(&mut self, torn: Option<Hash>) -> io::Result<()> {
        let entry = Entry {
            reason: Reason::Started,
            time: Some(now()),
            torn: torn.map(|torn| torn.to_string()),
            ..self.origin.clone()
        };
        self.put(&entry)
    }

    fn put(&mut self, entry: &Entry) -> io::Result<()> {
        let mut chain = self.chain;
        let line = chain.append(entry);
        if let Some(file) = &mut self.file {
            file.append(&line)?;
        }
        if let Some(stdout) = &mut self.stdout {
            let printed = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
            // The file has the line, so the chain goes on.
            if self.file.is_none() {
                printed?;
            }
        }
        self.chain = chain;
        if let Some(exporter) = &self.exporter {
            let line = ExportedLine { text: line, place: chain.head(), entry: entry.clone() };
            self.dropped += u64::from(!exporter.push(line));
        }
        Ok(())
    }
}

/// The time of a line.
pub(crate) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
