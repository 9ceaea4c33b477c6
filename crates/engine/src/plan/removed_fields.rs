//! Fields that an apply removes: Git no longer sets them, and no other manager owns them.
//!
//! In: a live object with its managed fields, and the desired body.
//! Out: a [`Difference`] without a desired value for each field or list item of our own entry. A
//! whole item represents its fields.

use serde_json::{Map, Value};

use super::difference::Difference;
use moorline_api::{KEY_PREFIX, SyncName};
use moorline_core::object::Object;
use moorline_managed_fields::{Element, FieldPath, ManagedFieldsEntry, entries, pointer_of};

/// Returns the fields that an apply of `wanted` by this Sync removes.
pub(super) fn removed_fields(
    wanted: &Map<String, Value>,
    live: &Object,
    owner: &SyncName,
) -> Vec<Difference> {
    let Some(metadata) = live.body.get("metadata").and_then(Value::as_object) else { return Vec::new() };
    let (own, others): (Vec<ManagedFieldsEntry>, Vec<ManagedFieldsEntry>) =
        entries(metadata).into_iter().partition(|entry| entry.is_applied_by(&owner.manager()));
    // Paths of another API version may lead elsewhere.
    let own = own.into_iter().find(|entry| *entry.api_version == *live.api_version());
    let (wanted, body) = (Value::Object(wanted.clone()), Value::Object(live.body.clone()));
    let mut gone: Vec<FieldPath> = Vec::new();
    let mut found = Vec::new();
    for path in own.iter().flat_map(|entry| entry.fields.owned_paths()) {
        let is_inside = gone.last().is_some_and(|outer| path.starts_with(outer));
        if is_inside || is_our_mark(&path) || pointer_of(&path, &wanted).is_some() {
            continue;
        }
        if others.iter().any(|entry| entry.fields.contains_or_below(&path)) {
            continue;
        }
        let Some(value) = pointer_of(&path, &body).and_then(|pointer| body.pointer(&pointer)) else {
            continue;
        };
        found.push(Difference {
            path: path.to_string(),
            live: Some(value.clone()),
            desired: None,
            secret: false,
        });
        gone.push(path);
    }
    found
}

/// True for our own label and annotations, which Git never sets.
fn is_our_mark(path: &FieldPath) -> bool {
    match path.elements() {
        [Element::Field(metadata), Element::Field(_), Element::Field(key), ..] => {
            **metadata == *"metadata" && key.starts_with(KEY_PREFIX)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use moorline_core::object::{ObjectId, Origin};

    fn check(entry_of_other: Value, expect: &[(&str, Value)]) {
        let containers = json!([{"name": "app", "image": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "side", "image": "b"}]);
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "annotations": {"moorline.dev/id": "x", "note": "y"}, "managedFields": [
                {"manager": "moorline/ops/shop", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {
                    "f:metadata": {"f:annotations": {"f:moorline.dev/id": {}, "f:note": {}}},
                    "f:spec": {"f:paused": {}, "f:gone": {}, "f:template": {"f:spec": {"f:containers": {
                        "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {},
                            "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}}},
                        "k:{\"name\":\"side\"}": {".": {}, "f:name": {}, "f:image": {}},
                    }}}},
                }},
                {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": entry_of_other},
            ]},
            "spec": {"paused": true, "template": {"spec": {"containers": containers}}},
        });
        let wanted = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "a"}]}}}});
        let (Value::Object(body), Value::Object(wanted)) = (body, wanted) else {
            panic!("bodies are mappings")
        };
        let origin = Origin { file: "a".into(), document: 0, line: 1, item: None };
        let id = ObjectId::parse("apps/Deployment|shop/a").unwrap();
        let live = Object { id, version: "v1".into(), body, origin };
        let found: Vec<(String, Value)> = removed_fields(&wanted, &live, &SyncName::new("ops", "shop"))
            .into_iter()
            .map(|found| (found.path, found.live.unwrap()))
            .collect();
        let expect: Vec<(String, Value)> =
            expect.iter().map(|(path, value)| ((*path).to_owned(), value.clone())).collect();
        assert_eq!(found, expect);
        assert_eq!(removed_fields(&wanted, &live, &SyncName::new("ops", "other")), []);
    }

    #[test]
    fn fields_and_items_that_git_sets_no_more_are_removed_unless_others_own_them() {
        let (note, paused) = (("metadata.annotations.note", json!("y")), ("spec.paused", json!(true)));
        let env = ("spec.template.spec.containers[name=app].env[name=X]", json!({"name": "X", "value": "1"}));
        let side = ("spec.template.spec.containers[name=side]", json!({"name": "side", "image": "b"}));
        check(json!({}), &[note.clone(), paused, env.clone(), side.clone()]);
        check(json!({"f:spec": {"f:paused": {}}}), &[note, env, side]);
    }
}
