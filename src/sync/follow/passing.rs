//! One pass after the other: how it begins, and what follows from its end.

use futures::future::FutureExt as _;

use super::super::event::repaired;
use super::super::memory::Memory;
use super::super::pass::{Report, Subject};
use super::super::prepare::of_source;
use super::super::schedule::{Event, Pass};
use super::waiting::is_waiting;
use super::{Follower, Told};
use crate::clock;
use crate::cluster::{Cluster, Stop};
use crate::report::{Trouble, is_applied};
use crate::source::Revision;

/// The cluster for the writes of one term, once this daemon holds the Lease. Without it nothing is decided; none if
/// something newer came meanwhile.
async fn in_a_term(cluster: &Cluster, stop: &Stop) -> Option<Cluster> {
    tokio::select! {
        biased;
        () = stop.stopped() => None,
        () = cluster.terms().held() => Some(cluster.of_this_term()),
    }
}

impl Follower {
    /// The revision to which the cluster is held now, and the one that was given up for it, if one was.
    fn holds_to(&mut self, newest: Revision) -> Result<(Revision, Option<Revision>), Trouble> {
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
            // What is applied is held meanwhile.
            (Some(_), Some(before)) => Ok((before, None)),
            (Some(trouble), None) => Err(trouble),
        }
    }

    /// What is remembered of the passes before.
    fn recalled(&mut self) -> Memory {
        let losses = self.context.losses.of_passes();
        let lost = std::mem::replace(&mut self.losses, losses) != losses;
        self.memory.take().filter(|_| !lost).unwrap_or_default()
    }

    pub(super) fn pass(&mut self) {
        let Some(newest) = self.revision.clone() else { return };
        let mut memory = self.recalled();
        let (revision, rejected) = match self.holds_to(newest) {
            Ok(held) => held,
            Err(trouble) => {
                let report = Report { trouble: Some(trouble), ..Report::default() };
                self.passing = Some(std::future::ready((memory, report)).boxed());
                return;
            }
        };
        // Whether what was well may still be taken up is asked once more: the keys that count may have changed.
        let verify = self.order.wish.verify.as_ref().map(|(signed, _)| *signed).zip(self.order.keys.clone());
        let verify = verify.filter(|_| rejected.is_some());
        self.is_to_hold(&revision, &mut memory);
        memory.renew(self.order.generation, &revision);
        memory.again |= std::mem::take(&mut self.again);
        // What is being verified is of the state before, and must be over before anything newer is written.
        self.verify_stop.stop();
        let verifying = self.verifying.take();
        self.stop = Stop::default();
        let (context, owner, order) = (self.context.clone(), self.owner.clone(), self.order.clone());
        let (vitals, by) = (self.vitals.clone(), clock::now() + self.order.wish.timeout);
        let followed = self.followed.clone();
        let (stop, desk, answered) = (self.stop.clone(), self.desk.clone(), self.answered.clone());
        self.passing = Some(
            async move {
                let verified = match verifying {
                    Some(verifying) => Some(verifying.await),
                    None => None,
                };
                let Some(cluster) = in_a_term(&order.cluster, &stop).await else {
                    return (memory, Report { stopped: true, ..Report::default() });
                };
                if let Some((signed, keys)) = &verify
                    && let Err(error) = order.repository.verify(&revision, *signed, keys, by).await
                {
                    let trouble = Some(of_source(error));
                    return (memory, Report { trouble, ..Report::default() });
                }
                let subject = Subject {
                    context: &context,
                    cluster: &cluster,
                    desk: desk.as_ref(),
                    owner: &owner,
                    wish: &order.wish,
                    generation: order.generation,
                    approved: order.approved.clone(),
                    predecessor: order.predecessor.as_ref(),
                    vitals: &vitals,
                    repository: &order.repository,
                    followed: &followed,
                    revision: &revision,
                    newest: rejected.as_ref().unwrap_or(&revision),
                    stop: &stop,
                };
                let mut report = subject.pass(&mut memory).await;
                report.request = answered;
                // To the pass the object was as it should be, and only this tells that it had been repaired.
                if let Some((id, Some(outcome))) =
                    verified.filter(|(id, _)| !report.outcomes.contains_key(id))
                    && repaired(&outcome).is_some()
                {
                    report.outcomes.insert(id, outcome);
                }
                (memory, report)
            }
            .boxed(),
        );
    }

    pub(super) fn passed(&mut self, memory: Memory, mut report: Report) -> Event {
        self.passing = None;
        report.veil();
        let now = self.context.now();
        let pass = match (&report.trouble, memory.next(now, self.order.wish.timeout)) {
            _ if report.stopped => Pass::Stopped,
            (Some(trouble), _) if trouble.lasting || is_waiting(trouble) => Pass::Settled,
            (Some(_), _) => Pass::Failed,
            (None, Some(due)) => Pass::Again(due.saturating_sub(now)),
            (None, None) => Pass::Settled,
        };
        self.memory = Some(memory);
        if report.trouble.is_some() {
            // What it wanted of an older commit, or as an older spec had it, is given to nobody any more.
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
        // One that is superseded was seen at another time.
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
