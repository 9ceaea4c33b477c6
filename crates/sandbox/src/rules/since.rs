//! What a value was before, as far as that can be told.
//!
//! In: a schema, an object, and what it was. Out: [`Since`], which goes down with the value, and says whether it is what it was:
//! then a rule that it breaks is no reason to refuse it.

use serde_json::Value;

/// A value and what it was.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    schema: &'a Value,
    old: &'a Value,
    new: &'a Value,
}

/// What a value was; or, where nothing is known of that, what it stands in was.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since<'a> {
    own: Option<Pair<'a>>,
    around: Option<Pair<'a>>,
}

impl<'a> Since<'a> {
    /// The object itself.
    pub(super) fn new(schema: &'a Value, old: Option<&'a Value>, new: &'a Value) -> Self {
        Self { own: old.map(|old| Pair { schema, old, new }), around: None }
    }

    /// The value under a name.
    pub(super) fn field(self, name: &str) -> Self {
        match self.own {
            None => self,
            // These are always those of the version that is written.
            Some(_) if self.around.is_none() && ["apiVersion", "kind"].contains(&name) => Self::default(),
            Some(own) => Self { own: own.field(name), around: Some(own) },
        }
    }

    /// An item.
    pub(super) fn item(self, at: usize) -> Self {
        match self.own {
            None => self,
            Some(own) => Self { own: own.item(at), around: Some(own) },
        }
    }

    /// True if the value is what it was.
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

/// True for lists whose items are known by some of their fields.
pub(super) fn is_keyed(schema: &Value) -> bool {
    schema["x-kubernetes-list-type"] == "map"
}

/// The item that an item was.
pub(super) fn counterpart<'a>(schema: &Value, old: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().filter(|_| is_keyed(schema))?;
    let keys = keys.iter().filter_map(Value::as_str);
    old?.as_array()?.iter().find(|before| keys.clone().all(|key| before.get(key) == item.get(key)))
}
