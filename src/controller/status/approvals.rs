//! Approvals of revisions in the status of a Sync.
//!
//! In: the revisions that a person has approved. Out: the same after a restart. A status without
//! any counts what it has applied as approved: approvals were not required then.

use std::time::Duration;

use super::{StatusRecorder, StatusState};
use crate::api::{ApprovedRevision, SyncStatus};

/// True if the status has approvals of revisions.
pub(crate) fn has_approvals(recorder: &StatusRecorder) -> bool {
    !known(&recorder.lock()).is_empty()
}

/// Returns the approved revisions, the newest first. Without any, these are the revisions that were
/// applied before approvals were required.
pub(crate) fn approved_revisions(recorder: &StatusRecorder) -> Vec<ApprovedRevision> {
    let state = recorder.lock();
    match known(&state) {
        [] => applied_before(&state.persisted_status),
        approved => approved.to_vec(),
    }
}

/// Records the approved revisions; false if the status does not have them in time.
pub(crate) async fn record_approvals(
    recorder: &StatusRecorder,
    approved: Vec<ApprovedRevision>,
    within: Duration,
) -> bool {
    let set_approved = |state: &mut StatusState| {
        state.approved = Some(approved);
        state.has_written_held()
    };
    recorder.record_change(within, true, set_approved).await
}

/// True if the written status has the approvals.
pub(super) fn has_written_approvals(state: &StatusState) -> bool {
    state.approved.as_deref().is_none_or(|approved| approved == written(state))
}

/// The newest approvals, written or not.
fn known(state: &StatusState) -> &[ApprovedRevision] {
    state.approved.as_deref().unwrap_or_else(|| written(state))
}

fn written(state: &StatusState) -> &[ApprovedRevision] {
    state.persisted_status.revision.as_ref().map(|revision| &*revision.approved).unwrap_or_default()
}

/// Returns the held and the healthy revision of a status without approvals. They were applied while
/// none was required.
pub(crate) fn applied_before(status: &SyncStatus) -> Vec<ApprovedRevision> {
    let Some((revisions, held)) = status.revision.as_ref().and_then(|it| Some((it, it.held.as_ref()?)))
    else {
        return Vec::new();
    };
    let (applied, attempted) = (&revisions.applied, &revisions.attempted);
    let of_history = |revision: &String| {
        let mut entries = status.history.iter().filter(|entry| entry.revision == *revision);
        entries.find_map(|entry| entry.digest.clone())
    };
    let digest = |revision: &String| match revisions.applied_digest.clone() {
        _ if held.digest.is_some() && *revision == held.revision => held.digest.clone(),
        Some(digest) if applied.as_ref() == Some(revision) => Some(digest),
        _ => {
            let rendered = status.render_digest.clone().filter(|_| attempted.as_ref() == Some(revision));
            rendered.or_else(|| of_history(revision))
        }
    };
    let entry = |revision: &String| ApprovedRevision {
        revision: revision.clone(),
        source: held.source.clone(),
        spec: held.spec.clone(),
        digest: digest(revision),
        approval: None,
    };
    let healthy = revisions.healthy.as_ref().filter(|healthy| **healthy != held.revision);
    [&held.revision].into_iter().chain(healthy).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_without_approvals_approves_what_it_has_applied() {
        let of = |more: serde_json::Value| {
            let mut revision = json!({"held": {"revision": "main@2", "source": "s", "spec": "t"}});
            revision.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let status = json!({"renderDigest": "d2", "revision": revision});
            let status: SyncStatus = serde_json::from_value(status).unwrap();
            let shown = |it: ApprovedRevision| (it.revision, it.digest);
            applied_before(&status).into_iter().map(shown).collect::<Vec<_>>()
        };
        let entry = |revision: &str, digest: Option<&str>| (revision.to_owned(), digest.map(str::to_owned));
        // The digest of another revision is never taken for that of the held one.
        assert_eq!(of(json!({"attempted": "main@3"})), [entry("main@2", None)]);
        assert_eq!(of(json!({"attempted": "main@2"})), [entry("main@2", Some("d2"))]);
        let applied =
            json!({"attempted": "main@3", "applied": "main@2", "appliedDigest": "a2", "healthy": "main@1"});
        assert_eq!(of(applied), [entry("main@2", Some("a2")), entry("main@1", None)]);
        let digest = json!({
            "held": {"revision": "main@2", "source": "s", "spec": "t", "digest": "h2"}, "attempted": "main@3",
        });
        assert_eq!(of(digest), [entry("main@2", Some("h2"))]);
        assert!(applied_before(&SyncStatus::default()).is_empty(), "a lost status approves nothing");
    }
}
