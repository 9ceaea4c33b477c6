//! Overrides of closed windows in the status of a Sync, and its labels, by which windows select it.
//!
//! In: the override that a person gave. Out: the same after a restart, and a note about it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event_queue::Note;
use super::reconcile_result::ReconcileResult;
use super::{StatusRecorder, StatusState};
use crate::api::{EventReason, HeldRevision, OverriddenRevision};

/// True if the written status has the override.
pub(super) fn has_written_override(state: &StatusState) -> bool {
    state.overridden.is_none() || state.overridden.as_ref() == written(state)
}

/// Records an override with the revision that is about to be applied; false if the status does not
/// have both in time. Together, so that the override is spent once another revision is held.
pub(crate) async fn record_override(
    recorder: &StatusRecorder,
    (overridden, held): (OverriddenRevision, HeldRevision),
    within: Duration,
) -> bool {
    let set_both = |state: &mut StatusState| {
        (state.overridden, state.held) = (Some(overridden), Some(held));
        state.has_written_held()
    };
    recorder.record_change(within, true, set_both).await
}

/// Returns the last override, written or not.
pub(crate) fn last_override(recorder: &StatusRecorder) -> Option<OverriddenRevision> {
    let state = recorder.lock();
    state.overridden.as_ref().or_else(|| written(&state)).cloned()
}

/// Returns the labels of the Sync.
pub(crate) fn labels(recorder: &StatusRecorder) -> BTreeMap<String, String> {
    recorder.lock().notifications.labels()
}

/// Returns the note about an override, if this result is the first one with it.
pub(super) fn override_note(report: &ReconcileResult) -> Option<Note> {
    let OverriddenRevision { revision, hash, by, reason, .. } = report.overridden.as_ref()?;
    let text = format!("{by} applies {revision} in a closed window (override {hash}): {reason}");
    Some(Note { reason: EventReason::Overridden.to_string(), text })
}

fn written(state: &StatusState) -> Option<&OverriddenRevision> {
    state.persisted_status.revision.as_ref()?.overridden.as_ref()
}
