//! View of a live object for the rules.
//!
//! In: a body.
//! Out: [`ObjectView`]: fields by path, the generation, the conditions. Rules treat a field of an
//! unexpected type like a missing one, so that no response of a server can cause a panic.

use serde_json::{Map, Value};

use super::Health;
use super::condition::Condition;

/// Read-only view of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectView<'a>(&'a Map<String, Value>);

impl<'a> ObjectView<'a> {
    pub(super) fn new(body: &'a Map<String, Value>) -> Self {
        Self(body)
    }

    /// Value at a path of field names.
    pub(super) fn field(self, path: &[&str]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, field| value.get(field))
    }

    /// Value at a path of field names that are separated by dots.
    pub(super) fn field_by_path(self, path: &str) -> Option<&'a Value> {
        let mut fields = path.split('.');
        let first = self.0.get(fields.next()?)?;
        fields.try_fold(first, |value, field| value.get(field))
    }

    pub(super) fn text(self, path: &[&str]) -> Option<&'a str> {
        self.field(path)?.as_str()
    }

    /// Number that is at least 0. Controllers omit counts of 0, so a missing one is 0.
    pub(super) fn count(self, path: &[&str]) -> u64 {
        self.number(path).unwrap_or_default()
    }

    pub(super) fn number(self, path: &[&str]) -> Option<u64> {
        self.field(path)?.as_u64()
    }

    pub(super) fn is_true(self, path: &[&str]) -> bool {
        self.field(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Items of a list; empty for any other value.
    pub(super) fn items(self, path: &[&str]) -> &'a [Value] {
        self.field(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn name(self) -> &'a str {
        self.text(&["metadata", "name"]).unwrap_or_default()
    }

    pub(super) fn generation(self) -> Option<u64> {
        self.number(&["metadata", "generation"])
    }

    /// Generation that the status was computed for. Some controllers write it as text.
    pub(super) fn observed_generation(self) -> Option<u64> {
        let observed = self.field(&["status", "observedGeneration"])?;
        observed.as_u64().or_else(|| observed.as_str()?.parse().ok())
    }

    /// True if the controller has written nothing into the status.
    pub(super) fn has_no_status(self) -> bool {
        self.field(&["status"]).and_then(Value::as_object).is_none_or(Map::is_empty)
    }

    /// All items of `status.conditions`.
    pub(super) fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.items(&["status", "conditions"]).iter().filter_map(Condition::from_value)
    }

    /// Condition of a type.
    pub(super) fn condition(self, kind: &str) -> Option<Condition<'a>> {
        let mut all = self.items(&["status", "conditions"]).iter();
        // Parses only the matching item.
        all.find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
            .and_then(Condition::from_value)
    }

    /// Condition of a type, if its status is `True`.
    pub(super) fn true_condition(self, kind: &str) -> Option<Condition<'a>> {
        self.condition(kind).filter(Condition::is_true)
    }

    /// Progressing while the object is being deleted, for every kind.
    pub(super) fn deletion_progress(self) -> Option<Health> {
        self.field(&["metadata", "deletionTimestamp"])?.as_str()?;
        let finalizers = self.items(&["metadata", "finalizers"]).iter().filter_map(Value::as_str);
        let finalizers: Vec<&str> = finalizers.take(MAX_FINALIZERS).collect();
        Some(match finalizers.is_empty() {
            true => Health::progressing("it is being deleted"),
            false => {
                let finalizers = finalizers.join(" and ");
                Health::progressing(format!("it is being deleted, and waits for the finalizer {finalizers}"))
            }
        })
    }

    /// Progressing while the status belongs to an older generation than the object has. An observed
    /// generation above the object's is no reason to wait: an object restored from a backup starts
    /// to count from 1 again.
    pub(super) fn stale_status(self) -> Option<Health> {
        let (generation, observed) = (self.generation()?, self.observed_generation()?);
        (observed < generation).then(|| {
            Health::progressing(format!(
                "the controller has observed generation {observed}, but the object is at generation {generation}"
            ))
        })
    }

    /// Same as [`Self::stale_status`], for kinds whose controllers always write the generation: a
    /// missing one counts as not observed.
    pub(super) fn unobserved_status(self) -> Option<Health> {
        match self.observed_generation() {
            Some(_) => self.stale_status(),
            None => Some(Health::progressing("the controller has not observed it yet")),
        }
    }
}

/// Number of finalizers that a sentence names.
const MAX_FINALIZERS: usize = 5;
