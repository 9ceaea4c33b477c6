//! What a Sync has written on its objects about itself is taken off them, for who takes them back.
//!
//! In: a Sync that is gone. Out: its objects without its label, its annotations and its entry in the managed fields. No value
//! changes. An entry that stayed would hold fields which another tool removes later.

use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::api::{
    HANDOVER_MANAGER, ID_ANNOTATION, PROOF_ANNOTATION, SPEC_HASH_ANNOTATION, SYNC_LABEL, SyncName,
};
use crate::cluster::{Cluster, Failure};
use crate::object::{Object, ObjectId};

/// Objects at one time.
const SIDE_BY_SIDE: usize = 8;

/// How often an object is read anew because it changed meanwhile.
const MAX_ATTEMPTS: usize = 5;

/// What became of the objects.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// How many have nothing of the Sync on them any more.
    pub done: usize,
    /// Those that could not be written, and why.
    pub failed: Vec<(ObjectId, Failure)>,
    /// There are kinds that may not be listed, so that objects of these are not among them.
    pub blind: bool,
}

/// Takes the marks of a Sync off all objects that bear its label.
pub async fn forget(cluster: &Cluster, owner: &SyncName) -> Result<Forgotten, Failure> {
    cluster.know().await?;
    let (kinds, complete) = cluster.sweep(owner).await?;
    let live = cluster.live_set(owner, &kinds, std::iter::empty()).await?;
    let each = futures::stream::iter(live).map(|object| async move {
        let id = object.id.clone();
        (id, one(cluster, owner, object).await)
    });
    let mut forgotten = Forgotten { blind: !complete, ..Forgotten::default() };
    for (id, done) in each.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await {
        match done {
            Ok(()) => forgotten.done += 1,
            Err(failure) => forgotten.failed.push((id, failure)),
        }
    }
    Ok(forgotten)
}

async fn one(cluster: &Cluster, owner: &SyncName, mut live: Object) -> Result<(), Failure> {
    let mut attempts = MAX_ATTEMPTS;
    loop {
        let Some(steps) = steps(&live, owner) else { return Ok(()) };
        attempts -= 1;
        match cluster.patch(&live.id, None, owner, &steps).await {
            // Somebody wrote to it meanwhile.
            Err(failure) if attempts > 0 && matches!(failure.code(), Some(409 | 422)) => {
                match cluster.whole(&live.id, None).await? {
                    Some(newer) => live = newer,
                    None => return Ok(()),
                }
            }
            Err(failure) if failure.code() == Some(404) => return Ok(()),
            done => return done,
        }
    }
}

/// The patch of one object; none if it has nothing of this Sync on it.
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
        // A list without entries would count as one that was not sent; an empty entry ends them all.
        steps.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]}));
    } else {
        // From the last on, so that the places of those before stay as they are.
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
