//! JSON patches (RFC 6902), with the deviations of the API server.
//!
//! In: a document and a list of operations.
//! Out: the document after all operations, or a [`PatchError`]; the server does not report which
//! operation failed. It deviates from the RFC in three points: a replaced or copied member may be
//! absent, an index may count from the end, and text before the first slash of a path is ignored.

use serde_json::{Map, Value};

use super::PatchError;

/// Maximum number of operations of one patch.
const MAX_OPERATIONS: usize = 10_000;

const REJECTED: &str = "the server rejected our request due to an error in our request";

/// Applies the operations to the document.
pub(crate) fn apply_json_patch(mut document: Value, operations: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = operations else {
        return Err(undecodable(operations, "[]handlers.jsonPatchOp"));
    };
    if operations.len() > MAX_OPERATIONS {
        let (most, count) = (MAX_OPERATIONS, operations.len());
        let words = format!("The allowed maximum operations in a JSON patch is {most}, got {count}");
        return Err(PatchError::new(413, words));
    }
    for operation in operations {
        let Value::Object(operation) = operation else {
            return Err(undecodable(operation, "handlers.jsonPatchOp"));
        };
        act(&mut document, operation).ok_or_else(|| PatchError::new(422, REJECTED))?;
    }
    Ok(document)
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

/// Applies one operation; `None` if it fails.
fn act(document: &mut Value, operation: &Map<String, Value>) -> Option<()> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = text("path")?;
    match text("op")? {
        "add" => add(document, path, value()),
        "remove" => remove(document, path).map(drop),
        "replace" if path.is_empty() => {
            let whole = value();
            (whole.is_object() || whole.is_array()).then(|| *document = whole)
        }
        "replace" => replace(document, path, value()),
        "move" => {
            let moved = remove(document, text("from")?)?;
            add(document, path, moved)
        }
        "copy" => {
            let (holder, key) = holder(document, text("from")?)?;
            let copied = found(holder, &key)?.unwrap_or_default();
            add(document, path, copied)
        }
        "test" if path.is_empty() => (*document == value()).then_some(()),
        "test" => {
            let (holder, key) = holder(document, path)?;
            (found(holder, &key)?.unwrap_or_default() == value()).then_some(())
        }
        _ => None,
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (holder, key) = holder(document, path)?;
    match holder {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            // An index may be the length of the list: it appends then.
            let at = index(&key, list.len() + 1)?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    let (holder, key) = holder(document, path)?;
    match holder {
        Value::Object(map) => map.remove(&key),
        Value::Array(list) => index(&key, list.len()).map(|at| list.remove(at)),
        _ => None,
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (holder, key) = holder(document, path)?;
    match holder {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(list) => {
            let at = index(&key, list.len())?;
            list[at] = value;
        }
        _ => return None,
    }
    Some(())
}

/// Returns the value of a key: an absent member is `Some(None)`, an absent item `None`.
fn found(holder: &Value, key: &str) -> Option<Option<Value>> {
    match holder {
        Value::Object(map) => Some(map.get(key).cloned()),
        Value::Array(list) => Some(list.get(index(key, list.len())?).cloned()),
        _ => None,
    }
}

/// Returns the parent of the value that a path names, and the last step of the path.
fn holder<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut steps: Vec<_> =
        path.split('/').skip(1).map(|it| it.replace("~1", "/").replace("~0", "~")).collect();
    let last = steps.pop()?;
    let mut holder = document;
    for step in steps {
        holder = match holder {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(list) => {
                let at = index(&step, list.len())?;
                &mut list[at]
            }
            _ => return None,
        };
    }
    matches!(holder, Value::Object(_) | Value::Array(_)).then_some((holder, last))
}

/// Parses an index of a list; negative ones count from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let at: isize = key.parse().ok()?;
    let length = isize::try_from(length).ok()?;
    let at = if at < 0 { at + length } else { at };
    usize::try_from(at).ok().filter(|_| at < length)
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
}
