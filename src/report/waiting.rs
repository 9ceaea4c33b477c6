//! Finds the first desired object that is missing or wrong.
//!
//! In: the outcomes of a reconcile, and a summary of the health. Out: that object and its hold, and
//! true if the hold ends without a person. A wave that waits for objects to become ready ends, and
//! so does a running hook. A wave behind a failed hook does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::health::{Health, Summary};
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Backend, Hold, Outcome};

/// The object that best explains why the Sync is not applied.
pub(super) struct Missing<'a> {
    pub(super) id: &'a ObjectId,
    pub(super) hold: &'a Hold,
    /// True if the hold ends without a person.
    pub(super) progresses: bool,
}

/// Finds the first object whose hold needs a person, else the first one in progress. `lags` are the
/// kinds that the server is about to serve.
pub(super) fn missing<'a>(
    outcomes: &'a BTreeMap<ObjectId, Outcome>,
    health: Option<&Summary>,
    lags: &BTreeSet<GroupKind>,
) -> Option<Missing<'a>> {
    let held = outcomes.iter().filter_map(|(id, outcome)| match outcome {
        Outcome::Held(hold) if hold.is_missing() => {
            Some(Missing { id, hold, progresses: progresses(id, hold, outcomes, health, lags) })
        }
        _ => None,
    });
    held.min_by_key(|missing| missing.progresses)
}

/// True if the hold ends without a change in Git and without a person.
fn progresses(
    id: &ObjectId,
    hold: &Hold,
    outcomes: &BTreeMap<ObjectId, Outcome>,
    health: Option<&Summary>,
    lags: &BTreeSet<GroupKind>,
) -> bool {
    match hold {
        Hold::Runs => true,
        Hold::Unserved(why) => {
            why.state != Backend::ScaledToZero
                && progresses(id, &Hold::Waits(why.backend.clone()), outcomes, health, lags)
        }
        // The server may be about to serve it: discovery lags behind a new definition.
        Hold::UnknownKind => lags.contains(&id.group_kind()),
        Hold::Waits(blocker) => {
            let failed = health.into_iter().flat_map(|summary| &summary.worst).any(|(id, health)| {
                id == blocker && matches!(health, Health::Degraded { .. } | Health::Unknown { .. })
            });
            let is_held = match outcomes.get(blocker) {
                Some(Outcome::Held(Hold::UnknownKind)) => !lags.contains(&blocker.group_kind()),
                Some(Outcome::Held(hold)) => !matches!(hold, Hold::Waits(_) | Hold::Unserved(_) | Hold::Runs),
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
    use crate::plan::Unserved;

    fn id(name: &str) -> ObjectId {
        ObjectId::new("batch", "Job", "shop", name).unwrap()
    }

    #[test]
    fn a_kind_that_is_about_to_come_is_progress() {
        let outcomes =
            [(id("a"), Outcome::Held(Hold::Waits(id("b")))), (id("b"), Outcome::Held(Hold::UnknownKind))];
        let outcomes = outcomes.into_iter().collect();
        let progresses = |kinds: &[&str]| {
            let lags = kinds.iter().map(|kind| GroupKind::new("batch", kind)).collect();
            missing(&outcomes, None, &lags).is_some_and(|it| it.progresses)
        };
        assert!(progresses(&["Job"]));
        assert!(!progresses(&[]) && !progresses(&["CronJob"]));
    }

    fn check(held: &[(&str, Hold)], failed: Option<&str>, expect: Option<(&str, bool)>) {
        let outcomes = held.iter().map(|(name, hold)| (id(name), Outcome::Held(hold.clone()))).collect();
        let worst = failed.map(|name| (id(name), Health::Degraded { why: "it failed".into() }));
        let summary = Summary {
            degraded: worst.iter().len(),
            worst: worst.into_iter().collect(),
            ..Summary::default()
        };
        let found = missing(&outcomes, Some(&summary), &BTreeSet::new());
        assert_eq!(
            found.map(|it| (it.id.name().to_owned(), it.progresses)),
            expect.map(|(a, b)| (a.to_owned(), b))
        );
    }

    #[test]
    fn waiting_for_a_hook_is_progress_until_the_hook_fails() {
        let waits = || Hold::Waits(id("up"));
        check(&[], None, None);
        check(&[("a", waits())], None, Some(("a", true)));
        check(&[("a", Hold::Runs)], None, Some(("a", true)));
        check(&[("a", waits())], Some("other"), Some(("a", true)));
        check(&[("a", waits())], Some("up"), Some(("a", false)));
        check(&[("a", waits()), ("up", Hold::Runs)], None, Some(("a", true)));
        check(&[("a", waits()), ("up", Hold::ReconcileDisabled)], None, Some(("a", false)));
    }

    #[test]
    fn waiting_for_a_webhook_is_progress_until_its_backend_cannot_come() {
        let waits = |state| {
            Hold::Unserved(Box::new(Unserved { backend: id("hook"), webhook: "check".into(), state }))
        };
        check(&[("a", waits(Backend::NotReady))], None, Some(("a", true)));
        check(&[("a", waits(Backend::Unreached))], None, Some(("a", true)));
        check(&[("a", waits(Backend::NotReady))], Some("hook"), Some(("a", false)));
        check(&[("a", waits(Backend::ScaledToZero))], None, Some(("a", false)));
        check(
            &[("a", waits(Backend::NotReady)), ("hook", Hold::ReconcileDisabled)],
            None,
            Some(("a", false)),
        );
        check(&[("a", Hold::Waits(id("b"))), ("b", waits(Backend::NotReady))], None, Some(("a", true)));
    }

    #[test]
    fn a_hold_that_needs_somebody_is_named_first() {
        let waits = Hold::Waits(id("up"));
        check(&[("a", waits), ("b", Hold::UnknownKind)], None, Some(("b", false)));
    }
}
