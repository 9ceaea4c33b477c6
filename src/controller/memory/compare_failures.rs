//! Back-off for objects that could not be compared with Git.
//!
//! In: outcomes of comparisons.
//! Out: the objects whose next comparison has to wait.
//!
//! A comparison is no step of a plan, so the retry state of failed steps does not cover it. Without
//! a back-off, a comparison that the server refuses would be repeated at once, endlessly.

use std::collections::BTreeMap;

use super::HELD;
use crate::controller::schedule::{Backoff, RetryPolicy, Uptime};
use crate::object::ObjectId;
use crate::plan::{Hold, Outcome};

/// Method of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerifyMethod {
    /// An apply.
    Apply,
    /// A dry-run comparison that writes nothing.
    Compare,
}

/// Objects whose last comparison failed, each with its next attempt.
#[derive(Debug, Default)]
pub(crate) struct CompareFailures(BTreeMap<ObjectId, (Uptime, Backoff)>);

impl CompareFailures {
    /// Records the outcome of a comparison. A refusal may be resolved by hand, so it is retried
    /// every minute. For an object that is gone, the watch event may be late.
    pub(crate) fn learn(
        &mut self,
        id: &ObjectId,
        outcome: &Outcome,
        now: Uptime,
        chance: f64,
        pauses: RetryPolicy,
    ) {
        let (_, mut backoff) = self.0.get(id).copied().unwrap_or((now, pauses.cluster));
        let pause = match outcome {
            Outcome::Failed(why) if why.manifest => HELD,
            Outcome::Failed(_) | Outcome::Held(Hold::Unverified) => backoff.failed(chance),
            _ => {
                self.0.remove(id);
                return;
            }
        };
        self.0.insert(id.clone(), (now + pause, backoff));
    }

    /// Returns true if the object is not compared again yet.
    pub(crate) fn waits(&self, id: &ObjectId, now: Uptime) -> bool {
        self.0.get(id).is_some_and(|(until, _)| *until > now)
    }

    /// Returns the time of the next comparison. Objects that are due already are being compared.
    pub(crate) fn next(&self, now: Uptime) -> Option<Uptime> {
        self.0.values().map(|(until, _)| *until).filter(|until| *until > now).min()
    }

    /// Forgets the objects that need no comparison any more.
    pub(crate) fn retain(&mut self, is_open: impl Fn(&ObjectId) -> bool) {
        self.0.retain(|id, _| is_open(id));
    }

    /// Forgets all failures, so that new input is compared at once.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{Failure, FailureReason};

    fn at(seconds: u64) -> Uptime {
        Duration::from_secs(seconds)
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::new("", "Service", "shop", name).unwrap()
    }

    fn failed(manifest: bool) -> Outcome {
        Outcome::Failed(Failure { reason: FailureReason::Invalid, message: String::new(), manifest })
    }

    fn pauses() -> RetryPolicy {
        let cluster = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        RetryPolicy { cluster, manifest: Duration::from_secs(600) }
    }

    #[test]
    fn what_could_not_be_compared_is_tried_less_and_less_often() {
        let mut all = CompareFailures::default();
        all.learn(&id("a"), &failed(false), at(0), 1.0, pauses());
        assert!(!all.waits(&id("a"), at(0)), "once it is tried at once");
        all.learn(&id("a"), &failed(false), at(0), 1.0, pauses());
        assert_eq!(all.next(at(0)), Some(at(1)));
        assert!(all.waits(&id("a"), at(0)) && !all.waits(&id("a"), at(1)) && !all.waits(&id("b"), at(0)));
        assert_eq!(all.next(at(1)), None, "it is being compared");
        all.learn(&id("a"), &failed(false), at(1), 1.0, pauses());
        assert_eq!(all.next(at(1)), Some(at(3)));
        all.learn(&id("a"), &Outcome::Kept, at(3), 1.0, pauses());
        assert!(!all.waits(&id("a"), at(0)));
    }

    #[test]
    fn an_object_that_is_gone_before_its_watch_says_so_is_compared_less_and_less_often() {
        let (mut all, gone) = (CompareFailures::default(), Outcome::Held(Hold::Unverified));
        for _ in 0..2 {
            all.learn(&id("a"), &gone, at(0), 1.0, pauses());
        }
        assert_eq!(all.next(at(0)), Some(at(1)));
        all.learn(&id("a"), &gone, at(1), 1.0, pauses());
        assert_eq!(all.next(at(1)), Some(at(3)));
    }

    #[test]
    fn what_a_server_refuses_is_looked_at_every_minute_and_what_is_not_open_any_more_is_forgotten() {
        let mut all = CompareFailures::default();
        all.learn(&id("a"), &failed(true), at(0), 1.0, pauses());
        all.learn(&id("b"), &failed(true), at(5), 1.0, pauses());
        assert_eq!(all.next(at(0)), Some(at(60)));
        all.retain(|open| *open == id("b"));
        assert_eq!(all.next(at(0)), Some(at(65)));
        all.clear();
        assert_eq!(all.next(at(0)), None);
    }
}
