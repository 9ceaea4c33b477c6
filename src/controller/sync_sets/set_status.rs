//! The status of a set, and its Events.
//!
//! In: the result of a pass. Out: one write where something has changed.

use serde_json::{Value, json};

use super::super::Context;
use super::super::status::events::event;
use super::super::status::now;
use crate::api::{AllowedFork, HeldRemoval, Reason, RolloutStatus, SetCounts, SetRevision, SyncName};
use crate::cluster::SyncSetRequests;
use crate::controller::status::ready_status::{ReadyCondition, ready_status};

/// Maximum number of names in a text.
const MAX_NAMES: usize = 10;
/// Maximum number of characters of a message.
const MAX_MESSAGE: usize = 2_000;

/// The Ready condition of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetState {
    pub(super) is_ready: bool,
    pub(super) reason: Box<str>,
    pub(super) message: String,
}

impl SetState {
    /// A state that is not ready.
    pub(super) fn not_ready(reason: impl ToString, message: impl Into<String>) -> Self {
        Self { is_ready: false, reason: reason.to_string().into(), message: message.into() }
    }
}

/// Result of a pass.
pub(super) struct SetFacts {
    pub(super) state: SetState,
    /// None if nothing was planned: the last numbers and the last stage stay.
    pub(super) counts: Option<SetCounts>,
    pub(super) revisions: Vec<SetRevision>,
    /// Pull requests of forks that count; none keeps the last ones.
    pub(super) allowed_forks: Option<Vec<AllowedFork>>,
    pub(super) removal: Option<HeldRemoval>,
    /// True if Syncs of others have names of the set.
    pub(super) has_conflicts: bool,
    /// The stage of a roll-out that is not over.
    pub(super) rollout: Option<RolloutStatus>,
}

/// Writes the status of a set unless it has it already; `set` is its newest snapshot and `known`
/// the status that was written last.
pub(super) async fn report_set(
    context: &Context,
    name: &SyncName,
    set: &Value,
    facts: SetFacts,
    known: &mut Option<Value>,
) {
    let text = |pointer: &str| set.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let before = known.as_ref().or_else(|| set.get("status")).cloned().unwrap_or_default();
    let status = next_status(&before, set, &facts);
    if status == before {
        return;
    }
    let uid = text("/metadata/uid");
    match SyncSetRequests::new(&context.cluster).write_status(name, uid, &status).await {
        Ok(()) => {
            let was = |status: &Value| {
                let condition = status.pointer("/conditions/0");
                condition.map(|it| (it["status"].clone(), it["reason"].clone()))
            };
            if was(&before) != was(&status) && *facts.state.reason != *Reason::Progressing.to_string() {
                let type_ = if facts.state.is_ready { "Normal" } else { "Warning" };
                tell(context, name, uid, (type_, &facts.state.reason, &facts.state.message)).await;
            }
            *known = Some(status);
        }
        Err(failure) => tracing::debug!(set = %name, %failure, "a status could not be written"),
    }
}

fn next_status(before: &Value, set: &Value, facts: &SetFacts) -> Value {
    let generation = set.pointer("/metadata/generation").and_then(Value::as_i64);
    let message: String = facts.state.message.chars().take(MAX_MESSAGE).collect();
    let status = if facts.state.is_ready { "True" } else { "False" };
    let last = before.pointer("/conditions/0");
    let since =
        last.filter(|last| last["status"] == status).and_then(|last| last["lastTransitionTime"].as_str());
    let since = &since.map_or_else(|| now().0.to_string(), str::to_owned);
    let counts = facts.counts.map_or_else(|| before.get("children").cloned(), |counts| Some(json!(counts)));
    let reason = &facts.state.reason;
    let mut next = ready_status(generation, &ReadyCondition { status, reason, message: &message, since });
    if let Some(counts) = counts {
        next["children"] = counts;
    }
    if !facts.revisions.is_empty() {
        next["revisions"] = json!(facts.revisions);
    }
    let forks = facts.allowed_forks.as_ref().map(|forks| json!(forks));
    let forks = forks.or_else(|| before.get("allowedForks").cloned());
    if let Some(forks) = forks.filter(|forks| forks.as_array().is_some_and(|forks| !forks.is_empty())) {
        next["allowedForks"] = forks;
    }
    if let Some(removal) = &facts.removal {
        next["removal"] = json!(removal);
    }
    let planned = facts.counts.map(|_| facts.rollout.as_ref().map(|rollout| json!(rollout)));
    if let Some(rollout) = planned.unwrap_or_else(|| before.get("rollout").cloned()) {
        next["rollout"] = rollout;
    }
    next
}

/// Writes an Event about a set.
pub(super) async fn tell(
    context: &Context,
    name: &SyncName,
    uid: &str,
    (type_, reason, note): (&str, &str, &str),
) {
    if !context.reporting.events.take(&name.namespace) {
        return;
    }
    let mut event = event(name, uid, type_, reason, note);
    event["regarding"]["kind"] = json!("SyncSet");
    if let Err(failure) = context.cluster.syncs().write_event(event, &name.namespace).await {
        tracing::debug!(set = %name, %failure, "an Event could not be written");
    }
}

/// Returns the first names as a text.
pub(super) fn list_names(names: &[String]) -> String {
    let first = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_plans_nothing_keeps_the_numbers_and_the_stage() {
        let before = json!({"children": {"desired": 3, "ready": 1, "held": 0}, "rollout": {"stage": 2}});
        let facts = |counts, rollout| SetFacts {
            state: SetState::not_ready(Reason::Progressing, ""),
            counts,
            revisions: Vec::new(),
            allowed_forks: None,
            removal: None,
            has_conflicts: false,
            rollout,
        };
        let counts = || Some(SetCounts { desired: 4, ready: 4, held: 0 });
        let stage = RolloutStatus { stage: 1, waiting_for: Vec::new(), until: None };
        for (facts, desired, stage) in [
            (facts(None, None), json!(3), json!(2)),
            (facts(counts(), None), json!(4), Value::Null),
            (facts(counts(), Some(stage)), json!(4), json!(1)),
        ] {
            let next = next_status(&before, &json!({"metadata": {"generation": 1}}), &facts);
            assert_eq!((&next["children"]["desired"], &next["rollout"]["stage"]), (&desired, &stage));
        }
    }
}
