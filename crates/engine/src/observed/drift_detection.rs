//! Drift detection: compares the metadata of a watch event with the baseline.
//!
//! In: a [`Baseline`] and the metadata of an event.
//! Out: [`EventVerdict`]. No request is sent: an object whose metadata leave doubt is
//! `MaybeDrifted`, and one apply verifies or repairs it. Not detected here: values that an
//! admission plugin changes in the metadata of a kind with a generation, and changes of the server
//! without an event. The periodic verification finds these.

use serde_json::Value;

use super::baseline::{Baseline, EventMetadata, changed_ownership_keys};
use super::{Drift, generation_is_trusted};
use moorline_api::HANDOVER_MANAGER;
use moorline_core::object::Object;
use moorline_managed_fields::{FieldSet, ManagedFieldsEntry};

/// Maximum number of lost fields of one object that are named.
const MAX_FIELDS: usize = 100;

/// Result for an event.
#[derive(Debug)]
pub(super) enum EventVerdict {
    /// No field of ours was changed.
    Unchanged,
    /// A write may have changed fields of ours.
    MaybeDrifted,
    /// Fields of ours were changed or removed.
    Drifted(Drift),
}

/// Judges an event. Its object must have the uid of the baseline.
pub(super) fn judge_event(baseline: &Baseline, trace: &EventMetadata, object: &Object) -> EventVerdict {
    if object.metadata("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let fields = vec!["metadata.deletionTimestamp".to_owned()];
        return EventVerdict::Drifted(Drift { fields, ..Drift::default() });
    }
    let marks = changed_ownership_keys(&baseline.ownership_hashes, &trace.marks);
    let (lost, entry_changed) = match (&baseline.own_entry, &trace.own_entry) {
        (Some(old), Some(new)) if old.is_unchanged(new) => (FieldSet::default(), false),
        // The same field may have another path in another API version.
        (Some(old), Some(new)) if old.api_version != new.api_version => (FieldSet::default(), true),
        (Some(old), Some(new)) => (old.fields().minus(&new.fields), true),
        (Some(old), None) => return EventVerdict::Drifted(entry_lost(&old.fields(), object)),
        // The server hides our entry, or shows it for the first time: the entries cannot be
        // compared.
        (None, _) => (FieldSet::default(), true),
    };
    let lost = lost.union(&FieldSet::from_paths(&marks));
    if !lost.is_empty() {
        let fields = lost.outermost().iter().take(MAX_FIELDS).map(ToString::to_string).collect();
        return EventVerdict::Drifted(signed(fields, author(&lost, object, trace)));
    }
    match entry_changed || may_have_changed(baseline, trace, object) {
        true => EventVerdict::MaybeDrifted,
        false => EventVerdict::Unchanged,
    }
}

/// Describes the drift of an object that was deleted and created again. Only its creator is known,
/// if it took our fields.
pub(super) fn recreation_drift(baseline: Option<&Baseline>, object: &Object, trace: &EventMetadata) -> Drift {
    let own =
        baseline.and_then(|baseline| baseline.own_entry.as_ref()).map(super::baseline::ManagedEntry::fields);
    let maker = own.and_then(|own| author(&own, object, trace));
    signed(vec!["metadata.uid".to_owned()], maker)
}

/// Returns the drift if we lost any of these fields.
pub(super) fn drift_since(before: &FieldSet, trace: &EventMetadata, object: &Object) -> Option<Drift> {
    let lost = before.minus(&trace.own_entry.as_ref()?.fields);
    let fields: Vec<String> = lost.outermost().iter().take(MAX_FIELDS).map(ToString::to_string).collect();
    (!lost.is_empty()).then(|| signed(fields, author(&lost, object, trace)))
}

/// Describes the loss of our entry. Resetting all entries changes no field, so only fields that
/// others own now are named.
fn entry_lost(old: &FieldSet, object: &Object) -> Drift {
    let foreign = foreign(object, None);
    let taken = foreign.iter().fold(FieldSet::default(), |taken, it| taken.union(&old.intersect(&it.fields)));
    let fields = taken.outermost().iter().take(MAX_FIELDS).map(ToString::to_string).collect();
    signed(fields, newest(&taken, foreign))
}

/// True if a write that left our entry unchanged may still have changed fields of ours: an
/// admission plugin may have changed them, or the managed fields may be forged.
fn may_have_changed(baseline: &Baseline, trace: &EventMetadata, object: &Object) -> bool {
    let trusted = generation_is_trusted(object.id.group(), object.id.kind());
    match (baseline.generation, trace.generation) {
        (Some(old), Some(new)) if trusted && old > 0 => old != new,
        // A write of the status changes nothing else. Two in one second change no entry, and look
        // like any write.
        _ => !(trace.foreign == baseline.foreign_hash && trace.status != baseline.status_hash),
    }
}

/// Returns the manager that now owns a lost field, if any. A manager that removes a field owns
/// nothing.
fn author(lost: &FieldSet, object: &Object, trace: &EventMetadata) -> Option<ManagedFieldsEntry> {
    newest(lost, foreign(object, trace.own_entry.as_ref()))
}

fn newest(lost: &FieldSet, foreign: Vec<ManagedFieldsEntry>) -> Option<ManagedFieldsEntry> {
    let holds = |entry: &ManagedFieldsEntry| {
        *entry.manager != *HANDOVER_MANAGER && !entry.fields.intersect(lost).is_empty()
    };
    // All times have the same form, so they compare as texts; of equal times the last entry wins.
    foreign.into_iter().filter(holds).max_by(|one, other| one.time.cmp(&other.time))
}

/// Returns all entries except our own.
fn foreign(object: &Object, own: Option<&ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
    let metadata = object.body.get("metadata").and_then(Value::as_object);
    let mut entries = metadata.map(moorline_managed_fields::entries).unwrap_or_default();
    entries.retain(|entry| Some(entry) != own);
    entries
}

fn signed(fields: Vec<String>, author: Option<ManagedFieldsEntry>) -> Drift {
    let time = author.as_ref().map(|entry| entry.time.to_string()).filter(|time| !time.is_empty());
    Drift { fields, manager: author.map(|entry| entry.author()), time }
}
