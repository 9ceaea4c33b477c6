//! Where revisions come from.
//!
//! In: a place on disk. Out: a [`FileTree`](crate::tree::FileTree). Sources are the only stations that read
//! files; everything after them works on what they brought.

pub mod directory;
