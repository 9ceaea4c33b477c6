//! Keeps a Sync as the API server had it, in little memory.
//!
//! In: the parsed resource. Out: its text, and the resource again, parsed when it is needed. A
//! parsed one takes about ten times as much memory, and most Syncs are idle most of the time.

use serde_json::Value;

/// A Sync as JSON text. It has no `managedFields` but those of SyncSets.
#[derive(Clone, PartialEq, Eq)]
pub struct SyncText(Box<[u8]>);

/// Field managers whose entries are read: those of SyncSets.
const READ_MANAGERS: &str = "moorline-set/";

impl SyncText {
    /// Writes a Sync as text.
    pub fn of(mut sync: Value) -> Self {
        let entries = sync.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        if let Some(entries) = entries {
            let is_read = |entry: &Value| {
                entry["manager"].as_str().is_some_and(|manager| manager.starts_with(READ_MANAGERS))
            };
            entries.retain(is_read);
        }
        // A value with string keys can always be written.
        Self(serde_json::to_vec(&sync).unwrap_or_default().into())
    }

    /// Returns the Sync.
    pub fn read(&self) -> Value {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sync_is_read_as_it_was_without_the_entries_of_other_managers() {
        let entry =
            |manager: &str| json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {}}});
        let sync = |managers: &[&str]| {
            let entries: Vec<Value> = managers.iter().map(|manager| entry(manager)).collect();
            json!({
                "metadata": {"name": "a", "generation": 3, "managedFields": entries},
                "spec": {"path": "./ü\u{0}", "timeout": 0.1, "big": u64::MAX, "none": null},
            })
        };
        let text = SyncText::of(sync(&["kubectl", "moorline-set/ops/all", "moorline"]));
        assert_eq!(text.read(), sync(&["moorline-set/ops/all"]));
        assert!(text == SyncText::of(text.read()));
        assert_eq!(SyncText::of(json!({"spec": {}})).read(), json!({"spec": {}}));
    }
}
