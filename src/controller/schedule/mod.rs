//! State machine that decides when a Sync polls its repository and when it reconciles.
//!
//! In: a [`ScheduleEvent`] and the time. Out: the [`ScheduleCommand`]s that follow from it. Time
//! counts from the start of the daemon, and chance is an argument, so that every sequence can be
//! written down and tested.

mod backoff;

use std::time::Duration;

pub use backoff::{Backoff, RetryPolicy};

/// Time since the daemon started.
pub type Uptime = Duration;

/// Event of a Sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleEvent {
    /// The Sync was added, or its spec has changed.
    SpecChanged {
        /// The Sync is suspended.
        suspended: bool,
        /// Interval of polls.
        interval: Duration,
        /// A revision of the source is known.
        known: bool,
    },
    /// A poll was requested.
    PollRequested,
    /// A poll has ended.
    Polled(PollResult),
    /// Another Sync has found a new revision of the same source.
    PeerPolled,
    /// The repository cannot be read, and the held revision is to be reconciled.
    HoldStarted,
    /// A relevant object in the cluster has changed.
    ObjectsChanged,
    /// A new term of the Lease has begun: work in progress was decided in the last one.
    TermBegan,
    /// A reconcile has ended.
    Reconciled(ReconcileOutcome),
    /// Time has passed.
    TimerFired,
}

/// Result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollResult {
    /// The same revision.
    Same,
    /// Another revision.
    New,
    /// An error that a retry may resolve.
    Failed,
    /// An error that only a change of the Sync or of a Secret resolves.
    FailedPermanently,
    /// An error, with an older revision to apply meanwhile.
    FailedWithFallback,
}

/// Result of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// Nothing is left to do, or another change has to come first; its event triggers the next
    /// reconcile.
    Settled,
    /// Due again after this time.
    RetryAfter(Duration),
    /// The whole reconcile failed, and a retry may succeed.
    Failed,
    /// It was stopped before its end.
    Stopped,
}

/// Action to take now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleCommand {
    /// Poll the repository.
    Poll,
    /// Reconcile the cluster to the newest revision.
    Reconcile,
    /// Let the running reconcile begin no further write.
    Stop,
}

/// Schedule of one Sync.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    suspended: bool,
    interval: Duration,
    /// Time of the next poll; none while one runs.
    look: Option<Uptime>,
    looking: bool,
    looks: Backoff,
    /// Time of the next reconcile; none while none is due.
    pass: Option<Uptime>,
    passing: bool,
    stopping: bool,
    /// A change occurred during the reconcile, which may not have observed it.
    again: bool,
    passes: Backoff,
    /// The last reconcile failed as a whole.
    failing: bool,
    /// A revision is known, so that a reconcile has a target.
    ready: bool,
}

impl Schedule {
    /// Creates the schedule of a new Sync, with its back-off after failures.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            suspended: false,
            interval: Duration::MAX,
            look: None,
            looking: false,
            looks: backoff,
            pass: None,
            passing: false,
            stopping: false,
            again: false,
            passes: backoff,
            failing: false,
            ready: false,
        }
    }

    /// Replaces the back-off after failures.
    pub fn pace(&mut self, backoff: Backoff) {
        (self.looks, self.passes) = (self.looks.paced(backoff), self.passes.paced(backoff));
    }

    /// Handles an event. `chance` lies between 0 and 1, and spreads actions that would coincide
    /// otherwise.
    pub fn step(&mut self, event: ScheduleEvent, now: Uptime, chance: f64) -> Vec<ScheduleCommand> {
        match event {
            ScheduleEvent::SpecChanged { suspended, interval, known } => {
                (self.suspended, self.interval, self.ready) = (suspended, interval, known);
                self.on_new_spec(now);
            }
            ScheduleEvent::PollRequested => {
                self.fresh();
                self.look = Some(now);
            }
            ScheduleEvent::Polled(look) => return self.on_polled(look, now, chance),
            ScheduleEvent::PeerPolled => {
                let stop = self.supersede(now);
                // The repository was polled a moment ago by another Sync.
                self.look = self.look.map(|due| due.max(now + self.spread(chance)));
                return stop.into_iter().chain(self.due(now)).collect();
            }
            ScheduleEvent::HoldStarted => {
                let stop = self.supersede(now);
                return stop.into_iter().chain(self.due(now)).collect();
            }
            ScheduleEvent::ObjectsChanged if self.passing => self.again = true,
            // A reconcile that fails as a whole is not retried at each event.
            ScheduleEvent::ObjectsChanged if self.failing => {}
            ScheduleEvent::ObjectsChanged => self.hurry(now),
            ScheduleEvent::TermBegan => {
                self.failing = false;
                self.passes.reset();
                self.hurry(now);
                let stops = self.passing && !self.stopping;
                self.stopping |= stops;
                return stops.then_some(ScheduleCommand::Stop).into_iter().chain(self.due(now)).collect();
            }
            ScheduleEvent::Reconciled(pass) => self.passed(pass, now, chance),
            ScheduleEvent::TimerFired => {}
        }
        self.due(now)
    }

    /// Returns the time of the next action, if no event comes before it.
    pub fn next(&self) -> Option<Uptime> {
        let look = self.look.filter(|_| !self.looking);
        let pass = self.pass.filter(|_| self.may_pass());
        look.into_iter().chain(pass).min()
    }

    /// True while nothing is due but polls.
    pub fn is_quiet(&self) -> bool {
        !self.passing && self.pass.is_none()
    }

    /// Returns the interval plus or minus an eighth, so that Syncs that started together do not
    /// poll together forever.
    fn spread(&self, chance: f64) -> Duration {
        self.interval.mul_f64(0.875 + chance / 4.0)
    }

    fn may_pass(&self) -> bool {
        self.ready && !self.passing
    }

    fn on_new_spec(&mut self, now: Uptime) {
        self.fresh();
        if !self.ready {
            // The running poll may be of another repository.
            self.looking = false;
        }
        self.look = (!self.suspended).then_some(now);
        self.hurry(now);
        self.again |= self.passing;
    }

    /// Resets the back-off: after new input earlier failures mean nothing.
    fn fresh(&mut self) {
        self.looks.reset();
        self.passes.reset();
        self.failing = false;
    }

    fn hurry(&mut self, now: Uptime) {
        self.pass = Some(self.pass.map_or(now, |due| due.min(now)));
    }

    fn on_polled(&mut self, look: PollResult, now: Uptime, chance: f64) -> Vec<ScheduleCommand> {
        self.looking = false;
        let interval = self.spread(chance);
        let mut commands = Vec::new();
        let pause = match look {
            PollResult::Same | PollResult::New => {
                self.looks.reset();
                interval
            }
            PollResult::Failed => self.looks.failed(chance).min(interval),
            PollResult::FailedPermanently | PollResult::FailedWithFallback => interval,
        };
        // Requested while a poll was running: its answer may be from before the request.
        if self.look.is_none_or(|due| due > now + pause) {
            // A suspended Sync polls only on request, and then until it has an answer.
            self.look = (!self.suspended || look == PollResult::Failed).then(|| now + pause);
        }
        if matches!(look, PollResult::New | PollResult::FailedWithFallback) {
            commands.extend(self.supersede(now));
        }
        commands.extend(self.due(now));
        commands
    }

    /// Stops the reconcile of an older revision, and makes the next one due.
    fn supersede(&mut self, now: Uptime) -> Option<ScheduleCommand> {
        (self.ready, self.failing) = (true, false);
        self.passes.reset();
        self.hurry(now);
        let stops = self.passing && !self.stopping;
        self.stopping |= stops;
        stops.then_some(ScheduleCommand::Stop)
    }

    fn passed(&mut self, pass: ReconcileOutcome, now: Uptime, chance: f64) {
        (self.passing, self.stopping) = (false, false);
        self.failing = pass == ReconcileOutcome::Failed;
        match pass {
            ReconcileOutcome::Settled => self.passes.reset(),
            ReconcileOutcome::RetryAfter(pause) => {
                self.passes.reset();
                self.pass = Some(self.pass.map_or(now + pause, |due| due.min(now + pause)));
            }
            ReconcileOutcome::Failed => self.pass = Some(now + self.passes.failed(chance)),
            ReconcileOutcome::Stopped => self.again = true,
        }
        // An event during a reconcile that failed as a whole waits as well: else every event would
        // be a retry.
        if std::mem::take(&mut self.again) && pass != ReconcileOutcome::Failed {
            self.hurry(now);
        }
    }

    fn due(&mut self, now: Uptime) -> Vec<ScheduleCommand> {
        let mut commands = Vec::new();
        if !self.looking && self.look.is_some_and(|due| due <= now) {
            (self.look, self.looking) = (None, true);
            commands.push(ScheduleCommand::Poll);
        }
        if self.may_pass() && self.pass.is_some_and(|due| due <= now) {
            (self.pass, self.passing, self.again) = (None, true, false);
            commands.push(ScheduleCommand::Reconcile);
        }
        commands
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(
                schedule.step(ScheduleEvent::TimerFired, at(30 * round), 0.5),
                [ScheduleCommand::Poll]
            );
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
        assert_eq!(
            schedule.step(ScheduleEvent::Polled(PollResult::New), at(3), 0.5),
            [ScheduleCommand::Stop]
        );
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
        assert_eq!(
            schedule.step(ScheduleEvent::Polled(PollResult::Failed), at(0), 1.0),
            [ScheduleCommand::Poll]
        );
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
}
