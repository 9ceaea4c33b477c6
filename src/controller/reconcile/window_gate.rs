//! Keeps a revision from being applied while a change window is closed.
//!
//! In: a revision with its rendered objects, the windows, and the override of a person.
//! Out: nothing if it may be applied; else an error, and what is held in the memory of the Sync.
//!
//! Repair of the applied revision goes on, and so does a roll-out that began before the edge: its
//! revision is in the status. The way back to an earlier revision is always open. An override is in
//! the status before the first write of its revision.

use std::sync::Arc;

use super::prepare::PreparedRevision;
use super::refused_commit::{forget_refusal, hold_for_window};
use super::revision_gate::{ask, keyless, rendered, usage};
use super::{Aim, ReconcileContext, ReconcileResult};
use crate::api::{
    HeldByWindow, OVERRIDE_ANNOTATION, OverriddenRevision, Reason, SpecHash, SyncStatus, WindowOverride,
};
use crate::cluster::WatchRequirements;
use crate::controller::memory::SyncMemory;
use crate::controller::reconcile::inventory_scope::unwritten;
use crate::controller::status::approvals::applied_before;
use crate::controller::status::overrides::{labels, last_override, record_override};
use crate::desired::HashMatch;
use crate::plan::{RenderedRevision, RevisionRequest};
use crate::report::{ErrorCause, ReconcileError, RevisionUse, covering_approval};
use crate::windows::{ClosedWindow, WindowState};

/// Checks that the windows let a revision be applied.
///
/// # Errors
///
/// Returns `WindowClosed` while a window holds it.
pub(super) async fn check_windows(
    inputs: &ReconcileContext<'_>,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    need: &WatchRequirements,
    report: &mut ReconcileResult,
) -> Result<(), ReconcileError> {
    let Some(recorder) = inputs.resource_recorder else { return Ok(()) };
    let revision = inputs.revision.to_string();
    let rendered = rendered(inputs, &revision, prepared);
    let is_free = is_known(&recorder.status(), rendered, usage(inputs), inputs.is_chosen);
    let state = match is_free {
        true => WindowState::Open,
        false => {
            let cluster = &inputs.context.cluster;
            inputs.context.windows.state_of(cluster, inputs.owner, &labels(recorder)).await
        }
    };
    let WindowState::Closed(closed) = state else {
        if memory.refused_commit.as_ref().is_some_and(|it| it.window.is_some()) {
            forget_refusal(inputs, memory);
        }
        return Ok(());
    };
    if matches!(inputs.aim, Aim::Keep { .. }) {
        let message = format!("what {revision} renders to now was not applied, and is {closed}");
        return Err(window_closed(message));
    }
    // Only with everything observed does the plan name all deletions.
    let blind = inputs.cluster.ensure_watches(inputs.owner, need, inputs.valid_spec.timeout).await;
    let Some(request) = ask(inputs, rendered, prepared) else { return Err(keyless()) };
    let given = inputs.window_override;
    match given.map(|given| judge_override(given, &request)) {
        Some(Ok(taken)) if blind.is_empty() => {
            if !record_override(recorder, taken.clone(), inputs.valid_spec.timeout).await {
                return Err(unwritten());
            }
            report.overridden = Some(taken);
            forget_refusal(inputs, memory);
            Ok(())
        }
        judged => {
            let note = judged.and_then(Result::err).map(|note| format!("; {note}")).unwrap_or_default();
            let error = window_closed(format!("{revision} is {closed}{note}"));
            hold_for_window(inputs, memory, error.clone(), Arc::new(held(&request, &closed)));
            Err(error)
        }
    }
}

/// Returns the override that a person gave for the revision of a reconcile.
pub(super) fn override_of_revision(inputs: &ReconcileContext<'_>) -> Option<OverriddenRevision> {
    let known = last_override(inputs.resource_recorder?)?;
    (known.revision == inputs.revision.to_string()).then_some(known)
}

/// True if a revision is no news to the cluster: it was applied as it renders now, or it is an
/// earlier one to which a person or a rollback goes back.
fn is_known(status: &SyncStatus, what: RenderedRevision<'_>, why: RevisionUse, is_chosen: bool) -> bool {
    let applied = applied_before(status);
    let is_other = |digest: &Option<String>| {
        let recorded = digest.as_deref().and_then(SpecHash::parse);
        recorded.is_some_and(|recorded| what.digest.matches(&recorded) == HashMatch::Other)
    };
    let same = applied.iter().find(|known| known.revision == what.revision);
    let is_as_applied = same.is_none_or(|known| !is_other(&known.digest));
    match why {
        RevisionUse::Newest => covering_approval(&applied, what, why).is_some(),
        RevisionUse::Held => is_as_applied,
        RevisionUse::WayBack if !is_chosen => true,
        RevisionUse::WayBack => match same {
            Some(_) => is_as_applied,
            None => status.history.iter().any(|it| it.revision == what.revision && was_applied(&it.result)),
        },
    }
}

/// True if an entry of the history is about a revision whose objects were applied.
fn was_applied(result: &str) -> bool {
    let result = Reason::parse(result);
    matches!(
        result,
        Some(
            Reason::Applied
                | Reason::Degraded
                | Reason::HealthUnknown
                | Reason::PruneHeld
                | Reason::Contested
        )
    )
}

/// Returns the override, or the reason why it does not count.
fn judge_override(given: &WindowOverride, request: &RevisionRequest) -> Result<OverriddenRevision, String> {
    if given.hash != request.hash {
        return Err(format!("{OVERRIDE_ANNOTATION} is about another plan"));
    }
    let Some(by) = given.by.clone() else {
        return Err(format!("{OVERRIDE_ANNOTATION}-by names no person for this plan"));
    };
    if given.reason.is_empty() {
        return Err(format!("{OVERRIDE_ANNOTATION}-reason is missing"));
    }
    let (revision, hash, reason) = (request.revision.clone(), request.hash.clone(), given.reason.clone());
    Ok(OverriddenRevision { revision, hash, by, reason })
}

fn held(request: &RevisionRequest, closed: &ClosedWindow) -> HeldByWindow {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    HeldByWindow {
        revision: request.revision.clone(),
        hash: request.hash.clone(),
        by: closed.by.clone(),
        until: closed.until.clone(),
        created: number(request.created),
        changed: number(request.changed),
        pruned: number(request.pruned),
        plan: request.lines.clone(),
    }
}

fn window_closed(message: String) -> ReconcileError {
    ReconcileError { cause: ErrorCause::WindowClosed, message, problems: Vec::new(), permanent: true }
}
