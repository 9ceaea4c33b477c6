//! Why a repository gave no revision or no files.
//!
//! In: what went wrong in the parts of this station. Out: [`Error`], which names the server (never a URL with a
//! user in it) and what was attempted. Nothing that a server sent is ever quoted.

use std::borrow::Cow;

use super::address::AddressError;
use super::credentials::CredentialsError;
use super::signature::SignatureError;

/// Why a repository gave no revision or no files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The URL is wrong.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The Secret is wrong, or does not fit the URL.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A setting of the daemon is wrong.
    #[error("the setting {setting} {problem}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Nothing answers.
    #[error("{server} cannot be reached: {cause}")]
    Unreachable {
        /// The server.
        server: Box<str>,
        /// What the operating system said.
        cause: Box<str>,
    },
    /// The server is not who it should be, or does not accept who we are.
    #[error("no trusted connection to {server}: {cause}")]
    Untrusted {
        /// The server.
        server: Box<str>,
        /// What the TLS or ssh library said.
        cause: Box<str>,
    },
    /// The server took longer than it may.
    #[error("{server} did not {what} in time")]
    Timeout {
        /// The server.
        server: Box<str>,
        /// What it should have done.
        what: &'static str,
    },
    /// Files or a pack for which there is no memory now.
    #[error("there is no memory for it now: that of other Syncs takes all that the setting memory allows")]
    Crowded,
    /// Unpacking or reading that takes longer than there is time.
    #[error("unpacking what was fetched took longer than spec.timeout")]
    Slow,
    /// Nobody had time to ask the server.
    #[error("{server} was not asked yet: {why}")]
    Waiting {
        /// The server.
        server: Box<str>,
        /// Why.
        why: &'static str,
    },
    /// A host that may not be asked.
    #[error("{server} is not asked: {why}")]
    NotAllowed {
        /// The server.
        server: Box<str>,
        /// Why not.
        why: &'static str,
    },
    /// Login refused.
    #[error("{server} refuses access (status {status}); check the Secret and its rights on this repository")]
    Denied {
        /// The server.
        server: Box<str>,
        /// The HTTP status.
        status: u16,
    },
    /// An ssh key refused.
    #[error(
        "{server} does not accept the ssh key of the Secret for the user in the URL; add its public half there"
    )]
    KeyRefused {
        /// The server.
        server: Box<str>,
    },
    /// The server knows no such repository, or hides it.
    #[error("{server} has no repository at {path}, or hides it from this login")]
    NoRepository {
        /// The server.
        server: Box<str>,
        /// The path that was asked for.
        path: Box<str>,
    },
    /// The server is out of order or overloaded.
    #[error("{server} answers with status {status}")]
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
    /// Something answers, but not as Git does.
    #[error("{server} does not answer as a Git server: {what}")]
    BadAnswer {
        /// The server.
        server: Box<str>,
        /// What is wrong.
        what: &'static str,
    },
    /// An answer beyond its bound.
    #[error("{server} sends more than {limit} {what}")]
    TooLarge {
        /// The server.
        server: Box<str>,
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// A repository without commits.
    #[error("the repository has no commits yet")]
    Empty,
    /// A branch or tag that is not there, or a range that no tag is in.
    #[error("the repository has no {reference}{}", .nearest.as_ref().map(|name| format!(" (is {name} meant?)")).unwrap_or_default())]
    NoReference {
        /// What was asked for.
        reference: Box<str>,
        /// A name that is there and looks alike.
        nearest: Option<Box<str>>,
    },
    /// A commit that the server does not give out.
    #[error("the repository does not give out commit {commit}; it may be gone after a force push")]
    NoCommit {
        /// The commit.
        commit: Box<str>,
    },
    /// A path that is not in the commit, or not a folder.
    #[error("{path} {problem} in commit {commit}")]
    NoPath {
        /// The path.
        path: Box<str>,
        /// What is wrong with it.
        problem: Cow<'static, str>,
        /// The commit.
        commit: Box<str>,
    },
    /// A submodule that gives nothing.
    #[error("the submodule {path}: {cause}")]
    Module {
        /// Where it is in the repository.
        path: Box<str>,
        /// What is wrong with it.
        cause: Box<Self>,
    },
    /// A tree with more files or bytes than are read.
    #[error("{path} has more than {limit} {of}; name a folder with fewer")]
    TooMuch {
        /// The path.
        path: Box<str>,
        /// Of what.
        of: &'static str,
        /// The bound.
        limit: u64,
    },
    /// Objects that are missing or damaged, also after a fresh clone.
    #[error("the repository's objects are damaged or incomplete: {what}")]
    Corrupt {
        /// Where it was noticed.
        what: &'static str,
    },
    /// The local disk.
    #[error("cannot {what} in the data folder: {cause}")]
    Disk {
        /// What was attempted.
        what: &'static str,
        /// What the operating system said.
        cause: Box<str>,
    },
    /// A repository on the local disk that cannot be opened.
    #[error("{path} cannot be opened as a Git repository: {cause}")]
    Local {
        /// Its path.
        path: Box<str>,
        /// What the library said.
        cause: Box<str>,
    },
    /// A commit or tag that nobody signed who is trusted.
    #[error("{0}; what was applied before stays")]
    Unsigned(SignatureError),
    /// A commit that does not follow the one that was taken up before, where that is asked for.
    #[error(
        "{now} does not have {before} in its history, which is applied: it was pushed with force, and spec.source.git.verify \
         refuses that. Push a commit that follows {before}, or name the commit in spec.source.git.ref.commit; what was \
         applied before stays"
    )]
    Rewritten {
        /// The commit that was taken up before.
        before: Box<str>,
        /// The revision that was pushed.
        now: Box<str>,
    },
    /// A commit of which it cannot be known whether it follows the one before, where that is asked for.
    #[error(
        "it could not be proven that {now} follows {before}, which was taken up before, and spec.source.git.verify asks for \
         that: more commits lie between them than are looked at, or the server does not give them out. Name the commit in \
         spec.source.git.ref.commit; what was applied before stays"
    )]
    Unproven {
        /// The commit that was taken up before.
        before: Box<str>,
        /// The revision that was pushed.
        now: Box<str>,
    },
    /// A tag with a lower version than the one that was taken up before, where that is asked for.
    #[error(
        "{now} is a lower version than {before}, which was taken up before: that tag is gone, and spec.source.git.verify refuses \
         to go back. Push a tag with a higher version, or name the one that is wanted in spec.source.git.ref.tag; what was \
         applied before stays"
    )]
    Lowered {
        /// The tag that was taken up before.
        before: Box<str>,
        /// The one that is the highest now.
        now: Box<str>,
    },
    /// A part of this program stopped.
    #[error("reading the repository was stopped")]
    Stopped,
}

impl Error {
    /// One word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Address(_) => "SourceInvalid",
            Self::Credentials(_) => "CredentialsInvalid",
            Self::Setting { .. } => "SettingInvalid",
            Self::Unreachable { .. } => "RepositoryUnreachable",
            Self::Untrusted { .. } => "RepositoryUntrusted",
            Self::Timeout { .. } | Self::Slow => "RepositoryTimeout",
            Self::Waiting { .. } => "RepositoryWaiting",
            Self::NotAllowed { .. } => "HostNotAllowed",
            Self::Denied { .. } | Self::KeyRefused { .. } => "RepositoryAccessDenied",
            Self::NoRepository { .. } => "RepositoryNotFound",
            Self::Status { .. } => "RepositoryUnavailable",
            Self::Redirect { .. } => "RepositoryRedirect",
            Self::BadAnswer { .. } => "RepositoryBadAnswer",
            Self::TooLarge { .. } => "RepositoryTooLarge",
            Self::Empty => "RepositoryEmpty",
            Self::NoReference { .. } => "ReferenceNotFound",
            Self::NoCommit { .. } => "CommitNotFound",
            Self::NoPath { .. } => "PathNotFound",
            Self::Module { cause, .. } => cause.reason(),
            Self::TooMuch { .. } => "PathTooLarge",
            Self::Crowded => "MemoryBusy",
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

    /// True if only another Sync or Secret can help, so that asking again is pointless.
    pub fn needs_new_input(&self) -> bool {
        let asked = if let Self::Module { cause, .. } = self { cause } else { self };
        matches!(
            asked,
            Self::Address(_)
                | Self::Credentials(_)
                | Self::Setting { .. }
                | Self::Unsigned(_)
                | Self::Rewritten { .. }
                | Self::Unproven { .. }
                | Self::Lowered { .. }
        )
    }

    /// True if a revision was found, and is not to be trusted.
    pub fn is_distrust(&self) -> bool {
        matches!(
            self,
            Self::Unsigned(_) | Self::Rewritten { .. } | Self::Unproven { .. } | Self::Lowered { .. }
        )
    }
}
