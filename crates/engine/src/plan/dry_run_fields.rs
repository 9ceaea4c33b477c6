//! Comparison of a live object with the result of a dry-run apply.
//!
//! In: the live body, and that of the dry-run response.
//! Out: the paths of the fields that an apply would change. Both bodies have the server's defaults;
//! fields that every write changes are ignored.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::difference::differences;
use moorline_api::{PROOF_ANNOTATION, SPEC_HASH_ANNOTATION};

/// Fields that the server writes.
const SERVERS_OWN: [&str; 4] = ["creationTimestamp", "generation", "managedFields", "resourceVersion"];

/// Annotations that the next real change renews. Manual edits of them are detected in the metadata.
const WRITTEN_LATER: [&str; 2] = [PROOF_ANNOTATION, SPEC_HASH_ANNOTATION];

/// Returns the fields in which the two bodies differ.
pub fn changed_fields(live: &Map<String, Value>, would_be: &Map<String, Value>) -> Vec<String> {
    let (live, would_be) = (essence(live), essence(would_be));
    let found = differences(&would_be, &live).into_iter().chain(differences(&live, &would_be));
    found.map(|difference| difference.path).collect::<BTreeSet<_>>().into_iter().collect()
}

fn essence(body: &Map<String, Value>) -> Map<String, Value> {
    let mut body = body.clone();
    body.remove("status");
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !SERVERS_OWN.contains(&field.as_str()));
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.retain(|key, _| !WRITTEN_LATER.contains(&key.as_str()));
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_an_apply_would_change_is_a_difference() {
        let check = |live: Value, would_be: Value, expect: &[&str]| {
            let (Value::Object(live), Value::Object(would_be)) = (live, would_be) else {
                panic!("bodies are mappings")
            };
            assert_eq!(changed_fields(&live, &would_be), expect);
        };
        check(
            json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 1, "managedFields": []}, "data": {"a": "1"}, "status": {"x": 1}}),
            json!({"metadata": {"name": "a", "resourceVersion": "2", "generation": 2, "managedFields": [1]}, "data": {"a": "1"}}),
            &[],
        );
        check(json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"a": "2"}}), &["data.a", "data.b"]);
    }
}
