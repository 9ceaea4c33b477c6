//! How much of a commit is read, and of what.
//!
//! In: a tree in which no file is yet. Out: which of them are read, and how much memory there is for that and for all that is made of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::Error;
use moorline_core::tree::{FileTree, NoRoom, Room};

/// Chooses the files that are read, of a tree in which none is yet.
pub type Choose = Arc<dyn Fn(&FileTree) -> Chosen + Send + Sync>;

/// Which files are read.
#[derive(Debug, Clone, Default)]
pub enum Chosen {
    /// All of them.
    #[default]
    All,
    /// Those at these paths.
    Only(BTreeSet<String>),
}

/// How much is read, and of what.
#[derive(Clone)]
pub struct Within {
    /// How much memory may be taken for it and all that is made of it.
    pub room: Room,
    /// Which files are read.
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
