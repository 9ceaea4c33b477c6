//! How the objects are: when statuses are read, and when what they say is told.
//!
//! In: what was written in the cluster. Out: reads, a few at a time; and what they come to, told at once where it says
//! something else than before, and from time to time where only its sentences changed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt as _;

use super::super::event::is_change;
use super::super::pass::Report;
use super::super::schedule::Time;
use super::super::vitals::Vitals;
use super::{Follower, Told};
use crate::health::Summary;

/// Writes come first, but not for ever.
const BEHIND: Duration = Duration::from_secs(10);
/// Between two times that the same is told in other words: a roll-out counts its Pods one by one.
const WORDS: Duration = Duration::from_secs(5);

/// What was told last of how the objects are.
#[derive(Default)]
pub(super) struct ToldHealth {
    summary: Option<Summary>,
    at: Time,
    /// There are other words for the same, to be told then.
    again: Option<Time>,
}

impl Follower {
    pub(super) fn new_vitals(&self) -> Arc<Vitals> {
        let (context, cluster) = (self.context.clone(), self.order.cluster.clone());
        Arc::new(Vitals::new(context, cluster, self.owner.clone(), self.order.wish.health.clone()))
    }

    /// What is known counts no more: it was seen with other eyes, or is judged in another way.
    pub(super) fn examine_anew(&mut self) {
        self.vitals = self.new_vitals();
        self.stir = self.order.cluster.stir(&self.owner);
        self.reading = None;
        self.told_health = ToldHealth::default();
    }

    /// When something is to be read or told, if nothing happens before.
    pub(super) fn next_read(&self) -> Option<Time> {
        self.next_due().into_iter().chain(self.told_health.again).min()
    }

    fn next_due(&self) -> Option<Time> {
        let behind = if self.passing.is_some() { BEHIND } else { Duration::ZERO };
        let is_idle = self.reading.is_none() && !self.order.wish.suspend;
        let due = if is_idle { self.vitals.next() } else { None };
        due.map(|due| Duration::from_millis(u64::try_from(due).unwrap_or_default()) + behind)
    }

    /// Reads what is due, and tells what has become true by time alone.
    pub(super) fn begin_reading(&mut self) {
        let now = self.context.now();
        if self.next_read().is_none_or(|due| due > now) {
            return;
        }
        if self.next_due().is_some_and(|due| due <= now) {
            let due = self.vitals.due();
            if due != crate::health::Due::default() {
                self.reading = Some(self.vitals.clone().read(due).boxed());
                return;
            }
        }
        self.tell_health();
    }

    pub(super) fn have_read(&mut self) {
        self.reading = None;
        self.tell_health();
    }

    /// Takes in what a pass has written. Told before the pass is, so that nobody takes the old health for the new.
    pub(super) fn examine(&mut self, report: &Report) {
        if let Some(set) = &report.set {
            let written = report.outcomes.iter().filter(|(_, outcome)| is_change(outcome)).map(|(id, _)| id);
            self.vitals.wants(set, written);
        }
        self.vitals.stir();
        self.tell_health();
    }

    pub(super) fn tell_health(&mut self) {
        self.told_health.again = None;
        let (Some(summary), now) = (self.vitals.summary(), self.context.now()) else { return };
        if self.told_health.summary.as_ref() == Some(&summary) {
            return;
        }
        let is_as = self.told_health.summary.as_ref().is_some_and(|told| told.is_as(&summary));
        if is_as && now < self.told_health.at + WORDS {
            self.told_health.again = Some(self.told_health.at + WORDS);
            return;
        }
        self.tell(Told::Health(Box::new(summary.clone()), self.order.wish.health.wait));
        (self.told_health.summary, self.told_health.at) = (Some(summary), now);
        self.has_come();
    }

    /// True if the objects are as they should be, where that is waited for.
    pub(super) fn is_well(&self) -> bool {
        !self.order.wish.health.wait || self.vitals.summary().is_some_and(|summary| summary.is_healthy())
    }
}
