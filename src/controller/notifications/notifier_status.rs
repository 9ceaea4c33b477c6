//! Writes the status of a Notifier.
//!
//! In: a state. Out: one write, without a retry: the next change writes again.

use super::super::Context;
use super::super::status::now;
use crate::cluster::NotifierRequests;
use crate::controller::status::ready_status::{ReadyCondition, ready_status};

/// State of a Notifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotifierState {
    /// Its spec is valid, and nothing speaks against the service.
    Ready,
    /// Its spec is refused, with the problems.
    SpecInvalid(String),
    /// The service does not take notifications, with the problem.
    DeliveryFailed(String),
}

/// Writes the state of the Notifier with this namespace, name and uid.
pub(super) async fn report_state(
    context: &Context,
    [namespace, name, uid]: &[Box<str>; 3],
    generation: Option<i64>,
    state: NotifierState,
) {
    let (status, reason, message) = match state {
        NotifierState::Ready => ("True", "Ready", String::new()),
        NotifierState::SpecInvalid(problems) => ("False", "SpecInvalid", problems),
        NotifierState::DeliveryFailed(problem) => ("False", "DeliveryFailed", problem),
    };
    let since = &now().0.to_string();
    let status = ready_status(generation, &ReadyCondition { status, reason, message: &message, since });
    let written = NotifierRequests::new(&context.cluster).write_status((namespace, name, uid), &status).await;
    if let Err(failure) = written {
        tracing::debug!(notifier = format!("{namespace}/{name}"), %failure, "a status could not be written");
    }
}
