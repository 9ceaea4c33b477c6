//! A live object as the rules read it.
//!
//! In: a body. Out: [`Live`]: its fields by path, its generation, its conditions. A field that is missing and a field of
//! another type than it should have are the same to every rule: what a server sends is believed, and never a reason to panic.

use serde_json::{Map, Value};

use super::Health;
use super::condition::Condition;

/// A body that is read and not changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live<'a>(&'a Map<String, Value>);

impl<'a> Live<'a> {
    pub(super) fn new(body: &'a Map<String, Value>) -> Self {
        Self(body)
    }

    /// The value at a path of field names.
    pub(super) fn at(self, path: &[&str]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, field| value.get(field))
    }

    /// The same for a path that is written with dots.
    pub(super) fn dotted(self, path: &str) -> Option<&'a Value> {
        let mut fields = path.split('.');
        let first = self.0.get(fields.next()?)?;
        fields.try_fold(first, |value, field| value.get(field))
    }

    pub(super) fn text(self, path: &[&str]) -> Option<&'a str> {
        self.at(path)?.as_str()
    }

    /// A number that is at least 0. Counts of 0 are left out by their writers, so none is 0.
    pub(super) fn count(self, path: &[&str]) -> u64 {
        self.number(path).unwrap_or_default()
    }

    pub(super) fn number(self, path: &[&str]) -> Option<u64> {
        self.at(path)?.as_u64()
    }

    pub(super) fn is_true(self, path: &[&str]) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The items of a list; none of anything else.
    pub(super) fn items(self, path: &[&str]) -> &'a [Value] {
        self.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn name(self) -> &'a str {
        self.text(&["metadata", "name"]).unwrap_or_default()
    }

    pub(super) fn generation(self) -> Option<u64> {
        self.number(&["metadata", "generation"])
    }

    /// The generation that the status speaks of. Some controllers write it as text.
    pub(super) fn observed_generation(self) -> Option<u64> {
        let observed = self.at(&["status", "observedGeneration"])?;
        observed.as_u64().or_else(|| observed.as_str()?.parse().ok())
    }

    /// True where the controller has written nothing into the status.
    pub(super) fn has_no_status(self) -> bool {
        self.at(&["status"]).and_then(Value::as_object).is_none_or(Map::is_empty)
    }

    /// `status.conditions`.
    pub(super) fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.items(&["status", "conditions"]).iter().filter_map(Condition::of)
    }

    /// The condition of a type.
    pub(super) fn condition(self, kind: &str) -> Option<Condition<'a>> {
        let mut all = self.items(&["status", "conditions"]).iter();
        // Only the one that is meant is read whole.
        all.find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
            .and_then(Condition::of)
    }

    /// The condition of a type, if its status is `True`.
    pub(super) fn holds(self, kind: &str) -> Option<Condition<'a>> {
        self.condition(kind).filter(Condition::is_true)
    }

    /// Progressing while the object is being deleted, whatever its kind.
    pub(super) fn deletion(self) -> Option<Health> {
        self.at(&["metadata", "deletionTimestamp"])?.as_str()?;
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

    /// Progressing while the status speaks of an older generation than the object has. A generation that is newer than the
    /// object's is no reason to wait: an object that was restored from a backup begins to count anew.
    pub(super) fn stale(self) -> Option<Health> {
        let (generation, observed) = (self.generation()?, self.observed_generation()?);
        (observed < generation).then(|| {
            Health::progressing(format!(
                "the controller has seen generation {observed}, and the object is at {generation}"
            ))
        })
    }

    /// The same for a kind whose controller always writes the generation: none is an old one.
    pub(super) fn unseen(self) -> Option<Health> {
        match self.observed_generation() {
            Some(_) => self.stale(),
            None => Some(Health::progressing("the controller has not seen it yet")),
        }
    }
}

/// How many finalizers a sentence names.
const MAX_FINALIZERS: usize = 5;
