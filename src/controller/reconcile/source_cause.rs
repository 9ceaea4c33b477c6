//! Causes of errors of a repository or chart server.
//!
//! In: the error. Out: the cause on which the controller decides.

use crate::report::ErrorCause;
use crate::source::Error;

/// Returns the cause of an error of a repository. An error on which no decision depends becomes
/// [`ErrorCause::Input`], with its reason.
pub(super) fn source_cause(error: &Error) -> ErrorCause {
    match error {
        Error::Denied { .. } | Error::KeyRefused { .. } => ErrorCause::RepositoryAccessDenied,
        Error::NoRepository { .. } => ErrorCause::RepositoryNotFound,
        Error::Untrusted { .. } => ErrorCause::RepositoryUntrusted,
        Error::NoReference { .. } => ErrorCause::ReferenceNotFound,
        Error::NoPath { .. } => ErrorCause::PathNotFound,
        Error::Stopped => ErrorCause::Stopped,
        Error::Module { cause, .. } => source_cause(cause),
        error => ErrorCause::Input(error.reason()),
    }
}
