//! Errors of reading an artifact.
//!
//! In: failures in this module.
//! Out: an [`ArtifactError`]. Content from a registry is not quoted, except digests, media types
//! that a person may copy into a Sync, and paths in an archive.

use std::borrow::Cow;

/// Error of reading an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// The registry has no such artifact, or hides it.
    #[error("{server} has no {reference} in the repository {repository}, or hides it from this login")]
    Missing {
        /// The server.
        server: Box<str>,
        /// The path of the repository.
        repository: Box<str>,
        /// The reference.
        reference: Box<str>,
    },
    /// The registry answers in a way that no registry should.
    #[error("the registry {server} {problem}")]
    Registry {
        /// The server.
        server: Box<str>,
        /// The problem.
        problem: Cow<'static, str>,
    },
    /// The content has another digest or size than was announced.
    #[error(
        "the registry {server} sends {what} of {found}, but {wanted} was announced; nothing of it is used"
    )]
    Differs {
        /// The server.
        server: Box<str>,
        /// The content.
        what: &'static str,
        /// The actual digest or size.
        found: Box<str>,
        /// The announced one.
        wanted: Box<str>,
    },
    /// The manifest has no layer that can be read.
    #[error("the artifact {0}")]
    Manifest(Cow<'static, str>),
    /// The archive cannot be used.
    #[error("the archive in the artifact {0}")]
    Archive(Cow<'static, str>),
    /// A folder cannot be made an artifact, or an artifact a folder.
    #[error("{0}")]
    Folder(Box<str>),
}

impl ArtifactError {
    /// Returns the reason for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "RepositoryNotFound",
            Self::Registry { .. } => "RegistryUnusable",
            Self::Differs { .. } => "ArtifactDigestDiffers",
            Self::Manifest(_) | Self::Folder(_) => "ArtifactUnreadable",
            Self::Archive(_) => "ArtifactArchiveInvalid",
        }
    }

    /// True if retrying is pointless: content of one digest never changes.
    pub fn needs_new_input(&self) -> bool {
        matches!(self, Self::Manifest(_) | Self::Archive(_) | Self::Folder(_))
    }
}
