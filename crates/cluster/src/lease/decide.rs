//! Decides how a candidate proceeds with a Lease, and builds the Lease to write.
//!
//! In: the Lease as read, the local time of the read, and the claim.
//! Out: a [`Decision`], a [`LeaseHolder`], or the next content of the Lease. Pure: no clock and no
//! requests.
//!
//! The times in a Lease are for people. Liveness of a holder is judged by the local clock alone: a
//! term has ended when the Lease has stayed unchanged for its duration, counted from our first read
//! of this content.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::LeaseClaim;
use super::clock::Moment;
use moorline_api::VERSION_ANNOTATION;

/// Duration of a Lease that does not state one: the default of common clients.
const UNSTATED_LIFE: Duration = Duration::from_secs(15);

/// Next action of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// There is no Lease: create it.
    Create,
    /// The Lease names us already: continue it.
    Renew,
    /// The Lease has no holder any more: take it.
    Take,
    /// Another holder has it.
    Wait {
        /// The holder.
        holder: Box<str>,
        /// End of its term, unless it is renewed.
        until: Moment,
    },
    /// The Lease was last used for another source.
    Refuse {
        /// The annotation that differs.
        key: Box<str>,
        /// Its recorded value.
        recorded: Box<str>,
        /// Its value in our claim.
        ours: Box<str>,
    },
}

/// Knowledge of a candidate about the Lease from its reads so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum LeaseObservation {
    /// There was none, or it had no holder when it was deleted.
    #[default]
    Absent,
    /// The Lease exists.
    Present {
        /// The Lease as last read.
        lease: Box<Lease>,
        /// Time of the first read in this term.
        since: Moment,
    },
    /// The Lease was deleted while held; its holder may write until its own deadline.
    Deleted {
        /// The last holder.
        holder: Box<str>,
        /// Duration of its term.
        life: Duration,
        /// Time of the first read without it. The last renewal may be newer than our last read.
        since: Moment,
    },
}

impl LeaseObservation {
    /// Adds the result of another read; `at` is the time of its response.
    #[must_use]
    pub fn then(self, found: Option<Lease>, at: Moment) -> Self {
        match (self, found) {
            (Self::Present { lease: old, since }, Some(new)) => {
                let since = if same_term(&old, &new) { since } else { at };
                Self::Present { lease: Box::new(new), since }
            }
            (Self::Absent | Self::Deleted { .. }, Some(new)) => {
                Self::Present { lease: Box::new(new), since: at }
            }
            (Self::Present { lease, .. }, None) => match holder(&lease) {
                Some(holder) => Self::Deleted { holder: holder.into(), life: life(&lease), since: at },
                None => Self::Absent,
            },
            (same @ (Self::Absent | Self::Deleted { .. }), None) => same,
        }
    }
}

/// Returns the next action of a candidate.
pub fn decide(sighting: &LeaseObservation, claim: &LeaseClaim, now: Moment) -> Decision {
    let (holder, until) = match sighting {
        LeaseObservation::Absent => return Decision::Create,
        LeaseObservation::Deleted { holder, life, since } => (&**holder, *since + *life),
        LeaseObservation::Present { lease, since } => {
            if let Some(refusal) = another_source(lease, claim) {
                return refusal;
            }
            let Some(holder) = holder(lease) else { return Decision::Take };
            (holder, *since + life(lease))
        }
    };
    let there = matches!(sighting, LeaseObservation::Present { .. });
    match (there, holder == &*claim.identity, now < until) {
        (true, true, _) => Decision::Renew,
        (_, false, true) => Decision::Wait { holder: holder.into(), until },
        (true, false, false) => Decision::Take,
        (false, true, _) | (false, false, false) => Decision::Create,
    }
}

/// Returns a refusal if a recorded annotation differs from the claim, for any holder and also after
/// the term: the record says from which source the objects in the cluster were last written.
fn another_source(lease: &Lease, claim: &LeaseClaim) -> Option<Decision> {
    let annotations = lease.metadata.annotations.as_ref()?;
    let differs = |(key, ours): (&String, &String)| {
        let recorded = annotations.get(key).filter(|recorded| *recorded != ours)?;
        Some(Decision::Refuse {
            key: key.as_str().into(),
            recorded: recorded.as_str().into(),
            ours: ours.as_str().into(),
        })
    };
    if claim.take_over { None } else { claim.record.iter().find_map(differs) }
}

/// Holder of the Lease after our renewal conflicted with another write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum LeaseHolder<'a> {
    /// Still us: another manager edited something else.
    Ours,
    /// The Lease was deleted.
    Deleted,
    /// No holder: a person wants us to stop.
    Cleared,
    /// Another holder.
    Theirs(&'a str),
}

/// Returns the current holder of a Lease that was read.
pub(super) fn current_holder<'a>(found: Option<&'a Lease>, identity: &str) -> LeaseHolder<'a> {
    match found.map(holder) {
        None => LeaseHolder::Deleted,
        Some(None) => LeaseHolder::Cleared,
        Some(Some(holder)) if holder == identity => LeaseHolder::Ours,
        Some(Some(holder)) => LeaseHolder::Theirs(holder),
    }
}

/// Returns the Lease with us as its holder. Fields of others are kept, and so is the
/// resourceVersion, which makes the write fail after a concurrent change.
pub(super) fn with_holder(
    found: Option<&Lease>,
    claim: &LeaseClaim,
    life: Duration,
    wall: Timestamp,
) -> Lease {
    let mut lease = found.cloned().unwrap_or_default();
    let same_holder = holder(&lease) == Some(&*claim.identity);
    lease.metadata.name = Some(claim.name.clone());
    lease.metadata.namespace = Some(claim.namespace.clone());
    // If left out, the server keeps it.
    lease.metadata.managed_fields = None;
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.extend(claim.record.iter().map(|(key, value)| (key.clone(), value.clone())));
    // For `moorline version`. It restricts no candidate: a daemon of another version may follow.
    annotations.insert(VERSION_ANNOTATION.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let spec = lease.spec.get_or_insert_default();
    let now = Some(differing(wall, spec.renew_time.as_ref()));
    if !same_holder {
        spec.acquire_time = now.clone();
        spec.lease_transitions = Some(match found {
            Some(_) => spec.lease_transitions.unwrap_or_default().saturating_add(1),
            None => 0,
        });
    }
    spec.holder_identity = Some(claim.identity.clone());
    spec.lease_duration_seconds = Some(i32::try_from(life.as_secs()).unwrap_or(i32::MAX));
    spec.renew_time = now;
    lease
}

/// Returns the Lease without its holder, so that the next one need not wait. The record stays.
pub(super) fn without_holder(lease: &Lease, wall: Timestamp) -> Lease {
    let mut lease = lease.clone();
    lease.metadata.managed_fields = None;
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = None;
    // For clients that only look at the times.
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(differing(wall, spec.renew_time.as_ref()));
    lease
}

/// Maximum number of microseconds by which the time of a renewal may be ahead of the wall clock:
/// enough for two days of renewals under a clock that does not advance, and too little to be
/// mistaken for a clock that was set back.
const NUDGED: i64 = 100_000;

/// Returns the wall clock time for a renewal, never equal to one of the last renewals: others
/// recognise by the difference that we are alive, even if the wall clock was set back by exactly
/// that much or does not advance.
fn differing(wall: Timestamp, last: Option<&MicroTime>) -> MicroTime {
    let time = |microseconds| Timestamp::from_microsecond(microseconds).map(MicroTime);
    let (now, last) = (wall.as_microsecond(), last.map(|last| last.0.as_microsecond()));
    let later = last.filter(|last| (0..NUDGED).contains(&last.saturating_sub(now)));
    time(later.map_or(now, |last| last.saturating_add(1))).unwrap_or(MicroTime(wall))
}

/// Returns the holder; none after a release.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Returns the duration of a term.
fn life(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    let stated = seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    stated.map_or(UNSTATED_LIFE, Duration::from_secs)
}

/// True if the Lease was not renewed between the two reads. The resourceVersion is not compared,
/// because an edit of a label renews nothing.
fn same_term(one: &Lease, other: &Lease) -> bool {
    let term = |lease: &Lease| -> (Option<String>, Option<LeaseSpec>) {
        (lease.metadata.uid.clone(), lease.spec.clone())
    };
    term(one) == term(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: &str = "me";

    fn at(seconds: u64) -> Moment {
        Moment::after_start(Duration::from_secs(seconds))
    }

    fn claim(take_over: bool) -> LeaseClaim {
        let record = [("source", "git"), ("path", "./a")];
        LeaseClaim {
            namespace: "ns".into(),
            name: "moorline-default".into(),
            identity: ME.into(),
            record: record.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            take_over,
        }
    }

    /// A Lease of ten seconds that `holder` renewed at `renewed` by its wall clock.
    fn lease(holder: &str, renewed: i64) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.uid = Some("uid".into());
        lease.metadata.resource_version = Some("1".into());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(10),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        });
        lease
    }

    fn noting(mut lease: Lease, path: &str) -> Lease {
        lease.metadata.annotations = Some([("path".to_owned(), path.to_owned())].into());
        lease
    }

    fn with(mut lease: Lease, change: impl FnOnce(&mut Lease)) -> Lease {
        change(&mut lease);
        lease
    }

    fn wait(holder: &str, until: u64) -> Decision {
        Decision::Wait { holder: holder.into(), until: at(until) }
    }

    /// Reads at the given seconds, and compares the decision after the last one.
    #[track_caller]
    fn check(looks: &[(u64, Option<Lease>)], expect: Decision) {
        check_claim(looks, &claim(false), expect);
    }

    #[track_caller]
    fn check_claim(looks: &[(u64, Option<Lease>)], claim: &LeaseClaim, expect: Decision) {
        let mut sighting = LeaseObservation::default();
        let mut now = at(0);
        for (second, found) in looks {
            now = at(*second);
            sighting = sighting.then(found.clone(), now);
        }
        assert_eq!(decide(&sighting, claim, now), expect, "{looks:?}");
    }

    #[test]
    fn every_renewal_has_another_time_whatever_the_clock_does() {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let mut last = None;
        let mut seen = std::collections::BTreeSet::new();
        for wall in [5, 5, 5, 5, 6, 6, 6].map(second) {
            let now = differing(wall, last.as_ref());
            assert!(seen.insert(now.0), "{now:?} twice");
            last = Some(now);
        }
        // A clock that was set far back is taken over.
        assert_eq!(differing(second(2), last.as_ref()), MicroTime(second(2)));
    }

    #[test]
    fn a_lease_is_taken_when_its_holder_is_gone_for_certain() {
        check(&[(100, None)], Decision::Create);
        check(&[(100, Some(Lease::default()))], Decision::Take);
        check(&[(100, Some(lease("", 1)))], Decision::Take);
        check(&[(100, Some(lease(ME, 1)))], Decision::Renew);
        // Its term counts from our first read, no matter how old its renewal time is.
        check(&[(100, Some(lease("other", 1)))], wait("other", 110));
        check(&[(100, Some(lease("other", 1))), (109, Some(lease("other", 1)))], wait("other", 110));
        check(&[(100, Some(lease("other", 1))), (110, Some(lease("other", 1)))], Decision::Take);
        // Renewed, with a wall clock that went back.
        check(&[(100, Some(lease("other", 5))), (110, Some(lease("other", 4)))], wait("other", 120));
        // Released in between.
        check(&[(100, Some(lease("other", 1))), (102, Some(lease("", 2)))], Decision::Take);
        check(&[(100, Some(lease("other", 1))), (111, Some(lease("third", 1)))], wait("third", 121));
    }

    #[test]
    fn only_the_holder_lengthens_its_term() {
        let edited = with(noting(lease("other", 1), "./a"), |lease| {
            lease.metadata.resource_version = Some("2".into());
        });
        check(&[(100, Some(lease("other", 1))), (110, Some(edited))], Decision::Take);
        let remade = with(lease("other", 1), |lease| lease.metadata.uid = Some("another".into()));
        check(&[(100, Some(lease("other", 1))), (110, Some(remade))], wait("other", 120));
    }

    #[test]
    fn a_term_is_as_long_as_its_holder_says() {
        let lasting = |seconds| {
            with(lease("other", 1), |lease| lease.spec.as_mut().unwrap().lease_duration_seconds = seconds)
        };
        check(&[(100, Some(lasting(Some(60))))], wait("other", 160));
        check(&[(100, Some(lasting(Some(1))))], wait("other", 101));
        for unstated in [None, Some(0), Some(-5)] {
            check(&[(100, Some(lasting(unstated)))], wait("other", 115));
        }
    }

    #[test]
    fn a_deleted_lease_still_binds_who_saw_it_held() {
        let held = Some(lease("other", 1));
        check(&[(100, held.clone()), (102, None)], wait("other", 112));
        check(&[(100, held.clone()), (102, None), (111, None)], wait("other", 112));
        check(&[(100, held.clone()), (102, None), (112, None)], Decision::Create);
        check(&[(100, held.clone()), (102, None), (103, held)], wait("other", 113));
        check(&[(100, Some(lease("", 1))), (102, None)], Decision::Create);
        check(&[(100, Some(lease(ME, 1))), (102, None)], Decision::Create);
    }

    #[test]
    fn another_source_is_refused_whoever_holds_it() {
        let refused = Decision::Refuse { key: "path".into(), recorded: "./b".into(), ours: "./a".into() };
        for holder in ["", ME, "other"] {
            check(&[(100, Some(noting(lease(holder, 1), "./b")))], refused.clone());
        }
        let expired = Some(noting(lease("other", 1), "./b"));
        check(&[(100, expired.clone()), (150, expired.clone())], refused);
        check(&[(100, Some(noting(lease("", 1), "./a")))], Decision::Take);

        // Taking over replaces the record; it does not displace a live holder.
        let over = claim(true);
        check_claim(&[(100, expired.clone())], &over, wait("other", 110));
        check_claim(&[(100, expired.clone()), (110, expired)], &over, Decision::Take);
    }

    #[test]
    fn the_holder_sees_who_came_between() {
        assert_eq!(current_holder(None, ME), LeaseHolder::Deleted);
        assert_eq!(current_holder(Some(&Lease::default()), ME), LeaseHolder::Cleared);
        assert_eq!(current_holder(Some(&lease("", 1)), ME), LeaseHolder::Cleared);
        assert_eq!(current_holder(Some(&lease(ME, 1)), ME), LeaseHolder::Ours);
        assert_eq!(current_holder(Some(&lease("other", 1)), ME), LeaseHolder::Theirs("other"));
    }

    #[test]
    fn a_lease_counts_its_holders_and_keeps_what_others_wrote() {
        let wall = |microseconds| Timestamp::from_microsecond(microseconds).unwrap();
        let life = Duration::from_secs(15);
        let of = |lease: &Lease| lease.spec.clone().unwrap();

        let new = with_holder(None, &claim(false), life, wall(7));
        assert_eq!(new.metadata.name.as_deref(), Some("moorline-default"));
        let written = new.metadata.annotations.as_ref().unwrap();
        assert_eq!((&*written["path"], &*written[VERSION_ANNOTATION]), ("./a", env!("CARGO_PKG_VERSION")));
        assert_eq!(of(&new).holder_identity.as_deref(), Some(ME));
        assert_eq!(of(&new).lease_duration_seconds, Some(15));
        assert_eq!(of(&new).lease_transitions, Some(0));
        assert_eq!(
            (of(&new).acquire_time, of(&new).renew_time),
            (Some(wall(7).into()), Some(wall(7).into()))
        );

        let renewed = with_holder(Some(&new), &claim(false), life, wall(9));
        assert_eq!(of(&renewed).lease_transitions, Some(0));
        assert_eq!(of(&renewed).acquire_time, Some(wall(7).into()));
        assert_eq!(of(&renewed).renew_time, Some(wall(9).into()));
        // The wall clock was set back by exactly the time that passed.
        let again = with_holder(Some(&renewed), &claim(false), life, wall(9));
        assert_eq!(of(&again).renew_time, Some(wall(10).into()));

        let free = without_holder(&again, wall(20));
        assert_eq!((of(&free).holder_identity, of(&free).lease_transitions), (None, Some(0)));
        assert_eq!(free.metadata.annotations, again.metadata.annotations);

        let foreign = with(noting(lease("other", 1), "./b"), |lease| {
            lease.metadata.annotations.as_mut().unwrap().insert("scope".into(), "all".into());
            lease.metadata.managed_fields = Some(Vec::new());
        });
        let taken = with_holder(Some(&foreign), &claim(true), life, wall(30));
        assert_eq!(of(&taken).lease_transitions, Some(1));
        assert_eq!(of(&taken).acquire_time, Some(wall(30).into()));
        let annotations = taken.metadata.annotations.unwrap();
        assert_eq!((annotations["scope"].as_str(), annotations["path"].as_str()), ("all", "./a"));
        assert_eq!(taken.metadata.resource_version, foreign.metadata.resource_version);
        assert_eq!((taken.metadata.uid, taken.metadata.managed_fields), (foreign.metadata.uid, None));
    }
}
