//! Decoding errors of built-in kinds.
//!
//! In: an object as the client sent it.
//! Out: the unknown fields, and the first value of a wrong type. Unknown fields are an error only
//! with strict validation; a wrong type always is.

use std::borrow::Cow;

use serde_json::Value;

use super::go_time;
use super::{Scalar, Schema, Shape};

/// Maximum number of unknown fields that are reported; the server stops there, too.
const MAX_TOLD: usize = 100;

/// Message for an invalid quantity.
const NO_AMOUNT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Schema {
    /// Returns the unknown fields in the format of the server: `unknown field "spec.foo"`.
    pub(crate) fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let mut told = Vec::new();
        walk(self, object, &mut String::new(), &mut told);
        told.truncate(MAX_TOLD);
        told
    }

    /// Returns the first value of a wrong type, with the message of Go's decoder: `json: cannot
    /// unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`.
    pub(crate) fn type_mismatch(&self, object: &Value) -> Option<String> {
        mismatch(self, "", object, &mut String::new())
    }
}

fn walk(schema: &Schema, value: &Value, path: &mut String, told: &mut Vec<String>) {
    let length = path.len();
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Fields(fields)) => {
            for (name, value) in map {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                match fields.of(name) {
                    Some(schema) => walk(schema, value, path, told),
                    None => told.push(format!("unknown field {path:?}")),
                }
                path.truncate(length);
            }
        }
        (Value::Array(items), Shape::List(list)) => {
            for (at, item) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                walk(list.items(), item, path, told);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Finds the first mismatch; `holder` is the name of the type that contains the field.
fn mismatch(schema: &Schema, holder: &str, value: &Value, path: &mut String) -> Option<String> {
    let length = path.len();
    match (schema.shape(), value) {
        (_, Value::Null) | (Shape::Anything | Shape::Opaque, _) => None,
        (Shape::Scalar(scalar), value) => of_scalar(*scalar, holder, value, path),
        (Shape::Fields(fields), Value::Object(map)) => map.iter().find_map(|(name, value)| {
            let Some(field) = fields.declared(name) else {
                // The path does not contain the keys of a map.
                return mismatch(fields.others()?, holder, value, path);
            };
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            let found = mismatch(field.schema(), schema.name(), value, path);
            path.truncate(length);
            found
        }),
        (Shape::List(list), Value::Array(items)) => {
            items.iter().find_map(|item| mismatch(list.items(), holder, item, path))
        }
        (Shape::Fields(_) | Shape::List(_), other) => {
            Some(words(kind_of(other), holder, path, &go_type(schema)))
        }
    }
}

fn of_scalar(scalar: Scalar, holder: &str, value: &Value, path: &str) -> Option<String> {
    let is_whole = value.is_i64() || value.is_u64();
    let fits = match scalar {
        Scalar::Time | Scalar::MicroTime => {
            value.as_str().is_some_and(|text| untimely(scalar, text).is_none())
        }
        Scalar::String | Scalar::Formatted | Scalar::Duration => value.is_string(),
        Scalar::Bytes => value.as_str().is_some_and(|text| illegal(text).is_none()),
        Scalar::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Scalar::Int64 => is_whole,
        Scalar::Number => value.is_number(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::Quantity => {
            value.is_number() || value.as_str().is_some_and(|text| not_an_amount(text).is_none())
        }
        Scalar::IntOrString => value.is_string() || is_whole,
    };
    if fits {
        return None;
    }
    match (scalar, value) {
        // These types have their own decoder, whose errors have no path.
        (Scalar::Quantity, value) => {
            Some(value.as_str().and_then(not_an_amount).unwrap_or(NO_AMOUNT).to_owned())
        }
        (Scalar::Time | Scalar::MicroTime, Value::String(text)) => untimely(scalar, text),
        (Scalar::Bytes, Value::String(text)) => {
            Some(format!("illegal base64 data at input byte {}", illegal(text)?))
        }
        // The message prints the number if a number is expected.
        (Scalar::Int32 | Scalar::Int64 | Scalar::Number, Value::Number(number)) => {
            Some(words(&format!("number {number}"), holder, path, scalar_type(scalar)))
        }
        (_, value) => Some(words(kind_of(value), holder, path, scalar_type(scalar))),
    }
}

fn untimely(scalar: Scalar, text: &str) -> Option<String> {
    go_time::unreadable(text, scalar == Scalar::MicroTime)
}

/// Returns the error of an invalid quantity; valid are `500m`, `1.5Gi`, `2e3`.
fn not_an_amount(text: &str) -> Option<&'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(end);
    let has_two_points = number.matches('.').count() > 1;
    if number.is_empty()
        || has_two_points
        || !unit.chars().all(|char| "eEinumkKMGTP+-0123456789".contains(char))
    {
        return Some(NO_AMOUNT);
    }
    let is_exponent = unit.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i32>().is_ok());
    let units = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    (!units.contains(&unit) && !is_exponent).then_some("unable to parse quantity's suffix")
}

/// Returns the position of the base64 error: the first illegal character, or the end of incomplete
/// text.
fn illegal(text: &str) -> Option<usize> {
    // Line breaks are skipped, also after the padding: tools wrap long text.
    let is_folded = text.contains(['\r', '\n']);
    let text: Cow<'_, str> = if is_folded { text.replace(['\r', '\n'], "").into() } else { text.into() };
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    let wrong = digits.bytes().position(|byte| !is_digit(byte));
    wrong.or_else(|| (!text.len().is_multiple_of(4)).then_some(text.len() / 4 * 4))
}

fn words(is: &str, holder: &str, path: &str, go_type: &str) -> String {
    format!("json: cannot unmarshal {is} into Go struct field {holder}.{path} of type {go_type}")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        // A value that is no text is decoded as a number.
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 => "int64",
        Scalar::Number => "float64",
        Scalar::Boolean => "bool",
        Scalar::Bytes => "[]uint8",
        Scalar::String | Scalar::Formatted | Scalar::Duration | Scalar::Time | Scalar::MicroTime => "string",
        Scalar::Quantity => "resource.Quantity",
    }
}

/// Returns the name of the Go type, as far as the table has it: named string types appear as
/// strings here.
fn go_type(schema: &Schema) -> String {
    match schema.shape() {
        Shape::Scalar(scalar) => scalar_type(*scalar).to_owned(),
        Shape::List(list) => format!("[]{}", go_type(list.items())),
        Shape::Fields(fields) => match fields.others().filter(|_| fields.is_map) {
            Some(values) => format!("map[string]{}", go_type(values)),
            None => format!("v1.{}", schema.name()),
        },
        Shape::Anything | Shape::Opaque => "interface {}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_has_one_number_and_a_known_suffix() {
        for valid in ["0", "500m", "1.5Gi", "2e3", "-1", "+0.5", "1."] {
            assert_eq!(not_an_amount(valid), None, "{valid}");
        }
        for invalid in ["", "1.2.3", "x", "1_000", "1,5", "1KB"] {
            assert_eq!(not_an_amount(invalid), Some(NO_AMOUNT), "{invalid}");
        }
        for unit in ["1mi", "1e", "1Kii"] {
            assert_eq!(not_an_amount(unit).map(|why| why.contains("regular")), Some(false), "{unit}");
        }
    }
}
