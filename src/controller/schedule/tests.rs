//! Tests of the schedule: sequences of events with times, and the commands that follow.
//!
//! In: nothing. Out: failures.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const WISH: ScheduleEvent =
    ScheduleEvent::SpecChanged { suspended: false, interval: Duration::from_secs(30), known: false };
const KNOWN: ScheduleEvent =
    ScheduleEvent::SpecChanged { suspended: false, interval: Duration::from_secs(30), known: true };

fn at(seconds: u64) -> Uptime {
    Duration::from_secs(seconds)
}

fn schedule() -> Schedule {
    Schedule::new(Backoff::new(SECOND, 60 * SECOND))
}

/// Returns a schedule that has settled on a revision.
fn settled() -> Schedule {
    let mut schedule = schedule();
    assert_eq!(schedule.step(WISH, at(0), 0.5), [ScheduleCommand::Poll]);
    assert_eq!(
        schedule.step(ScheduleEvent::Polled(PollResult::New), at(0), 0.5),
        [ScheduleCommand::Reconcile]
    );
    assert_eq!(schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(1), 0.5), []);
    schedule
}

#[test]
fn in_peace_there_are_only_looks() {
    let mut schedule = settled();
    assert!(schedule.is_quiet());
    for round in 1..4 {
        assert_eq!(schedule.next(), Some(at(30 * round)));
        assert_eq!(schedule.step(ScheduleEvent::TimerFired, at(30 * round), 0.5), [ScheduleCommand::Poll]);
        assert_eq!(schedule.step(ScheduleEvent::Polled(PollResult::Same), at(30 * round), 0.5), []);
    }
}

#[test]
fn the_next_look_is_within_an_eighth_of_the_interval() {
    for (chance, milliseconds) in [(0.0, 26_250), (0.5, 30_000), (1.0, 33_750)] {
        let next = Duration::from_millis(milliseconds);
        for look in [PollResult::Same, PollResult::New, PollResult::FailedPermanently] {
            let mut schedule = settled();
            schedule.step(ScheduleEvent::PollRequested, at(10), chance);
            schedule.step(ScheduleEvent::Polled(look), at(10), chance);
            schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(10), chance);
            assert_eq!(schedule.next(), Some(at(10) + next), "{look:?} {chance}");
        }
        let mut schedule = settled();
        schedule.step(ScheduleEvent::PeerPolled, at(10), chance);
        schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(10), chance);
        assert_eq!(schedule.next(), Some(at(10) + next), "heard {chance}");
    }
}

#[test]
fn a_newer_revision_stops_the_pass_and_begins_anew() {
    let mut schedule = settled();
    assert_eq!(schedule.step(ScheduleEvent::ObjectsChanged, at(2), 0.5), [ScheduleCommand::Reconcile]);
    assert_eq!(schedule.step(ScheduleEvent::PollRequested, at(3), 0.5), [ScheduleCommand::Poll]);
    assert_eq!(schedule.step(ScheduleEvent::Polled(PollResult::New), at(3), 0.5), [ScheduleCommand::Stop]);
    assert_eq!(
        schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Stopped), at(4), 0.5),
        [ScheduleCommand::Reconcile]
    );
}

#[test]
fn what_another_has_found_needs_no_look() {
    let mut schedule = settled();
    assert_eq!(schedule.step(ScheduleEvent::PeerPolled, at(10), 0.5), [ScheduleCommand::Reconcile]);
    assert_eq!(schedule.step(ScheduleEvent::PeerPolled, at(11), 0.5), [ScheduleCommand::Stop]);
    assert_eq!(
        schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Stopped), at(11), 0.5),
        [ScheduleCommand::Reconcile]
    );
    assert_eq!(schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(12), 0.5), []);
    assert_eq!(schedule.next(), Some(at(41)), "the repository was asked a moment ago");
}

#[test]
fn what_happens_during_a_pass_is_looked_at_after_it() {
    let mut schedule = settled();
    assert_eq!(schedule.step(ScheduleEvent::ObjectsChanged, at(2), 0.5), [ScheduleCommand::Reconcile]);
    assert_eq!(schedule.step(ScheduleEvent::ObjectsChanged, at(3), 0.5), []);
    assert_eq!(
        schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(4), 0.5),
        [ScheduleCommand::Reconcile]
    );
    assert_eq!(schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(5), 0.5), []);
}

#[test]
fn failed_passes_wait_longer_and_longer_whatever_happens() {
    let mut schedule = settled();
    assert_eq!(schedule.step(ScheduleEvent::ObjectsChanged, at(10), 0.0), [ScheduleCommand::Reconcile]);
    assert_eq!(
        schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Failed), at(10), 1.0),
        [ScheduleCommand::Reconcile],
        "at once"
    );
    assert_eq!(schedule.step(ScheduleEvent::ObjectsChanged, at(10), 1.0), []);
    assert_eq!(schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Failed), at(10), 1.0), []);
    assert_eq!(schedule.next(), Some(at(11)));
    assert_eq!(
        schedule.step(KNOWN, at(10), 1.0),
        [ScheduleCommand::Poll, ScheduleCommand::Reconcile],
        "new input does not wait"
    );
}

#[test]
fn a_repository_that_fails_is_asked_again_within_the_interval() {
    let mut schedule = schedule();
    assert_eq!(schedule.step(WISH, at(0), 1.0), [ScheduleCommand::Poll]);
    assert_eq!(schedule.step(ScheduleEvent::Polled(PollResult::Failed), at(0), 1.0), [ScheduleCommand::Poll]);
    assert_eq!(schedule.step(ScheduleEvent::Polled(PollResult::Failed), at(0), 1.0), []);
    assert_eq!(schedule.next(), Some(at(1)));
    for _ in 0..20 {
        let now = schedule.next().unwrap();
        assert_eq!(schedule.step(ScheduleEvent::TimerFired, now, 1.0), [ScheduleCommand::Poll]);
        schedule.step(ScheduleEvent::Polled(PollResult::Failed), now, 1.0);
        assert!(schedule.next().unwrap() <= now + Duration::from_secs(34));
    }
}

#[test]
fn what_was_taken_up_before_is_held_where_nothing_newer_may_be() {
    let mut schedule = schedule();
    assert_eq!(schedule.step(WISH, at(0), 0.5), [ScheduleCommand::Poll]);
    assert_eq!(
        schedule.step(ScheduleEvent::Polled(PollResult::FailedWithFallback), at(1), 0.5),
        [ScheduleCommand::Reconcile]
    );
    assert_eq!(schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(2), 0.5), []);
    assert_eq!(schedule.next(), Some(at(31)));
    assert_eq!(schedule.step(ScheduleEvent::TimerFired, at(31), 0.5), [ScheduleCommand::Poll]);
    assert_eq!(
        schedule.step(ScheduleEvent::Polled(PollResult::FailedPermanently), at(31), 0.5),
        [],
        "it is held already"
    );
}

#[test]
fn a_suspended_sync_is_not_looked_at() {
    let mut schedule = settled();
    let valid_spec = ScheduleEvent::SpecChanged { suspended: true, interval: at(30), known: true };
    assert_eq!(
        schedule.step(valid_spec, at(2), 0.5),
        [ScheduleCommand::Reconcile],
        "it says that it is suspended"
    );
    schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(2), 0.5);
    assert_eq!(schedule.next(), None);
    assert_eq!(schedule.step(KNOWN, at(9), 0.5), [ScheduleCommand::Poll, ScheduleCommand::Reconcile]);
}

#[test]
fn a_suspended_sync_that_is_asked_looks_until_it_has_an_answer_and_renders_it() {
    let mut schedule = schedule();
    let valid_spec = ScheduleEvent::SpecChanged { suspended: true, interval: at(30), known: false };
    assert_eq!(schedule.step(valid_spec, at(0), 1.0), []);
    assert_eq!(schedule.next(), None);
    assert_eq!(schedule.step(ScheduleEvent::PollRequested, at(2), 1.0), [ScheduleCommand::Poll]);
    assert_eq!(
        schedule.step(ScheduleEvent::Polled(PollResult::Failed), at(2), 1.0),
        [ScheduleCommand::Poll],
        "at once"
    );
    assert_eq!(schedule.step(ScheduleEvent::Polled(PollResult::Failed), at(2), 1.0), []);
    assert_eq!(schedule.step(ScheduleEvent::TimerFired, at(3), 1.0), [ScheduleCommand::Poll]);
    assert_eq!(
        schedule.step(ScheduleEvent::Polled(PollResult::New), at(3), 1.0),
        [ScheduleCommand::Reconcile]
    );
    assert_eq!(schedule.step(ScheduleEvent::Reconciled(ReconcileOutcome::Settled), at(4), 1.0), []);
    assert_eq!(schedule.next(), None);
}
