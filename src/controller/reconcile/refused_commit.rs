//! A commit that cannot be rendered, and the time of its next attempt.
//!
//! In: the error of the render.
//! Out: a [`RefusedCommit`] in the memory of the Sync.
//!
//! Until the next attempt, the commit is not rendered again for the same spec, and the last
//! completely rendered revision stays applied.

use std::sync::Arc;
use std::time::Duration;

use super::{Aim, ReconcileContext};
use crate::api::HeldByWindow;
use crate::controller::chance;
use crate::controller::memory::SyncMemory;
use crate::controller::schedule::{Backoff, RetryPolicy, Uptime};
use crate::plan::RevisionRequest;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::Revision;

/// A commit that could not be rendered.
#[derive(Debug, Clone)]
pub(crate) struct RefusedCommit {
    revision: Revision,
    /// Number of the spec revision: another spec may render the commit.
    order: u64,
    pub(crate) reconcile_error: ReconcileError,
    /// The question about a revision that waits for approval.
    pub(crate) request: Option<Arc<RevisionRequest>>,
    /// The closed window that holds the revision.
    pub(crate) window: Option<Arc<HeldByWindow>>,
    /// Time of the next attempt.
    until: Uptime,
    backoff: Backoff,
    /// Time that the next attempt has before it gives way to repairs.
    attempt_time: Duration,
}

/// Time that an attempt has before it gives way to repairs of the held revision.
const FIRST_ATTEMPT_TIME: Duration = Duration::from_secs(1);

/// Time after which a plan that waits for approval is made again. An approval is read at once.
const ASK_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// Longest time of an attempt that never finished: more than any deadline leaves it.
const MAX_ATTEMPT_TIME: Duration = Duration::from_secs(24 * 3600);

impl RefusedCommit {
    /// Returns the time of the next attempt.
    pub(crate) fn next_try(&self) -> Uptime {
        self.until
    }

    /// Returns true if this is the refusal of the commit under this spec revision.
    pub(crate) fn is_of(&self, revision: &Revision, order: u64) -> bool {
        (&self.revision, self.order) == (revision, order)
    }
}

/// Records that a commit cannot be rendered. Earlier approvals of deletions are void from then
/// on.
pub(crate) fn refuse(
    memory: &mut SyncMemory,
    (revision, order): (&Revision, u64),
    reconcile_error: ReconcileError,
    (now, chance): (Uptime, f64),
    pauses: RetryPolicy,
) {
    let known = memory.refused_commit.take().filter(|known| known.is_of(revision, order));
    if known.is_none() {
        memory.consented.clear();
    }
    let mut backoff = known.map_or(pauses.cluster, |known| known.backoff);
    let pause = if reconcile_error.permanent { pauses.manifest } else { backoff.failed(chance) };
    let (revision, until) = (revision.clone(), now + pause);
    memory.refused_commit = Some(RefusedCommit {
        revision,
        order,
        reconcile_error,
        request: None,
        window: None,
        until,
        backoff,
        attempt_time: FIRST_ATTEMPT_TIME,
    });
}

/// Records that a revision waits for approval.
pub(super) fn ask_first(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    reconcile_error: ReconcileError,
    request: RevisionRequest,
) {
    let moment = (inputs.context.now(), chance());
    let of = (&inputs.revision, inputs.rendered_order.spec_revision);
    refuse(memory, of, reconcile_error, moment, inputs.context.pauses());
    let until = inputs.context.now() + ASK_AGAIN;
    if let Some(refusal) = &mut memory.refused_commit {
        (refusal.request, refusal.until) = (Some(Arc::new(request)), until);
    }
}

/// Records that a closed window holds a revision. Its edge wakes the Sync.
pub(super) fn hold_for_window(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    reconcile_error: ReconcileError,
    window: Arc<HeldByWindow>,
) {
    let moment = (inputs.context.now(), chance());
    let of = (&inputs.revision, inputs.rendered_order.spec_revision);
    refuse(memory, of, reconcile_error, moment, inputs.context.pauses());
    let until = inputs.context.now() + ASK_AGAIN;
    if let Some(refusal) = &mut memory.refused_commit {
        (refusal.window, refusal.until) = (Some(window), until);
    }
}

/// Forgets the refusal of a revision that is applied now.
pub(super) fn forget_refusal(inputs: &ReconcileContext, memory: &mut SyncMemory) {
    if inputs.aim == Aim::Apply {
        memory.refused_commit = None;
    }
}

/// Records that an attempt gave way to repairs. A commit that never finished gets twice the
/// time in the next attempt, so that a valid but slow commit is rendered, however much there is
/// to repair.
pub(crate) fn record_interruption(
    memory: &mut SyncMemory,
    (revision, order): (&Revision, u64),
    moment: (Uptime, f64),
    pauses: RetryPolicy,
) {
    let known = refusal_of(memory, revision, order).cloned();
    let (reconcile_error, attempt_time) = match known {
        Some(known) if known.reconcile_error.cause != ErrorCause::Progressing => {
            (known.reconcile_error, FIRST_ATTEMPT_TIME)
        }
        Some(known) => (known.reconcile_error, (2 * known.attempt_time).min(MAX_ATTEMPT_TIME)),
        None => (unfinished(), 2 * FIRST_ATTEMPT_TIME),
    };
    refuse(memory, (revision, order), ReconcileError { permanent: false, ..reconcile_error }, moment, pauses);
    memory.refused_commit.iter_mut().for_each(|refusal| refusal.attempt_time = attempt_time);
}

/// Returns the time that an attempt of this commit has before it gives way to repairs.
pub(crate) fn attempt_time_of(memory: &SyncMemory, revision: &Revision, order: u64) -> Duration {
    refusal_of(memory, revision, order).map_or(FIRST_ATTEMPT_TIME, |refusal| refusal.attempt_time)
}

/// Returns the refusal of this commit under this spec revision, if there is one.
pub(crate) fn refusal_of<'a>(
    memory: &'a SyncMemory,
    revision: &Revision,
    order: u64,
) -> Option<&'a RefusedCommit> {
    memory.refused_commit.as_ref().filter(|refusal| refusal.is_of(revision, order))
}

/// Returns true if this commit was refused, and is not retried yet.
pub(crate) fn waits_to_try(memory: &SyncMemory, revision: &Revision, order: u64, now: Uptime) -> bool {
    refusal_of(memory, revision, order).is_some_and(|refusal| now < refusal.until)
}

fn unfinished() -> ReconcileError {
    let message =
        "reading and rendering it takes long; drift of the held revision is repaired first".to_owned();
    ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::object::ObjectId;
    use crate::source::ObjectHash;

    fn revision(digit: &str) -> Revision {
        Revision {
            commit: ObjectHash::parse(&digit.repeat(40)).unwrap(),
            name: "HEAD".into(),
            tag: None,
            chart: None,
            mounts: Vec::new(),
        }
    }

    fn at(seconds: u64) -> Uptime {
        Duration::from_secs(seconds)
    }

    fn reconcile_error(lasting: bool) -> ReconcileError {
        ReconcileError {
            cause: ErrorCause::Input("YamlInvalid"),
            message: "a tab".to_owned(),
            problems: Vec::new(),
            permanent: lasting,
        }
    }

    #[test]
    fn the_same_commit_is_tried_again_after_a_pause_only() {
        let pauses = RetryPolicy { cluster: Backoff::new(at(1), at(60)), manifest: Duration::from_secs(600) };
        let mut memory = SyncMemory::default();
        let newest = revision("1");
        assert!(!waits_to_try(&memory, &newest, 7, at(0)));
        refuse(&mut memory, (&newest, 7), reconcile_error(true), (at(0), 1.0), pauses);
        assert!(waits_to_try(&memory, &newest, 7, at(599)), "only another commit helps");
        assert!(!waits_to_try(&memory, &newest, 7, at(600)), "a bound for what nobody has thought of");
        assert!(!waits_to_try(&memory, &newest, 8, at(1)), "another spec may render it");
        assert!(!waits_to_try(&memory, &revision("2"), 7, at(1)));
        // A temporary error is retried sooner, with growing pauses.
        refuse(&mut memory, (&newest, 8), reconcile_error(false), (at(0), 1.0), pauses);
        let first = memory.refused_commit.as_ref().unwrap().until;
        refuse(&mut memory, (&newest, 8), reconcile_error(false), (first, 1.0), pauses);
        refuse(&mut memory, (&newest, 8), reconcile_error(false), (first, 1.0), pauses);
        assert!(memory.refused_commit.as_ref().unwrap().until > first + Duration::from_secs(1));
        assert!(memory.refused_commit.as_ref().unwrap().until <= first + Duration::from_secs(60));
    }

    #[test]
    fn a_try_that_never_ends_gets_more_and_more_time_and_one_that_failed_does_not() {
        let pauses = RetryPolicy { cluster: Backoff::new(at(1), at(60)), manifest: at(600) };
        let mut memory = SyncMemory::default();
        let newest = revision("1");
        let mut attempt_time = Vec::new();
        for second in 0..4 {
            attempt_time.push(attempt_time_of(&memory, &newest, 7));
            record_interruption(&mut memory, (&newest, 7), (at(second), 0.5), pauses);
        }
        assert_eq!(attempt_time, [at(1), at(2), at(4), at(8)]);
        refuse(&mut memory, (&newest, 7), reconcile_error(false), (at(9), 0.5), pauses);
        for second in 10..12 {
            record_interruption(&mut memory, (&newest, 7), (at(second), 0.5), pauses);
            assert_eq!(attempt_time_of(&memory, &newest, 7), at(1));
            assert_eq!(
                memory.refused_commit.as_ref().unwrap().reconcile_error.reason(),
                "YamlInvalid",
                "it stays refused"
            );
        }
    }

    #[test]
    fn an_approval_from_before_the_refusal_does_not_count() {
        let pauses = RetryPolicy { cluster: Backoff::new(at(1), at(60)), manifest: at(600) };
        let consent = || BTreeMap::from([(ObjectId::parse("/ConfigMap|shop/a").unwrap(), "uid".into())]);
        let mut memory = SyncMemory::default();
        memory.consented = consent();
        refuse(&mut memory, (&revision("1"), 0), reconcile_error(true), (at(0), 0.5), pauses);
        assert!(memory.consented.is_empty());
        // An approval that was given after the refusal is valid.
        memory.consented = consent();
        refuse(&mut memory, (&revision("1"), 0), reconcile_error(true), (at(0), 0.5), pauses);
        assert!(!memory.consented.is_empty());
    }
}
