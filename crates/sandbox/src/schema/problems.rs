//! Validates an object against the schema of its definition, with the messages of the API server.
//!
//! In: an object, and its previous state.
//! Out: a [`Problem`] for each violation. Values that an update leaves unchanged are not validated.
//! CEL rules (`x-kubernetes-validations`) are evaluated in `crates/sandbox/src/cel_rules/`.

mod bounds;
mod combinators;
mod formats;

use serde_json::{Map, Value};

pub(crate) use bounds::shown;

use super::{Fields, ListType, Schema, Shape};
use moorline_cel::Pattern;

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Reason of the cause, such as `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    /// Message of the cause.
    pub(crate) message: String,
    /// Path of the field: `spec.items[0].name`.
    pub(crate) field: String,
}

impl Schema {
    /// Validates an object; `old` is its previous state.
    pub(crate) fn validate(&self, old: Option<&Value>, object: &Value) -> Vec<Problem> {
        let mut check = SchemaValidator { path: String::new(), found: Vec::new() };
        check.value(self, old, object);
        let mut found = check.found;
        duplicates(self, object, &mut String::new(), &mut found);
        found
    }
}

impl Schema {
    /// Returns the compiled pattern of a text.
    fn pattern(&self) -> Option<&Pattern> {
        let pattern = self.rules().get("pattern")?.as_str()?;
        self.0.pattern.get_or_init(|| Pattern::new(pattern)).as_ref()
    }
}

impl Problem {
    pub(crate) fn new(reason: &'static str, path: &str, message: String) -> Self {
        Self { reason, message, field: path.trim_start_matches('.').to_owned() }
    }

    /// Invalid value: `Invalid value: 11: spec.replicas in body should be ...`.
    fn invalid(path: &str, value: &str, should: &str) -> Self {
        Self::new("FieldValueInvalid", path, format!("Invalid value: {value}: {path} in body {should}"))
    }

    /// Problem that the server reports without a field.
    fn of_all(words: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"\": {words}"),
            field: "<nil>".to_owned(),
        }
    }
}

struct SchemaValidator {
    path: String,
    found: Vec<Problem>,
}

impl SchemaValidator {
    fn value(&mut self, schema: &Schema, old: Option<&Value>, value: &Value) {
        if old == Some(value) {
            return;
        }
        // The metadata has a built-in type and is validated elsewhere.
        if !schema.is_of_definition() {
            return;
        }
        let rules = schema.rules();
        bounds::of_value_with(rules, schema.pattern(), &self.path, value, &mut self.found);
        crate::schema::problems::combinators::of_value(rules, &self.path, value, &mut self.found);
        match (schema.shape(), value) {
            (Shape::Fields(fields), Value::Object(map)) => {
                self.fields(fields, old.and_then(Value::as_object), map);
                bounds::required(rules, &self.path, map, &mut self.found);
            }
            (Shape::List(list), Value::Array(items)) => {
                let old = old.and_then(Value::as_array);
                for (at, item) in items.iter().enumerate() {
                    let before = old.and_then(|old| counterpart(&list.merge, old, item));
                    self.below(&format!("[{at}]"), list.items(), before, item);
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, fields: &Fields, old: Option<&Map<String, Value>>, map: &Map<String, Value>) {
        for (name, value) in map {
            let Some(schema) = fields.of(name) else { continue };
            let step = if self.path.is_empty() && fields.declared(name).is_some() {
                name.clone()
            } else {
                format!(".{name}")
            };
            self.below(&step, schema, old.and_then(|old| old.get(name)), value);
        }
    }

    fn below(&mut self, step: &str, schema: &Schema, old: Option<&Value>, value: &Value) {
        let length = self.path.len();
        self.path.push_str(step);
        self.value(schema, old, value);
        self.path.truncate(length);
    }
}

/// Returns the previous state of a list item. Only items with keys can be matched.
fn counterpart<'a>(merge: &ListType, old: &'a [Value], item: &Value) -> Option<&'a Value> {
    let ListType::Keyed(keys) = merge else { return None };
    old.iter().find(|before| keys.iter().all(|key| before.get(&**key) == item.get(&**key)))
}

/// Finds duplicate items in sets and keyed lists.
fn duplicates(schema: &Schema, value: &Value, path: &mut String, found: &mut Vec<Problem>) {
    if !schema.is_of_definition() {
        return;
    }
    let length = path.len();
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Fields(fields)) => {
            for (name, value) in map {
                let Some(schema) = fields.of(name) else { continue };
                path.push_str(&match fields.declared(name) {
                    Some(_) if length == 0 => name.clone(),
                    Some(_) => format!(".{name}"),
                    None => format!("[{name}]"),
                });
                duplicates(schema, value, path, found);
                path.truncate(length);
            }
        }
        (Value::Array(items), Shape::List(list)) => {
            let mut seen: Vec<(Value, usize)> = Vec::new();
            for (at, item) in items.iter().enumerate() {
                if let Some(key) = key_of(&list.merge, item) {
                    let known = seen.iter_mut().find(|(known, _)| *known == key);
                    let times = known.map_or(0, |(_, times)| {
                        *times += 1;
                        *times
                    });
                    if times == 0 {
                        seen.push((key, 0));
                    } else if times == 1 {
                        let message = format!("Duplicate value: {key}");
                        found.push(Problem::new("FieldValueDuplicate", &format!("{path}[{at}]"), message));
                    }
                }
            }
            for (at, item) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                duplicates(list.items(), item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn key_of(merge: &ListType, item: &Value) -> Option<Value> {
    match merge {
        ListType::Atomic => None,
        ListType::Set => Some(item.clone()),
        ListType::Keyed(keys) => {
            let values = keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone())));
            Some(Value::Object(values.collect()))
        }
    }
}
