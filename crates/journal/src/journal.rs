//! The journal of a running daemon.
//!
//! In: entries, from any task. Out: lines, written by one thread. No task ever waits for it: while
//! nothing can be written, entries queue, and beyond the bound of the queue they are counted.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::chain::{Chain, Head};
use crate::entry::{Entry, Reason};
use crate::exporter::{Exporter, SendBatch};
use crate::journal_file::JournalFile;
use crate::otlp::Origin;
use crate::queue::{Item, Queue};
use crate::targets::{Targets, now};

/// Pause between two attempts to write a line.
const RETRY: Duration = Duration::from_secs(1);

/// Events of the writing, for counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalEvent {
    /// A line was written.
    Written,
    /// A change found no room in the queue.
    Lost,
    /// Nothing can be written; tried again every second.
    Failed,
    /// Lines are written again.
    Recovered,
    /// The collector has taken so many lines.
    Exported(u64),
    /// So many lines did not reach the collector.
    Dropped(u64),
}

/// Settings of a journal.
pub struct Settings {
    /// The file, if any.
    pub file: Option<PathBuf>,
    /// Standard output, if lines are written there.
    pub stdout: Option<Box<dyn Write + Send>>,
    /// Sends batches of lines to a collector, if there is one.
    pub export: Option<SendBatch>,
    /// Address of the API server, for every line.
    pub cluster: Option<String>,
    /// Identity of this process.
    pub daemon: String,
    /// Version of the program.
    pub program: String,
    /// Called for every event, by any thread.
    pub observe: Box<dyn Fn(JournalEvent) + Send + Sync>,
}

/// The journal of a daemon; clones share it. The default one is off.
#[derive(Debug, Clone, Default)]
pub struct Journal(Option<Arc<Handle>>);

struct Handle {
    shared: Arc<Shared>,
    cluster: Option<String>,
}

struct Shared {
    queue: Queue,
    exporter: Option<Exporter>,
    observe: Arc<dyn Fn(JournalEvent) + Send + Sync>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("queue", &self.shared.queue).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(exporter) = &self.shared.exporter {
            exporter.close();
        }
    }
}

impl Journal {
    /// Starts the thread that writes; nothing is written before the first [`Self::start_term`].
    pub fn open(settings: Settings) -> io::Result<Self> {
        let observe: Arc<dyn Fn(JournalEvent) + Send + Sync> = settings.observe.into();
        let origin = Origin { daemon: settings.daemon.clone(), program: settings.program.clone() };
        let told = observe.clone();
        let start = |send| Exporter::start(origin, send, move |event| told(event));
        let exporter = settings.export.map(start).transpose()?;
        let shared = Arc::new(Shared { queue: Queue::default(), exporter: exporter.clone(), observe });
        let targets = Targets {
            file: settings.file.map(JournalFile::new),
            stdout: settings.stdout,
            origin: Entry {
                cluster: settings.cluster.clone(),
                daemon: Some(settings.daemon),
                program: Some(settings.program),
                ..Entry::default()
            },
            exporter,
            dropped: 0,
            chain: Chain::default(),
        };
        let thread = shared.clone();
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || thread.write_all(targets))?;
        Ok(Self(Some(Arc::new(Handle { shared, cluster: settings.cluster }))))
    }

    /// True if changes are written down.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a term of this daemon: the chain continues after the end of the file, or after the
    /// head in the Lease if that is newer.
    pub fn start_term(&self, anchor: Option<Head>) {
        if let Some(handle) = &self.0 {
            handle.shared.queue.start(anchor);
        }
    }

    /// Records a change that was made now. Never blocks.
    pub fn record(&self, entry: Entry) {
        let Some(handle) = &self.0 else { return };
        let entry = Entry { time: Some(now()), cluster: handle.cluster.clone(), ..entry };
        if !handle.shared.queue.push(entry) {
            (handle.shared.observe)(JournalEvent::Lost);
        }
    }

    /// Returns the last line that was written.
    pub fn head(&self) -> Option<Head> {
        self.0.as_ref()?.shared.queue.head()
    }

    /// True if every change that was recorded is written, and exported or dropped.
    pub fn is_flushed(&self) -> bool {
        self.0.as_ref().is_none_or(|handle| {
            let exporter = handle.shared.exporter.as_ref();
            handle.shared.queue.is_idle() && exporter.is_none_or(Exporter::is_idle)
        })
    }
}

impl Shared {
    /// Writes until the queue is closed.
    fn write_all(&self, mut targets: Targets) {
        let mut failing = false;
        while let Some(item) = self.queue.next() {
            let entry = match item {
                Item::Start(anchor) => {
                    self.until_written(&mut failing, || targets.start(anchor).map(|()| targets.chain.head()));
                    continue;
                }
                Item::Lost(count) => {
                    let time = Some(now());
                    Entry { reason: Reason::Gap, lost: Some(count), time, ..Entry::default() }
                }
                Item::Entry(entry) => *entry,
            };
            self.until_written(&mut failing, || targets.write(&entry).map(|()| targets.chain.head()));
            if let dropped @ 1.. = std::mem::take(&mut targets.dropped) {
                (self.observe)(JournalEvent::Dropped(dropped));
            }
        }
    }

    /// Tries until it succeeds, or the daemon ends.
    fn until_written(&self, failing: &mut bool, mut attempt: impl FnMut() -> io::Result<Head>) {
        loop {
            match attempt() {
                Ok(head) => {
                    self.queue.set_head(head);
                    (self.observe)(JournalEvent::Written);
                    if std::mem::take(failing) {
                        tracing::info!("the journal is written again");
                        (self.observe)(JournalEvent::Recovered);
                    }
                    return;
                }
                Err(error) => {
                    if !std::mem::replace(failing, true) {
                        tracing::warn!("the journal cannot be written, and changes queue: {error}");
                        (self.observe)(JournalEvent::Failed);
                    }
                }
            }
            if !self.queue.wait(RETRY) {
                return;
            }
        }
    }
}
