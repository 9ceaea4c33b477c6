//! Builds the status of a Sync from the results of the controller.
//!
//! In: the previous status, and [`StatusInputs`]. Out: the new status. Equal inputs give an equal
//! status, so the writer can skip needless writes; times change only together with something else.

mod approval;
pub mod board;
mod conditions;
mod error_cause;
mod health_condition;
mod history;
mod inputs;
mod missing_object;
mod problems;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{Approval, ObjectCounts, Reason, Revisions, SpecHash, SyncStatus, short_revision};
use crate::desired::{HashMatch, SetDigest};
use crate::health::HealthSummary;
use crate::object::ObjectId;
use crate::plan::{Failure, Hold, Outcome};
use approval::{over_budget_message, protected_message};
use conditions::conditions;
pub use error_cause::ErrorCause;
use health_condition::HealthCondition;
pub use history::add_changes;
use history::record_history;
pub use inputs::{
    CommitDescription, ObjectRemark, PendingRetries, ReconcileError, ReconcileInputs, RolledBackRevision,
    SeenRevision, StatusInputs,
};
use missing_object::find_missing;
pub use problems::count_unlisted;
use problems::{bounded, contested, object_problems, problems};

/// The most problems that a status lists.
const MAX_PROBLEMS: usize = 10;
/// The most characters of a message.
const MAX_MESSAGE: usize = 1000;

/// Builds the new status. Equal inputs give an equal status.
pub fn status(before: &SyncStatus, facts: &StatusInputs<'_>) -> SyncStatus {
    let wellness = HealthCondition::build(before, facts);
    let verdict = ReadyVerdict::build(facts, wellness.as_ref()).with_lost_permissions(before, facts);
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
        merge_reconcile(&mut status, &mut revision, pass, &verdict, facts);
        if verdict.applied && wellness.as_ref().is_some_and(HealthCondition::is_healthy) {
            (revision.healthy, revision.healthy_tag) = (Some(pass.revision.clone()), pass.tag.clone());
        }
    } else if let Some(reconcile_error) = facts.error {
        status.problems = problems(reconcile_error);
    }
    revision.short = revision.applied.as_deref().map(short_revision);
    status.revision = Some(revision).filter(|revision| *revision != Revisions::default());
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
        status.problems = facts.error.map(problems).unwrap_or_default();
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

/// The conclusion from all inputs.
struct ReadyVerdict {
    ready: bool,
    applied: bool,
    reconciling: bool,
    stalled: bool,
    drifted: Option<String>,
    /// Message about deletions that wait for approval.
    pending_deletions: Option<String>,
    reason: String,
    message: String,
    /// Next attempt for the object that the message names.
    next_try: Option<Timestamp>,
}

impl ReadyVerdict {
    fn build(facts: &StatusInputs<'_>, wellness: Option<&HealthCondition>) -> Self {
        let not_ready = |reason: &str, message: String, stalled: bool| Self {
            ready: false,
            applied: false,
            reconciling: !stalled,
            stalled,
            drifted: None,
            pending_deletions: None,
            reason: reason.to_owned(),
            message,
            next_try: None,
        };
        if let Some(reconcile_error) = facts.error {
            let verdict = not_ready(
                reconcile_error.reason(),
                reconcile_error.message.clone(),
                reconcile_error.permanent,
            );
            return match facts.reconcile.as_ref().filter(|_| facts.keeps_objects) {
                Some(pass) => verdict.with_held_revision(pass, facts),
                None => verdict,
            };
        }
        if facts.suspended {
            let message =
                "the Sync is suspended: the repository is not polled and nothing is applied".to_owned();
            return Self { reconciling: false, ..not_ready(&Reason::Suspended.to_string(), message, false) };
        }
        match &facts.reconcile {
            None => not_ready(&Reason::Progressing.to_string(), "the repository is being read".into(), false),
            Some(pass) => {
                let verdict = match wellness.filter(|_| facts.waits_for_health) {
                    Some(wellness) => Self::from_reconcile(pass, facts.health).with_health(wellness),
                    None => Self::from_reconcile(pass, facts.health),
                };
                match facts.rejected {
                    Some(rejected) => verdict.with_rollback(rejected),
                    None if facts.outdated && verdict.ready => verdict.into_outdated(),
                    None => verdict.with_drift(pass),
                }
            }
        }
    }

    /// Adds to the message that the revision is not kept, if every write is forbidden.
    fn with_lost_permissions(self, before: &SyncStatus, facts: &StatusInputs<'_>) -> Self {
        let was_applied = before.revision.as_ref().is_some_and(|revision| revision.applied.is_some());
        let pass = facts.reconcile.as_ref().filter(|pass| was_applied && pass.is_all_forbidden());
        let is_powerless = Reason::parse(&self.reason) == Some(Reason::RightsMissing);
        let Some(pass) = pass.filter(|_| is_powerless && facts.error.is_none()) else { return self };
        let kept = format!("{} is not held: ", pass.revision);
        Self { message: format!("{kept}{}", self.message), ..self }
    }

    /// The verdict about the held revision after the newest one was rolled back.
    fn with_rollback(self, rejected: &RolledBackRevision) -> Self {
        let RolledBackRevision { revision, held: instead, why } = rejected;
        let message = format!("{revision} was rolled back to {instead} until there is a newer commit: {why}");
        // Objects of the rolled-back revision may wait for approval to be deleted.
        let message =
            self.pending_deletions.iter().fold(message, |message, left| format!("{message}; {left}"));
        // An error of the held revision is more urgent than the rollback.
        let (reason, message) = match self.applied {
            true => (Reason::RolledBack.to_string(), message),
            false => (self.reason, self.message),
        };
        Self { ready: false, reconciling: !self.applied, stalled: self.applied, reason, message, ..self }
    }

    /// The verdict about an error while an older revision is held: one message names the refused
    /// and the held revision.
    fn with_held_revision(self, pass: &ReconcileInputs<'_>, facts: &StatusInputs<'_>) -> Self {
        let about =
            facts.refused.iter().map(|refused| format!("{refused} cannot be applied: ")).collect::<String>();
        let kept = if facts.suspended { String::new() } else { format!("; {} stays applied", pass.revision) };
        let of_pass = Self::from_reconcile(pass, facts.health);
        Self {
            message: format!("{about}{}{kept}", self.message),
            applied: of_pass.applied,
            drifted: of_pass.drifted,
            pending_deletions: of_pass.pending_deletions,
            ..self
        }
    }

    /// The verdict if the reconcile was for an older request than the current one.
    fn into_outdated(self) -> Self {
        let message = "the latest change is being applied".to_owned();
        let reason = Reason::Progressing.to_string();
        Self { ready: false, reconciling: true, reason, message, ..self }
    }

    /// The verdict if everything was applied, and another manager has changed or deleted objects
    /// since.
    fn with_drift(self, pass: &ReconcileInputs<'_>) -> Self {
        let differ = pass.outcomes.values().filter(|it| is_reported(it)).count();
        let Some(first) = self.drifted.as_ref().filter(|_| self.ready && differ > 0) else { return self };
        let are = if differ == 1 { "is" } else { "are" };
        let objects = if pass.desired == 1 { "object" } else { "objects" };
        let waits = self.pending_deletions.iter().map(|left| format!("; {left}")).collect::<String>();
        let message = format!(
            "{differ} of {} {objects} {are} out of sync with {}: {first}{waits}",
            pass.desired, pass.revision
        );
        Self { ready: false, reason: Reason::FieldsDiffer.to_string(), message, ..self }
    }

    /// The verdict if the objects have to be healthy, too.
    fn with_health(self, wellness: &HealthCondition) -> Self {
        if !self.ready || wellness.is_healthy() {
            return self;
        }
        Self {
            ready: false,
            reconciling: wellness.is_progressing(),
            reason: wellness.reason.clone(),
            message: wellness.message.clone(),
            ..self
        }
    }

    fn from_reconcile(pass: &ReconcileInputs<'_>, health: Option<&HealthSummary>) -> Self {
        let failed: Vec<(&ObjectId, &Failure)> = pass
            .outcomes
            .iter()
            .filter_map(|(id, outcome)| match outcome {
                Outcome::Failed(why) => Some((id, why)),
                _ => None,
            })
            .collect();
        let held = |fits: fn(&Hold) -> bool| {
            pass.outcomes.iter().find_map(|(id, outcome)| match outcome {
                Outcome::Held(hold) if fits(hold) => Some((id, hold)),
                _ => None,
            })
        };
        let missing = find_missing(pass.outcomes, health, &pass.retries.unserved_kinds);
        let over_budget = held(|hold| matches!(hold, Hold::PruneBudgetExceeded { .. }));
        let is_protected = |it: &&Outcome| {
            matches!(it, Outcome::Held(Hold::Protected | Hold::Guarded(_) | Hold::BlocksPendingPrune(_)))
        };
        let left = match (over_budget, pass.outcomes.values().filter(is_protected).count()) {
            (Some((_, hold)), _) => Some(over_budget_message(pass, hold)),
            (None, 0) => None,
            (None, count) => Some(protected_message(pass, count)),
        };
        let drifted = held(is_drifted_hold).map(|(id, hold)| format!("{id}: {}", sentence(hold)));
        let contested = held(|hold| matches!(hold, Hold::Contested(_)));
        let (ready, reason, message) = match (failed.as_slice(), missing, contested.or(over_budget)) {
            _ if !pass.missing_permissions.is_empty() => {
                let missing = pass.missing_permissions.join("; ");
                let message =
                    format!("permissions are missing; `{}` grants them: {missing}", pass.grant_command);
                (false, Reason::RightsMissing, message)
            }
            ([(id, why), rest @ ..], _, _) => {
                let more =
                    if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                (false, Reason::ApplyFailed, format!("{id}: {}{more}", why.message))
            }
            ([], Some(missing), _) => {
                let reason = if missing.is_progressing { Reason::Progressing } else { Reason::ObjectsHeld };
                (false, reason, format!("{}: {}", missing.id, missing.hold))
            }
            ([], None, Some((id, hold @ Hold::Contested(_)))) => {
                (false, Reason::Contested, format!("{id}: {hold}"))
            }
            ([], None, Some((_, hold))) => (false, Reason::PruneHeld, over_budget_message(pass, hold)),
            ([], None, None) => {
                let waits = left.as_deref().into_iter().chain(pass.isolation_warning);
                let waits = waits.map(|said| format!("; {said}")).collect::<String>();
                let are = if pass.desired == 1 { "object is" } else { "objects are" };
                (
                    true,
                    Reason::Applied,
                    format!("{} {are} in sync with {}{waits}", pass.desired, pass.revision),
                )
            }
        };
        let stalled = !failed.is_empty() && failed.iter().all(|(_, why)| why.manifest);
        let waits = matches!(reason, Reason::PruneHeld | Reason::Contested);
        Self {
            ready,
            applied: is_applied(pass.outcomes, |id| pass.is_desired(id)),
            reconciling: !ready && !stalled && !waits,
            stalled,
            drifted,
            pending_deletions: left,
            reason: reason.to_string(),
            message,
            next_try: failed.first().and_then(|(id, _)| pass.retries.next_attempts.get(*id)).copied(),
        }
    }
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
