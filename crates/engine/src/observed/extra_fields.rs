//! Extra fields: fields that people added to our objects by hand and that Git does not set.
//!
//! In server-side apply an added field is no conflict and no drift, because it takes no field of
//! ours. It is found in the entries of tools that people use. Fields that controllers add are
//! ignored.

use serde_json::{Map, Value};

use super::baseline::raw_entries;
use moorline_api as api;
use moorline_core::object::Object;
use moorline_managed_fields::{Element, FieldPath, FieldSet, entries};

/// Maximum number of extra fields that are kept for one object.
const MAX_EXTRAS: usize = 10;

/// Prefixes of the names of interactive tools, in any case. The name may continue with a hyphen or
/// similar: `kubectl-edit`. `Mozilla` is a web page in a browser, `node-fetch` is the name that
/// Lens uses.
const HUMAN_TOOLS: [&str; 13] = [
    "curl",
    "dashboard",
    "freelens",
    "headlamp",
    "helm",
    "k9s",
    "kubectl",
    "lens",
    "mozilla",
    "node-fetch",
    "oc",
    "openlens",
    "rancher",
];

/// Annotations in which tools keep records; a person did not add them deliberately. Ours are
/// switches.
const BOOKKEEPING: [&str; 4] =
    ["deployment.kubernetes.io/", "kubectl.kubernetes.io/", "kubernetes.io/change-cause", api::KEY_PREFIX];

/// A field that a person added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraField {
    /// The tool that added it.
    pub manager: Box<str>,
    /// Its path.
    pub path: FieldPath,
}

/// Returns all fields that interactive tools own and the manager `own` does not. `before` are the
/// fields that it owned, if known: a field that was taken from us is drift, not an extra field.
pub fn find_extra_fields(
    metadata: &Map<String, Value>,
    own: &str,
    before: Option<&FieldSet>,
) -> Vec<(Box<str>, FieldPath)> {
    let entries = entries(metadata);
    let applied = entries.iter().find(|entry| entry.is_applied_by(own)).map(|entry| &entry.fields);
    let ours = match (applied, before) {
        (Some(applied), Some(before)) => applied.union(before),
        (Some(fields), None) | (None, Some(fields)) => fields.clone(),
        // Our own fields are unknown.
        (None, None) => return Vec::new(),
    };
    let mut found: Vec<(Box<str>, FieldPath)> = Vec::new();
    for entry in entries.iter().filter(|entry| &*entry.subresource != "status" && is_human(&entry.manager)) {
        // A parent of our fields exists because of them.
        let added = |path: &FieldPath| !ours.contains_or_below(path) && !is_bookkeeping(path);
        for path in entry.fields.minus(&ours).leaf_paths().into_iter().filter(added) {
            let path = item(&path, &ours).unwrap_or(path);
            if found.iter().all(|(_, known)| *known != path) {
                found.push((entry.manager.clone(), path));
            }
        }
    }
    found
}

/// Returns the first extra fields; at most [`MAX_EXTRAS`] are kept of an object.
pub(super) fn first_extra_fields(object: &Object, own: &str, before: Option<&FieldSet>) -> Box<[ExtraField]> {
    let managers = raw_entries(object).filter_map(|entry| entry.get("manager")?.as_str());
    let metadata = object.body.get("metadata").and_then(Value::as_object);
    // Fast path: nearly always no interactive tool has an entry.
    let Some(metadata) = metadata.filter(|_| managers.into_iter().any(is_human)) else {
        return Box::default();
    };
    let found = find_extra_fields(metadata, own, before).into_iter().take(MAX_EXTRAS);
    found.map(|(manager, path)| ExtraField { manager, path }).collect()
}

fn is_human(manager: &str) -> bool {
    HUMAN_TOOLS.iter().any(|tool| {
        let begins = manager.get(..tool.len()).is_some_and(|start| start.eq_ignore_ascii_case(tool));
        begins && !manager[tool.len()..].starts_with(|char: char| char.is_ascii_alphanumeric())
    })
}

fn is_bookkeeping(path: &FieldPath) -> bool {
    let kept = |pair: &[Element]| {
        matches!((&pair[0], &pair[1]), (Element::Field(annotations), Element::Field(key))
            if &**annotations == "annotations" && BOOKKEEPING.iter().any(|prefix| key.starts_with(prefix)))
    };
    path.elements().windows(2).any(kept)
}

/// Returns the list item that contains the path, if the whole item was added: a container is one
/// extra field.
fn item(path: &FieldPath, ours: &FieldSet) -> Option<FieldPath> {
    let items = path.elements().iter().enumerate().filter(|(_, element)| matches!(element, Element::Key(_)));
    items.map(|(at, _)| path.prefix(at + 1)).find(|item| !ours.contains_or_below(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(entries: Value) -> Vec<String> {
        let ours = json!({"manager": "moorline/ops/web", "operation": "Apply", "fieldsV1": {
            "f:metadata": {"f:annotations": {"f:moorline.dev/id": {}}}, "f:data": {"f:a": {}}, "f:spec": {"f:c": {"k:{\"name\":\"app\"}": {".": {}, "f:image": {}}}},
        }});
        let Value::Array(mut all) = entries else { panic!("a list") };
        all.push(ours);
        let metadata = json!({"managedFields": all});
        let Value::Object(body) = json!({"metadata": metadata}) else { unreachable!("a literal mapping") };
        let id = moorline_core::object::ObjectId::new("", "ConfigMap", "shop", "a").unwrap();
        let origin = moorline_core::object::Origin { file: "live".into(), document: 0, line: 1, item: None };
        let object = Object { id, version: "v1".into(), body, origin };
        let extras = first_extra_fields(&object, "moorline/ops/web", None);
        extras.iter().map(|extra| format!("{}: {}", extra.manager, extra.path)).collect()
    }

    fn entry(manager: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "fieldsV1": fields})
    }

    #[test]
    fn additions_of_people_are_named() {
        let sidecar = json!({"f:spec": {"f:c": {
            "k:{\"name\":\"app\"}": {"f:env": {".": {}, "k:{\"name\":\"X\"}": {".": {}, "f:name": {}}}, "f:image": {}},
        }}});
        assert_eq!(
            found(json!([entry("kubectl-edit", sidecar)])),
            ["kubectl-edit: spec.c[name=app].env[name=X]"]
        );
        let more = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
        for (manager, human) in [
            ("k9s", true),
            ("Mozilla", true),
            ("Helm", true),
            ("rancher", true),
            ("kubectl", true),
            ("ocean", false),
            ("lensing", false),
            ("kube-controller-manager", false),
        ] {
            let expect = if human { vec![format!("{manager}: data.b")] } else { vec![] };
            assert_eq!(found(json!([entry(manager, more.clone())])), expect, "{manager}");
        }
        let twice = json!([entry("kubectl-edit", more.clone()), entry("kubectl-patch", more)]);
        assert_eq!(found(twice), ["kubectl-edit: data.b"]);
    }

    #[test]
    fn books_and_status_are_no_additions() {
        let books = json!({
            "f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}, "f:moorline.dev/reconcile": {}}},
            "f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}},
        });
        assert!(found(json!([entry("kubectl-rollout", books)])).is_empty());
        let empty = json!({"f:metadata": {"f:annotations": {}}});
        assert!(found(json!([entry("kubectl-annotate", empty)])).is_empty());
        let mut status = entry("kubectl", json!({"f:status": {"f:x": {}}}));
        status["subresource"] = "status".into();
        assert!(found(json!([status])).is_empty());
    }

    #[test]
    fn the_number_is_bounded() {
        let many: Map<String, Value> = (0..100).map(|at| (format!("f:{at}"), json!({}))).collect();
        assert_eq!(found(json!([entry("kubectl", json!({"f:data": many}))])).len(), MAX_EXTRAS);
    }
}
