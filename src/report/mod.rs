//! Builds the status of a Sync from the results of the controller.
//!
//! In: the previous status, and [`StatusInputs`]. Out: the new status. Equal inputs give an equal
//! status, so the writer can skip needless writes; times change only together with something else.

mod approval;
mod approved_revisions;
pub mod board;
mod conditions;
mod error_cause;
mod health_condition;
mod history;
mod hold;
mod inputs;
pub mod live_tree;
mod missing_object;
pub mod next_plan;
mod problems;
pub mod pull_request;
mod status_words;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{
    AppliedChart, Approval, ObjectCounts, Revisions, SpecHash, SyncStatus, applied_mounts, short_revision,
};
use crate::desired::{HashMatch, SetDigest};
use crate::object::ObjectId;
use crate::plan::{Hold, Outcome};
use approval::pending_approvals;
pub use approved_revisions::{RevisionUse, add_approval, covering_approval};
use conditions::{ReadyVerdict, conditions};
pub use error_cause::ErrorCause;
use health_condition::HealthCondition;
pub use history::add_changes;
use history::record_history;
use hold::{chosen, with_hold};
pub use inputs::{
    CommitDescription, ObjectRemark, PendingRetries, ReconcileError, ReconcileInputs, RolledBackRevision,
    SeenRevision, StatusInputs,
};
pub use problems::count_unlisted;
use problems::{bounded, contested, object_problems, problems};
pub use status_words::{ready, waiting};

/// The most problems that a status lists.
const MAX_PROBLEMS: usize = 10;
/// The most characters of a message.
const MAX_MESSAGE: usize = 1000;

/// Builds the new status. Equal inputs give an equal status.
pub fn status(before: &SyncStatus, facts: &StatusInputs<'_>) -> SyncStatus {
    let wellness = HealthCondition::build(before, facts);
    let verdict = ReadyVerdict::build(facts, wellness.as_ref()).with_lost_permissions(before, facts);
    let verdict = with_hold(verdict, facts);
    let mut status = SyncStatus {
        observed_generation: facts.generation,
        held_by: facts.held_by.clone(),
        last_handled_request: facts.request.clone().or_else(|| before.last_handled_request.clone()),
        ..before.clone()
    };
    let mut revision = status.revision.take().unwrap_or_default();
    if let Some(seen) = &facts.seen {
        revision.seen = Some(seen.revision.clone());
        revision.tag.clone_from(&seen.tag);
        revision.source = Some(seen.source.to_string());
    }
    revision.rejected = facts.rejected.map(|rejected| rejected.revision.clone());
    if let Some(pass) = &facts.reconcile {
        revision.chosen = facts.hold.map(chosen);
        merge_reconcile(&mut status, &mut revision, pass, &verdict, facts);
        if verdict.applied && wellness.as_ref().is_some_and(HealthCondition::is_healthy) {
            (revision.healthy, revision.healthy_tag) = (Some(pass.revision.clone()), pass.tag.clone());
        }
    } else if let Some(reconcile_error) = facts.error {
        status.problems = problems(reconcile_error);
    }
    revision.short = revision.applied.as_deref().map(short_revision);
    revision.chart = revision.applied.as_deref().and_then(AppliedChart::of_revision);
    revision.mounts = revision.applied.as_deref().map(applied_mounts).unwrap_or_default();
    status.revision = Some(revision).filter(|revision| *revision != Revisions::default());
    if facts.reconcile.is_some() || facts.error.is_some() {
        status.held_by_window = facts.held_by_window.cloned();
        status.approvals = pending_approvals(status.approval.as_ref(), facts.request_of_approval);
    }
    let wellness = wellness.or_else(|| HealthCondition::previous(before));
    status.conditions = conditions(&before.conditions, &verdict, wellness.as_ref(), facts);
    status
}

fn merge_reconcile(
    status: &mut SyncStatus,
    revision: &mut Revisions,
    pass: &ReconcileInputs<'_>,
    verdict: &ReadyVerdict,
    facts: &StatusInputs<'_>,
) {
    revision.attempted = facts.refused.clone().or_else(|| Some(pass.revision.clone()));
    let count = |fits: fn(&Outcome) -> bool| {
        i64::try_from(pass.outcomes.values().filter(|outcome| fits(outcome)).count()).unwrap_or(i64::MAX)
    };
    let desired = i64::try_from(pass.desired).unwrap_or(i64::MAX);
    let pruned = count(|outcome| matches!(outcome, Outcome::Pruned { .. }));
    let failed = count(|it| matches!(it, Outcome::Failed(_)));
    let wanting = pass
        .outcomes
        .iter()
        .filter(|(id, outcome)| pass.is_desired(id) && is_missing_or_wrong(outcome))
        .count();
    let wanting = i64::try_from(wanting).unwrap_or(i64::MAX);
    let last = status.objects.unwrap_or_default();
    if facts.error.is_none() || facts.keeps_objects {
        let (objects, known) = (status.objects.take(), std::mem::take(&mut status.problems));
        status.objects = Some(ObjectCounts {
            desired,
            applied: (desired - wanting - count(is_reported)).max(0),
            held: count(|outcome| matches!(outcome, Outcome::Held(_))),
            failed,
            pruned: if pruned > 0 { pruned } else { last.pruned },
            drifted: count(is_drifted),
        });
        status.finished = pass.finished.to_vec();
        note_last_hooks(&mut status.hooks_at_deletion, pass, verdict.applied);
        status.contested = contested(pass);
        status.tree_id.clone_from(&pass.tree);
        status.render_digest = recorded(pass);
        status.scope = pass.scope.clone().or(status.scope.take());
        let is_wrong = |error: &&ReconcileError| error.cause != ErrorCause::WindowClosed;
        status.problems = facts.error.filter(is_wrong).map(problems).unwrap_or_default();
        status.problems.extend(object_problems(pass, facts.health));
        status.problems.truncate(MAX_PROBLEMS);
        if pass.pending && objects.is_some() && count(|it| matches!(it, Outcome::Failed(_))) == 0 {
            // Earlier problems are likely to remain, and are about to be known: dropping them would
            // flap.
            (status.objects, status.problems) = (objects, known);
        }
        let waits = count(|it| {
            let waits = |hold: &Hold| hold.is_prune_to_approve() || matches!(hold, Hold::ReplacementWaits(_));
            matches!(it, Outcome::Held(hold) if waits(hold))
        });
        status.approval = pass.approval.map(|hash| Approval { hash: hash.to_owned(), objects: waits });
        // An earlier daemon may have made a later change.
        let is_later = |at: &Time| status.last_applied_time.as_ref().is_none_or(|last| last.0 < at.0);
        if let Some(at) = pass.changed_at.clone().filter(is_later) {
            status.last_applied_time = Some(at);
        }
    } else if let Some(reconcile_error) = facts.error {
        status.problems = problems(reconcile_error);
    }
    let is_new = verdict.applied && revision.applied.as_ref() != Some(&pass.revision);
    if is_new {
        revision.applied = Some(pass.revision.clone());
    }
    note_digest(revision, pass, verdict, facts);
    record_history(status, pass, verdict, facts, is_new);
}

/// Records the digest of the completely applied set, and removes it once another set is being
/// applied.
fn note_digest(
    revision: &mut Revisions,
    pass: &ReconcileInputs<'_>,
    verdict: &ReadyVerdict,
    facts: &StatusInputs<'_>,
) {
    let known = revision.applied_digest.as_deref().and_then(SpecHash::parse);
    let is_of_set =
        known.zip(pass.digest).is_some_and(|(known, digest)| digest.matches(&known) != HashMatch::Other);
    if verdict.applied {
        revision.applied_digest = recorded(pass);
    } else if facts.error.is_none() && !(revision.applied.as_ref() == Some(&pass.revision) && is_of_set) {
        revision.applied_digest = None;
    }
}

/// The digest of the desired set in its recorded form.
fn recorded(pass: &ReconcileInputs<'_>) -> Option<String> {
    pass.digest.and_then(SetDigest::recorded_hash).map(|digest| digest.to_string())
}

/// Records the delete hooks. Those of the applied set stay until another set is applied.
fn note_last_hooks(known: &mut Vec<String>, pass: &ReconcileInputs<'_>, applied: bool) {
    if applied {
        known.clear();
    }
    let new: Vec<String> = pass.delete_hooks.iter().filter(|hook| !known.contains(hook)).cloned().collect();
    known.extend(new);
}

/// True if every desired object is applied, except those that are held on request. Objects that are
/// being deleted do not count.
pub fn is_applied(outcomes: &BTreeMap<ObjectId, Outcome>, wants: impl Fn(&ObjectId) -> bool) -> bool {
    !outcomes.iter().any(|(id, outcome)| is_missing_or_wrong(outcome) && wants(id))
}

/// True if an object is missing or wrong, and no person asked for that.
fn is_missing_or_wrong(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(_) => true,
        // A suspended Sync may hold an older revision; its condition then has another reason.
        Outcome::Held(hold) => hold.blocks_later_waves() || *hold == Hold::Suspended,
        _ => false,
    }
}

/// True if an object exists and differs from Git.
fn is_drifted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Held(hold) if is_drifted_hold(hold))
}

fn is_drifted_hold(hold: &Hold) -> bool {
    matches!(hold, Hold::DriftReported(_) | Hold::Deleted | Hold::Contested(_))
}

/// True if an object was changed or deleted by another manager, and is only reported.
fn is_reported(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Held(Hold::DriftReported(_) | Hold::Deleted))
}

/// The reason of a hold as a sentence, with the fields, because no other text will show them.
fn sentence(hold: &Hold) -> String {
    match hold {
        Hold::DriftReported(drift) => format!("{} {hold}", drift.subject()),
        hold => hold.to_string(),
    }
}
