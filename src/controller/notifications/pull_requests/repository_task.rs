//! Visits one repository again and again.
//!
//! In: webhooks, and the time. Out: visits, and the problem of the host in the status of the
//! Notifier. Until the end of a limit that the host has named, nothing is asked of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::super::super::Context;
use super::super::Trouble;
use super::super::host_limits::limit_ends;
use super::super::notifier_status::{NotifierState, report_state};
use super::host_client::VisitError;
use super::pacing::Pacing;
use super::repository_state::RepositoryState;
use super::visit::{VisitEnd, visit};
use super::{RepositoryKey, Turns};
use crate::notifications::CompiledNotifier;

/// Shortest pause between two visits, also if many webhooks come.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// Visits a repository without end.
pub(super) async fn keep_repository(
    context: Arc<Context>,
    key: Arc<RepositoryKey>,
    called: Arc<Notify>,
    turns: Arc<Turns>,
) {
    let (mut state, mut pacing) = (RepositoryState::default(), Pacing::default());
    let center = &context.reporting.notifications;
    let mut has_succeeded = false;
    // The status is that of a new spec.
    center.note_trouble(&trouble_key(&key), None);
    loop {
        context.cluster.terms().wait_until_leading().await;
        let Some(notifier) = center.current(&key.notifier) else { return };
        if let Some(left) = center.limits.left(&notifier) {
            limit_ends(center.known.subscribe(), &notifier, left).await;
            continue;
        }
        let result = {
            let Ok(_turn) = turns.visits.acquire().await else { return };
            visit(&context, &notifier, &key, (&mut state, &turns)).await
        };
        // Others have had their turn.
        if result == Ok(VisitEnd::Unfinished) {
            tokio::time::sleep(LEAST_PAUSE).await;
            continue;
        }
        if let Err(error) = &result
            && let Some(pause) = error.limit
        {
            let until = center.limits.note(&notifier, pause);
            let problem = error.limited_until(&until);
            report_problem(&context, &notifier, &key, (&problem, Trouble::Limited(until))).await;
            continue;
        }
        let next = pacing.next(result.as_ref().map(drop), crate::controller::chance());
        let repository = &*key.path;
        match &result {
            Ok(_) => {
                let is_first = !std::mem::replace(&mut has_succeeded, true);
                report_end(&context, &notifier, &key, is_first).await;
            }
            Err(error) => {
                tracing::debug!(notifier = &*key.notifier, repository, %error, "a visit has failed");
                if next.is_reported {
                    report_problem(&context, &notifier, &key, (error, Trouble::Fails)).await;
                }
            }
        }
        tokio::time::sleep(LEAST_PAUSE).await;
        let pause = tokio::time::sleep(next.after.saturating_sub(LEAST_PAUSE));
        tokio::select! {
            () = pause => {}
            () = called.notified(), if next.may_be_called => {}
        }
    }
}

/// Reports a problem, once.
async fn report_problem(
    context: &Context,
    notifier: &CompiledNotifier,
    key: &RepositoryKey,
    (error, trouble): (&VisitError, Trouble),
) {
    if !context.reporting.notifications.note_trouble(&trouble_key(key), Some(trouble)) {
        return;
    }
    let (repository, problem) = (&*key.path, error.to_string());
    tracing::warn!(notifier = &*key.notifier, repository, problem, "no plans of pull requests");
    report(context, notifier, NotifierState::DeliveryFailed(problem)).await;
}

/// Reports the end of a problem, of this daemon or of an earlier one.
async fn report_end(context: &Context, notifier: &CompiledNotifier, key: &RepositoryKey, is_first: bool) {
    let center = &context.reporting.notifications;
    let is_over = center.note_trouble(&trouble_key(key), None);
    if is_over || is_first && center.note_trouble(&key.notifier, None) {
        report(context, notifier, NotifierState::Ready).await;
    }
}

async fn report(context: &Context, notifier: &CompiledNotifier, state: NotifierState) {
    let id = [notifier.namespace.clone(), notifier.name.clone(), notifier.uid.clone()];
    report_state(context, &id, notifier.generation, state).await;
}

/// Returns the name of the problem of a repository, beside those of deliveries.
fn trouble_key(key: &RepositoryKey) -> String {
    format!("{} {}/{}", key.notifier, key.host, key.path)
}
