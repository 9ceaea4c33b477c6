//! Merges the result of a reconcile into the status state.
//!
//! In: the result of a reconcile. Out: the same next to earlier results: a failed reconcile says
//! nothing about objects, and one that changes nothing does not hide the changes of the one before
//! it.

use super::change_summary::{approval_note, change, changes, notes, repair_note};
use super::event_queue::Note;
use super::reconcile_result::ReconcileResult;
use super::{StatusState, now};
use crate::object::ObjectId;
use crate::plan::Outcome;
use crate::report::board::MAX_ACTIVITIES;

/// Most commits of which author and subject are kept.
const MAX_COMMITS: usize = 4;

impl StatusState {
    /// Records the result of a reconcile.
    pub(super) fn passed(&mut self, mut report: Box<ReconcileResult>) {
        self.request = report.request.clone().or(self.request.take());
        self.scope = report.scope.clone().or_else(|| self.scope.take());
        self.held = report.held.clone().or_else(|| self.held.take());
        self.notes(&report);
        // A failed reconcile says nothing about objects.
        if let (Some(_), Some(last)) = (&report.trouble, &mut self.report) {
            report.outcomes = std::mem::take(&mut last.outcomes);
            report.set = last.set.take();
            report.last_hooks = std::mem::take(&mut last.last_hooks);
            report.desired = last.desired;
            report.finished = std::mem::take(&mut last.finished);
        }
        if self.order == Some(report.spec_revision) {
            self.asked = None;
        }
        self.posting.passed(&report);
        self.current = Some(now());
        (self.report, self.pending) = (Some(report), None);
    }

    /// Records the changes of a reconcile, also of one that was stopped for a newer commit.
    pub(super) fn notes(&mut self, report: &ReconcileResult) {
        if report.outcomes.values().any(Outcome::changes_cluster) {
            self.done = Some(now());
        }
        let newer = report.commits.iter().rev().cloned();
        let known = std::mem::take(&mut self.commits).into_iter();
        let known = known.filter(|known| report.commits.iter().all(|it| it.revision != known.revision));
        self.commits = newer.chain(known).take(MAX_COMMITS).collect();
        if let Some(revision) = &report.revision {
            self.uncounted.add(&revision.to_string(), changes(report));
            self.took = report.took.map(|took| (revision.clone(), took)).or(self.took.take());
        }
        let approval = self.approval(report).filter(|_| !report.stopped);
        self.happened(approval.into_iter().chain(notes(report)).collect());
    }

    /// Records the outcome of an object that was verified outside of a reconcile; false if the
    /// object was as desired.
    pub(super) fn verified(&mut self, id: ObjectId, outcome: Outcome) -> bool {
        // A known object that an apply has created was deleted in between.
        let is_restored = outcome == Outcome::Created;
        let Some(note) = repair_note(&id, &outcome, is_restored) else { return false };
        self.happened(vec![note]);
        self.done = Some(now());
        self.posting.verified(&id, &outcome, is_restored);
        if let Some(report) = &mut self.report {
            if let Some(revision) = &report.revision {
                self.uncounted.add(&revision.to_string(), change(&outcome, is_restored));
            }
            report.outcomes.insert(id, outcome);
        }
        true
    }

    /// Returns the note about an approval, if this result is the first one with it.
    fn approval(&self, report: &ReconcileResult) -> Option<Note> {
        let given = report.approved.as_ref()?;
        let waits = self.persisted_status.approval.as_ref().filter(|approval| approval.hash == *given)?;
        let is_known = self.report.as_ref().is_some_and(|last| last.approved.as_ref() == Some(given));
        (!is_known).then(|| approval_note(given, waits.objects))
    }

    /// Adds notes to the Events and to the timeline of the page.
    fn happened(&mut self, notes: Vec<Note>) {
        notes.iter().take(MAX_ACTIVITIES).for_each(|note| self.posting.happened(note));
        notes.into_iter().for_each(|note| self.queue.add(note));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::object::ObjectId;

    #[test]
    fn a_pass_that_changes_nothing_does_not_hide_the_one_before() {
        let mut state = StatusState::default();
        let report = |outcome| {
            let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
            Box::new(ReconcileResult {
                outcomes: BTreeMap::from([(id, outcome)]),
                ..ReconcileResult::default()
            })
        };
        state.passed(report(Outcome::Kept));
        assert_eq!(state.done, None);
        state.passed(report(Outcome::Created));
        let done = state.done.clone();
        assert!(done.is_some());
        state.passed(report(Outcome::Kept));
        assert_eq!(state.done, done);
    }
}
