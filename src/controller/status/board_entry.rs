//! Publishes the state of one Sync on the status page.
//!
//! In: the recorded events of one Sync, and its status. Out: its card, when that has changed; an
//! object that is verified without a difference publishes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event_queue::Note;
use super::events::repaired_drift;
use super::reconcile_result::ReconcileResult;
use super::{StatusRecorder, StatusState, now};
use crate::api::SyncStatus;
use crate::object::ObjectId;
use crate::observed::Drift;
use crate::plan::Outcome;
use crate::report::board::{
    Activity, HealthTable, MAX_ACTIVITIES, MAX_REPAIRS, ObjectList, Repair, SourceSummary, SyncCard,
};

/// Most fields of a repair that are kept.
const MAX_FIELDS: usize = 12;
/// Most characters of a text on the page.
const MAX_TEXT: usize = 300;

/// State of one Sync for the status page only.
#[derive(Default)]
pub(super) struct BoardEntry {
    is_read: bool,
    subject: Arc<SourceSummary>,
    healths: Arc<HealthTable>,
    objects: Arc<ObjectList>,
    repairs: Arc<[Repair]>,
    happened: Arc<[Activity]>,
    /// The status that was last published.
    status: Option<Arc<SyncStatus>>,
    /// Outcomes or healths differ from the published ones.
    moved: bool,
    /// Other data differs from the published card.
    changed: bool,
}

/// Sets the source of the Sync on the page.
pub(crate) fn set_source(recorder: &StatusRecorder, subject: SourceSummary) {
    let mut state = recorder.lock();
    if *state.posting.subject != subject {
        (state.posting.subject, state.posting.changed) = (Arc::new(subject), true);
    }
    // Until the first reconcile the page shows the previous status.
    let persisted = state.persisted_status.clone();
    if state.posting.status.is_none() || state.posting.changed {
        let status = state.posting.status.clone().unwrap_or(persisted);
        post(recorder, &mut state, &status);
    }
}

/// Publishes the current state, if it has changed.
pub(super) fn post(recorder: &StatusRecorder, state: &mut StatusState, status: &Arc<SyncStatus>) {
    let (board, posting) = (&recorder.0.reporting.board, &mut state.posting);
    let same = posting.status.as_ref().is_some_and(|known| known == status);
    if !board.is_read() || same && !posting.moved && !posting.changed {
        return;
    }
    if posting.moved {
        let empty = BTreeMap::new();
        let report = state.report.as_deref();
        let outcomes = report.map_or(&empty, |report| &report.outcomes);
        let set = report.and_then(|report| report.set.as_ref());
        posting.objects = Arc::new(ObjectList::update(&posting.objects, set, outcomes, &posting.healths));
    }
    (posting.moved, posting.changed, posting.status) = (false, false, Some(status.clone()));
    board.put(SyncCard {
        name: recorder.0.name.clone(),
        version: 0,
        source: posting.subject.clone(),
        status: status.clone(),
        objects: posting.objects.clone(),
        repairs: posting.repairs.clone(),
        activities: posting.happened.clone(),
    });
}

impl BoardEntry {
    /// Creates an empty state, for a page that is read or not.
    pub(super) fn new(is_read: bool) -> Self {
        Self { is_read, ..Self::default() }
    }

    /// Records the result of a reconcile at once, because the next result replaces it.
    pub(super) fn passed(&mut self, report: &ReconcileResult) {
        if self.is_read {
            let objects =
                ObjectList::update(&self.objects, report.set.as_ref(), &report.outcomes, &self.healths);
            (self.objects, self.changed) = (Arc::new(objects), true);
            // A failed reconcile has the outcomes of the one before it.
            let new = report.outcomes.iter().filter(|_| report.reconcile_error.is_none());
            let is_restored = |id: &ObjectId| report.restored.contains(id);
            self.remember(new.filter_map(|(id, outcome)| repair(id, outcome, is_restored(id))));
        }
    }

    /// Records the outcome of an object that was verified outside of a reconcile.
    pub(super) fn verified(&mut self, id: &ObjectId, outcome: &Outcome, is_restored: bool) {
        self.moved = true;
        self.remember(repair(id, outcome, is_restored).into_iter());
    }

    /// Adds an entry to the timeline, unless it repeats the last one.
    pub(super) fn happened(&mut self, note: &Note) {
        let text: String = note.text.chars().take(MAX_TEXT).collect();
        let is_told =
            self.happened.first().is_some_and(|last| last.reason == note.reason && last.text == text);
        if self.is_read && !is_told {
            let new = Activity { time: now(), reason: note.reason.clone(), text };
            let known = self.happened.iter().cloned();
            self.happened = std::iter::once(new).chain(known).take(MAX_ACTIVITIES).collect();
            self.changed = true;
        }
    }

    /// Sets the health of the objects.
    pub(super) fn healths(&mut self, healths: Arc<HealthTable>) {
        (self.healths, self.moved) = (healths, true);
    }

    fn remember(&mut self, repairs: impl Iterator<Item = Repair>) {
        let new: Vec<Repair> = repairs.take(MAX_REPAIRS).collect();
        if !new.is_empty() {
            let known = self.repairs.iter().cloned();
            self.repairs = new.into_iter().chain(known).take(MAX_REPAIRS).collect();
        }
    }
}

fn repair(id: &ObjectId, outcome: &Outcome, is_restored: bool) -> Option<Repair> {
    let mut drift = if is_restored { Drift::default() } else { repaired_drift(outcome)? };
    drift.fields.truncate(MAX_FIELDS);
    let (fields, manager, changed) = (drift.fields, drift.manager, drift.time);
    Some(Repair {
        repaired_at: now(),
        id: id.clone(),
        was_deleted: is_restored,
        fields,
        manager,
        changed_at: changed,
    })
}
