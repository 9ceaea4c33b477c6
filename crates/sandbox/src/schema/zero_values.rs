//! Zero values of Go types.
//!
//! In: a type.
//! Out: its zero value as Go writes it: with the fields that are always written, empty. Custom
//! resources have none.

use serde_json::{Map, Value, json};

use super::{Field, Scalar, Schema, Shape, WritePolicy};

/// Maximum nesting; few types contain each other without a pointer.
const MAX_DEPTH: usize = 16;

impl Schema {
    /// Returns a zero object of this type, with `apiVersion` and `kind` of `like`.
    pub(crate) fn zero_object(&self, like: &Value) -> Value {
        let mut zero = self.zero(MAX_DEPTH).unwrap_or_else(|| Value::Object(Map::new()));
        if let Some(fields) = zero.as_object_mut() {
            for name in ["apiVersion", "kind"] {
                fields.extend(like.get(name).map(|value| (name.to_owned(), value.clone())));
            }
        }
        zero
    }

    /// Returns the zero value; `None` if it is null.
    fn zero(&self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        match self.shape() {
            Shape::Fields(fields) if !fields.known().is_empty() => {
                if self.is_of_definition() {
                    return None;
                }
                let written = fields.known().iter().filter(|field| field.is_written_when_zero());
                let zero = |field: &Field| {
                    let zero = field.schema().zero(depth).filter(|_| !field.pointer);
                    (field.name.to_string(), zero.unwrap_or(Value::Null))
                };
                Some(Value::Object(written.map(zero).collect()))
            }
            Shape::Scalar(scalar) => match scalar {
                Scalar::String | Scalar::Formatted => Some(json!("")),
                Scalar::Int32 | Scalar::Int64 | Scalar::Number | Scalar::IntOrString => Some(json!(0)),
                Scalar::Boolean => Some(json!(false)),
                Scalar::Quantity => Some(json!("0")),
                Scalar::Duration => Some(json!("0s")),
                Scalar::Time | Scalar::MicroTime | Scalar::Bytes => None,
            },
            Shape::Fields(_) | Shape::List(_) | Shape::Anything | Shape::Opaque => None,
        }
    }
}

impl Field {
    /// Returns the value that Go writes if the field is not set.
    #[cfg(test)]
    pub(crate) fn zero_value(&self) -> Value {
        self.schema().zero(MAX_DEPTH).filter(|_| !self.pointer).unwrap_or(Value::Null)
    }

    /// True if Go writes the field even if it is not set.
    pub(super) fn is_written_when_zero(&self) -> bool {
        let is_struct = match self.schema().shape() {
            Shape::Fields(fields) => !fields.known().is_empty(),
            // In Go these are structs, so they are never empty.
            Shape::Scalar(
                Scalar::Quantity | Scalar::IntOrString | Scalar::Time | Scalar::MicroTime | Scalar::Duration,
            )
            | Shape::Opaque => true,
            Shape::Scalar(_) | Shape::List(_) | Shape::Anything => false,
        };
        match self.write_policy {
            WritePolicy::Always => true,
            WritePolicy::UnlessEmpty => is_struct && !self.pointer,
            WritePolicy::UnlessZero => false,
        }
    }
}
