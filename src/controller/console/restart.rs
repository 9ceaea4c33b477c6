//! Restarts the Pods of a workload, as `kubectl rollout restart` does.
//!
//! In: a workload among the objects of a Sync. Out: the annotation `restartedAt` of kubectl on the
//! template of its Pods, written as the Sync's ServiceAccount under a field manager of its own. An
//! apply of the Sync neither sets nor owns that field, so it is no drift and stays.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::ConsoleWork;
use super::acts::failed;
use crate::api::SyncName;
use crate::journal::Reason;
use crate::object::ObjectId;
use crate::serve::actions::ActionError;

/// Field manager of the annotation.
const MANAGER: &str = "moorline-console";
/// Annotation that kubectl sets on the template.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// Restarts it, and returns the sentence about it.
pub(super) async fn restart(
    work: &ConsoleWork,
    sync: &SyncName,
    id: &ObjectId,
    by: &str,
) -> Result<String, ActionError> {
    let (set, cluster) = (work.identity)(sync).ok_or(ActionError::Unknown)?;
    let wanted = set.get(id).ok_or(ActionError::Unknown)?;
    if annotations(Some(&wanted.body())).is_some_and(|all| all.contains_key(RESTARTED_AT)) {
        return Err(ActionError::Invalid(format!("{id}: Git sets {RESTARTED_AT}, so change it there")));
    }
    let deed = format!("restarts {id}");
    let cause = crate::journal::Entry {
        reason: Reason::Console,
        person: Some(by.to_owned()),
        action: Some(deed.clone()),
        approval: None,
        ..cluster.cause()
    };
    let cluster = cluster.in_current_term().caused_by(cause);
    let version = Some(&*wanted.version);
    let live = cluster.objects().read_whole(id, version).await.map_err(|failure| failed(&failure))?;
    let live = live.ok_or(ActionError::Unknown)?;
    let steps = steps(&live.body, &Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let owner = (sync, MANAGER);
    cluster.objects().patch_as(id, version, owner, &steps).await.map_err(|failure| failed(&failure))?;
    Ok(deed)
}

fn annotations(body: Option<&Map<String, Value>>) -> Option<&Map<String, Value>> {
    body?.get("spec")?.pointer("/template/metadata/annotations")?.as_object()
}

/// The JSON patch, valid for the object that was read only.
fn steps(body: &Map<String, Value>, time: &str) -> Value {
    let version = body.get("metadata").and_then(|metadata| metadata.get("resourceVersion"));
    let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": version});
    let base = "/spec/template/metadata";
    let metadata = body.get("spec").and_then(|spec| spec.pointer("/template/metadata"));
    let add = match (annotations(Some(body)), metadata.is_some_and(Value::is_object)) {
        (Some(_), _) => {
            let key = RESTARTED_AT.replace('/', "~1");
            json!({"op": "add", "path": format!("{base}/annotations/{key}"), "value": time})
        }
        (None, true) => {
            json!({"op": "add", "path": format!("{base}/annotations"), "value": {RESTARTED_AT: time}})
        }
        (None, false) => json!({"op": "add", "path": base, "value": {"annotations": {RESTARTED_AT: time}}}),
    };
    json!([test, add])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_is_added_to_what_the_template_has() {
        for (template, path, value) in [
            (
                json!({"metadata": {"annotations": {"a": "b"}}}),
                "/annotations/kubectl.kubernetes.io~1restartedAt",
                json!("now"),
            ),
            (json!({"metadata": {"labels": {"a": "b"}}}), "/annotations", json!({RESTARTED_AT: "now"})),
            (json!({"metadata": null}), "", json!({"annotations": {RESTARTED_AT: "now"}})),
        ] {
            let body = json!({"metadata": {"resourceVersion": "7"}, "spec": {"template": template}});
            let steps = steps(body.as_object().unwrap(), "now");
            assert_eq!(steps[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
            assert_eq!(steps[1]["path"], format!("/spec/template/metadata{path}"));
            assert_eq!(steps[1]["value"], value);
        }
    }
}
