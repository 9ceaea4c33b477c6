//! Labels and annotations that were created in several fields at once.
//!
//! In kustomize these fields share one YAML node: changing it in one field changes it in all of
//! them. The shared fields are recorded here, so that a later label, merge or replacement does the
//! same. An object in which another change has made them differ is refused, because in kustomize
//! they would be equal.

use std::collections::BTreeSet;

use serde_json::Value;

use super::configuration::FieldSpec;
use super::field_spec::{CreatedValue, change_fields};
use super::id::Gvk;

/// Groups of fields that share an entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
    groups: Vec<Group>,
    /// Key of an entry whose other fields are unknown after a change.
    unknown_key: Option<String>,
}

#[derive(Debug, Clone)]
struct Group {
    key: String,
    fields: Vec<FieldSpec>,
}

/// Values of all groups before a change: for each field, as JSON.
pub(super) struct Snapshot(Vec<Vec<Vec<String>>>);

impl Sharing {
    /// Records the fields in which an entry was created. The kind in their specification is
    /// dropped: they are fields of this object, whose kind a patch may change.
    pub(super) fn add(&mut self, key: &str, made: Vec<FieldSpec>) {
        if !made.is_empty() {
            let fields = made.into_iter().map(|field| FieldSpec { gvk: Gvk::default(), ..field }).collect();
            self.groups.push(Group { key: key.to_owned(), fields });
        }
    }

    /// Returns the other fields that share an entry with this one.
    pub(super) fn other_fields(&self, key: &str, path: &str) -> Vec<FieldSpec> {
        let holds = |group: &&Group| group.key == key && group.fields.iter().any(|field| field.path == path);
        self.groups.iter().filter(holds).flat_map(|group| group.fields.clone()).collect()
    }

    /// Drops all groups: after a round trip through JSON nothing is shared.
    pub(super) fn forget(&mut self) {
        self.groups.clear();
    }

    /// Returns the values of all groups, to be compared after a change.
    pub(super) fn snapshot(&self, body: &mut Value) -> Snapshot {
        Snapshot(self.groups.iter().map(|group| group.texts(body)).collect())
    }

    /// Changes an entry in all fields that share it if one of them has changed; true if any was. A
    /// field for which `is_new` holds was replaced as a whole and no longer shares; if the change
    /// was not to the entry itself, sharing is unknown.
    pub(super) fn propagate(
        &mut self,
        Snapshot(before): Snapshot,
        body: &mut Value,
        is_new: impl Fn(&FieldSpec) -> bool,
        is_entry: impl Fn(&str) -> bool,
    ) -> bool {
        let mut is_changed = false;
        for (group, before) in self.groups.iter_mut().zip(before) {
            let fields = std::mem::take(&mut group.fields).into_iter().zip(before);
            let (fields, before): (Vec<_>, Vec<_>) = fields.filter(|(field, _)| !is_new(field)).unzip();
            group.fields = fields;
            let after = group.texts(body);
            let old: BTreeSet<&String> = before.iter().flatten().collect();
            let new: BTreeSet<&String> = after.iter().flatten().filter(|text| !old.contains(text)).collect();
            let was_there =
                before.iter().zip(&after).all(|(old, new)| new.is_empty() || new.len() == old.len());
            // A deleted entry is no longer shared.
            let mut is_there = after.iter().map(|texts| !texts.is_empty());
            group.fields.retain(|_| is_there.next().unwrap_or_default());
            let is_one = new.len() == 1 && was_there && is_entry(&group.key) && group.is_of_labels(body);
            let value = new.first().filter(|_| is_one).and_then(|text| serde_json::from_str(text).ok());
            match value {
                _ if new.is_empty() => {}
                Some(value) => {
                    group.set(body, &value);
                    is_changed = true;
                }
                None => self.unknown_key = Some(group.key.clone()),
            }
        }
        is_changed
    }

    /// Returns the key of an entry whose fields differ.
    pub(super) fn differing_key(&self, body: &mut Value) -> Option<&str> {
        let is_broken =
            |group: &&Group| group.texts(body).iter().flatten().collect::<BTreeSet<_>>().len() > 1;
        self.unknown_key
            .as_deref()
            .or_else(|| self.groups.iter().find(is_broken).map(|group| group.key.as_str()))
    }
}

impl Group {
    /// Returns the entry in each field. A field that can no longer be visited shares nothing.
    fn texts(&self, body: &mut Value) -> Vec<Vec<String>> {
        let texts = |field: &FieldSpec| {
            let mut texts = Vec::new();
            let mut note = |value: &mut Value| {
                texts.extend(value.get(&self.key).map(ToString::to_string));
                Ok(())
            };
            drop(change_fields(body, field, CreatedValue::Nothing, &mut note));
            texts
        };
        self.fields.iter().map(texts).collect()
    }

    fn set(&self, body: &mut Value, new: &Value) {
        for field in &self.fields {
            let mut set = |value: &mut Value| {
                if let Some(entry) = value.get_mut(&self.key) {
                    *entry = new.clone();
                }
                Ok(())
            };
            drop(change_fields(body, field, CreatedValue::Nothing, &mut set));
        }
    }

    /// True if all fields are labels in nested mappings. Annotations stop sharing when kustomize
    /// adds an internal one, and lists are replaced as a whole.
    fn is_of_labels(&self, body: &Value) -> bool {
        self.fields.iter().all(|field| {
            !field.path.ends_with("annotations") && body.pointer(&format!("/{}", field.path)).is_some()
        })
    }
}
