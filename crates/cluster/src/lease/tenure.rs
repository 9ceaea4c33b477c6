//! Proof that the Lease had no other holder between two terms.
//!
//! In: the Lease as last held, and as the next term found it.
//! Out: true only if no other holder came in between. Every holder that takes a Lease increments
//! its transitions and sets its acquire time, and a Lease that was deleted and created again has
//! another uid.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::decide::holder;

/// One holding of a Lease, from its acquisition to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tenure {
    uid: Option<String>,
    transitions: Option<i32>,
    acquired: Option<MicroTime>,
    holder: Option<Box<str>>,
}

impl Tenure {
    pub(super) fn of(lease: &Lease) -> Self {
        let spec = lease.spec.as_ref();
        Self {
            uid: lease.metadata.uid.clone(),
            transitions: spec.and_then(|spec| spec.lease_transitions),
            acquired: spec.and_then(|spec| spec.acquire_time.clone()),
            holder: holder(lease).map(Into::into),
        }
    }

    /// True if the Lease that the next term found is still of this tenure: it names this holder or
    /// none, and had no other in between.
    #[must_use]
    pub(super) fn lasted_until(&self, found: Option<&Self>) -> bool {
        found.is_some_and(|found| {
            let same_holder = found.holder.is_none() || found.holder == self.holder;
            same_holder
                && (&self.uid, self.transitions, &self.acquired)
                    == (&found.uid, found.transitions, &found.acquired)
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::coordination::v1::LeaseSpec;

    use super::*;

    fn lease(uid: &str, holder: &str, transitions: i32, acquired: i64) -> Tenure {
        let mut lease = Lease::default();
        lease.metadata.uid = Some(uid.into());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_transitions: Some(transitions),
            acquire_time: Some(MicroTime(Timestamp::from_second(acquired).unwrap())),
            ..LeaseSpec::default()
        });
        Tenure::of(&lease)
    }

    #[test]
    fn only_an_unchanged_tenure_shows_that_nobody_held_it() {
        let ours = lease("a", "me", 1, 5);
        assert!(ours.lasted_until(Some(&lease("a", "me", 1, 5))));
        assert!(ours.lasted_until(Some(&lease("a", "", 1, 5))), "somebody cleared it");
        for other in [
            lease("a", "other", 2, 7),
            lease("a", "", 2, 7),
            lease("a", "other", 1, 5),
            lease("a", "me", 3, 9),
            lease("b", "me", 1, 5),
        ] {
            assert!(!ours.lasted_until(Some(&other)), "{other:?}");
        }
        assert!(!ours.lasted_until(None), "it was deleted");
    }
}
