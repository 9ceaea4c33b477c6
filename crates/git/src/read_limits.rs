//! Limits for reading a commit: memory, and a selection of files.
//!
//! In: a tree without file contents.
//! Out: the files to read, and the memory for them and for everything made of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::Error;
use moorline_core::tree::{FileTree, MemoryLimit, MemoryLimitError};

/// Selects the files to read, from a tree without file contents.
pub type FileFilter = Arc<dyn Fn(&FileTree) -> FileSelection + Send + Sync>;

/// Selection of files.
#[derive(Debug, Clone, Default)]
pub enum FileSelection {
    /// All files.
    #[default]
    All,
    /// The files at these paths.
    Only(BTreeSet<String>),
}

/// Limits for a read.
#[derive(Clone)]
pub struct ReadLimits {
    /// Memory for the files and for everything made of them.
    pub memory_limit: MemoryLimit,
    /// Selects the files to read.
    pub choose: FileFilter,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { memory_limit: MemoryLimit::default(), choose: Arc::new(|_| FileSelection::All) }
    }
}

impl From<MemoryLimitError> for Error {
    fn from(no_room: MemoryLimitError) -> Self {
        match no_room {
            MemoryLimitError::Full => Self::NoMemory,
            MemoryLimitError::Stopped => Self::Slow,
        }
    }
}
