//! A commit whose objects do not become well is given up for the last one whose did, where a person asks for that.
//!
//! In: how the objects are after a pass. Out: which revision is held. What is given up is written down, so that a daemon that begins
//! anew does not try it again, and counts until a newer revision is seen.

use std::collections::BTreeSet;

use super::super::event::is_change;
use super::super::memory::{Memory, Refused};
use super::super::pass::Report;
use super::trust::source_id;
use super::{Follower, Told};
use crate::api::{Reason, SyncStatus};
use crate::object::ObjectId;
use crate::report;
use crate::source::Revision;

/// What is known of revisions that were, or were not, well.
#[derive(Default)]
pub(super) struct Trials {
    /// The last one of which all objects were applied and well.
    healthy: Option<Revision>,
    /// The one whose objects are still to become well, and which had failed before it came; none as long as that is not known.
    trial: Option<(Revision, Option<BTreeSet<ObjectId>>)>,
    rejected: Option<Rejected>,
    /// What was refused already while the last one that was well was held.
    refused: Refused,
    /// What is written down was taken in.
    restored: bool,
}

/// A revision that was given up, what is held instead, and why.
#[derive(Clone)]
struct Rejected {
    revision: Revision,
    instead: Revision,
    why: String,
}

impl Follower {
    /// What is held instead of this revision, if it was given up.
    pub(super) fn instead(&mut self, revision: &Revision) -> Option<Revision> {
        if !std::mem::replace(&mut self.trials.restored, true) {
            self.restore_trials(revision);
        }
        let stands = self.trials.rejected.as_ref().is_some_and(|it| it.revision == *revision);
        if !stands || !self.order.wish.rollback {
            self.trials.rejected = None;
        }
        let rejected = self.trials.rejected.clone();
        self.tell(Told::Rejected(rejected.as_ref().map(Rejected::told)));
        rejected.map(|rejected| rejected.instead)
    }

    /// Takes in what an earlier daemon wrote down of the same source.
    fn restore_trials(&mut self, newest: &Revision) {
        let status = self.told.status();
        let Some(known) = &status.revision else { return };
        if known.source.as_deref() != Some(&*source_id(&self.order.wish)) {
            return;
        }
        let tag = known.healthy_tag.as_deref();
        let read = |text: &String| Revision::read(text, tag, &self.order.wish.reference);
        self.trials.healthy = known.healthy.as_ref().and_then(read);
        if let (Some(instead), Some(rejected)) = (&self.trials.healthy, &known.rejected)
            && *rejected == newest.to_string()
        {
            let (revision, instead) = (newest.clone(), instead.clone());
            self.trials.rejected = Some(Rejected { why: why(&status, rejected), revision, instead });
        }
    }

    /// Before a revision is held: what is refused already does not speak against it, and what will be refused of it is given
    /// some time, if there is one to go back to.
    pub(super) fn is_to_hold(&mut self, revision: &Revision, memory: &mut Memory) {
        let healthy = self.trials.healthy.as_ref();
        if healthy.is_some() && memory.held() == healthy && healthy != Some(revision) {
            self.trials.refused = memory.refused();
        }
        let is_tried = self.order.wish.rollback
            && healthy.is_some_and(|healthy| healthy.commit != revision.commit)
            && !self.told.has_applied(revision);
        let wish = &self.order.wish;
        memory.patience = is_tried.then(|| wish.health.timeout.unwrap_or(wish.timeout));
    }

    /// Takes in what a pass came to: what was not well before it does not speak against its revision.
    pub(super) fn try_out(&mut self, report: &Report) {
        let Some(revision) = report.revision.as_ref().filter(|_| self.order.wish.rollback) else { return };
        if report.stopped || report.trouble.is_some() || self.trials.healthy.as_ref() == Some(revision) {
            return;
        }
        match &mut self.trials.trial {
            Some((tried, before)) if tried == revision => {
                let written = |id: &ObjectId| report.outcomes.get(id).is_some_and(is_change);
                before.iter_mut().for_each(|before| before.retain(|id| !written(id)));
            }
            trial => {
                // Applied by the daemon before this one: what had failed by then is found out first.
                let is_old = self.told.has_applied(revision);
                *trial = Some((revision.clone(), (!is_old).then(|| self.vitals.unwell().1)));
            }
        }
    }

    /// True if the revision that is held has just been found to have failed, so that another is to be held.
    pub(super) fn gives_up(&mut self) -> bool {
        let wish = &self.order.wish;
        if !wish.rollback || wish.suspend || self.trials.rejected.is_some() {
            return false;
        }
        let Some((revision, before)) = &mut self.trials.trial else { return false };
        if self.revision.as_ref() != Some(&*revision) {
            return false;
        }
        let Some(before) = before else {
            let is_known = self.vitals.summary().is_some_and(|summary| summary.is_known());
            *before = is_known.then(|| self.vitals.unwell().1);
            return false;
        };
        let instead = self.trials.healthy.clone().filter(|healthy| healthy.commit != revision.commit);
        let refused = || self.memory.as_ref()?.refused_for_good(&self.trials.refused);
        let why = self.vitals.failed(before).or_else(refused);
        let (Some(instead), Some(why)) = (instead, why) else { return false };
        let (revision, _) = self.trials.trial.take().unwrap_or_else(|| (instead.clone(), None));
        self.trials.rejected = Some(Rejected { revision, instead, why });
        true
    }

    /// Remembers the revision of which all objects are applied and well.
    pub(super) fn note_health(&mut self) {
        let well = self.vitals.summary().is_some_and(|summary| summary.is_healthy());
        if let Some(applied) = self.applied.as_ref().filter(|_| well && self.trials.restored) {
            self.trials.healthy = Some(applied.clone());
            if self.trials.trial.as_ref().is_some_and(|(tried, _)| tried == applied) {
                self.trials.trial = None;
            }
        }
    }

    /// What was well elsewhere says nothing here.
    pub(super) fn forget_trials(&mut self) {
        self.trials = Trials { restored: true, ..Trials::default() };
    }
}

impl Rejected {
    fn told(&self) -> report::Rejected {
        report::Rejected {
            revision: self.revision.to_string(),
            instead: self.instead.to_string(),
            why: self.why.clone(),
        }
    }
}

/// Why a revision was given up, as the history has it.
fn why(status: &SyncStatus, rejected: &str) -> String {
    let result = Reason::RolledBack.to_string();
    let entry = status.history.iter().find(|it| it.revision == rejected && it.result == result);
    entry.map_or_else(|| "its objects did not become well".to_owned(), |entry| entry.message.clone())
}
