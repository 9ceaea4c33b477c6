//! Checks types and unknown fields at any depth.
//!
//! In: an object and its schema.
//! Out: a [`Finding`] for each value of a wrong type, and for each unknown field. The values of a
//! custom resource are validated by its OpenAPI schema, so only their field names are checked here.

use serde_json::Value;

use super::findings::Finding;
use super::path::push_key;
use crate::schema::{Fields, Scalar, Schema, Shape};

/// Returns the findings, and true if every value has the right type.
pub(super) fn findings(schema: &Schema, object: &Value, hides: bool) -> (Vec<Finding>, bool) {
    let mut walk =
        Walk { path: String::new(), found: Vec::new(), fits: true, custom: schema.is_of_definition(), hides };
    walk.value(schema, object);
    (walk.found, walk.fits)
}

struct Walk {
    path: String,
    found: Vec<Finding>,
    fits: bool,
    /// True for the schema of a definition, whose values are validated elsewhere.
    custom: bool,
    hides: bool,
}

impl Walk {
    fn value(&mut self, schema: &Schema, value: &Value) {
        match (schema.shape(), value) {
            (_, Value::Null) | (Shape::Anything | Shape::Opaque, _) => {}
            (Shape::Fields(fields), Value::Object(map)) => {
                let custom = self.custom;
                // The metadata of a custom resource has a built-in type.
                self.custom = custom && schema.is_of_definition();
                for (name, value) in map {
                    self.field(fields, name, value);
                }
                self.custom = custom;
            }
            (Shape::List(list), Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.below(&format!("[{at}]"), list.items(), item);
                }
            }
            _ if self.custom => {}
            (Shape::Scalar(scalar), value) => {
                if schema.type_mismatch(value).is_some() {
                    self.mismatch(value, expected(*scalar));
                }
            }
            (Shape::Fields(_), value) => self.mismatch(value, "a mapping"),
            (Shape::List(_), value) => self.mismatch(value, "a list"),
        }
    }

    fn field(&mut self, fields: &Fields, name: &str, value: &Value) {
        let length = self.path.len();
        push_key(&mut self.path, name);
        let declared = fields.declared(name).map(|field| field.schema());
        let others = fields.others().filter(|_| fields.is_map || !self.custom);
        match declared.or(others) {
            Some(schema) => self.value(schema, value),
            None if self.custom && fields.keeps_unknown => {}
            None => {
                let known = fields.known().iter().map(|field| &*field.name);
                self.found.push(Finding::unknown(&self.path, name, known));
            }
        }
        self.path.truncate(length);
    }

    fn below(&mut self, step: &str, schema: &Schema, value: &Value) {
        let length = self.path.len();
        self.path.push_str(step);
        self.value(schema, value);
        self.path.truncate(length);
    }

    fn mismatch(&mut self, value: &Value, expected: &str) {
        self.fits = false;
        self.found.push(Finding::mismatch(&self.path, value, expected, self.hides));
    }
}

fn expected(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String | Scalar::Formatted => "a string",
        Scalar::Int32 => "a 32-bit integer",
        Scalar::Int64 => "an integer",
        Scalar::Number => "a number",
        Scalar::Boolean => "true or false",
        Scalar::Quantity => "a quantity such as 500m or 1Gi",
        Scalar::IntOrString => "an integer or a string",
        Scalar::Time | Scalar::MicroTime => "a time such as 2026-01-02T03:04:05Z",
        Scalar::Duration => "a duration such as 1m30s",
        Scalar::Bytes => "base64",
    }
}
