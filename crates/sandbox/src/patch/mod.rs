//! Patches other than server-side apply: JSON patch, merge patch and strategic merge patch.
//!
//! In: an object and a patch of one media type.
//! Out: the patched object, or the [`PatchError`] that the server returns.

mod json;
mod strategic;

use serde_json::{Map, Value};

pub(crate) use json::apply_json_patch;
pub(crate) use strategic::apply_strategic_patch;

/// Error of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatchError {
    /// Status code of the response: 400, 413, 422 or 500.
    pub(crate) code: u16,
    /// Message of the response.
    pub(crate) words: String,
}

impl PatchError {
    fn new(code: u16, words: impl Into<String>) -> Self {
        Self { code, words: words.into() }
    }
}

/// Applies a merge patch (RFC 7386): null removes a member, maps are merged, everything else is
/// replaced.
pub(crate) fn apply_merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(name);
        } else {
            apply_merge_patch(target.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The cases of RFC 7386, appendix A.
    #[test]
    fn merge_patches_merge() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target.clone();
            apply_merge_patch(&mut merged, &patch);
            assert_eq!(merged, result, "{target} with {patch}");
        }
    }
}
