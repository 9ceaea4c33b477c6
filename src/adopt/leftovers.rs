//! Fields that the old tool has set and Git does not have.
//!
//! In: a live object, and what Git says of it. Out: the places of these fields, never their values. They are nobody's after an
//! adoption: no commit removes what no commit had, so that a person is told.

use serde_json::Value;

use super::Tool;
use crate::fields::{Element, FieldPath, FieldSet, entries, pointer_of};
use crate::object::Object;

/// What tools write on objects about themselves. It stays, and does nothing.
const MARKS: [&str; 5] = [
    "argocd.argoproj.io/tracking-id",
    "app.kubernetes.io/instance",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
];

/// The fields of a live object that this tool has set and that are not wanted: of an item of a list, the item.
pub fn leftovers(tool: Tool, live: &Object, wanted: &Value) -> Vec<FieldPath> {
    let Some(metadata) = live.body.get("metadata").and_then(Value::as_object) else { return Vec::new() };
    let theirs = entries(metadata)
        .into_iter()
        .filter(|entry| tool.managers().contains(&&*entry.manager) && entry.subresource.is_empty());
    let held = theirs.fold(FieldSet::default(), |all, entry| all.union(&entry.fields));
    let body = Value::Object(live.body.clone());
    let mut found: Vec<FieldPath> = Vec::new();
    // What holds others comes before what it holds.
    for path in held.members() {
        let is_said = found.last().is_some_and(|outer| path.starts_with(outer));
        let is_left = pointer_of(&path, wanted).is_none() && pointer_of(&path, &body).is_some();
        if is_left && !is_said && !is_mark(&path, wanted) {
            found.push(path);
        }
    }
    found
}

/// True for a mark of a tool, and for a mapping that holds only labels or annotations, which Git need not have.
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
}
