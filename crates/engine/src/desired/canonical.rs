//! Canonical form of an object: its meaning to Kubernetes, independent of how it was written.
//!
//! In: a body.
//! Out: compact JSON with sorted keys, which is hashed and applied. Key order, comments, quoting
//! and file order are lost with the YAML; this file removes the fields that only the API server
//! writes, `status`, and our own label and annotations, and converts `stringData` to `data`.
//!
//! The form is [`CanonicalForm::V1`](moorline_api::CanonicalForm). A change of its rules would
//! change the hash of every object on every cluster: it needs a new version, and the old one stays.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use moorline_api::{ID_ANNOTATION, PROOF_ANNOTATION, SPEC_HASH_ANNOTATION, SYNC_LABEL};
use moorline_core::object::ObjectId;

/// Fields of `metadata` that only the API server writes.
const SERVER_OWNED: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns the canonical form of a body that is applied under `id`.
pub(super) fn canonical_form(mut body: Map<String, Value>, id: &ObjectId) -> Vec<u8> {
    body.remove("status");
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        strip_metadata(metadata);
        match id.namespace() {
            Some(namespace) => metadata.insert("namespace".into(), namespace.into()),
            None => metadata.remove("namespace"),
        };
    }
    if id.is_kind("", "Secret") {
        fold_string_data(&mut body);
    }
    // Serializing a JSON map with string keys cannot fail.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Hashes a canonical form.
pub(super) fn digest(form: &[u8]) -> [u8; 32] {
    Sha256::digest(form).into()
}

fn strip_metadata(metadata: &mut Map<String, Value>) {
    SERVER_OWNED.iter().for_each(|field| drop(metadata.remove(*field)));
    for (field, own) in [
        ("labels", &[SYNC_LABEL] as &[&str]),
        ("annotations", &[ID_ANNOTATION, SPEC_HASH_ANNOTATION, PROOF_ANNOTATION]),
    ] {
        let Some(Value::Object(texts)) = metadata.get_mut(field) else { continue };
        let before = texts.len();
        own.iter().for_each(|key| drop(texts.remove(*key)));
        // A map with only our keys would otherwise be applied as an empty map.
        if texts.is_empty() && before > 0 {
            metadata.remove(field);
        }
    }
    // An empty list has no meaning, and a non-empty list is rejected earlier.
    metadata.remove("ownerReferences");
}

/// Converts `stringData` to `data`. The API server would do it too, but would not record the owner
/// of each key.
fn fold_string_data(body: &mut Map<String, Value>) {
    if let Some(Value::Object(data)) = body.get_mut("data") {
        for value in data.values_mut() {
            if let Value::String(text) = value
                && text.contains(['\r', '\n'])
            {
                text.retain(|char| !matches!(char, '\r' | '\n'));
            }
        }
    }
    let Some(Value::Object(plain)) = body.remove("stringData") else { return };
    if plain.is_empty() {
        return;
    }
    let data = body.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    if let Value::Object(data) = data {
        data.extend(plain.into_iter().map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            (key, Value::String(STANDARD.encode(text)))
        }));
    }
}

/// Parses a canonical form.
pub(super) fn parse_canonical(form: &[u8]) -> Map<String, Value> {
    let mut reader = serde_json::Deserializer::from_slice(form);
    // The depth of a manifest was checked when it was read.
    reader.disable_recursion_limit();
    Map::deserialize(&mut reader).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(id: &str, body: Value, expect: &Value) {
        let Value::Object(body) = body else { panic!("a body is a mapping") };
        let form = canonical_form(body, &ObjectId::parse(id).unwrap());
        assert_eq!(String::from_utf8(form).unwrap(), expect.to_string());
    }

    #[test]
    fn what_only_the_server_writes_is_gone() {
        check(
            "apps/Deployment|shop/web",
            json!({
                "kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 3}, "status": {"replicas": 1},
                "metadata": {
                    "name": "web", "uid": "1", "resourceVersion": "2", "generation": 3, "selfLink": "",
                    "creationTimestamp": null, "managedFields": [], "ownerReferences": [],
                    "labels": {"moorline.dev/sync": "a.b"},
                    "annotations": {"moorline.dev/id": "x", "moorline.dev/spec-hash": "y", "keep": "me"},
                },
            }),
            &json!({
                "kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 3},
                "metadata": {"name": "web", "namespace": "shop", "annotations": {"keep": "me"}},
            }),
        );
    }

    #[test]
    fn an_empty_map_that_people_wrote_stays() {
        check(
            "/ConfigMap|shop/a",
            json!({"kind": "ConfigMap", "metadata": {"name": "a", "labels": {}}, "data": null}),
            &json!({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "labels": {}}, "data": null}),
        );
    }

    #[test]
    fn string_data_becomes_data_and_wins() {
        check(
            "/Secret|shop/a",
            json!({
                "metadata": {"name": "a"}, "data": {"a": "b2xk", "b": "a2\nVwdA==\n"},
                "stringData": {"a": "new", "c": ""},
            }),
            &json!({
                "metadata": {"name": "a", "namespace": "shop"},
                "data": {"a": "bmV3", "b": "a2VwdA==", "c": ""},
            }),
        );
        // A field of that name elsewhere is just a field.
        check("g/Secret|/a", json!({"stringData": {"a": "b"}}), &json!({"stringData": {"a": "b"}}));
    }
}
