//! Errors of fetching a chart.
//!
//! In: failures in this module.
//! Out: a [`ChartError`]. Content from a server is not quoted, except digests and the names of
//! files in an archive.

use std::borrow::Cow;

use super::super::error::Error;
use crate::semver_range::VersionRangeError;

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
    /// The version is neither one version nor a range.
    #[error("the chart's version: {0}")]
    Range(VersionRangeError),
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
    /// No published version fits the request.
    #[error("{server} has no {wanted} of the chart {name}{newest}")]
    NoVersion {
        /// The server.
        server: Box<str>,
        /// Name of the chart.
        name: Box<str>,
        /// The version or the range.
        wanted: Box<str>,
        /// The highest published version, as the rest of the sentence.
        newest: Box<str>,
    },
    /// A version that was taken up has other content now.
    #[error(
        "the chart {chart} was published again: its digest was {taken} when it was taken up, and is {found} now; \
         publish another version, or set the digest in spec.render.helm.chart to take the new content"
    )]
    Moved {
        /// Name and version.
        chart: Box<str>,
        /// The digest that was taken up.
        taken: Box<str>,
        /// The digest that the server announces.
        found: Box<str>,
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
        "{what} has the digest {found}, but {wanted} is expected; the version was published again, or the digest belongs to another version"
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
            Self::Url(_) | Self::Field { .. } | Self::Range(_) => "ChartRefInvalid",
            Self::Server(error) => error.reason(),
            Self::Missing { .. } | Self::Index { .. } | Self::NoVersion { .. } => "ChartNotFound",
            Self::Moved { .. } => "ChartMoved",
            Self::Redirect { .. } | Self::Registry { .. } | Self::Strange { .. } => "ChartServerUnusable",
            Self::Digest { .. } => "ChartDigestDiffers",
            Self::Archive(_) => "ChartArchiveInvalid",
        }
    }

    /// True if the server has answered, and its answer is that the request cannot be met. Otherwise
    /// a version that was taken up before is still the newest that is known.
    pub fn is_answer(&self) -> bool {
        match self {
            Self::Server(error) => error.needs_new_input() || error.is_distrust(),
            Self::Redirect { .. } | Self::Registry { .. } | Self::Strange { .. } => false,
            Self::Url(_)
            | Self::Field { .. }
            | Self::Range(_)
            | Self::Archive(_)
            | Self::Missing { .. }
            | Self::Index { .. }
            | Self::NoVersion { .. }
            | Self::Moved { .. }
            | Self::Digest { .. } => true,
        }
    }

    /// True if retrying is pointless: content with this digest never changes.
    pub fn needs_new_input(&self) -> bool {
        match self {
            Self::Url(_) | Self::Field { .. } | Self::Range(_) | Self::Archive(_) => true,
            Self::Server(error) => error.needs_new_input(),
            Self::Missing { .. }
            | Self::Index { .. }
            | Self::NoVersion { .. }
            | Self::Moved { .. }
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
