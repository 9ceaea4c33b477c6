//! Why there is no chart.
//!
//! In: what went wrong in the parts of this folder. Out: [`ChartError`]. Nothing that a server sent is quoted, but digests and the
//! names of files in an archive.

use std::borrow::Cow;

use super::super::error::Error;

/// Why there is no chart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChartError {
    /// A URL that is wrong, or that leads where nobody goes.
    #[error("the chart's URL {0}")]
    Url(&'static str),
    /// A name, a version or a digest that is none.
    #[error("the chart's {field} {problem}")]
    Field {
        /// Which.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// What a server answered, or that it did not.
    #[error(transparent)]
    Server(Error),
    /// Something answers, but not as a server of charts does.
    #[error("{server} does not answer as a server of charts: {what}")]
    Strange {
        /// The server.
        server: Box<str>,
        /// What is wrong.
        what: &'static str,
    },
    /// A server that has nothing where something was asked for.
    #[error("{server} has nothing at {path}, or hides it from this login")]
    Missing {
        /// The server.
        server: Box<str>,
        /// The path that was asked for.
        path: Box<str>,
    },
    /// A redirect that is not followed.
    #[error("{server} redirects {problem}, which is not followed")]
    Redirect {
        /// The server.
        server: Box<str>,
        /// Where to.
        problem: &'static str,
    },
    /// An index without the chart.
    #[error("the index of {server} {problem}")]
    Index {
        /// The server.
        server: Box<str>,
        /// What is wrong with it.
        problem: Cow<'static, str>,
    },
    /// A registry that says something else than what is needed.
    #[error("the registry {server} {problem}")]
    Registry {
        /// The server.
        server: Box<str>,
        /// What is wrong.
        problem: &'static str,
    },
    /// Something else was published under this version than what is asked for.
    #[error(
        "{what} has the digest {found}, and {wanted} is asked for; somebody published something else, or the digest is of another version"
    )]
    Digest {
        /// What was measured.
        what: &'static str,
        /// What was asked for.
        wanted: Box<str>,
        /// What is there.
        found: Box<str>,
    },
    /// An archive that is no chart, or one that would do harm.
    #[error("the chart's archive {0}")]
    Archive(Cow<'static, str>),
}

impl ChartError {
    /// The word for it, as conditions show it.
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

    /// True if asking again for the same is pointless: what has this digest stays as it is.
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
            // Said of servers of Git there.
            Error::BadAnswer { server, what } => Self::Strange { server, what },
            error => Self::Server(error),
        }
    }
}
