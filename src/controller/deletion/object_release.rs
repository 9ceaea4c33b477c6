//! Removes the marks of a Sync from its objects, so that their former tool can take them back.
//!
//! In: the name of a Sync that is gone.
//! Out: its objects without its label, its annotations and its managed fields entry.
//!
//! No value changes. A managed fields entry that stayed would keep fields alive that another tool
//! removes later.

use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::api::{
    HANDOVER_MANAGER, ID_ANNOTATION, PROOF_ANNOTATION, SPEC_HASH_ANNOTATION, SYNC_LABEL, SyncName,
};
use crate::cluster::{ApiError, Cluster, live_objects};
use crate::object::{Object, ObjectId};

/// Objects that are written concurrently.
const SIDE_BY_SIDE: usize = 8;

/// Attempts to patch one object that keeps changing.
const MAX_ATTEMPTS: usize = 5;

/// Result of releasing the objects of a Sync.
#[derive(Debug, Default)]
pub struct ReleaseResult {
    /// Number of objects that carry nothing of the Sync any more.
    pub done: usize,
    /// Objects that could not be written, each with its error.
    pub failed: Vec<(ObjectId, ApiError)>,
    /// True if some kinds may not be listed, so that their objects were not released.
    pub blind: bool,
}

/// Removes the marks of a Sync from all objects that carry its label.
///
/// # Guarantees
///
/// Only the marks and managed fields of this Sync are removed; no other field changes. Each patch
/// is guarded by the resourceVersion that was read.
///
/// # Cancellation
///
/// It can be dropped at any time and called again: objects without marks are skipped.
///
/// # Errors
///
/// Fails if discovery or listing fails. Failures of single objects are in
/// [`ReleaseResult::failed`].
pub async fn release_objects(cluster: &Cluster, owner: &SyncName) -> Result<ReleaseResult, ApiError> {
    cluster.discovery().ensure().await?;
    let (kinds, complete) = cluster.discover_labelled_kinds(owner).await?;
    let live = live_objects(cluster, owner, &kinds, std::iter::empty()).await?;
    let each = futures::stream::iter(live).map(|object| async move {
        let id = object.id.clone();
        (id, one(cluster, owner, object).await)
    });
    let mut forgotten = ReleaseResult { blind: !complete, ..ReleaseResult::default() };
    for (id, done) in each.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await {
        match done {
            Ok(()) => forgotten.done += 1,
            Err(failure) => forgotten.failed.push((id, failure)),
        }
    }
    Ok(forgotten)
}

async fn one(cluster: &Cluster, owner: &SyncName, mut live: Object) -> Result<(), ApiError> {
    let mut attempts = MAX_ATTEMPTS;
    loop {
        let Some(steps) = steps(&live, owner) else { return Ok(()) };
        attempts -= 1;
        match cluster.objects().patch(&live.id, None, owner, &steps).await {
            // The object changed meanwhile.
            Err(failure) if attempts > 0 && matches!(failure.code(), Some(409 | 422)) => {
                match cluster.objects().read_whole(&live.id, None).await? {
                    Some(newer) => live = newer,
                    None => return Ok(()),
                }
            }
            Err(failure) if failure.code() == Some(404) => return Ok(()),
            done => return done,
        }
    }
}

/// Returns the patch of one object; `None` if it carries nothing of this Sync.
fn steps(live: &Object, owner: &SyncName) -> Option<Value> {
    let text = |place: &str| live.metadata(place).and_then(Value::as_str).unwrap_or_default();
    let mut steps =
        vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": text("resourceVersion")})];
    let mut remove = |path: String| steps.push(json!({"op": "remove", "path": path}));
    if live.label(SYNC_LABEL) == Some(&owner.label()) {
        remove(format!("/metadata/labels/{}", SYNC_LABEL.replace('/', "~1")));
    }
    let is_ours = live.annotation(ID_ANNOTATION).is_some_and(|id| id.starts_with(&format!("{owner}|")));
    let marks = [ID_ANNOTATION, SPEC_HASH_ANNOTATION, PROOF_ANNOTATION].into_iter().filter(|_| is_ours);
    for key in marks.filter(|key| live.annotation(key).is_some()) {
        remove(format!("/metadata/annotations/{}", key.replace('/', "~1")));
    }
    let managers = [&*owner.manager(), HANDOVER_MANAGER].map(Value::from);
    let entries =
        live.metadata("managedFields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ours: Vec<usize> =
        (0..entries.len()).filter(|at| managers.contains(&entries[*at]["manager"])).collect();
    if !ours.is_empty() && ours.len() == entries.len() {
        // A list without entries would count as one that was not sent; an empty entry removes them
        // all.
        steps.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]}));
    } else {
        // From last to first, so that the earlier indexes stay valid.
        let places = ours
            .iter()
            .rev()
            .map(|at| json!({"op": "remove", "path": format!("/metadata/managedFields/{at}")}));
        steps.extend(places);
    }
    (steps.len() > 1).then(|| steps.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::object::Origin;

    #[test]
    fn only_what_is_of_the_sync_is_taken_off() {
        let owner = SyncName::new("ops", "shop");
        let check = |metadata: Value, expect: &[&str]| {
            let body = json!({"metadata": metadata});
            let live = Object {
                id: ObjectId::parse("/ConfigMap|shop/a").unwrap(),
                version: "v1".into(),
                body: body.as_object().unwrap().clone(),
                origin: Origin { file: Arc::from(""), document: 0, line: 0, item: None },
            };
            let steps = steps(&live, &owner).unwrap_or_default();
            let steps = steps.as_array().into_iter().flatten().skip(1);
            let removed: Vec<&str> = steps.map(|step| step["path"].as_str().unwrap()).collect();
            assert_eq!(removed, expect, "{metadata}");
        };
        let manager = |name: &str| json!({"manager": name, "operation": "Apply"});
        let entries =
            [manager("moorline/ops/shop"), manager("kustomize-controller"), manager(HANDOVER_MANAGER)];
        let marks =
            json!({ID_ANNOTATION: "ops/shop|/ConfigMap|shop/a", SPEC_HASH_ANNOTATION: "b", "other": "c"});
        check(
            json!({"labels": {SYNC_LABEL: "ops.shop", "a": "b"}, "annotations": marks, "managedFields": entries}),
            &[
                "/metadata/labels/moorline.dev~1sync",
                "/metadata/annotations/moorline.dev~1id",
                "/metadata/annotations/moorline.dev~1spec-hash",
                "/metadata/managedFields/2",
                "/metadata/managedFields/0",
            ],
        );
        check(json!({"managedFields": [manager("moorline/ops/shop")]}), &["/metadata/managedFields"]);
        let others = json!({ID_ANNOTATION: "ops/shop-two|/ConfigMap|shop/a"});
        check(json!({"annotations": others}), &[]);
        check(json!({"managedFields": [manager("moorline/ops/other")], "labels": {"a": "b"}}), &[]);
    }
}
