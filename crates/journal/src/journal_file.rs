//! The file of a journal.
//!
//! In: a path. Out: its last line, and lines appended to it. A file that was renamed or removed is
//! created again. A line that was written in part is cut off, or found when the file is opened.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use crate::chain::{Hash, Head};
use crate::entry::parse;
use crate::lines::MAX_LINE_BYTES;

/// Rights of a new file: the daemon's user reads and writes, its group reads.
const MODE: u32 = 0o640;

#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    open: Option<File>,
}

/// End of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The last whole line.
    pub(crate) head: Option<Head>,
    /// Hash of what follows it: an incomplete line, or several of daemons that were killed.
    pub(crate) torn: Option<Hash>,
}

impl JournalFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Opens the file again, and reads its end. An incomplete last line gets a line break, so that
    /// the next line is one of its own.
    pub(crate) fn open(&mut self) -> io::Result<Tail> {
        self.open = None;
        let mut file = self.create()?;
        let (tail, ends_in_break) = read_tail(&mut file)?;
        if !ends_in_break {
            file.write_all(b"\n")?;
        }
        self.open = Some(file);
        Ok(tail)
    }

    fn create(&self) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(&self.path)
    }

    /// Appends a line. After a failure the file is closed.
    pub(crate) fn append(&mut self, line: &str) -> io::Result<()> {
        let file = match self.open.take() {
            Some(file) if self.is_at_path(&file) => file,
            _ => self.create()?,
        };
        let before = file.metadata()?.len();
        match (&file).write_all(format!("{line}\n").as_bytes()) {
            Ok(()) => {
                self.open = Some(file);
                Ok(())
            }
            Err(error) => {
                // If this fails, the part is found when the file is opened again.
                let _ = file.set_len(before);
                Err(error)
            }
        }
    }

    /// False if the file was renamed or removed.
    fn is_at_path(&self, file: &File) -> bool {
        let identity = |found: io::Result<std::fs::Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
        identity(std::fs::metadata(&self.path)) == identity(file.metadata())
    }
}

/// Returns the end of a file, and false if a line break is missing there.
fn read_tail(file: &mut File) -> io::Result<(Tail, bool)> {
    let len = file.metadata()?.len();
    let most = 2 * MAX_LINE_BYTES as u64;
    file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let ends_in_break = bytes.is_empty() || bytes.last() == Some(&b'\n');
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut end = text.len();
    while end > 0 {
        let start = text[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if let Ok(line) = parse(&text[start..end]) {
            let rest = text.get(end + 1..).filter(|rest| !rest.is_empty());
            let head = Some(Head { seq: line.seq, hash: line.hash });
            return Ok((Tail { head, torn: rest.map(Hash::of) }, ends_in_break));
        }
        end = start.saturating_sub(1);
    }
    let torn = Some(text).filter(|text| !text.is_empty()).map(Hash::of);
    Ok((Tail { head: None, torn }, ends_in_break))
}
