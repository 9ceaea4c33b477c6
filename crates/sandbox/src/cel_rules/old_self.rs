//! Previous values, as far as they can be determined.
//!
//! In: a schema, an object, and its previous state.
//! Out: [`OldSelf`], which follows the traversal of the value and detects unchanged values: a rule
//! that an unchanged value violates does not refuse the object.

use serde_json::Value;

/// A value before and after the write.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    schema: &'a Value,
    old: &'a Value,
    new: &'a Value,
}

/// Previous state of a value; if it is unknown, that of the nearest parent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OldSelf<'a> {
    own: Option<Pair<'a>>,
    around: Option<Pair<'a>>,
}

impl<'a> OldSelf<'a> {
    /// Starts at the object itself.
    pub(super) fn new(schema: &'a Value, old: Option<&'a Value>, new: &'a Value) -> Self {
        Self { own: old.map(|old| Pair { schema, old, new }), around: None }
    }

    /// Descends to a field.
    pub(super) fn field(self, name: &str) -> Self {
        match self.own {
            None => self,
            // These always have the values of the version that is written.
            Some(_) if self.around.is_none() && ["apiVersion", "kind"].contains(&name) => Self::default(),
            Some(own) => Self { own: own.field(name), around: Some(own) },
        }
    }

    /// Descends to a list item.
    pub(super) fn item(self, at: usize) -> Self {
        match self.own {
            None => self,
            Some(own) => Self { own: own.item(at), around: Some(own) },
        }
    }

    /// True if the value has not changed.
    pub(super) fn is_unchanged(self) -> bool {
        self.own.or(self.around).is_some_and(Pair::is_alike)
    }
}

impl<'a> Pair<'a> {
    fn field(self, name: &str) -> Option<Self> {
        let property = self.schema["properties"].get(name);
        let schema = property
            .or_else(|| self.schema.get("additionalProperties").filter(|values| values.is_object()))?;
        Some(Self { schema, old: self.old.get(name)?, new: self.new.get(name)? })
    }

    fn item(self, at: usize) -> Option<Self> {
        let new = self.new.get(at)?;
        let old = counterpart(self.schema, Some(self.old), new)?;
        Some(Self { schema: self.schema.get("items")?, old, new })
    }

    fn is_alike(self) -> bool {
        match (self.old, self.new) {
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len() && new.keys().all(|name| self.field(name).is_some_and(Self::is_alike))
            }
            (Value::Array(old), Value::Array(new)) if is_keyed(self.schema) => {
                old.len() == new.len() && (0..new.len()).all(|at| self.item(at).is_some_and(Self::is_alike))
            }
            (old, new) => old == new,
        }
    }
}

/// True for lists whose items are identified by key fields.
pub(super) fn is_keyed(schema: &Value) -> bool {
    schema["x-kubernetes-list-type"] == "map"
}

/// Returns the previous state of a list item.
pub(super) fn counterpart<'a>(schema: &Value, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().filter(|_| is_keyed(schema))?;
    let keys = keys.iter().filter_map(Value::as_str);
    old?.as_array()?.iter().find(|before| keys.clone().all(|key| before.get(key) == item.get(key)))
}
