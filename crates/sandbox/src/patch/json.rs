//! JSON patches (RFC 6902) of a request, applied by [`moorline_json_patch`].
//!
//! In: a document and a list of operations.
//! Out: the document after all operations, or a [`PatchError`]; the server does not report which
//! operation failed.

use moorline_json_patch::{PatchOptions, apply, parse};
use serde_json::Value;

use super::PatchError;

/// Maximum number of operations of one patch.
const MAX_OPERATIONS: usize = 10_000;

const REJECTED: &str = "the server rejected our request due to an error in our request";

/// Applies the operations to the document.
pub(crate) fn apply_json_patch(mut document: Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = patch else {
        return Err(undecodable(patch, "[]handlers.jsonPatchOp"));
    };
    if operations.len() > MAX_OPERATIONS {
        let (most, count) = (MAX_OPERATIONS, operations.len());
        let words = format!("The allowed maximum operations in a JSON patch is {most}, got {count}");
        return Err(PatchError::new(413, words));
    }
    if let Some(operation) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(undecodable(operation, "handlers.jsonPatchOp"));
    }
    let applied = parse(patch).and_then(|patch| apply(&mut document, &patch, &PatchOptions::default()));
    applied.map(|()| document).map_err(|_| PatchError::new(422, REJECTED))
}

fn undecodable(found: &Value, wanted: &str) -> PatchError {
    let found = match found {
        Value::Null | Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    PatchError::new(
        400,
        format!("error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses of a real API server, recorded by `tests/sandbox/sandbox_kinds.rs`.
    #[test]
    fn operations_do_what_they_do_on_the_server() {
        let mut cases = 0;
        let schema = crate::schema::Schema::builtin("", "v1", "ConfigMap").unwrap();
        for line in include_str!("../../../../tests/sandbox_kinds/json_patches.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let made = apply_json_patch(case["live"].clone(), &case["patch"]);
            match (made, case["code"].as_u64().unwrap()) {
                (Ok(mut made), 200) => {
                    // The server drops nulls and fields that a ConfigMap does not have.
                    crate::kinds::normalize(&schema, "ConfigMap", &mut made);
                    assert_eq!(made, case["answer"], "{}", case["patch"]);
                }
                // A document without a name is refused later.
                (Ok(made), 400) => assert!(made["metadata"]["name"].is_null(), "{}", case["patch"]),
                (Ok(_), code) => panic!("the server says {code} to {}", case["patch"]),
                (Err(fault), code) => {
                    assert_eq!(u64::from(fault.code), code, "{}", case["patch"]);
                    assert_eq!(fault.words, case["answer"]["message"], "{}", case["patch"]);
                }
            }
            cases += 1;
        }
        assert!(cases >= 40, "{cases}");
    }

    #[test]
    fn a_patch_is_bounded() {
        let operation = serde_json::json!({"op": "test", "path": "/a", "value": null});
        let many = Value::Array(vec![operation; MAX_OPERATIONS + 1]);
        assert_eq!(apply_json_patch(serde_json::json!({}), &many).unwrap_err().code, 413);
    }

    #[test]
    fn copies_of_copies_are_refused() {
        let double = serde_json::json!({"op": "copy", "from": "/a", "path": "/a/-"});
        let fault = apply_json_patch(serde_json::json!({"a": [1]}), &vec![double; 60].into()).unwrap_err();
        assert_eq!((fault.code, &*fault.words), (422, REJECTED));
    }
}
