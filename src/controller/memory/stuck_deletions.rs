//! Tracks objects that are being deleted, and reports deletions that are stuck.
//!
//! In: objects that a reconcile found in deletion.
//! Out: the same objects, as failures once they have taken longer than the timeout.
//!
//! A stuck object stays held, and so do the objects that must be deleted after it: a person has to
//! find out what its finalizer waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::controller::schedule::Uptime;
use crate::object::ObjectId;
use crate::plan::{Failure, FailureReason, Hold, Outcome};

/// Time since which each object is known to be in deletion.
#[derive(Debug, Default)]
pub(crate) struct StuckDeletions(BTreeMap<ObjectId, Uptime>);

impl StuckDeletions {
    /// Updates the objects in deletion from the current holds.
    pub(crate) fn see(&mut self, held: &[(ObjectId, Hold)], now: Uptime) {
        let leaving = |hold: &Hold| matches!(hold, Hold::BeingDeleted(_));
        let mut known = std::mem::take(&mut self.0);
        let still = held.iter().filter(|(_, hold)| leaving(hold));
        self.0 = still.map(|(id, _)| (id.clone(), known.remove(id).unwrap_or(now))).collect();
    }

    /// Turns holds into outcomes; stuck deletions become failures.
    pub(crate) fn judged(
        &self,
        held: Vec<(ObjectId, Hold)>,
        now: Uptime,
        within: Duration,
    ) -> impl Iterator<Item = (ObjectId, Outcome)> {
        held.into_iter().map(move |(id, hold)| {
            let outcome = self.judge(&id, hold, now, within);
            (id, outcome)
        })
    }

    fn judge(&self, id: &ObjectId, hold: Hold, now: Uptime, within: Duration) -> Outcome {
        let late = self.0.get(id).is_some_and(|since| now.saturating_sub(*since) >= within);
        match late {
            true => Outcome::Failed(Failure {
                reason: FailureReason::DeletionStuck,
                message: format!("{hold} for more than {} s", within.as_secs()),
                manifest: true,
            }),
            false => Outcome::Held(hold),
        }
    }

    /// Returns the time at which the next deletion is stuck.
    pub(crate) fn next(&self, now: Uptime, within: Duration) -> Option<Uptime> {
        self.0.values().map(|since| *since + within).filter(|due| *due > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_a_failure_after_its_time() {
        let at = Duration::from_secs;
        let id = |name: &str| ObjectId::parse(&format!("/ConfigMap|a/{name}")).unwrap();
        let hold = || Hold::BeingDeleted(Box::new(["example.com/x".into()]));
        let mut leaving = StuckDeletions::default();
        let held = [(id("a"), hold()), (id("b"), Hold::Suspended)];
        leaving.see(&held, at(10));
        leaving.see(&held, at(12));
        assert_eq!(leaving.next(at(12), at(5)), Some(at(15)));
        assert_eq!(leaving.judge(&id("a"), hold(), at(14), at(5)), Outcome::Held(hold()));
        let Outcome::Failed(why) = leaving.judge(&id("a"), hold(), at(15), at(5)) else {
            panic!("it is late")
        };
        assert_eq!(
            why.message,
            "it is being deleted, and waits for the finalizer example.com/x for more than 5 s"
        );
        assert_eq!(leaving.next(at(15), at(5)), None);
        // An object that was gone and is in deletion again has its full time.
        leaving.see(&[], at(20));
        leaving.see(&held, at(30));
        assert_eq!(leaving.judge(&id("a"), hold(), at(31), at(5)), Outcome::Held(hold()));
    }
}
