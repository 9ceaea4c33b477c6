//! Finds the first desired object that is missing or wrong.
//!
//! In: the outcomes of a reconcile, and a summary of the health. Out: that object and its hold, and
//! true if the hold ends without a person. A wave that waits for objects to become ready ends, and
//! so does a running hook. A wave behind a failed hook does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::health::{Health, HealthSummary};
use crate::object::{GroupKind, ObjectId};
use crate::plan::{BackendState, Hold, Outcome};

/// The object that best explains why the Sync is not applied.
pub(super) struct MissingObject<'a> {
    pub(super) id: &'a ObjectId,
    pub(super) hold: &'a Hold,
    /// True if the hold ends without a person.
    pub(super) is_progressing: bool,
}

/// Finds the first object whose hold needs a person, else the first one in progress. `lags` are the
/// kinds that the server is about to serve.
pub(super) fn find_missing<'a>(
    outcomes: &'a BTreeMap<ObjectId, Outcome>,
    health: Option<&HealthSummary>,
    lags: &BTreeSet<GroupKind>,
) -> Option<MissingObject<'a>> {
    let held = outcomes.iter().filter_map(|(id, outcome)| match outcome {
        Outcome::Held(hold) if hold.blocks_later_waves() => {
            Some(MissingObject { id, hold, is_progressing: progresses(id, hold, outcomes, health, lags) })
        }
        _ => None,
    });
    held.min_by_key(|missing| missing.is_progressing)
}

/// True if the hold ends without a change in Git and without a person.
fn progresses(
    id: &ObjectId,
    hold: &Hold,
    outcomes: &BTreeMap<ObjectId, Outcome>,
    health: Option<&HealthSummary>,
    lags: &BTreeSet<GroupKind>,
) -> bool {
    match hold {
        Hold::HookRunning => true,
        Hold::WebhookUnserved(why) => {
            why.state != BackendState::ScaledToZero
                && progresses(id, &Hold::WaitsFor(why.backend.clone()), outcomes, health, lags)
        }
        // The server may be about to serve it: discovery lags behind a new definition.
        Hold::UnknownKind => lags.contains(&id.group_kind()),
        Hold::WaitsFor(blocker) => {
            let failed = health.into_iter().flat_map(|summary| &summary.worst).any(|(id, health)| {
                id == blocker && matches!(health, Health::Degraded { .. } | Health::Unknown { .. })
            });
            let is_held = match outcomes.get(blocker) {
                Some(Outcome::Held(Hold::UnknownKind)) => !lags.contains(&blocker.group_kind()),
                Some(Outcome::Held(hold)) => {
                    !matches!(hold, Hold::WaitsFor(_) | Hold::WebhookUnserved(_) | Hold::HookRunning)
                }
                Some(Outcome::Failed(_)) => true,
                _ => false,
            };
            !failed && !is_held
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::UnservedWebhook;

    fn id(name: &str) -> ObjectId {
        ObjectId::new("batch", "Job", "shop", name).unwrap()
    }

    #[test]
    fn a_kind_that_is_about_to_come_is_progress() {
        let outcomes =
            [(id("a"), Outcome::Held(Hold::WaitsFor(id("b")))), (id("b"), Outcome::Held(Hold::UnknownKind))];
        let outcomes = outcomes.into_iter().collect();
        let progresses = |kinds: &[&str]| {
            let lags = kinds.iter().map(|kind| GroupKind::new("batch", kind)).collect();
            find_missing(&outcomes, None, &lags).is_some_and(|it| it.is_progressing)
        };
        assert!(progresses(&["Job"]));
        assert!(!progresses(&[]) && !progresses(&["CronJob"]));
    }

    fn check(held: &[(&str, Hold)], failed: Option<&str>, expect: Option<(&str, bool)>) {
        let outcomes = held.iter().map(|(name, hold)| (id(name), Outcome::Held(hold.clone()))).collect();
        let worst = failed.map(|name| (id(name), Health::Degraded { why: "it failed".into() }));
        let summary = HealthSummary {
            degraded: worst.iter().len(),
            worst: worst.into_iter().collect(),
            ..HealthSummary::default()
        };
        let found = find_missing(&outcomes, Some(&summary), &BTreeSet::new());
        assert_eq!(
            found.map(|it| (it.id.name().to_owned(), it.is_progressing)),
            expect.map(|(a, b)| (a.to_owned(), b))
        );
    }

    #[test]
    fn waiting_for_a_hook_is_progress_until_the_hook_fails() {
        let waits = || Hold::WaitsFor(id("up"));
        check(&[], None, None);
        check(&[("a", waits())], None, Some(("a", true)));
        check(&[("a", Hold::HookRunning)], None, Some(("a", true)));
        check(&[("a", waits())], Some("other"), Some(("a", true)));
        check(&[("a", waits())], Some("up"), Some(("a", false)));
        check(&[("a", waits()), ("up", Hold::HookRunning)], None, Some(("a", true)));
        check(&[("a", waits()), ("up", Hold::ReconcileDisabled)], None, Some(("a", false)));
    }

    #[test]
    fn waiting_for_a_webhook_is_progress_until_its_backend_cannot_come() {
        let waits = |state| {
            Hold::WebhookUnserved(Box::new(UnservedWebhook {
                backend: id("hook"),
                webhook: "check".into(),
                state,
            }))
        };
        check(&[("a", waits(BackendState::NotReady))], None, Some(("a", true)));
        check(&[("a", waits(BackendState::Unreached))], None, Some(("a", true)));
        check(&[("a", waits(BackendState::NotReady))], Some("hook"), Some(("a", false)));
        check(&[("a", waits(BackendState::ScaledToZero))], None, Some(("a", false)));
        check(
            &[("a", waits(BackendState::NotReady)), ("hook", Hold::ReconcileDisabled)],
            None,
            Some(("a", false)),
        );
        check(
            &[("a", Hold::WaitsFor(id("b"))), ("b", waits(BackendState::NotReady))],
            None,
            Some(("a", true)),
        );
    }

    #[test]
    fn a_hold_that_needs_somebody_is_named_first() {
        let waits = Hold::WaitsFor(id("up"));
        check(&[("a", waits), ("b", Hold::UnknownKind)], None, Some(("b", false)));
    }
}
