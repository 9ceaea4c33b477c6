//! Errors of fetching a file from Git LFS.
//!
//! In: failures in this module.
//! Out: an [`LfsError`], which names the file, its id, and a way out. Content from a server is not
//! quoted, except digests.

use super::super::error::Error;
use super::{MAX_RENDER_BYTES, MAX_RENDER_FILES};
use moorline_core::tree::MAX_FILE_BYTES;

/// Error of fetching a file from Git LFS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is in Git LFS, and its file sha256:{oid} was not fetched: {problem}")]
pub struct LfsError {
    /// Path of the pointer.
    pub path: Box<str>,
    /// Id of the file.
    pub oid: Box<str>,
    /// The reason.
    pub problem: LfsProblem,
}

/// Reason for which a file of Git LFS was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LfsProblem {
    /// The request failed.
    #[error(transparent)]
    Server(#[from] Error),
    /// The server has no Git LFS, or hides it.
    #[error(
        "{server} has no Git LFS for this repository, or hides it from this login (status {status}); Moorline asks the \
         repository's own server and reads no .lfsconfig"
    )]
    NoLfs {
        /// The server.
        server: Box<str>,
        /// The HTTP status.
        status: u16,
    },
    /// The server does not have the file.
    #[error(
        "{server} does not have it; run git lfs push --all origin BRANCH where the file was committed, or commit it without LFS"
    )]
    Missing {
        /// The server.
        server: Box<str>,
    },
    /// The server answers in a way that no server of Git LFS should.
    #[error("{server} {problem}")]
    Invalid {
        /// The server.
        server: Box<str>,
        /// The problem.
        problem: &'static str,
    },
    /// The content has another size than the pointer says.
    #[error(
        "{server} sends a file that does not have the {size} bytes of the pointer; nothing of it is used, and it has to be \
         pushed again"
    )]
    Size {
        /// The server.
        server: Box<str>,
        /// The size in the pointer.
        size: u64,
    },
    /// The content has another digest than the pointer says.
    #[error(
        "{server} sends a file of {found}; nothing of it is used, and the right one has to be pushed again"
    )]
    Digest {
        /// The server.
        server: Box<str>,
        /// The actual digest.
        found: Box<str>,
    },
    /// The file is too large.
    #[error("it has {size} bytes; a file may have at most {MAX_FILE_BYTES}; split it or leave it out")]
    TooLarge {
        /// The size in the pointer.
        size: u64,
    },
    /// The files of one render are too large together.
    #[error(
        "this Sync reads more than {MAX_RENDER_BYTES} bytes or {MAX_RENDER_FILES} files from Git LFS; split its folder"
    )]
    TooMuch,
    /// Too many pointers lead to further ones.
    #[error("its fetches had to be repeated too often; commit some of the Sync's files without LFS")]
    Repeated,
    /// A server over ssh does not say who serves the files.
    #[error(
        "{server} does not say where its Git LFS is (git-lfs-authenticate); write the repository's https URL in \
         spec.source.git.url, or commit the file without LFS"
    )]
    NoTicket {
        /// The server.
        server: Box<str>,
    },
}

impl LfsError {
    /// Returns the reason for conditions.
    pub fn reason(&self) -> &'static str {
        match &self.problem {
            LfsProblem::Server(error) => error.reason(),
            LfsProblem::NoLfs { .. } | LfsProblem::NoTicket { .. } | LfsProblem::Missing { .. } => {
                "LfsFileMissing"
            }
            LfsProblem::Invalid { .. } | LfsProblem::Size { .. } | LfsProblem::Digest { .. } => {
                "LfsFileInvalid"
            }
            LfsProblem::TooLarge { .. } | LfsProblem::TooMuch | LfsProblem::Repeated => "FileUnreadable",
        }
    }

    /// True if only a change of the Sync or its files can help.
    pub fn needs_new_input(&self) -> bool {
        match &self.problem {
            LfsProblem::Server(error) => error.needs_new_input(),
            LfsProblem::TooLarge { .. } | LfsProblem::TooMuch | LfsProblem::Repeated => true,
            LfsProblem::NoLfs { .. }
            | LfsProblem::NoTicket { .. }
            | LfsProblem::Missing { .. }
            | LfsProblem::Invalid { .. }
            | LfsProblem::Size { .. }
            | LfsProblem::Digest { .. } => false,
        }
    }
}
