//! What an event says of the fields that Git sets, held against what we knew of them last.
//!
//! In: a [`Baseline`] and the metadata of an event. Out: [`Verdict`]. Nothing is asked of the server: what
//! cannot be told from metadata is `Moved`, and one apply will verify or heal it. Not seen here are values that
//! an admission plugin changes in the metadata of a kind with a generation, and what the server changes
//! without an event; the slow round of verifications is for these.

use serde_json::Value;

use super::baseline::{Baseline, Trace, changed_marks};
use super::{Drift, generation_is_trusted};
use moorline_api::HANDOVER_MANAGER;
use moorline_core::object::Object;
use moorline_managed_fields::{Entry, FieldSet};

/// More lost fields of one object are not named.
const MAX_FIELDS: usize = 100;

/// What an event says.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing of ours was touched.
    Unchanged,
    /// Something was written, and whether it touched fields of ours is not known.
    Moved,
    /// Fields of ours were changed or removed.
    Drifted(Drift),
}

/// Judges an event of the object with the uid that the baseline is of.
pub(super) fn judge(baseline: &Baseline, trace: &Trace, object: &Object) -> Verdict {
    if object.metadata("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        let fields = vec!["metadata.deletionTimestamp".to_owned()];
        return Verdict::Drifted(Drift { fields, ..Drift::default() });
    }
    let marks = changed_marks(&baseline.marks, &trace.marks);
    let (lost, entry_changed) = match (&baseline.own, &trace.own) {
        (Some(old), Some(new)) if old.is(new) => (FieldSet::default(), false),
        // Between versions of an API the same field may have another path.
        (Some(old), Some(new)) if old.api_version != new.api_version => (FieldSet::default(), true),
        (Some(old), Some(new)) => (old.fields().minus(&new.fields), true),
        (Some(old), None) => return Verdict::Drifted(entry_lost(&old.fields(), object)),
        // The server hides our entry, or shows it for the first time: what it says cannot be compared.
        (None, _) => (FieldSet::default(), true),
    };
    let lost = lost.union(&FieldSet::of(&marks));
    if !lost.is_empty() {
        let fields = lost.outermost().iter().take(MAX_FIELDS).map(ToString::to_string).collect();
        return Verdict::Drifted(signed(fields, author(&lost, object, trace)));
    }
    match entry_changed || may_have_changed(baseline, trace, object) {
        true => Verdict::Moved,
        false => Verdict::Unchanged,
    }
}

/// The object was deleted and made anew: nothing is known of it but who made it, where it bears our marks.
pub(super) fn remade(baseline: Option<&Baseline>, object: &Object, trace: &Trace) -> Drift {
    let own = baseline.and_then(|baseline| baseline.own.as_ref()).map(super::baseline::Own::fields);
    let maker = own.and_then(|own| author(&own, object, trace));
    signed(vec!["metadata.uid".to_owned()], maker)
}

/// What of these fields of ours is ours no more, if anything is.
pub(super) fn lost_since(before: &FieldSet, trace: &Trace, object: &Object) -> Option<Drift> {
    let lost = before.minus(&trace.own.as_ref()?.fields);
    let fields: Vec<String> = lost.outermost().iter().take(MAX_FIELDS).map(ToString::to_string).collect();
    (!lost.is_empty()).then(|| signed(fields, author(&lost, object, trace)))
}

/// Our entry is gone. Resetting all entries changes no field, so that only fields that others hold now are named.
fn entry_lost(old: &FieldSet, object: &Object) -> Drift {
    let foreign = foreign(object, None);
    let taken = foreign.iter().fold(FieldSet::default(), |taken, it| taken.union(&old.intersect(&it.fields)));
    let fields = taken.outermost().iter().take(MAX_FIELDS).map(ToString::to_string).collect();
    signed(fields, newest(&taken, foreign))
}

/// Whether a write that left our entry as it was may yet have changed fields of ours: an admission plugin may
/// have changed them, or the managed fields may be forged.
fn may_have_changed(baseline: &Baseline, trace: &Trace, object: &Object) -> bool {
    let trusted = generation_is_trusted(object.id.group(), object.id.kind());
    match (baseline.generation, trace.generation) {
        (Some(old), Some(new)) if trusted && old > 0 => old != new,
        // A write of the status changes nothing else. Two in one second change no entry, and look like any write.
        _ => !(trace.foreign == baseline.foreign && trace.status != baseline.status),
    }
}

/// Who wrote what we lost, if anybody owns it now. Who removes a field owns nothing.
fn author(lost: &FieldSet, object: &Object, trace: &Trace) -> Option<Entry> {
    newest(lost, foreign(object, trace.own.as_ref()))
}

fn newest(lost: &FieldSet, foreign: Vec<Entry>) -> Option<Entry> {
    let holds =
        |entry: &Entry| *entry.manager != *HANDOVER_MANAGER && !entry.fields.intersect(lost).is_empty();
    // Times are of one form, so that they compare as texts; of equal ones the last counts.
    foreign.into_iter().filter(holds).max_by(|one, other| one.time.cmp(&other.time))
}

/// All entries but our own.
fn foreign(object: &Object, own: Option<&Entry>) -> Vec<Entry> {
    let metadata = object.body.get("metadata").and_then(Value::as_object);
    let mut entries = metadata.map(moorline_managed_fields::entries).unwrap_or_default();
    entries.retain(|entry| Some(entry) != own);
    entries
}

fn signed(fields: Vec<String>, author: Option<Entry>) -> Drift {
    let time = author.as_ref().map(|entry| entry.time.to_string()).filter(|time| !time.is_empty());
    Drift { fields, manager: author.map(|entry| entry.author()), time }
}
