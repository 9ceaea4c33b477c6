//! Entries of `managedFields`: manager, operation, time and fields.

use serde_json::{Map, Value};

use super::FieldSet;

/// Kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedFieldsEntry {
    /// Field manager: the name of a tool, not of a person.
    pub manager: Box<str>,
    /// Kind of write.
    pub operation: Operation,
    /// Subresource of the write, empty for the object itself.
    pub subresource: Box<str>,
    /// API version that the paths refer to.
    pub api_version: Box<str>,
    /// Time of the last write, as RFC 3339 with seconds, or empty.
    pub time: Box<str>,
    /// The owned fields.
    pub fields: FieldSet,
}

impl ManagedFieldsEntry {
    /// Reads an entry; missing fields are empty.
    pub fn parse(entry: &Map<String, Value>) -> Self {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        Self {
            manager: text("manager").into(),
            operation: if text("operation") == "Apply" { Operation::Apply } else { Operation::Update },
            subresource: text("subresource").into(),
            api_version: text("apiVersion").into(),
            time: text("time").into(),
            fields: entry.get("fieldsV1").map(FieldSet::parse).unwrap_or_default(),
        }
    }

    /// True if a manager of this name applied the object itself.
    pub fn is_applied_by(&self, manager: &str) -> bool {
        self.operation == Operation::Apply && self.subresource.is_empty() && *self.manager == *manager
    }

    /// Returns the manager, with the subresource if there is one: `kube-controller-manager
    /// (scale)`.
    pub fn author(&self) -> String {
        match &*self.subresource {
            "" => self.manager.to_string(),
            subresource => format!("{} ({subresource})", self.manager),
        }
    }
}

/// Reads all entries of an object's metadata, in their order.
pub fn entries(metadata: &Map<String, Value>) -> Vec<ManagedFieldsEntry> {
    raw(metadata).map(ManagedFieldsEntry::parse).collect()
}

fn raw(metadata: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_read_whatever_they_lack() {
        let metadata = json!({"managedFields": [
            {"manager": "a", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "hpa", "operation": "Update", "subresource": "scale"},
            {}, 7,
        ]});
        let found = entries(metadata.as_object().unwrap());
        assert_eq!(found.len(), 3);
        assert!(
            found[0].is_applied_by("a") && !found[0].is_applied_by("b") && !found[1].is_applied_by("hpa")
        );
        assert_eq!((&*found[0].time, found[0].fields.leaf_paths().len()), ("2026-01-02T03:04:05Z", 1));
        assert_eq!((found[0].author(), found[1].author()), ("a".to_owned(), "hpa (scale)".to_owned()));
        assert!(entries(&Map::new()).is_empty());
        let odd = json!({"managedFields": "none"});
        assert!(entries(odd.as_object().unwrap()).is_empty());
    }
}
