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

/// Records the result of a reconcile.
pub(super) fn merge_result(state: &mut StatusState, mut report: Box<ReconcileResult>) {
    state.request = report.request.clone().or(state.request.take());
    state.scope = report.scope.clone().or_else(|| state.scope.take());
    state.held = report.held.clone().or_else(|| state.held.take());
    merge_changes(state, &report);
    // A failed reconcile says nothing about objects.
    if let (Some(_), Some(last)) = (&report.trouble, &mut state.report) {
        report.outcomes = std::mem::take(&mut last.outcomes);
        report.set = last.set.take();
        report.last_hooks = std::mem::take(&mut last.last_hooks);
        report.desired = last.desired;
        report.finished = std::mem::take(&mut last.finished);
    }
    if state.order == Some(report.spec_revision) {
        state.asked = None;
    }
    state.posting.passed(&report);
    state.current = Some(now());
    (state.report, state.pending) = (Some(report), None);
}

/// Records the changes of a reconcile, also of one that was stopped for a newer commit.
pub(super) fn merge_changes(state: &mut StatusState, report: &ReconcileResult) {
    if report.outcomes.values().any(Outcome::changes_cluster) {
        state.done = Some(now());
    }
    let newer = report.commits.iter().rev().cloned();
    let known = std::mem::take(&mut state.commits).into_iter();
    let known = known.filter(|known| report.commits.iter().all(|it| it.revision != known.revision));
    state.commits = newer.chain(known).take(MAX_COMMITS).collect();
    if let Some(revision) = &report.revision {
        state.uncounted.add(&revision.to_string(), changes(report));
        state.took = report.took.map(|took| (revision.clone(), took)).or(state.took.take());
    }
    let approval = find_approval(state, report).filter(|_| !report.stopped);
    add_notes(state, approval.into_iter().chain(notes(report)).collect());
}

/// Records the outcome of an object that was verified outside of a reconcile; false if the
/// object was as desired.
pub(super) fn merge_verified(state: &mut StatusState, id: ObjectId, outcome: Outcome) -> bool {
    // A known object that an apply has created was deleted in between.
    let is_restored = outcome == Outcome::Created;
    let Some(note) = repair_note(&id, &outcome, is_restored) else { return false };
    add_notes(state, vec![note]);
    state.done = Some(now());
    state.posting.verified(&id, &outcome, is_restored);
    if let Some(report) = &mut state.report {
        if let Some(revision) = &report.revision {
            state.uncounted.add(&revision.to_string(), change(&outcome, is_restored));
        }
        report.outcomes.insert(id, outcome);
    }
    true
}

/// Returns the note about an approval, if this result is the first one with it.
fn find_approval(state: &StatusState, report: &ReconcileResult) -> Option<Note> {
    let given = report.approved.as_ref()?;
    let waits = state.persisted_status.approval.as_ref().filter(|approval| approval.hash == *given)?;
    let is_known = state.report.as_ref().is_some_and(|last| last.approved.as_ref() == Some(given));
    (!is_known).then(|| approval_note(given, waits.objects))
}

/// Adds notes to the Events and to the timeline of the page.
fn add_notes(state: &mut StatusState, notes: Vec<Note>) {
    notes.iter().take(MAX_ACTIVITIES).for_each(|note| state.posting.happened(note));
    notes.into_iter().for_each(|note| state.queue.add(note));
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
        merge_result(&mut state, report(Outcome::Kept));
        assert_eq!(state.done, None);
        merge_result(&mut state, report(Outcome::Created));
        let done = state.done.clone();
        assert!(done.is_some());
        merge_result(&mut state, report(Outcome::Kept));
        assert_eq!(state.done, done);
    }
}
