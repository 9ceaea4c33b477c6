//! Concludes if a Sync is ready, and builds its conditions.
//!
//! In: [`StatusInputs`], the health of the objects, and the previous conditions. Out: a
//! [`ReadyVerdict`], and the new conditions; the time of each is that of its last change of status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::approval::{over_budget_message, protected_message};
use super::health_condition::HealthCondition;
use super::inputs::{ReconcileInputs, RolledBackRevision, StatusInputs};
use super::missing_object::find_missing;
use super::{ErrorCause, MAX_MESSAGE, bounded, is_applied, is_drifted_hold, is_reported, sentence};
use crate::api::{ConditionType, Reason, SyncStatus};
use crate::health::HealthSummary;
use crate::object::ObjectId;
use crate::plan::{Failure, Hold, Outcome};

/// Conclusion from all inputs, for the conditions.
pub(super) struct ReadyVerdict {
    pub(super) ready: bool,
    pub(super) applied: bool,
    pub(super) reconciling: bool,
    pub(super) stalled: bool,
    pub(super) drifted: Option<String>,
    /// Message about deletions that wait for approval.
    pub(super) pending_deletions: Option<String>,
    pub(super) reason: String,
    pub(super) message: String,
    /// Next attempt for the object that the message names.
    pub(super) next_try: Option<Timestamp>,
}

impl ReadyVerdict {
    /// Concludes from an error, from a suspension, or from the last reconcile.
    pub(super) fn build(facts: &StatusInputs<'_>, wellness: Option<&HealthCondition>) -> Self {
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
        let closed = facts.error.filter(|error| error.cause == ErrorCause::WindowClosed);
        if let (Some(closed), true, Some(_)) = (closed, facts.keeps_objects, &facts.reconcile) {
            // Nothing is wrong with what is applied.
            let rest = Self::build(&StatusInputs { error: None, outdated: false, ..facts.clone() }, wellness);
            return Self { message: format!("{}; {}", rest.message, closed.message), ..rest };
        }
        if let Some(reconcile_error) = facts.error {
            let mut verdict = not_ready(
                reconcile_error.reason(),
                reconcile_error.message.clone(),
                reconcile_error.permanent,
            );
            if matches!(reconcile_error.cause, ErrorCause::ApprovalRequired | ErrorCause::WindowClosed) {
                // As with a deletion that waits, nothing is wrong.
                (verdict.reconciling, verdict.stalled) = (false, false);
            }
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
                match facts.rejected.filter(|_| facts.hold.is_none()) {
                    Some(rejected) => verdict.with_rollback(rejected),
                    None if facts.outdated && verdict.ready => verdict.into_outdated(),
                    None => verdict.with_drift(pass),
                }
            }
        }
    }

    /// Adds to the message that the revision is not kept, if every write is forbidden.
    pub(super) fn with_lost_permissions(self, before: &SyncStatus, facts: &StatusInputs<'_>) -> Self {
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
        let is_asked = facts.error.is_some_and(|error| error.cause == ErrorCause::ApprovalRequired);
        let refused = facts.refused.iter().filter(|_| !is_asked);
        let about = refused.map(|refused| format!("{refused} cannot be applied: ")).collect::<String>();
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
                let message = match pass.grant_command {
                    "" => format!(
                        "the user of the kubeconfig in spec.cluster lacks permissions there: {missing}"
                    ),
                    command => format!("permissions are missing; `{command}` grants them: {missing}"),
                };
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

/// Builds the conditions from a verdict.
pub(super) fn conditions(
    before: &[Condition],
    verdict: &ReadyVerdict,
    wellness: Option<&HealthCondition>,
    facts: &StatusInputs<'_>,
) -> Vec<Condition> {
    let truth = |is: bool| if is { "True" } else { "False" };
    let condition = |type_: ConditionType, status: &str, reason: &str, message: &str| {
        let type_ = type_.to_string();
        let known = before.iter().find(|known| known.type_ == type_ && known.status == status);
        Condition {
            last_transition_time: known.map_or(facts.now.clone(), |known| known.last_transition_time.clone()),
            message: bounded(message),
            observed_generation: facts.generation,
            reason: reason.to_owned(),
            status: status.to_owned(),
            type_,
        }
    };
    let message = with_next_try(verdict);
    let (reason, message) = (verdict.reason.as_str(), message.as_str());
    let is_pending = facts.reconcile.as_ref().is_some_and(|pass| pass.pending);
    let known = |type_: ConditionType| before.iter().find(|known| known.type_ == type_.to_string());
    // Until the comparison is complete, earlier drift is kept: without it the condition would flap.
    let differs = known(ConditionType::Ready).filter(|ready| {
        Reason::parse(&ready.reason) == Some(Reason::FieldsDiffer) && verdict.ready && is_pending
    });
    let ready = match differs {
        Some(ready) => condition(ConditionType::Ready, "False", &ready.reason, &ready.message),
        None => condition(ConditionType::Ready, truth(verdict.ready), reason, message),
    };
    let mut conditions = vec![ready];
    if verdict.reconciling {
        conditions.push(condition(ConditionType::Reconciling, "True", reason, message));
    }
    if verdict.stalled {
        conditions.push(condition(ConditionType::Stalled, "True", reason, message));
    }
    if let Some(HealthCondition { status, reason, message }) = wellness {
        conditions.push(condition(ConditionType::Healthy, status, reason, message));
    }
    if verdict.drifted.is_none() && is_pending {
        conditions.extend(known(ConditionType::Drifted).cloned());
    }
    if let Some(drifted) = &verdict.drifted {
        let reason = Reason::FieldsDiffer.to_string();
        conditions.push(condition(ConditionType::Drifted, "True", &reason, drifted));
    }
    conditions
}

/// The message with the time of the next attempt for a refused object. A long message is cut first.
fn with_next_try(verdict: &ReadyVerdict) -> String {
    let refused = Reason::parse(&verdict.reason) == Some(Reason::ApplyFailed);
    let Some(at) = verdict.next_try.filter(|_| refused) else { return verdict.message.clone() };
    let next = format!("; next retry at {}", at.strftime("%H:%M:%S UTC"));
    let room = MAX_MESSAGE - next.len() - 1;
    match verdict.message.char_indices().nth(room) {
        None => verdict.message.clone() + &next,
        Some((end, _)) => format!("{}…{next}", &verdict.message[..end]),
    }
}
