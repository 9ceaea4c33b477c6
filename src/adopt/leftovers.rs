//! Finds fields that the old tool has set and Git does not have.
//!
//! In: a live object, and the same object in Git. Out: the paths of these fields, never their
//! values. They have no owner after an adoption, and no commit removes a field that no commit had,
//! so they are reported.

use serde_json::{Map, Value};

use super::Tool;
use crate::fields::{Element, FieldPath, FieldSet, Operation, entries, pointer_of};
use crate::object::Object;

/// The annotation in which a client-side apply stores the last applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations and labels that tools write about themselves. They stay, and have no effect.
const MARKS: [&str; 10] = [
    "argocd.argoproj.io/tracking-id",
    "app.kubernetes.io/instance",
    LAST_APPLIED,
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
    "helm.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/namespace",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
    "app.kubernetes.io/managed-by",
];

/// The fields of a live object that the tool has set and Git does not have. For an item of a list,
/// the path of the item.
pub fn leftovers(tool: Tool, live: &Object, wanted: &Value) -> Vec<FieldPath> {
    let Some(metadata) = live.body.get("metadata").and_then(Value::as_object) else { return Vec::new() };
    let theirs = entries(metadata)
        .into_iter()
        .filter(|entry| tool.managers().contains(&&*entry.manager) && entry.subresource.is_empty());
    // After an update of the whole object its sender owns the server's defaults, too: only fields
    // that were sent count.
    let last = last_applied(metadata);
    let (mut held, mut applied) = (FieldSet::default(), FieldSet::default());
    for entry in theirs {
        if entry.operation == Operation::Apply {
            applied.add(entry.fields.clone());
        }
        held.add(entry.fields);
    }
    let was_sent = |path: &FieldPath| {
        applied.contains(path) || last.as_ref().is_none_or(|last| pointer_of(path, last).is_some())
    };
    let body = Value::Object(live.body.clone());
    let mut found: Vec<FieldPath> = Vec::new();
    // Parents come before their children, so children of a found field are skipped.
    for path in held.owned_paths() {
        let is_said = found.last().is_some_and(|outer| path.starts_with(outer));
        let is_left = pointer_of(&path, wanted).is_none() && pointer_of(&path, &body).is_some();
        if is_left && !is_said && !is_mark(&path, wanted) && was_sent(&path) {
            found.push(path);
        }
    }
    found
}

/// The object as a client-side apply sent it last, if one did.
fn last_applied(metadata: &Map<String, Value>) -> Option<Value> {
    let text = metadata.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
    serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
}

/// True for a mark of a tool, and for the whole labels or annotations if Git has none.
fn is_mark(path: &FieldPath, wanted: &Value) -> bool {
    match path.elements() {
        [Element::Field(metadata), Element::Field(labels)] => {
            &**metadata == "metadata" && wanted["metadata"].get(&**labels).is_none()
        }
        [Element::Field(metadata), Element::Field(_), Element::Field(key)] => {
            &**metadata == "metadata" && MARKS.contains(&&**key)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::object::{ObjectId, Origin};
    use serde_json::json;

    #[test]
    fn what_git_does_not_have_is_named() {
        let fields = json!({
            "f:metadata": {
                "f:annotations": {".": {}, "f:argocd.argoproj.io/tracking-id": {}, "f:own": {}},
                "f:labels": {".": {}, "f:app.kubernetes.io/instance": {}},
            },
            "f:spec": {"f:a": {}, "f:b": {}, "f:gone": {}, "f:c": {
                "k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:image": {}},
                "k:{\"name\":\"y\"}": {".": {}, "f:name": {}, "f:image": {}},
            }},
        });
        let entry = |manager: &str| json!({"manager": manager, "operation": "Update", "fieldsV1": fields});
        let check = |manager: &str, expect: &[&str]| {
            let marks = json!({"argocd.argoproj.io/tracking-id": "a", "own": "b"});
            let body = json!({
                "metadata": {"annotations": marks, "labels": {"app.kubernetes.io/instance": "a"}, "managedFields": [entry(manager)]},
                "spec": {"a": 1, "b": 2, "c": [{"name": "x", "image": "i"}, {"name": "y", "image": "i"}]},
            });
            let live = Object {
                id: ObjectId::parse("apps/Deployment|shop/web").unwrap(),
                version: "v1".into(),
                body: body.as_object().unwrap().clone(),
                origin: Origin { file: Arc::from(""), document: 0, line: 0, item: None },
            };
            let wanted =
                json!({"metadata": {"name": "web"}, "spec": {"a": 5, "c": [{"name": "x", "image": "j"}]}});
            let found: Vec<String> =
                leftovers(Tool::ArgoCd, &live, &wanted).iter().map(ToString::to_string).collect();
            assert_eq!(found, expect);
        };
        check("argocd-controller", &["metadata.annotations.own", "spec.b", "spec.c[name=y]"]);
        check("robot", &[]);
    }

    #[test]
    fn defaults_of_the_server_are_not_the_tools() {
        let fields = json!({
            "f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}},
            "f:spec": {"f:replicas": {}, "f:sessionAffinity": {}, "f:extra": {}, "f:type": {}},
        });
        let check = |operation: &str, annotation: Option<&str>, expect: &[&str]| {
            let entry = json!({"manager": "argocd-controller", "operation": operation, "fieldsV1": fields});
            let mut body = json!({
                "metadata": {"name": "web", "annotations": {}, "managedFields": [entry]},
                "spec": {"replicas": 2, "sessionAffinity": "None", "extra": "x", "type": "ClusterIP"},
            });
            if let Some(text) = annotation {
                body["metadata"]["annotations"][LAST_APPLIED] = text.into();
            }
            let live = Object {
                id: ObjectId::parse("/Service|shop/web").unwrap(),
                version: "v1".into(),
                body: body.as_object().unwrap().clone(),
                origin: Origin { file: Arc::from(""), document: 0, line: 0, item: None },
            };
            let wanted = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
            let found: Vec<String> =
                leftovers(Tool::ArgoCd, &live, &wanted).iter().map(ToString::to_string).collect();
            assert_eq!(found, expect, "{operation} {annotation:?}");
        };
        let sent = r#"{"metadata": {"name": "web"}, "spec": {"replicas": 2, "extra": "x"}}"#;
        check("Update", Some(sent), &["spec.extra"]);
        // A server-side apply owns only the fields that were sent.
        let all = ["spec.extra", "spec.sessionAffinity", "spec.type"];
        check("Apply", Some(sent), &all);
        check("Update", None, &all);
        check("Update", Some("no JSON"), &all);
    }
}
