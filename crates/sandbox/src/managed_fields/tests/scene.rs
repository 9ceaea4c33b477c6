//! Test fixture: an applied object, and writes of other managers to it.

use serde_json::json;

use super::*;

pub(super) const OURS: &str = "moorline";

/// Returns a writer of the object itself.
pub(super) fn writer<'a>(manager: &'a str, api_version: &'a str) -> Writer<'a> {
    Writer {
        manager,
        api_version,
        subresource: "",
        now: "2026-01-02T03:04:05Z",
        reset: &[&["status"]],
        in_version: &|_, _| InVersion::Same,
    }
}

/// An object under test.
pub(super) struct Scene {
    pub(super) schema: Schema,
    pub(super) api_version: &'static str,
    pub(super) config: Value,
    pub(super) live: Value,
}

impl Scene {
    /// Applies the configuration as our manager.
    pub(super) fn of(schema: Schema, api_version: &'static str, config: Value) -> Self {
        let live = apply(&schema, None, &config, &writer(OURS, api_version), false).unwrap();
        Self { schema, api_version, config, live }
    }

    pub(super) fn config_map(data: Value) -> Self {
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": data});
        Self::of(schema_of("ConfigMap"), "v1", config)
    }

    pub(super) fn deployment(spec: Value) -> Self {
        let config =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n"}, "spec": spec});
        Self::of(schema_of("Deployment"), "apps/v1", config)
    }

    pub(super) fn widget(spec: Value) -> Self {
        let api_version = "tests.moorline.dev/v1";
        let config =
            json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "n"}, "spec": spec});
        Self::of(schema_of("Widget"), api_version, config)
    }

    /// Sets or removes a field in the name of another manager.
    pub(super) fn edit(&mut self, manager: &str, pointer: &str, value: Option<Value>) {
        let mut new = self.live.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = new.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(parent.insert(name.to_owned(), value)),
            None => drop(parent.remove(name)),
        }
        self.put(new, &writer(manager, self.api_version));
    }

    pub(super) fn put(&mut self, mut new: Value, writer: &Writer<'_>) {
        update(&self.schema, Some(&self.live), &mut new, writer);
        self.live = new;
    }

    pub(super) fn apply(
        &mut self,
        manager: &str,
        config: &Value,
        force: bool,
    ) -> Result<(), (String, Value)> {
        match apply(&self.schema, Some(&self.live), config, &writer(manager, self.api_version), force) {
            Ok(merged) => {
                self.live = merged;
                Ok(())
            }
            Err(ApplyError::Conflicts(conflicts)) => Err(conflict_message(&conflicts)),
            Err(ApplyError::Typed(words) | ApplyError::Refused(words)) => Err((words, json!([]))),
        }
    }

    /// Returns the fields of a manager as paths; empty if it has no entry.
    pub(super) fn owned(&self, manager: &str, operation: &str) -> Vec<String> {
        let entries = self.live["metadata"]["managedFields"].as_array();
        let entry = entries
            .into_iter()
            .flatten()
            .find(|entry| entry["manager"] == manager && entry["operation"] == operation);
        let fields = entry.map(|entry| FieldSet::parse(&entry["fieldsV1"])).unwrap_or_default();
        fields.leaf_paths().iter().map(ToString::to_string).collect()
    }

    pub(super) fn ours(&self) -> Vec<String> {
        self.owned(OURS, "Apply")
    }
}
