//! Prunes custom resources and sets their defaults, as the API server does before it stores them.
//!
//! In: an object as the client sent it.
//! Out: the same object, pruned, then with defaults.

use serde_json::{Map, Value};

use super::{Schema, Shape};

impl Schema {
    /// Removes unknown fields and returns their paths in the format of the server:
    /// `spec.items[0].colour`.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut told = Vec::new();
        prune(self, object, &mut String::new(), &mut told);
        told.sort();
        told
    }

    /// Removes nulls where the schema allows none and has no default. This applies only to complete
    /// objects in a request; a null that an apply leaves is kept, and refused later.
    pub(crate) fn without_nulls(&self, object: &mut Value) {
        match object {
            Value::Object(map) => {
                let Shape::Fields(fields) = self.shape() else { return };
                map.retain(|name, value| {
                    let Some(schema) = fields.of(name) else { return true };
                    schema.without_nulls(value);
                    let has_default =
                        fields.declared(name).map_or(schema.default().is_some(), |it| it.default.is_some());
                    !value.is_null() || has_default || schema.may_be_null()
                });
            }
            Value::Array(items) => {
                if let Some(schema) = self.items() {
                    items.iter_mut().for_each(|item| schema.without_nulls(item));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Sets defaults for absent fields. A null that the schema does not allow counts as absent.
    pub(crate) fn with_defaults(&self, object: &mut Value) {
        match object {
            Value::Object(map) => self.fill_fields(map),
            Value::Array(items) => {
                if let Some(schema) = self.items() {
                    for item in items {
                        fill_null(schema, item);
                        schema.with_defaults(item);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn fill_fields(&self, map: &mut Map<String, Value>) {
        let Shape::Fields(fields) = self.shape() else { return };
        for field in fields.known() {
            let Some(default) = &field.default else { continue };
            let is_absent =
                map.get(&*field.name).is_none_or(|value| value.is_null() && !field.schema().may_be_null());
            if is_absent {
                map.insert(field.name.to_string(), default.clone());
            }
        }
        for (name, value) in map {
            if let Some(schema) = fields.of(name) {
                fill_null(schema, value);
                schema.with_defaults(value);
            }
        }
    }

    /// Default of a list item or a map value.
    fn default(&self) -> Option<&Value> {
        self.rules().get("default").filter(|default| !default.is_null())
    }

    /// True if null is allowed. Built-in types treat null as absent when they are decoded, not
    /// here.
    fn may_be_null(&self) -> bool {
        !self.is_of_definition() || self.rules().get("nullable") == Some(&Value::Bool(true)) || self.is_open()
    }

    /// True if the schema does not restrict the value.
    fn is_open(&self) -> bool {
        self.rules().is_empty() && matches!(self.shape(), Shape::Anything | Shape::Opaque)
    }
}

fn fill_null(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.may_be_null()
        && let Some(default) = schema.default()
    {
        value.clone_from(default);
    }
}

fn prune(schema: &Schema, value: &mut Value, path: &mut String, told: &mut Vec<String>) {
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Fields(fields)) => map.retain(|name, value| {
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            let known = fields.declared(name).map(super::Field::schema);
            let schema = known.or_else(|| fields.others().filter(|_| fields.is_map));
            if let Some(schema) = schema {
                prune(schema, value, path, told);
            } else if !fields.keeps_unknown {
                told.push(path.clone());
            }
            path.truncate(length);
            schema.is_some() || fields.keeps_unknown
        }),
        (Value::Array(items), Shape::List(list)) => {
            for (at, item) in items.iter_mut().enumerate() {
                let length = path.len();
                path.push_str(&format!("[{at}]"));
                prune(list.items(), item, path, told);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
