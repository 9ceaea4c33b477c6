//! Errors of reading a repository.
//!
//! In: failures in this crate.
//! Out: an [`Error`], which names the server (never a URL with a user) and the attempted action.
//! Content from a server is never quoted.

use std::borrow::Cow;

use super::address::AddressError;
use super::artifact::ArtifactError;
use super::secret_keys::CredentialsError;
use super::signature::SignatureError;

/// Error of finding a revision or reading its files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The URL is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// An artifact cannot be read.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The Secret is invalid, or does not fit the URL.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A setting of the daemon is invalid.
    #[error("the setting {setting} {problem}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// The problem.
        problem: &'static str,
    },
    /// There is no connection.
    #[error("{server} cannot be reached: {cause}")]
    Unreachable {
        /// The server.
        server: Box<str>,
        /// Error of the operating system.
        cause: Box<str>,
    },
    /// The server's identity is not trusted, or it does not accept our certificate.
    #[error("no trusted connection to {server}: {cause}")]
    Untrusted {
        /// The server.
        server: Box<str>,
        /// Error of the TLS or ssh library.
        cause: Box<str>,
    },
    /// The server took too long.
    #[error("{server} did not {what} in time")]
    Timeout {
        /// The server.
        server: Box<str>,
        /// The expected action.
        what: &'static str,
    },
    /// There is no memory for files or a pack now.
    #[error("not enough memory now: other Syncs use all that the setting memory allows")]
    NoMemory,
    /// Unpacking or reading exceeded the timeout.
    #[error("unpacking the fetched pack took longer than spec.timeout")]
    Slow,
    /// No worker was free to send the request.
    #[error("{server} was not contacted yet: {why}")]
    Waiting {
        /// The server.
        server: Box<str>,
        /// The reason.
        why: &'static str,
    },
    /// The host is not allowed.
    #[error("{server} must not be contacted: {why}")]
    NotAllowed {
        /// The server.
        server: Box<str>,
        /// The reason.
        why: &'static str,
    },
    /// The login was refused.
    #[error("{server} refuses access (status {status}); check the Secret and its rights on this repository")]
    Denied {
        /// The server.
        server: Box<str>,
        /// The HTTP status.
        status: u16,
    },
    /// A GitHub App got no token.
    #[error("{server} gives the GitHub App of the Secret no token: {problem}")]
    NoToken {
        /// The server of the API.
        server: Box<str>,
        /// The reason, and a way out.
        problem: Box<str>,
    },
    /// A cloud gives no credentials.
    #[error("{holder} gets no credentials of {cloud}: {problem}")]
    NoIdentity {
        /// The ServiceAccount, or the key.
        holder: Box<str>,
        /// The cloud.
        cloud: &'static str,
        /// The reason, and a way out.
        problem: Box<str>,
    },
    /// The ssh key was refused.
    #[error(
        "{server} does not accept the ssh key of the Secret for the user in the URL; add its public half there"
    )]
    KeyRefused {
        /// The server.
        server: Box<str>,
    },
    /// The server has no such repository, or hides it.
    #[error("{server} has no repository at {path}, or hides it from this login")]
    NoRepository {
        /// The server.
        server: Box<str>,
        /// The requested path.
        path: Box<str>,
    },
    /// The server is broken or overloaded.
    #[error("{server} returned status {status}")]
    Status {
        /// The server.
        server: Box<str>,
        /// The HTTP status.
        status: u16,
    },
    /// A redirect that is not followed.
    #[error("{server} redirects elsewhere, which is not followed; write the repository's final URL")]
    Redirect {
        /// The server.
        server: Box<str>,
    },
    /// The response is not one of a Git server.
    #[error("{server} does not respond as a Git server: {what}")]
    InvalidResponse {
        /// The server.
        server: Box<str>,
        /// The problem.
        what: &'static str,
    },
    /// The response exceeds its bound.
    #[error("{server} sends more than {limit} {what}")]
    TooLarge {
        /// The server.
        server: Box<str>,
        /// The bounded quantity.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// The repository has no commits.
    #[error("the repository has no commits yet")]
    Empty,
    /// There is no such branch or tag, or no tag within the version range.
    #[error("the repository has no {reference}{}", .nearest.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default())]
    NoReference {
        /// The requested reference.
        reference: Box<str>,
        /// A similar name that exists.
        nearest: Option<Box<str>>,
    },
    /// The server does not serve the commit.
    #[error("the repository does not serve commit {commit}; it may have been removed by a force push")]
    NoCommit {
        /// The commit.
        commit: Box<str>,
    },
    /// The path does not exist in the commit, or is not a folder.
    #[error("{path} {problem} in commit {commit}")]
    NoPath {
        /// The path.
        path: Box<str>,
        /// The problem.
        problem: Cow<'static, str>,
        /// The commit.
        commit: Box<str>,
    },
    /// A submodule cannot be read.
    #[error("the submodule {path}: {cause}")]
    Module {
        /// Its path in the repository.
        path: Box<str>,
        /// The error.
        cause: Box<Self>,
    },
    /// The tree exceeds the bound of files or bytes.
    #[error("{path} has more than {limit} {of}; name a folder with fewer")]
    TooMuch {
        /// The path.
        path: Box<str>,
        /// The bounded quantity.
        of: &'static str,
        /// The bound.
        limit: u64,
    },
    /// Objects are missing or damaged, even after a fresh clone.
    #[error("the repository's objects are damaged or incomplete: {what}")]
    Corrupt {
        /// The object or operation that failed.
        what: &'static str,
    },
    /// The local disk failed.
    #[error("cannot {what} in the data folder: {cause}")]
    Disk {
        /// The attempted action.
        what: &'static str,
        /// Error of the operating system.
        cause: Box<str>,
    },
    /// A repository on the local disk cannot be opened.
    #[error("{path} cannot be opened as a Git repository: {cause}")]
    Local {
        /// Its path.
        path: Box<str>,
        /// Error of the library.
        cause: Box<str>,
    },
    /// The commit or tag has no signature by a trusted key.
    #[error("{0}; the last applied revision stays")]
    Unsigned(SignatureError),
    /// The commit does not descend from the previous one, although that is required.
    #[error(
        "{now} does not have {before} in its history, which is applied: it was pushed with force, and spec.source.git.verify \
         refuses that. Push a commit that follows {before}, or name the commit in spec.source.git.ref.commit; the last \
         applied revision stays"
    )]
    Rewritten {
        /// The previously accepted commit.
        before: Box<str>,
        /// The revision that was pushed.
        now: Box<str>,
    },
    /// The descent from the previous commit is required and cannot be proven.
    #[error(
        "it could not be proven that {now} follows {before}, which was accepted before, and spec.source.git.verify requires \
         that: there are too many commits between them, or the server does not serve them. Name the commit in \
         spec.source.git.ref.commit; the last applied revision stays"
    )]
    Unproven {
        /// The previously accepted commit.
        before: Box<str>,
        /// The revision that was pushed.
        now: Box<str>,
    },
    /// The tag has a lower version than the previous one, although that is forbidden.
    #[error(
        "{now} is a lower version than {before}, which was accepted before: that tag is gone, and the verify of the source refuses \
         to go back. Push a tag with a higher version, or name the one that is wanted in ref.tag; the last applied revision stays"
    )]
    Lowered {
        /// The previously accepted tag.
        before: Box<str>,
        /// The highest tag now.
        now: Box<str>,
    },
    /// A task of this program was stopped.
    #[error("reading the repository was stopped")]
    Stopped,
}

impl Error {
    /// Returns the reason for conditions, Events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Address(_) => "SourceInvalid",
            Self::Artifact(error) => error.reason(),
            Self::Credentials(_) => "CredentialsInvalid",
            Self::Setting { .. } => "SettingInvalid",
            Self::Unreachable { .. } => "RepositoryUnreachable",
            Self::Untrusted { .. } => "RepositoryUntrusted",
            Self::Timeout { .. } | Self::Slow => "RepositoryTimeout",
            Self::Waiting { .. } => "RepositoryWaiting",
            Self::NotAllowed { .. } => "HostNotAllowed",
            Self::Denied { .. }
            | Self::NoToken { .. }
            | Self::NoIdentity { .. }
            | Self::KeyRefused { .. } => "RepositoryAccessDenied",
            Self::NoRepository { .. } => "RepositoryNotFound",
            Self::Status { .. } => "RepositoryUnavailable",
            Self::Redirect { .. } => "RepositoryRedirect",
            Self::InvalidResponse { .. } => "RepositoryInvalidResponse",
            Self::TooLarge { .. } => "RepositoryTooLarge",
            Self::Empty => "RepositoryEmpty",
            Self::NoReference { .. } => "ReferenceNotFound",
            Self::NoCommit { .. } => "CommitNotFound",
            Self::NoPath { .. } => "PathNotFound",
            Self::Module { cause, .. } => cause.reason(),
            Self::TooMuch { .. } => "PathTooLarge",
            Self::NoMemory => "MemoryBusy",
            Self::Corrupt { .. } => "RepositoryCorrupt",
            Self::Disk { .. } => "DataFolder",
            Self::Local { .. } => "RepositoryUnreadable",
            Self::Unsigned(error) => error.problem.reason(),
            Self::Rewritten { .. } => "HistoryRewritten",
            Self::Unproven { .. } => "HistoryUnknown",
            Self::Lowered { .. } => "VersionLowered",
            Self::Stopped => "Stopped",
        }
    }

    /// True if only a change of the Sync or Secret can help, so that retrying is pointless.
    pub fn needs_new_input(&self) -> bool {
        let asked = if let Self::Module { cause, .. } = self { cause } else { self };
        if let Self::Artifact(error) = asked {
            return error.needs_new_input();
        }
        if let Self::Unsigned(error) = asked {
            return !error.problem.may_be_signed_later();
        }
        matches!(
            asked,
            Self::Address(_)
                | Self::Credentials(_)
                | Self::Setting { .. }
                | Self::Rewritten { .. }
                | Self::Unproven { .. }
                | Self::Lowered { .. }
        )
    }

    /// True if a revision was found but is not trusted.
    pub fn is_distrust(&self) -> bool {
        matches!(
            self,
            Self::Unsigned(_) | Self::Rewritten { .. } | Self::Unproven { .. } | Self::Lowered { .. }
        )
    }
}
