//! One visit of a repository: lists its open pull requests, and plans what is new.
//!
//! In: the state of the repository. Out: the next state, and requests to its host. A page of the
//! list that has not changed is one request.

use super::super::super::Context;
use super::host_client::{HostClient, VisitError};
use super::plan_writer::write_plans;
use super::repository_state::RepositoryState;
use super::sync_plan::plan_sync;
use super::visit_budget::VisitBudget;
use super::{RepositoryKey, Turns};
use crate::clock;
use crate::notifications::CompiledNotifier;
use crate::report::pull_request::GroupSubject;

/// End of a visit without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VisitEnd {
    Done,
    /// The time of the visit was over; the next visit continues at once.
    Unfinished,
}

/// Visits a repository once.
pub(super) async fn visit(
    context: &Context,
    notifier: &CompiledNotifier,
    key: &RepositoryKey,
    (state, turns): (&mut RepositoryState, &Turns),
) -> Result<VisitEnd, VisitError> {
    let Some(options) = notifier.pull_requests() else { return Ok(VisitEnd::Done) };
    let client = HostClient::new(context, notifier, key).await?;
    refresh_list(&client, state, options.label.as_deref()).await?;
    if state.open.is_empty() {
        return Ok(VisitEnd::Done);
    }
    let center = &context.reporting.notifications;
    let notifiers = center.notifiers().unwrap_or_default();
    let targets = center.pull_requests.assigned(&notifiers).remove(key).unwrap_or_default();
    state.retain(&targets);
    let mut budget = VisitBudget::new(clock::now());
    let of = (notifier.service, options);
    let subject = GroupSubject {
        cluster: &center.cluster_name,
        namespace: &notifier.namespace,
        notifier: &notifier.name,
        head: "",
    };
    // Plans that have failed before come last, so that nothing waits for them.
    for is_retry in [false, true] {
        for (name, target) in &targets {
            let sync = (name, &**target, targets.len());
            let with = (&mut *state, &mut budget, is_retry);
            plan_sync((context, &client, turns), notifier.service, (subject, sync), with).await?;
        }
        if budget.is_late(clock::now()) {
            return Ok(VisitEnd::Unfinished);
        }
        if budget.is_over(clock::now()) {
            break;
        }
        let RepositoryState { open, user, .. } = &mut *state;
        for open in open.iter_mut().filter(|open| open.comment.is_due(is_retry, clock::now())) {
            match write_plans(&client, of, subject, (open, user)).await {
                Ok(()) => open.comment.is_done(),
                Err(error) => {
                    open.comment.retry.has_failed(Some(error.clone()));
                    budget.refuse(error)?;
                }
            }
        }
    }
    state.problem().map_or(Ok(VisitEnd::Done), |problem| Err(problem.clone()))
}

/// Reads the open pull requests, unless they are the same as before.
async fn refresh_list(
    client: &HostClient<'_>,
    state: &mut RepositoryState,
    label: Option<&str>,
) -> Result<(), VisitError> {
    if !state.list.refresh(client).await?.is_same {
        let open = state.list.requests().cloned().collect();
        state.set_open(open, label);
    }
    Ok(())
}
