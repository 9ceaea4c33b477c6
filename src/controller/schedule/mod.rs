//! State machine that decides when a Sync polls its repository and when it reconciles.
//!
//! In: a [`ScheduleEvent`] and the time. Out: the [`ScheduleCommand`]s that follow from it. Time
//! counts from the start of the daemon, and chance is an argument, so that every sequence can be
//! written down and tested.

mod backoff;
#[cfg(test)]
mod tests;

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
    next_poll: Option<Uptime>,
    is_polling: bool,
    poll_backoff: Backoff,
    /// Time of the next reconcile; none while none is due.
    next_reconcile: Option<Uptime>,
    is_reconciling: bool,
    is_stopping: bool,
    /// A change occurred during the reconcile, which may not have observed it.
    changed_meanwhile: bool,
    reconcile_backoff: Backoff,
    /// The last reconcile failed as a whole.
    has_failed: bool,
    /// A revision is known, so that a reconcile has a target.
    knows_revision: bool,
}

impl Schedule {
    /// Creates the schedule of a new Sync, with its back-off after failures.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            suspended: false,
            interval: Duration::MAX,
            next_poll: None,
            is_polling: false,
            poll_backoff: backoff,
            next_reconcile: None,
            is_reconciling: false,
            is_stopping: false,
            changed_meanwhile: false,
            reconcile_backoff: backoff,
            has_failed: false,
            knows_revision: false,
        }
    }

    /// Replaces the back-off after failures.
    pub fn set_backoff(&mut self, backoff: Backoff) {
        (self.poll_backoff, self.reconcile_backoff) =
            (self.poll_backoff.with_pauses(backoff), self.reconcile_backoff.with_pauses(backoff));
    }

    /// Handles an event. `chance` lies between 0 and 1, and spreads actions that would coincide
    /// otherwise.
    pub fn step(&mut self, event: ScheduleEvent, now: Uptime, chance: f64) -> Vec<ScheduleCommand> {
        match event {
            ScheduleEvent::SpecChanged { suspended, interval, known } => {
                (self.suspended, self.interval, self.knows_revision) = (suspended, interval, known);
                self.on_new_spec(now);
            }
            ScheduleEvent::PollRequested => {
                self.reset_backoff();
                self.next_poll = Some(now);
            }
            ScheduleEvent::Polled(result) => return self.on_polled(result, now, chance),
            ScheduleEvent::PeerPolled => {
                let stop = self.supersede(now);
                // The repository was polled a moment ago by another Sync.
                self.next_poll = self.next_poll.map(|due| due.max(now + self.spread(chance)));
                return stop.into_iter().chain(self.due(now)).collect();
            }
            ScheduleEvent::HoldStarted => {
                let stop = self.supersede(now);
                return stop.into_iter().chain(self.due(now)).collect();
            }
            ScheduleEvent::ObjectsChanged if self.is_reconciling => self.changed_meanwhile = true,
            // A reconcile that fails as a whole is not retried at each event.
            ScheduleEvent::ObjectsChanged if self.has_failed => {}
            ScheduleEvent::ObjectsChanged => self.reconcile_now(now),
            ScheduleEvent::TermBegan => {
                self.has_failed = false;
                self.reconcile_backoff.reset();
                self.reconcile_now(now);
                let stops = self.is_reconciling && !self.is_stopping;
                self.is_stopping |= stops;
                return stops.then_some(ScheduleCommand::Stop).into_iter().chain(self.due(now)).collect();
            }
            ScheduleEvent::Reconciled(outcome) => self.on_reconciled(outcome, now, chance),
            ScheduleEvent::TimerFired => {}
        }
        self.due(now)
    }

    /// Returns the time of the next action, if no event comes before it.
    pub fn next(&self) -> Option<Uptime> {
        let poll = self.next_poll.filter(|_| !self.is_polling);
        let reconcile = self.next_reconcile.filter(|_| self.may_reconcile());
        poll.into_iter().chain(reconcile).min()
    }

    /// True while nothing is due but polls.
    pub fn is_quiet(&self) -> bool {
        !self.is_reconciling && self.next_reconcile.is_none()
    }

    /// Returns the interval plus or minus an eighth, so that Syncs that started together do not
    /// poll together forever.
    fn spread(&self, chance: f64) -> Duration {
        self.interval.mul_f64(0.875 + chance / 4.0)
    }

    fn may_reconcile(&self) -> bool {
        self.knows_revision && !self.is_reconciling
    }

    fn on_new_spec(&mut self, now: Uptime) {
        self.reset_backoff();
        if !self.knows_revision {
            // The running poll may be of another repository.
            self.is_polling = false;
        }
        self.next_poll = (!self.suspended).then_some(now);
        self.reconcile_now(now);
        self.changed_meanwhile |= self.is_reconciling;
    }

    /// Resets the back-off: after new input earlier failures mean nothing.
    fn reset_backoff(&mut self) {
        self.poll_backoff.reset();
        self.reconcile_backoff.reset();
        self.has_failed = false;
    }

    fn reconcile_now(&mut self, now: Uptime) {
        self.next_reconcile = Some(self.next_reconcile.map_or(now, |due| due.min(now)));
    }

    fn on_polled(&mut self, result: PollResult, now: Uptime, chance: f64) -> Vec<ScheduleCommand> {
        self.is_polling = false;
        let interval = self.spread(chance);
        let mut commands = Vec::new();
        let pause = match result {
            PollResult::Same | PollResult::New => {
                self.poll_backoff.reset();
                interval
            }
            PollResult::Failed => self.poll_backoff.failed(chance).min(interval),
            PollResult::FailedPermanently | PollResult::FailedWithFallback => interval,
        };
        // Requested while a poll was running: its answer may be from before the request.
        if self.next_poll.is_none_or(|due| due > now + pause) {
            // A suspended Sync polls only on request, and then until it has an answer.
            self.next_poll = (!self.suspended || result == PollResult::Failed).then(|| now + pause);
        }
        if matches!(result, PollResult::New | PollResult::FailedWithFallback) {
            commands.extend(self.supersede(now));
        }
        commands.extend(self.due(now));
        commands
    }

    /// Stops the reconcile of an older revision, and makes the next one due.
    fn supersede(&mut self, now: Uptime) -> Option<ScheduleCommand> {
        (self.knows_revision, self.has_failed) = (true, false);
        self.reconcile_backoff.reset();
        self.reconcile_now(now);
        let stops = self.is_reconciling && !self.is_stopping;
        self.is_stopping |= stops;
        stops.then_some(ScheduleCommand::Stop)
    }

    fn on_reconciled(&mut self, outcome: ReconcileOutcome, now: Uptime, chance: f64) {
        (self.is_reconciling, self.is_stopping) = (false, false);
        self.has_failed = outcome == ReconcileOutcome::Failed;
        match outcome {
            ReconcileOutcome::Settled => self.reconcile_backoff.reset(),
            ReconcileOutcome::RetryAfter(pause) => {
                self.reconcile_backoff.reset();
                self.next_reconcile =
                    Some(self.next_reconcile.map_or(now + pause, |due| due.min(now + pause)));
            }
            ReconcileOutcome::Failed => {
                self.next_reconcile = Some(now + self.reconcile_backoff.failed(chance))
            }
            ReconcileOutcome::Stopped => self.changed_meanwhile = true,
        }
        // An event during a reconcile that failed as a whole waits as well: else every event would
        // be a retry.
        if std::mem::take(&mut self.changed_meanwhile) && outcome != ReconcileOutcome::Failed {
            self.reconcile_now(now);
        }
    }

    fn due(&mut self, now: Uptime) -> Vec<ScheduleCommand> {
        let mut commands = Vec::new();
        if !self.is_polling && self.next_poll.is_some_and(|due| due <= now) {
            (self.next_poll, self.is_polling) = (None, true);
            commands.push(ScheduleCommand::Poll);
        }
        if self.may_reconcile() && self.next_reconcile.is_some_and(|due| due <= now) {
            (self.next_reconcile, self.is_reconciling, self.changed_meanwhile) = (None, true, false);
            commands.push(ScheduleCommand::Reconcile);
        }
        commands
    }
}
