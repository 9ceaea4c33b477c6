//! Starts each reconcile, and handles its result.

use std::time::Duration;

use futures::future::FutureExt as _;

use super::super::event::repaired;
use super::super::memory::Memory;
use super::super::pass::Report;
use super::super::schedule::{Event, Pass, Time};
use super::driving::Drive;
use super::holding::{Held, Target};
use super::hurry::Hurry;
use super::waiting::is_waiting;
use super::{Follower, Order, Told};
use crate::clock;
use crate::cluster::{Cluster, Stop};
use crate::plan::{Hold, Outcome};
use crate::report::{Trouble, is_applied};
use crate::source::Revision;

/// Pause before a missing path is looked for again while the Git server has not answered yet.
const LOOK_FIRST: Duration = Duration::from_secs(2);

/// Waits for the Lease and returns the cluster for the writes of one term. Nothing is decided
/// without the Lease; none if the reconcile was cancelled meanwhile.
async fn in_a_term(cluster: &Cluster, stop: &Stop) -> Option<Cluster> {
    tokio::select! {
        biased;
        () = stop.stopped() => None,
        () = cluster.terms().held() => Some(cluster.of_this_term()),
    }
}

impl Follower {
    /// Selects the revision to apply now, and the newest one if that was rolled back.
    pub(super) fn holds_to(&mut self, newest: Revision) -> Result<(Revision, Option<Revision>), Trouble> {
        if let Some(instead) = self.instead(&newest) {
            self.waits_for_nothing();
            self.taken_up = Some(instead.clone());
            return Ok((instead, Some(newest)));
        }
        match (self.waits(&newest), self.taken_up.clone()) {
            (None, _) => {
                self.taken_up = Some(newest.clone());
                Ok((newest, None))
            }
            // Meanwhile the applied revision is reconciled.
            (Some(_), Some(before)) => Ok((before, None)),
            (Some(trouble), None) => Err(trouble),
        }
    }

    /// True while the path is missing in a revision that may be older than the push of the path.
    fn may_be_outdated(&self, report: &Report) -> bool {
        let refused = report.refused.as_ref().and_then(|refused| refused.trouble.as_ref());
        let trouble = report.trouble.as_ref().or(refused);
        let is_missing = trouble.is_some_and(|trouble| trouble.reason == "PathNotFound");
        is_missing && !report.stopped && self.path_lag.is_outdated(clock::now())
    }

    /// Records the kinds that the server does not serve and that are expected to be installed.
    /// Returns the end of the time limit of the first one.
    fn bound_lags(&mut self, report: &mut Report) -> Option<Time> {
        if report.stopped || report.trouble.is_some() {
            return None;
        }
        let is_unknown = |outcome: &Outcome| matches!(outcome, Outcome::Held(Hold::UnknownKind));
        let unknown = report.outcomes.iter().filter(|(_, outcome)| is_unknown(outcome));
        let unknown = unknown.map(|(id, _)| id.group_kind()).collect();
        let until;
        (report.tries.lags, until) = self.lags.bound_unknown(&unknown, self.context.now());
        until
    }

    /// Takes the memory of the previous reconciles.
    fn recalled(&mut self) -> Memory {
        let losses = self.context.losses.of_passes();
        let lost = std::mem::replace(&mut self.losses, losses) != losses;
        self.memory.take().filter(|_| !lost).unwrap_or_default()
    }

    /// Returns everything that a reconcile needs beside its target, as of now.
    fn drive(&self) -> Drive {
        Drive {
            context: self.context.clone(),
            owner: self.owner.clone(),
            order: self.order.clone(),
            desk: self.desk.clone(),
            vitals: self.vitals.clone(),
            followed: self.followed.clone(),
            stop: self.stop.clone(),
            gives_way: self.hurry.as_ref().map(|hurry| hurry.stop.clone()).unwrap_or_default(),
        }
    }

    /// Removes from the memory all that does not count for this reconcile.
    fn prepare_memory(&mut self, target: &Target, memory: &mut Memory) {
        if let Target::Apply { revision, .. } = target {
            self.is_to_hold(revision, memory);
            let patience = memory.patience_of(revision, self.order.generation);
            self.hurry = Some(Hurry::new(self.context.now(), patience));
        }
        if let Target::Keep { refused, .. } = target {
            // Nothing newer is tried here, so its retry time does not count.
            memory.refusal = None;
            if refused.newer.is_some() && refused.newer != self.refused {
                // An approval that was given before the refusal does not count.
                memory.consented.clear();
            }
        }
        memory.again |= std::mem::take(&mut self.again);
        if std::mem::take(&mut self.tries_newest) {
            memory.refusal = None;
        }
        if std::mem::take(&mut self.retries) {
            memory.failing.clear();
            memory.replacements.clear();
        }
    }

    pub(super) fn pass(&mut self) {
        let mut memory = self.recalled();
        let target = self.target();
        // A commit that waits for something which may come at any moment may claim objects that
        // other Syncs release.
        let lacks = self.order.refused.as_ref().is_some_and(|trouble| !trouble.lasting);
        let waiting = self.revision.clone().filter(|newest| lacks || self.is_put_off(newest));
        let target = match target {
            Target::Nothing(trouble) => {
                let report =
                    Report { order: self.order.generation, trouble: Some(trouble), ..Report::default() };
                let drive = self.drive();
                let pass = async move {
                    if let Some(newest) = &waiting {
                        drive.tell_unrendered(&memory, newest).await;
                    }
                    (memory, report, None)
                };
                self.passing = Some(pass.boxed());
                return;
            }
            target => target,
        };
        self.prepare_memory(&target, &mut memory);
        // A verification belongs to the previous revision, and must be over before anything newer
        // is written.
        self.verify_stop.stop();
        let verifying = self.verifying.take();
        self.stop = Stop::default();
        let drive = self.drive();
        let (held, answered) = (self.held().cloned(), self.answered.clone());
        self.passing = Some(
            async move {
                let verified = match verifying {
                    Some(verifying) => Some(verifying.await),
                    None => None,
                };
                let Some(cluster) = in_a_term(&drive.order.cluster, &drive.stop).await else {
                    return (memory, Report { stopped: true, ..Report::default() }, None);
                };
                let drive = Drive { order: Order { cluster, ..drive.order.clone() }, ..drive };
                if let Some(newest) = &waiting {
                    drive.tell_unrendered(&memory, newest).await;
                }
                let (mut report, kept) = match target {
                    Target::Apply { revision, rejected } => {
                        drive.apply(&mut memory, (revision, rejected), held).await
                    }
                    Target::Keep { held, refused } => drive.keep(&mut memory, *held, refused).await,
                    Target::Nothing(trouble) => {
                        (Report { trouble: Some(trouble), ..Report::default() }, None)
                    }
                };
                report.request = answered;
                // For the reconcile the object was as desired; only this outcome reports that it
                // was repaired.
                if let Some((id, Some(outcome))) =
                    verified.filter(|(id, _)| !report.outcomes.contains_key(id))
                    && (repaired(&outcome).is_some() || outcome == Outcome::Created)
                {
                    report.restored.extend((outcome == Outcome::Created).then(|| id.clone()));
                    report.outcomes.insert(id, outcome);
                }
                (memory, report, kept)
            }
            .boxed(),
        );
    }

    pub(super) fn passed(&mut self, (mut memory, mut report, held): (Memory, Report, Option<Held>)) -> Event {
        (self.passing, self.hurry) = (None, None);
        if self.may_be_outdated(&report) {
            memory.refusal = None;
            self.memory = Some(memory);
            if !self.path_lag.requests_poll() {
                return Event::Passed(Pass::Again(LOOK_FIRST));
            }
            self.nudged = true;
            self.step(Event::Passed(Pass::Again(LOOK_FIRST)));
            return Event::Nudged;
        }
        report.veil();
        if let Some(Held { revision, order }) = held {
            self.holds(&revision, &order);
        }
        report.trouble.iter_mut().for_each(|trouble| self.says_lost(trouble));
        self.lags.bound_busy(report.trouble.as_mut(), self.context.now());
        self.refused = report.refused.as_ref().and_then(|refused| refused.newer.clone());
        let now = self.context.now();
        let next = memory.next(now, self.order.wish.timeout).into_iter().chain(self.bound_lags(&mut report));
        let pass = match (&report.trouble, next.min()) {
            _ if report.stopped => Pass::Stopped,
            (Some(trouble), _) if trouble.lasting || is_waiting(trouble) => Pass::Settled,
            (Some(_), _) => Pass::Failed,
            (None, Some(due)) => Pass::Again(due.saturating_sub(now)),
            (None, None) => Pass::Settled,
        };
        self.memory = Some(memory);
        if report.trouble.is_some() || self.refused.is_some() {
            // Withdraw this Sync's claims: they come from an older commit or spec, and no object
            // may be handed over for them.
            self.context.registry.unready(&self.owner);
            self.context.neighbours.anew(&self.owner);
        }
        let applied = !report.stopped
            && report.trouble.is_none()
            && is_applied(&report.outcomes, |id| {
                report.set.as_ref().is_some_and(|set| set.get(id).is_some())
            });
        if !report.stopped {
            self.applied = report.revision.clone().filter(|_| applied);
        }
        self.examine(&mut report);
        self.try_out(&report);
        self.note_health();
        if !report.stopped {
            self.gate = report.gate.take();
        }
        self.memory.iter_mut().for_each(|memory| memory.ends.learn(&report.finished));
        self.see_anew();
        self.has_come();
        // A revision that is superseded was observed at another time.
        report.took = self.seen_at.map(clock::since).filter(|_| report.revision == self.revision);
        if applied && !self.order.wish.suspend && report.revision == self.revision {
            let seen = self.seen_at.take();
            seen.inspect(|at| {
                self.context.metrics.commit_to_applied(&self.owner.to_string(), clock::since(*at))
            });
        }
        if !report.stopped {
            self.begin_relating();
        }
        self.tell(Told::Passed(Box::new(report)));
        Event::Passed(pass)
    }
}
