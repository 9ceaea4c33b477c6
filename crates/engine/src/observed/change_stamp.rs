//! Detection of a possible change of an object's spec between two events.
//!
//! In: metadata.
//! Out: [`ChangeStamp`]s to compare. The status of an autoscaler is written all the time, and its
//! spec is read again only if it may have changed. The generation shows that; for an object without
//! one, the entries of `managedFields` are compared.

use serde_json::{Map, Value};

use moorline_managed_fields::{ManagedFieldsEntry, entries};

/// Writes to an object, as seen in one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeStamp {
    uid: Box<str>,
    version: u64,
    generation: Option<i64>,
    /// Entries of the object itself.
    object_entries: Vec<ManagedFieldsEntry>,
    /// Entries of its subresources.
    subresource_entries: Vec<ManagedFieldsEntry>,
}

impl ChangeStamp {
    /// Reads metadata.
    pub fn from_metadata(metadata: &Map<String, Value>) -> Self {
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        let (main, aside) = entries(metadata).into_iter().partition(|entry| entry.subresource.is_empty());
        Self {
            uid: text("uid").into(),
            version: text("resourceVersion").parse().unwrap_or_default(),
            generation: metadata.get("generation").and_then(Value::as_i64),
            object_entries: main,
            subresource_entries: aside,
        }
    }

    /// Treats every later event as new, as after the restore of an etcd backup.
    pub fn reset_version(&mut self) {
        self.version = 0;
    }

    /// True if this is of the same object and not newer than the other.
    pub fn is_not_newer_than(&self, other: &Self) -> bool {
        self.uid == other.uid && self.version <= other.version
    }

    /// True if the spec may have changed since `before`.
    pub fn may_differ_from(&self, before: &Self) -> bool {
        if self.uid != before.uid {
            return true;
        }
        match (before.generation, self.generation) {
            (Some(old), Some(new)) if old > 0 => old != new,
            // Two writes in one second may leave the same entries, so only a changed subresource
            // entry explains an event.
            _ => {
                self.object_entries != before.object_entries
                    || self.object_entries.is_empty()
                    || self.subresource_entries == before.subresource_entries
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stamp(version: &str, generation: Option<i64>, main: &str, aside: &str) -> ChangeStamp {
        let entry = |time: &str, subresource: &str| json!({"manager": "m", "operation": "Update", "time": time, "subresource": subresource});
        let metadata = json!({
            "uid": "u", "resourceVersion": version, "generation": generation,
            "managedFields": [entry(main, ""), entry(aside, "status")],
        });
        ChangeStamp::from_metadata(metadata.as_object().unwrap())
    }

    #[test]
    fn a_status_is_no_reason_to_read() {
        let check = |before: ChangeStamp, after: ChangeStamp, expect: bool| {
            assert_eq!(after.may_differ_from(&before), expect, "{before:?} {after:?}");
        };
        check(stamp("1", None, "a", "a"), stamp("2", None, "a", "b"), false);
        check(stamp("1", None, "a", "a"), stamp("2", None, "b", "a"), true);
        check(stamp("1", None, "a", "a"), stamp("2", None, "a", "a"), true);
        check(stamp("1", Some(1), "a", "a"), stamp("2", Some(1), "b", "a"), false);
        check(stamp("1", Some(1), "a", "a"), stamp("2", Some(2), "a", "b"), true);
        let other = ChangeStamp { uid: "v".into(), ..stamp("2", Some(1), "a", "a") };
        check(stamp("1", Some(1), "a", "a"), other, true);
        let bare = ChangeStamp {
            object_entries: Vec::new(),
            subresource_entries: Vec::new(),
            ..stamp("1", None, "a", "a")
        };
        check(bare.clone(), ChangeStamp { version: 2, ..bare }, true);
    }

    #[test]
    fn an_event_that_comes_late_says_nothing() {
        let (old, new) = (stamp("9", None, "a", "a"), stamp("10", None, "a", "b"));
        assert!(old.is_not_newer_than(&new) && new.is_not_newer_than(&new) && !new.is_not_newer_than(&old));
        let other = ChangeStamp { uid: "v".into(), ..old.clone() };
        assert!(!other.is_not_newer_than(&new));
        let mut doubted = new;
        doubted.reset_version();
        assert!(!old.is_not_newer_than(&doubted));
    }
}
