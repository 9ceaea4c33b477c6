//! Errors of fetching a chart.
//!
//! In: failures in this module.
//! Out: a [`ChartError`]. Content from a server is not quoted, except digests and the names of
//! files in an archive.

use std::borrow::Cow;

use super::super::error::Error;

/// Error of fetching a chart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    /// The URL is invalid or not allowed.
    #[error("the chart's URL {0}")]
    Url(&'static str),
    /// The name, version or digest is invalid.
    #[error("the chart's {field} {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// The problem.
        problem: &'static str,
    },
    /// The request failed.
    #[error(transparent)]
    Server(Error),
    /// The server does not behave as a chart server.
    #[error("{server} does not respond as a chart server: {what}")]
    Strange {
        /// The server.
        server: Box<str>,
        /// The problem.
        what: &'static str,
    },
    /// The server has no such file.
    #[error("{server} has nothing at {path}, or hides it from this login")]
    Missing {
        /// The server.
        server: Box<str>,
        /// The requested path.
        path: Box<str>,
    },
    /// A redirect that is not followed.
    #[error("{server} redirects {problem}, which is not followed")]
    Redirect {
        /// The server.
        server: Box<str>,
        /// Target of the redirect.
        problem: &'static str,
    },
    /// The index does not have the chart.
    #[error("the index of {server} {problem}")]
    Index {
        /// The server.
        server: Box<str>,
        /// The problem.
        problem: Cow<'static, str>,
    },
    /// The registry returned something unusable.
    #[error("the registry {server} {problem}")]
    Registry {
        /// The server.
        server: Box<str>,
        /// The problem.
        problem: &'static str,
    },
    /// The published content has another digest than configured.
    #[error(
        "{what} has the digest {found}, but {wanted} is configured; the version was published again, or the digest belongs to another version"
    )]
    Digest {
        /// The content that was hashed.
        what: &'static str,
        /// The configured digest.
        wanted: Box<str>,
        /// The actual digest.
        found: Box<str>,
    },
    /// The archive is not a chart, or is malicious.
    #[error("the chart's archive {0}")]
    Archive(Cow<'static, str>),
}

impl ChartError {
    /// Returns the reason for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Url(_) | Self::Field { .. } => "ChartRefInvalid",
            Self::Server(error) => error.reason(),
            Self::Missing { .. } | Self::Index { .. } => "ChartNotFound",
            Self::Redirect { .. } | Self::Registry { .. } | Self::Strange { .. } => "ChartServerUnusable",
            Self::Digest { .. } => "ChartDigestDiffers",
            Self::Archive(_) => "ChartArchiveInvalid",
        }
    }

    /// True if retrying is pointless: content with this digest never changes.
    pub fn needs_new_input(&self) -> bool {
        match self {
            Self::Url(_) | Self::Field { .. } | Self::Archive(_) => true,
            Self::Server(error) => error.needs_new_input(),
            Self::Missing { .. }
            | Self::Index { .. }
            | Self::Redirect { .. }
            | Self::Registry { .. }
            | Self::Strange { .. }
            | Self::Digest { .. } => false,
        }
    }
}

impl From<Error> for ChartError {
    fn from(error: Error) -> Self {
        match error {
            // The other message is about Git servers.
            Error::InvalidResponse { server, what } => Self::Strange { server, what },
            error => Self::Server(error),
        }
    }
}
