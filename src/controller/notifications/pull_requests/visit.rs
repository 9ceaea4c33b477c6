//! One visit of a repository: lists its open pull requests, and plans what is new.
//!
//! In: the state of the repository. Out: the next state, and requests to its host. A list that has
//! not changed is one request.

use super::super::super::Context;
use super::host_client::{HostClient, ListAnswer, VisitError};
use super::repository_state::RepositoryState;
use super::sync_plan::plan_sync;
use super::{RepositoryKey, Turns};
use crate::notifications::CompiledNotifier;
use crate::notifications::pull_requests::{PullRequestHost, open_requests};

/// Most pages of open pull requests that are read.
const MAX_PAGES: usize = 4;

/// Visits a repository once.
pub(super) async fn visit(
    context: &Context,
    notifier: &CompiledNotifier,
    key: &RepositoryKey,
    (state, turns): (&mut RepositoryState, &Turns),
) -> Result<(), VisitError> {
    let Some(options) = notifier.pull_requests() else { return Ok(()) };
    let client = HostClient::new(context, notifier, key).await?;
    refresh_list(&client, notifier, state, options.label.as_deref()).await?;
    if state.open.is_empty() {
        return Ok(());
    }
    let center = &context.reporting.notifications;
    let notifiers = center.notifiers().unwrap_or_default();
    let targets = center.pull_requests.assigned(&notifiers).remove(key).unwrap_or_default();
    state.retain(&targets);
    for (name, target) in &targets {
        plan_sync((context, &client, turns), (notifier.service, options), (name, target), state).await?;
    }
    Ok(())
}

/// Reads the open pull requests, unless they are the same as before.
async fn refresh_list(
    client: &HostClient<'_>,
    notifier: &CompiledNotifier,
    state: &mut RepositoryState,
    label: Option<&str>,
) -> Result<(), VisitError> {
    let (service, what) = (notifier.service, "the open pull requests");
    let first = client.list(what, client.host().list_open(1, state.etag.as_deref())).await?;
    let ListAnswer::Changed(mut answer, etag) = first else { return Ok(()) };
    let mut listed = open_requests(service, &answer);
    let is_full = |answer: &serde_json::Value| {
        answer.as_array().is_some_and(|items| items.len() >= PullRequestHost::PAGE)
    };
    for page in 2..=MAX_PAGES {
        if !is_full(&answer) {
            break;
        }
        answer = client.read(what, client.host().list_open(page, None)).await?;
        listed.extend(open_requests(service, &answer));
    }
    state.set_open(listed, label);
    state.etag = etag;
    Ok(())
}
