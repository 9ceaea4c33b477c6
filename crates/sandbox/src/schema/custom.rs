//! Objects of custom resources as the API server keeps them: without unknown fields, and with their defaults.
//!
//! In: an object as it was sent. Out: the same object, pruned, and then filled in.

use serde_json::{Map, Value};

use super::{Schema, Shape};

impl Schema {
    /// Removes the fields that are not known; their paths, as the server tells them: `spec.items[0].colour`.
    pub(crate) fn pruned(&self, object: &mut Value) -> Vec<String> {
        let mut told = Vec::new();
        prune(self, object, &mut String::new(), &mut told);
        told.sort();
        told
    }

    /// Takes out nulls where none may be and no default would take their place. Only what was sent as a whole is read so: a
    /// null that an apply leaves behind stays, and is refused.
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

    /// Sets what has a default and is absent. A null where none may be counts as absent.
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

    /// The default of an item or a value of a map.
    fn default(&self) -> Option<&Value> {
        self.rules().get("default").filter(|default| !default.is_null())
    }

    /// Kubernetes' own types take null for absent when they are decoded, not here.
    fn may_be_null(&self) -> bool {
        !self.is_of_definition() || self.rules().get("nullable") == Some(&Value::Bool(true)) || self.is_open()
    }

    /// True where nothing is said of a value.
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
