//! Verifies the chain of lines over several files.
//!
//! In: files, in any order. Out: [`Verified`], or the first broken line.
//!
//! A daemon that starts continues after the newest line that it knows: the end of its file, or the
//! head in the Lease. Lines that the daemon before it wrote after that head stay in the files as a
//! branch without a successor, which is counted.

use std::collections::HashSet;
use std::path::Path;

use crate::chain::{Hash, Head};
use crate::entry::{Line, Reason};
use crate::lines::{Found, MAX_LINE_BYTES, Position, ReadError, for_each};

/// Unreadable lines in a row are kept up to this size; a daemon looks back as far.
const MAX_TORN: usize = 2 * MAX_LINE_BYTES;

/// Result of a verification without a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// Number of lines.
    pub lines: u64,
    /// First line: its number. Earlier ones are in no file.
    pub first: u64,
    /// Last line of the chain.
    pub head: Head,
    /// Lines at which a daemon began after an earlier line than the last one before it.
    pub branches: Vec<Position>,
    /// Incomplete lines, each named by the line that follows.
    pub torn: Vec<Position>,
    /// Lines `Gap`, with the number of changes that are missing.
    pub gaps: Vec<(Position, u64)>,
}

/// The first broken line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Broken {
    /// Place of the line.
    pub place: Position,
    /// The fault.
    pub problem: String,
}

/// The files are not verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The chain is broken.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The files have no line.
    #[error("there is no line in these files")]
    Empty,
    /// The files do not have the line that the anchor names.
    #[error(
        "the anchor names line {}, which is not in these files with that hash: \
         they end with line {}, lines are missing or were changed", anchor.seq, head.seq
    )]
    Anchor {
        /// The anchor.
        anchor: Head,
        /// Last line of the files.
        head: Head,
    },
}

/// Verifies files, and that they have the line that an anchor names.
pub fn verify(files: &[impl AsRef<Path>], anchor: Option<Head>) -> Result<Verified, VerifyError> {
    let mut walk = Walk::default();
    for_each(files, |found| walk.take(found, anchor))?;
    walk.end_torn();
    if let Some(broken) = walk.first_broken() {
        return Err(broken.into());
    }
    if walk.result.lines == 0 {
        return Err(VerifyError::Empty);
    }
    match anchor {
        Some(anchor) if !walk.has_anchor => Err(VerifyError::Anchor { anchor, head: walk.result.head }),
        _ => Ok(walk.result),
    }
}

/// State of a walk over all lines.
#[derive(Default)]
struct Walk {
    result: Verified,
    /// Hashes of all lines.
    known: HashSet<Hash>,
    /// Line before the current one, in reading order.
    last: Option<Head>,
    /// Lines `Started` that do not follow the line before them.
    starts: Vec<(Position, Hash, u64)>,
    /// Unreadable lines, which the next line must name.
    torn: Option<(Position, Vec<u8>, String)>,
    broken: Option<Broken>,
    has_anchor: bool,
}

impl Walk {
    fn take(&mut self, found: Found, anchor: Option<Head>) {
        let line = match found.line {
            Ok(line) => line,
            Err(error) => {
                self.add_torn(found.place, &found.bytes, error.to_string());
                return;
            }
        };
        self.check_torn(&line);
        self.check_link(&line, &found.place);
        if let (Reason::Gap, Some(lost)) = (line.entry.reason, line.entry.lost) {
            self.result.gaps.push((found.place, lost));
        }
        let head = Head { seq: line.seq, hash: line.hash };
        self.has_anchor |= anchor == Some(head);
        self.known.insert(line.hash);
        self.last = Some(head);
        self.result.lines += 1;
        if head.seq >= self.result.head.seq {
            self.result.head = head;
        }
    }

    /// Adds an unreadable line to those directly before it in the same file.
    fn add_torn(&mut self, place: Position, bytes: &[u8], problem: String) {
        match &mut self.torn {
            Some((first, known, _)) if first.file == place.file && known.len() <= MAX_TORN => {
                known.push(b'\n');
                known.extend(bytes);
            }
            _ => {
                self.end_torn();
                self.torn = Some((place, bytes.to_vec(), problem));
            }
        }
    }

    /// Checks that this line names the unreadable ones before it.
    fn check_torn(&mut self, line: &Line) {
        let Some((place, bytes, _)) = &self.torn else { return };
        if line.entry.torn.as_deref() == Some(&*Hash::of(bytes).to_string()) {
            self.result.torn.push(place.clone());
            self.torn = None;
        }
        self.end_torn();
    }

    /// An unreadable line that no line names is a fault.
    fn end_torn(&mut self) {
        if let Some((place, _, problem)) = self.torn.take() {
            self.breaks(place, problem);
        }
    }

    fn check_link(&mut self, line: &Line, place: &Position) {
        let Some(last) = self.last else {
            self.result.first = line.seq;
            if line.seq == 1 && line.prev != Hash::default() {
                self.breaks(place.clone(), "it is the first line, and names one before it".to_owned());
            }
            return;
        };
        let follows = line.prev == last.hash && line.seq == last.seq.saturating_add(1);
        if follows {
            return;
        }
        if line.entry.reason == Reason::Started {
            self.starts.push((place.clone(), line.prev, line.seq));
            return;
        }
        let problem = match line.seq == last.seq.saturating_add(1) {
            true => format!("line {} was changed: its hash is another than `prev` here", last.seq),
            false => format!(
                "it is line {} and follows line {}: lines are missing or in another order",
                line.seq, last.seq
            ),
        };
        self.breaks(place.clone(), problem);
    }

    fn breaks(&mut self, place: Position, problem: String) {
        self.broken.get_or_insert(Broken { place, problem });
    }

    /// Returns the first fault, once all lines are known.
    fn first_broken(&mut self) -> Option<Broken> {
        for (place, prev, seq) in std::mem::take(&mut self.starts) {
            match self.known.contains(&prev) {
                true => self.result.branches.push(place),
                false => {
                    let problem =
                        format!("line {} before it is missing or was changed", seq.saturating_sub(1));
                    self.breaks(place, problem);
                }
            }
        }
        self.broken.take()
    }
}
