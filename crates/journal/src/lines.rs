//! Reads files of a journal line by line.
//!
//! In: paths. Out: lines with their places, the file with the oldest lines first.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::entry::{Line, LineError, parse};

/// The longest line; a longer one is no line of a journal.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Place of a line in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: Arc<Path>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {cause}", file.display())]
pub struct ReadError {
    file: PathBuf,
    cause: io::Error,
}

/// A line as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) place: Position,
    pub(crate) bytes: Vec<u8>,
    pub(crate) line: Result<Line, LineError>,
}

/// Calls `take` with every line of the files, those with lower numbers first.
pub(crate) fn for_each(files: &[impl AsRef<Path>], mut take: impl FnMut(Found)) -> Result<(), ReadError> {
    let mut ordered = Vec::new();
    for file in files {
        let mut first = None;
        read(file.as_ref(), |found| {
            first = found.line.ok().map(|line| line.seq);
            first.is_none()
        })?;
        ordered.push((first.unwrap_or(u64::MAX), file.as_ref()));
    }
    ordered.sort_by_key(|(first, _)| *first);
    for (_, file) in ordered {
        read(file, |found| {
            take(found);
            true
        })?;
    }
    Ok(())
}

/// Reads the lines of a file while `take` returns true.
fn read(file: &Path, mut take: impl FnMut(Found) -> bool) -> Result<(), ReadError> {
    let failed = |cause| ReadError { file: file.to_owned(), cause };
    let mut from = BufReader::new(File::open(file).map_err(failed)?);
    let name: Arc<Path> = file.into();
    for number in 1.. {
        let mut bytes = Vec::new();
        let most = MAX_LINE_BYTES as u64 + 1;
        let read = from.by_ref().take(most).read_until(b'\n', &mut bytes).map_err(failed)?;
        if read == 0 {
            break;
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else if bytes.len() > MAX_LINE_BYTES {
            skip_line(&mut from).map_err(failed)?;
        }
        let place = Position { file: name.clone(), line: number };
        let line = parse(&bytes);
        if !take(Found { place, bytes, line }) {
            break;
        }
    }
    Ok(())
}

/// Reads up to the next line break.
fn skip_line(from: &mut impl io::BufRead) -> io::Result<()> {
    loop {
        let held = from.fill_buf()?;
        let (end, len) = (held.iter().position(|byte| *byte == b'\n'), held.len());
        if len == 0 {
            return Ok(());
        }
        from.consume(end.map_or(len, |end| end + 1));
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Calls `take` with every readable line of the files, those with lower numbers first; returns the
/// number of lines that cannot be read.
pub fn read_files(
    files: &[impl AsRef<Path>],
    mut take: impl FnMut(&Position, Line),
) -> Result<usize, ReadError> {
    let mut unreadable = 0;
    for_each(files, |found| match found.line {
        Ok(line) => take(&found.place, line),
        Err(_) => unreadable += 1,
    })?;
    Ok(unreadable)
}
