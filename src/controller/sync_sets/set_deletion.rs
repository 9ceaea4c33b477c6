//! Deletes the Syncs of a deleted set, if its `onDelete` is `Delete`.
//!
//! In: the set as the API server has it, and the Syncs of its namespace. Out: the finalizer, which
//! is there exactly while the Syncs are to be deleted with the set. Nothing is deleted while the
//! set is suspended.

use serde_json::Value;

use super::super::Context;
use crate::api::{DeletionPolicy, FINALIZER, SyncName, SyncSet};
use crate::cluster::{ApiError, SyncSetRequests};
use crate::sync_set::ExistingSync;

/// Next step of a deletion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeletionStep {
    /// These Syncs are deleted, with uid and resourceVersion.
    Delete(Vec<(String, String, String)>),
    /// Syncs are still being deleted.
    Await,
    /// The finalizer is removed.
    Finish,
}

/// Decides the next step of the deletion of a set.
pub(super) fn next_step(set: &SyncSet, existing: &[ExistingSync]) -> DeletionStep {
    if set.spec.on_delete != Some(DeletionPolicy::Delete) {
        return DeletionStep::Finish;
    }
    let own: Vec<&ExistingSync> = existing.iter().filter(|live| live.is_removable()).collect();
    let left: Vec<_> = own.iter().filter(|live| !live.is_deleting).collect();
    match (own.is_empty(), left.is_empty() || set.spec.suspend) {
        (true, _) => DeletionStep::Finish,
        (false, true) => DeletionStep::Await,
        (false, false) => {
            let target = |live: &&&ExistingSync| (live.name.clone(), live.uid.clone(), live.version.clone());
            DeletionStep::Delete(left.iter().map(target).collect())
        }
    }
}

/// Sets or removes the finalizer.
pub(super) async fn keep_finalizer(
    context: &Context,
    name: &SyncName,
    set: &Value,
    is_wanted: bool,
) -> Result<(), ApiError> {
    let finalizers = set.pointer("/metadata/finalizers").and_then(Value::as_array);
    let mut finalizers: Vec<String> =
        finalizers.into_iter().flatten().filter_map(|one| Some(one.as_str()?.to_owned())).collect();
    match (finalizers.iter().any(|one| one == FINALIZER), is_wanted) {
        (true, true) | (false, false) => return Ok(()),
        (false, true) => finalizers.push(FINALIZER.to_owned()),
        (true, false) => finalizers.retain(|one| one != FINALIZER),
    }
    let version = set.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    let written = SyncSetRequests::new(&context.cluster).write_finalizers(name, version, &finalizers).await;
    // After a conflict the newer version of the set is on its way already.
    written.or_else(|failure| if failure.code() == Some(409) { Ok(()) } else { Err(failure) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sync_set::SetOwner;

    #[test]
    fn only_own_syncs_are_deleted_and_only_if_the_set_says_so() {
        let raw = |spec: Value| {
            let mut set = json!({
                "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
                "metadata": {"namespace": "team", "name": "apps", "uid": "u1"},
                "spec": {
                    "generators": [], "name": "'a'",
                    "template": {"spec": {"source": {"git": {"url": "https://host/a"}}}},
                },
            });
            spec.as_object().unwrap().iter().for_each(|(field, value)| set["spec"][field] = value.clone());
            set
        };
        let sync = |mark: &str, more: Value| {
            let mut sync = json!({"metadata": {
                "namespace": "team", "name": "apps-a", "uid": "1", "resourceVersion": "7",
                "annotations": {"moorline.dev/sync-set": mark},
                "managedFields": [{"manager": "moorline-set/team/apps", "operation": "Apply"}],
            }});
            more.as_object().unwrap().iter().for_each(|(key, value)| sync["metadata"][key] = value.clone());
            sync
        };
        let own = || sync("apps/u1/apps-a", json!({}));
        let going = || sync("apps/u1/apps-a", json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        let delete = || DeletionStep::Delete(vec![("apps-a".to_owned(), "1".to_owned(), "7".to_owned())]);
        for (spec, live, expect) in [
            (json!({}), own(), DeletionStep::Finish),
            (json!({"onDelete": "Orphan"}), own(), DeletionStep::Finish),
            (json!({"onDelete": "Delete"}), own(), delete()),
            (json!({"onDelete": "Delete", "suspend": true}), own(), DeletionStep::Await),
            (json!({"onDelete": "Delete"}), going(), DeletionStep::Await),
            (json!({"onDelete": "Delete"}), sync("apps/u0/apps-a", json!({})), DeletionStep::Finish),
            (json!({"onDelete": "Delete"}), sync("apps/u1/apps-b", json!({})), DeletionStep::Finish),
            (
                json!({"onDelete": "Delete"}),
                sync("apps/u1/apps-a", json!({"managedFields": []})),
                DeletionStep::Finish,
            ),
        ] {
            let raw = raw(spec.clone());
            let set: SyncSet = serde_json::from_value(raw.clone()).unwrap();
            let existing = [ExistingSync::of(&live, &SetOwner::of(&raw))];
            assert_eq!(next_step(&set, &existing), expect, "{spec} {live}");
        }
    }
}
