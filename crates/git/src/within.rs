//! Limits for reading a commit: memory, and a selection of files.
//!
//! In: a tree without file contents.
//! Out: the files to read, and the memory for them and for everything made of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::Error;
use moorline_core::tree::{FileTree, NoRoom, Room};

/// Selects the files to read, from a tree without file contents.
pub type Choose = Arc<dyn Fn(&FileTree) -> Chosen + Send + Sync>;

/// Selection of files.
#[derive(Debug, Clone, Default)]
pub enum Chosen {
    /// All files.
    #[default]
    All,
    /// The files at these paths.
    Only(BTreeSet<String>),
}

/// Limits for a read.
#[derive(Clone)]
pub struct Within {
    /// Memory for the files and for everything made of them.
    pub room: Room,
    /// Selects the files to read.
    pub choose: Choose,
}

impl Default for Within {
    fn default() -> Self {
        Self { room: Room::default(), choose: Arc::new(|_| Chosen::All) }
    }
}

impl From<NoRoom> for Error {
    fn from(no_room: NoRoom) -> Self {
        match no_room {
            NoRoom::Full => Self::Crowded,
            NoRoom::Stopped => Self::Slow,
        }
    }
}
