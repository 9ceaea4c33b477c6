//! Errors of reading a tree, for the author of its files.
//!
//! In: a path, and the entry at it. Out: the reason why it cannot be read.

use super::{MAX_FILE_BYTES, MAX_LINKS};

/// The reason why a path of the tree cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The path does not exist.
    #[error("there is no file {path}")]
    Missing {
        /// The requested path.
        path: String,
    },
    /// A link, or the path itself, leads out of the tree.
    #[error("{path} leads out of the tree (to {target}); links are followed only inside it")]
    Outside {
        /// The requested path.
        path: String,
        /// Target of the link.
        target: String,
    },
    /// Links form a loop.
    #[error("{path} is a chain of more than {MAX_LINKS} links")]
    Loop {
        /// The requested path.
        path: String,
    },
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("{path} has {size} bytes; a file may have at most {MAX_FILE_BYTES}; split it or leave it out")]
    TooLarge {
        /// The requested path.
        path: String,
        /// Size of the file.
        size: u64,
    },
    /// The file is a pointer of Git LFS.
    #[error(
        "{path} is a Git LFS pointer, and the file that it stands for is not here: Moorline fetches those of a Sync's own repository; \
         elsewhere, run git lfs pull, or commit the file without LFS"
    )]
    LfsPointer {
        /// The requested path.
        path: String,
    },
    /// The file was not fetched.
    #[error("{path} was not fetched, because it is no manifest")]
    NotFetched {
        /// The requested path.
        path: String,
    },
    /// The file could not be decrypted.
    #[error("{error}")]
    Encrypted {
        /// Error message, with file and line.
        error: Box<str>,
    },
    /// The source could not read the file.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// The requested path.
        path: String,
        /// Error message of the operating system.
        reason: Box<str>,
    },
}
