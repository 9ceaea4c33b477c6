//! The journal: one line of JSON for each change that a daemon makes, chained by hash.
//!
//! In: entries of a daemon, or files.
//! Out: lines in a file and on standard output, or what such files say and where their chain is
//! broken.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod chain;
mod entry;
mod exporter;
mod journal;
mod journal_file;
mod lines;
mod otlp;
mod queue;
mod replay;
mod targets;
mod verify;

pub use chain::{Chain, Hash, Head, InvalidHeadError};
pub use entry::{Change, DriftNote, Entry, Line, LineError, Reason, parse};
pub use exporter::SendBatch;
pub use journal::{Journal, JournalEvent, Settings};
pub use lines::{MAX_LINE_BYTES, Position, ReadError, read_files};
pub use otlp::ExportAnswer;
pub use replay::replay;
pub use verify::{Broken, Verified, VerifyError, verify};
