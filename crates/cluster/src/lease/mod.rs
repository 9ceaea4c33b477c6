//! Leader election on a Lease: at most one daemon writes.
//!
//! In: a client, a [`LeaseClaim`] and [`LeaseTimings`].
//! Out: [`Leadership`], once no other daemon holds the Lease, and from it [`WritePermit`]s, which
//! are checked before every write. kube has no leader election of its own.
//!
//! Two rules make it safe without trusting a wall clock. A candidate takes a Lease only after
//! having seen it unchanged for its duration (`decide.rs`). A holder stops before that:
//! `renew_deadline` after the *beginning* of its last successful renewal (`renew.rs`), and a write
//! that has begun by then ends in time, because its timeout is the rest of the term. Both measure
//! time spans on a clock that cannot be set (`clock.rs`). Writes of the Lease carry its
//! resourceVersion, so two of them can never both succeed.
//!
//! A daemon that lost its Lease waits in the same process. Every term has a new permit
//! (`terms.rs`), and [`Leadership::follows_without_gap`] shows that the Lease had no other holder
//! between two terms (`tenure.rs`).
//!
//! Limit: a person who deletes a held Lease admits a candidate that never saw it, up to one `retry`
//! before the holder notices.

mod clock;
mod decide;
mod renew;
mod requests;
mod tenure;
mod terms;
mod write_permit;

use std::collections::BTreeMap;
use std::time::Duration;

pub use clock::{Clock, Moment};
pub use decide::{Decision, LeaseObservation, decide};
pub use renew::{AnnotationWriter, Leadership, LeaseLoss};
pub use terms::Terms;
pub use write_permit::WritePermit;

use moorline_metrics::Metrics;
use renew::PreviousLease;
use requests::{LeaseClient, LeaseRequestError};
use tenure::Tenure;

/// Durations of the leader election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimings {
    /// Time after which others take a Lease that is not renewed; whole seconds, because the Lease
    /// states seconds.
    pub duration: Duration,
    /// Time for which the holder writes without a renewal.
    pub renew_deadline: Duration,
    /// Interval of renewals, and of reads by waiting candidates.
    pub retry: Duration,
    /// Timeout of requests: those on the Lease, and those sent under a [`WritePermit`].
    pub request: Duration,
}

impl Default for LeaseTimings {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            request: Duration::from_secs(4),
        }
    }
}

impl LeaseTimings {
    /// Checks that two holders can never write at the same time, and that one lost request does not
    /// lose the Lease.
    pub fn check(&self) -> Result<(), LeaseError> {
        let wrong = |problem| Err(LeaseError::Timings { problem });
        match self {
            _ if self.duration.subsec_nanos() != 0 || self.duration.is_zero() => {
                wrong("the duration must be whole seconds, at least one")
            }
            _ if self.duration > MAX_DURATION => wrong("the duration must be at most an hour"),
            _ if self.retry.is_zero() || self.request.is_zero() => {
                wrong("the retry period and the time of a request must not be zero")
            }
            _ if self.renew_deadline >= self.duration => {
                wrong("the renew deadline must be shorter than the duration")
            }
            _ if self.request >= self.duration - self.renew_deadline => wrong(
                "the request timeout must be shorter than the time between the renew deadline and the duration",
            ),
            _ if self.retry + self.request >= self.renew_deadline => {
                wrong("the renew deadline must leave time for a second request after a timeout")
            }
            _ => Ok(()),
        }
    }
}

/// Longer than any sane setting, and far from every overflow.
const MAX_DURATION: Duration = Duration::from_secs(3600);

/// A candidate's claim on a Lease: its name, identity and record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseClaim {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Identity of the holder. Two processes that may run at the same time must not share it: a
    /// process continues a Lease that names it already. The name and uid of a pod are suitable, the
    /// name of a machine is not.
    pub identity: String,
    /// Annotations that record the purpose of the Lease, such as source and path. A Lease with
    /// another value for one of them is refused.
    pub record: BTreeMap<String, String>,
    /// Takes a Lease with another record too, once its holder's term has ended.
    pub take_over: bool,
}

impl LeaseClaim {
    fn full_name(&self) -> Box<str> {
        format!("{}/{}", self.namespace, self.name).into()
    }
}

/// Error of acquiring or releasing the Lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The timings contradict each other.
    #[error("invalid leader election timings: {problem}")]
    Timings {
        /// The contradiction.
        problem: &'static str,
    },
    /// The claim has no identity.
    #[error("the leader election needs an identity")]
    NoIdentity,
    /// The Lease was last used for another source.
    #[error(
        "the Lease {lease} was last held for another source: its {key} is {recorded:?}, here it is {ours:?}; \
         choose another name, or take it over with --take-over"
    )]
    OtherSource {
        /// Namespace and name.
        lease: Box<str>,
        /// The annotation that differs.
        key: Box<str>,
        /// Its recorded value.
        recorded: Box<str>,
        /// Its value in our claim.
        ours: Box<str>,
    },
    /// The server will never accept such a Lease.
    #[error("the API server rejects the Lease {lease}: {cause}")]
    Rejected {
        /// Namespace and name.
        lease: Box<str>,
        /// The server's message.
        cause: Box<str>,
    },
    /// The Lease could not be released: other daemons wait until its term has ended.
    #[error("the Lease {lease} was not released: {cause}")]
    NotReleased {
        /// Namespace and name.
        lease: Box<str>,
        /// The error.
        cause: Box<str>,
    },
}

impl LeaseError {
    /// Returns the reason for conditions, Events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Timings { .. } => "LeaseTimings",
            Self::NoIdentity => "LeaseIdentity",
            Self::OtherSource { .. } => "LeaseOfOtherSource",
            Self::Rejected { .. } => "LeaseRejected",
            Self::NotReleased { .. } => "LeaseNotReleased",
        }
    }
}

/// Waits without limit until the Lease is ours. Another holder, missing rights and a silent server
/// are waited for alike, and each is logged once.
///
/// # Guarantees
///
/// Returns only when this process is the only one that may write.
///
/// # Cancellation
///
/// Dropping the future stops the attempts; a Lease acquired in that moment ends with its term.
///
/// # Errors
///
/// Only errors that waiting cannot resolve.
pub async fn acquire(
    client: kube::Client,
    metrics: Metrics,
    claim: LeaseClaim,
    timings: LeaseTimings,
) -> Result<Leadership, LeaseError> {
    acquire_reporting(client, metrics, claim, timings, &|_| {}).await
}

/// As [`acquire`], and calls `waits_for` with the current holder after each read.
pub async fn acquire_reporting(
    client: kube::Client,
    metrics: Metrics,
    claim: LeaseClaim,
    timings: LeaseTimings,
    waits_for: &(dyn Fn(&str) + Sync),
) -> Result<Leadership, LeaseError> {
    acquire_with_clock(Clock::Machine, client, metrics, claim, timings, waits_for).await
}

/// As [`acquire_reporting`], with a given clock.
pub async fn acquire_with_clock(
    clock: Clock,
    client: kube::Client,
    metrics: Metrics,
    claim: LeaseClaim,
    timings: LeaseTimings,
    waits_for: &(dyn Fn(&str) + Sync),
) -> Result<Leadership, LeaseError> {
    timings.check()?;
    if claim.identity.is_empty() {
        return Err(LeaseError::NoIdentity);
    }
    let mut candidate = Candidate {
        requests: LeaseClient::new(clock, client, metrics, claim, timings),
        sighting: LeaseObservation::default(),
        said: "".into(),
    };
    loop {
        match candidate.look(waits_for).await? {
            Step::Won(won) => return Ok(candidate.begin(*won)),
            Step::Again(wait) => tokio::time::sleep(wait).await,
        }
    }
}

/// A candidate for the Lease.
struct Candidate {
    requests: LeaseClient,
    sighting: LeaseObservation,
    /// Last logged message.
    said: Box<str>,
}

/// Result of one attempt.
enum Step {
    Won(Box<Won>),
    Again(Duration),
}

/// A Lease that names us.
struct Won {
    lease: k8s_openapi::api::coordination::v1::Lease,
    begun: Moment,
}

impl Candidate {
    /// Reads the Lease, decides and, if it is free, writes.
    async fn look(&mut self, waits_for: &(dyn Fn(&str) + Sync)) -> Result<Step, LeaseError> {
        let found = match self.requests.read().await {
            Ok(found) => found,
            Err(trouble) => return self.after(trouble),
        };
        let now = self.requests.clock.now();
        self.sighting = std::mem::take(&mut self.sighting).then(found, now);
        let lease = match (decide(&self.sighting, &self.requests.claim, now), &self.sighting) {
            (Decision::Wait { holder, until }, _) => {
                waits_for(&holder);
                self.say(format!("waiting for its holder {holder}").into(), false);
                return Ok(Step::Again(self.requests.timings.retry.min(now.time_until(until))));
            }
            (Decision::Refuse { key, recorded, ours }, _) => {
                let lease = self.requests.claim.full_name();
                return Err(LeaseError::OtherSource { lease, key, recorded, ours });
            }
            (Decision::Renew | Decision::Take, LeaseObservation::Present { lease, .. }) => Some(&**lease),
            (Decision::Create | Decision::Renew | Decision::Take, _) => None,
        };
        let begun = self.requests.clock.now();
        match self.requests.hold(lease).await {
            Ok(lease) if self.requests.clock.now() < begun + self.requests.timings.renew_deadline => {
                Ok(Step::Won(Box::new(Won { lease, begun })))
            }
            // The response came so late that another daemon may hold it; the next read shows it.
            Ok(_) => Ok(Step::Again(Duration::ZERO)),
            Err(trouble) => self.after(trouble),
        }
    }

    /// Schedules another attempt after an error, unless the error is permanent.
    fn after(&mut self, trouble: LeaseRequestError) -> Result<Step, LeaseError> {
        match trouble {
            LeaseRequestError::Rejected(cause) => {
                return Err(LeaseError::Rejected { lease: self.requests.claim.full_name(), cause });
            }
            // Another candidate was faster; the next read shows it.
            LeaseRequestError::Conflict => {}
            LeaseRequestError::Failed(cause) => {
                self.say(format!("cannot acquire it yet: {cause}").into(), true)
            }
        }
        Ok(Step::Again(self.requests.timings.retry))
    }

    fn begin(self, won: Won) -> Leadership {
        let (notes, before) = match &self.sighting {
            LeaseObservation::Present { lease, .. } => {
                (lease.metadata.annotations.clone().unwrap_or_default(), Some(Tenure::of(lease)))
            }
            LeaseObservation::Absent | LeaseObservation::Deleted { .. } => (BTreeMap::new(), None),
        };
        let found = PreviousLease { notes, before };
        tracing::info!(lease = %self.requests.claim.full_name(), "acquired the Lease");
        Leadership::begin(self.requests, won.lease, found, won.begun)
    }

    /// Logs a message unless it repeats the last one.
    fn say(&mut self, what: Box<str>, bad: bool) {
        if self.said == what {
            return;
        }
        let lease = self.requests.claim.full_name();
        match bad {
            true => tracing::warn!(%lease, "the Lease: {what}"),
            false => tracing::info!(%lease, "the Lease: {what}"),
        }
        self.said = what;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_that_let_two_write_are_refused() {
        fn timings(duration: u64, renew_deadline: u64, retry: u64, request: u64) -> LeaseTimings {
            let milliseconds = Duration::from_millis;
            LeaseTimings {
                duration: milliseconds(duration),
                renew_deadline: milliseconds(renew_deadline),
                retry: milliseconds(retry),
                request: milliseconds(request),
            }
        }
        let check = |timings: LeaseTimings, expect: Option<&str>| match (timings.check(), expect) {
            (Ok(()), None) => {}
            (Err(LeaseError::Timings { problem }), Some(expect)) if problem.contains(expect) => {}
            (result, _) => panic!("{timings:?}: {result:?}, not {expect:?}"),
        };
        check(LeaseTimings::default(), None);
        check(timings(3000, 2000, 500, 900), None);
        check(timings(3500, 2000, 500, 900), Some("whole seconds"));
        check(timings(0, 0, 0, 0), Some("whole seconds"));
        check(timings(3_601_000, 2000, 500, 900), Some("an hour"));
        check(timings(3000, 2000, 0, 900), Some("zero"));
        check(timings(3000, 2000, 500, 0), Some("zero"));
        check(timings(3000, 3000, 500, 900), Some("shorter than the duration"));
        check(timings(3000, 2000, 500, 1000), Some("between the renew deadline and the duration"));
        check(timings(3000, 1300, 500, 900), Some("a second request"));
    }
}
