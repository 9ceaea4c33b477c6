//! Errors of repositories, charts, helm and the API server as errors of a reconcile.
//!
//! In: an error of a request, a fetch or a render.
//! Out: a [`ReconcileError`] with its cause, and whether only a new input can end it.

use crate::cluster::ApiError;
use crate::helm::HelmError;
use crate::render::helm::LockedDependency;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{ArtifactError, ChartError, Error};

/// Maps an error of a repository to a reconcile error.
pub(crate) fn source_error(error: Error) -> ReconcileError {
    ReconcileError {
        cause: source_cause(&error),
        message: error.to_string(),
        problems: Vec::new(),
        permanent: error.needs_new_input(),
    }
}

/// Maps an error of the cluster to a reconcile error.
pub(crate) fn cluster_error(failure: &ApiError) -> ReconcileError {
    let cause = match failure.code() {
        Some(401 | 403) => ErrorCause::RightsMissing,
        // A server that answers 429 is reachable: it is about to serve a new kind, or is busy.
        Some(429) => ErrorCause::Progressing,
        Some(_) | None => ErrorCause::ClusterUnreachable,
    };
    ReconcileError { cause, message: failure.to_string(), problems: Vec::new(), permanent: false }
}

/// Maps an error of a chart to a reconcile error.
pub(crate) fn of_chart(error: &ChartError) -> ReconcileError {
    ReconcileError {
        cause: match error {
            ChartError::Server(error) => source_cause(error),
            error => ErrorCause::Input(error.reason()),
        },
        message: error.to_string(),
        problems: Vec::new(),
        permanent: error.needs_new_input(),
    }
}

/// Maps an error of a dependency to a reconcile error.
pub(in crate::controller) fn of_dependency(
    dependency: &LockedDependency,
    error: &ChartError,
) -> ReconcileError {
    let reconcile_error = of_chart(error);
    let message =
        format!("the dependency {} {}: {}", dependency.name, dependency.version, reconcile_error.message);
    ReconcileError { message, ..reconcile_error }
}

/// The refusal of what comes from elsewhere in the text of a stranger.
pub(in crate::controller) fn comes_from_elsewhere(what: &str) -> ReconcileError {
    let message = format!("it names {what}, and nothing is fetched for a pull request");
    let (cause, problems) = (ErrorCause::RenderFailed, Vec::new());
    ReconcileError { cause, message, problems, permanent: true }
}

/// Refuses a dependency beside a signed chart: a signature covers only what is in its archive, and
/// Chart.lock has versions, not digests.
pub(in crate::controller) fn check_signed(
    is_signed: bool,
    dependency: &LockedDependency,
) -> Result<(), ReconcileError> {
    if !is_signed {
        return Ok(());
    }
    let LockedDependency { name, version, .. } = dependency;
    let message = format!(
        "the dependency {name} {version} is not in the signed chart, so render.helm.chart.verify does not cover it; \
         run `helm dependency update` before `helm package`, publish and sign that version"
    );
    let (cause, problems) = (ErrorCause::Input("SignatureMissing"), Vec::new());
    Err(ReconcileError { cause, message, problems, permanent: true })
}

pub(in crate::controller) fn being_fetched() -> ReconcileError {
    let message = "charts are being fetched".to_owned();
    ReconcileError { cause: ErrorCause::Stopped, message, problems: Vec::new(), permanent: false }
}

pub(in crate::controller) fn of_helm(failure: HelmError) -> ReconcileError {
    let cause = match &failure {
        HelmError::Stopped => ErrorCause::Stopped,
        failure => ErrorCause::Input(failure.reason()),
    };
    let lasting = failure.is_permanent();
    ReconcileError { cause, message: failure.to_string(), problems: Vec::new(), permanent: lasting }
}

/// Returns the cause of an error of a repository; where nothing depends on it, its reason.
pub(in crate::controller) fn source_cause(error: &Error) -> ErrorCause {
    match error {
        Error::Denied { .. } | Error::KeyRefused { .. } => ErrorCause::RepositoryAccessDenied,
        Error::NoRepository { .. } | Error::Artifact(ArtifactError::Missing { .. }) => {
            ErrorCause::RepositoryNotFound
        }
        Error::Untrusted { .. } => ErrorCause::RepositoryUntrusted,
        Error::NoReference { .. } => ErrorCause::ReferenceNotFound,
        Error::NoPath { .. } => ErrorCause::PathNotFound,
        Error::Stopped => ErrorCause::Stopped,
        Error::Module { cause, .. } => source_cause(cause),
        error => ErrorCause::Input(error.reason()),
    }
}

pub(crate) fn too_slow() -> ReconcileError {
    let message = "rendering took longer than spec.timeout".to_owned();
    ReconcileError { cause: ErrorCause::RenderFailed, message, problems: Vec::new(), permanent: false }
}
