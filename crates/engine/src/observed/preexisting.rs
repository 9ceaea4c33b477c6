//! Detection of objects that existed before a Sync applied them.
//!
//! In: the metadata of the live object.
//! Out: true, unless the Sync's own apply certainly created it. An entry gets a new time with every
//! change, so an object that we changed after its creation counts as preexisting as well: the two
//! cases cannot be distinguished.

use jiff::Timestamp;
use serde_json::Value;

use moorline_api::SyncName;
use moorline_core::object::Object;

/// Longest time in seconds between the creation of an object and the entry of the apply that
/// created it: the API server takes both times in whole seconds, one after the other.
const AT_ONCE: u64 = 2;

/// True if the object may have existed before this Sync applied it.
pub fn existed_before_apply(object: &Object, owner: &SyncName) -> bool {
    let manager = owner.manager();
    let time = |value: Option<&Value>| value?.as_str()?.parse::<Timestamp>().ok();
    let made = time(object.metadata("creationTimestamp"));
    let entries = object.metadata("managedFields").and_then(Value::as_array);
    let is_ours = |entry: &&Value| entry["manager"] == *manager && entry["operation"] == "Apply";
    let applied = entries.and_then(|entries| time(entries.iter().find(is_ours)?.get("time")));
    match (made, applied) {
        (Some(made), Some(applied)) => applied.as_second().abs_diff(made.as_second()) > AT_ONCE,
        (None, _) | (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use moorline_core::object::ObjectId;

    #[test]
    fn only_what_was_made_by_our_own_entry_was_not_there() {
        let was = |made: Value, manager: &str, operation: &str, applied: &str| {
            let entry = json!({"manager": manager, "operation": operation, "time": applied});
            let body = json!({"metadata": {"creationTimestamp": made, "managedFields": [entry]}});
            let Value::Object(body) = body else { unreachable!("a mapping") };
            let origin = moorline_core::object::Origin { file: "".into(), document: 0, line: 1, item: None };
            let id = ObjectId::parse("/ConfigMap|shop/a").expect("an id");
            let owner = SyncName::new("ops", "shop");
            existed_before_apply(&Object { id, version: "v1".into(), body, origin }, &owner)
        };
        let (ours, made) = ("moorline/ops/shop", json!("2026-01-01T10:00:00Z"));
        assert!(!was(made.clone(), ours, "Apply", "2026-01-01T10:00:00Z"));
        assert!(!was(made.clone(), ours, "Apply", "2026-01-01T10:00:01Z"));
        assert!(was(made.clone(), ours, "Apply", "2026-01-01T10:00:05Z"), "taken over, or changed since");
        assert!(was(made.clone(), "moorline/ops/other", "Apply", "2026-01-01T10:00:00Z"));
        assert!(was(made, ours, "Update", "2026-01-01T10:00:00Z"));
        assert!(was(Value::Null, ours, "Apply", "2026-01-01T10:00:00Z"));
    }
}
