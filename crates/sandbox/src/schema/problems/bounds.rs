//! Validates a single value: type, bounds, allowed values and required fields.
//!
//! In: the OpenAPI keywords of a place, and the value.
//! Out: problems, in the order of the server.

use serde_json::{Map, Value};

use super::{Problem, formats};
use moorline_cel::{Pattern, format_number as number_text};

/// Validates one value, without its children.
pub(super) fn of_value(rules: &Map<String, Value>, path: &str, value: &Value, found: &mut Vec<Problem>) {
    let pattern = rules.get("pattern").and_then(Value::as_str).filter(|_| value.is_string());
    of_value_with(rules, pattern.and_then(Pattern::new).as_ref(), path, value, found);
}

/// Validates one value with a compiled pattern.
pub(super) fn of_value_with(
    rules: &Map<String, Value>,
    pattern: Option<&Pattern>,
    path: &str,
    value: &Value,
    found: &mut Vec<Problem>,
) {
    let format = formats::checked(rules);
    of_type(rules, format, path, value, found);
    match value {
        Value::String(text) => {
            of_text(rules, pattern, path, text, found);
            if !format.is_empty() && !formats::fits(format, text) {
                found.push(wrong_type(path, format, text));
            }
        }
        Value::Number(number) => of_number(rules, format, path, number, found),
        Value::Array(items) => of_size(rules, path, items.len(), ["minItems", "maxItems"], "items", found),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    if let Some(allowed) =
        rules.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value))
    {
        let texts: Vec<String> = allowed
            .iter()
            .map(|value| {
                value.as_str().map_or_else(|| format!("{:?}", value.to_string()), |text| format!("{text:?}"))
            })
            .collect();
        let message = format!("Unsupported value: {}: supported values: {}", shown(value), texts.join(", "));
        found.push(Problem::new("FieldValueNotSupported", path, message));
    }
    if let Value::Object(map) = value {
        of_size(rules, path, map.len(), ["minProperties", "maxProperties"], "properties", found);
    }
}

/// Checks the required fields of a map.
pub(super) fn required(
    rules: &Map<String, Value>,
    path: &str,
    map: &Map<String, Value>,
    found: &mut Vec<Problem>,
) {
    let names =
        rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for name in names.filter(|name| !map.contains_key(*name)) {
        found.push(Problem::new(
            "FieldValueRequired",
            &format!("{path}.{name}"),
            "Required value".to_owned(),
        ));
    }
}

/// Formats a value as Go prints it in messages.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go_quoted(text),
        Value::Number(number) => go_number(number.as_f64().filter(|_| number.is_f64()), &value.to_string()),
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn go_quoted(text: &str) -> String {
    // Rust and Go escape common text in the same way.
    format!("{text:?}")
}

/// Formats a float as Go's `%v` does: with an exponent if it is very large or very small.
fn go_number(float: Option<f64>, plain: &str) -> String {
    let Some(float) = float else { return plain.to_owned() };
    number_text(float)
}

fn of_type(rules: &Map<String, Value>, format: &str, path: &str, value: &Value, found: &mut Vec<Problem>) {
    let is_int_or_string = rules.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let name = match rules.get("type").and_then(Value::as_str) {
        _ if is_int_or_string => "integer,string",
        Some(name) => name,
        None => return,
    };
    let (is, its_format) = match value {
        Value::Null if rules.get("nullable") == Some(&Value::Bool(true)) => return,
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    };
    let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let fits = name
        .split(',')
        .any(|name| name == is || (name == "integer" && is_whole) || (name == "number" && is == "integer"));
    if fits {
        return;
    }
    // The server reports the format instead of the type.
    if !format.is_empty() && !matches!(value, Value::Null | Value::String(_) | Value::Array(_)) {
        found.push(wrong_type(path, format, its_format));
    } else if format.is_empty() || value.is_null() || !formats::is_of_text(rules) {
        found.push(wrong_type(path, name, is));
    }
}

fn wrong_type(path: &str, name: &str, is: &str) -> Problem {
    let is = go_quoted(is);
    let message = format!("Invalid value: {is}: {path} in body must be of type {name}: {is}");
    Problem::new("FieldValueTypeInvalid", path, message)
}

fn of_text(
    rules: &Map<String, Value>,
    compiled: Option<&Pattern>,
    path: &str,
    text: &str,
    found: &mut Vec<Problem>,
) {
    let count = text.chars().count() as u64;
    let bound = |name: &str| rules.get(name).and_then(Value::as_u64);
    if let Some(max) = bound("maxLength").filter(|max| count > *max) {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {max} {unit}");
        return found.push(Problem::new("FieldValueTooLong", path, message));
    }
    if let Some(min) = bound("minLength").filter(|min| count < *min) {
        let should = format!("should be at least {min} chars long");
        return found.push(Problem::invalid(path, &go_quoted(text), &should));
    }
    let pattern = rules.get("pattern").and_then(Value::as_str).unwrap_or_default();
    if !pattern.is_empty() && !compiled.is_some_and(|pattern| pattern.is_match(text.as_bytes())) {
        found.push(Problem::invalid(path, &go_quoted(text), &format!("should match '{pattern}'")));
    }
}

fn of_number(
    rules: &Map<String, Value>,
    format: &str,
    path: &str,
    number: &serde_json::Number,
    found: &mut Vec<Problem>,
) {
    let Some(value) = number.as_f64() else { return };
    let is_integer = rules.get("type").is_some_and(|name| name == "integer");
    let is_out = format == "int32" && !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value);
    if is_integer && (is_out || value.fract() != 0.0) {
        let how =
            if format.is_empty() { "(default format)".to_owned() } else { format!("with format {format}") };
        found.push(Problem::of_all(&format!("Checked value must be of type integer {how} in {path}")));
    }
    let value_text = go_number(Some(value).filter(|_| number.is_f64()), &number.to_string());
    // Bounds are floats; those of integers are printed as integers.
    let told = |bound: f64| {
        if number.is_f64() { go_number(Some(bound), "") } else { format!("{}", bound.trunc()) }
    };
    let bound = |name: &str| rules.get(name).and_then(Value::as_f64);
    let says = |name: &str| rules.get(name) == Some(&Value::Bool(true));
    let mut tell = |should: String| found.push(Problem::invalid(path, &value_text, &should));
    if let Some(factor) = bound("multipleOf") {
        let times = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
        if times.fract().abs() > f64::EPSILON * times.abs().max(1.0) {
            tell(format!("should be a multiple of {}", told(factor)));
        }
    }
    if let Some(min) = bound("minimum") {
        if says("exclusiveMinimum") && value <= min {
            tell(format!("should be greater than {}", told(min)));
        } else if value < min {
            tell(format!("should be greater than or equal to {}", told(min)));
        }
    }
    if let Some(max) = bound("maximum") {
        if says("exclusiveMaximum") && value >= max {
            tell(format!("should be less than {}", told(max)));
        } else if value > max {
            tell(format!("should be less than or equal to {}", told(max)));
        }
    }
}

fn of_size(
    rules: &Map<String, Value>,
    path: &str,
    size: usize,
    names: [&str; 2],
    what: &str,
    found: &mut Vec<Problem>,
) {
    let bound = |name: &str| rules.get(name).and_then(Value::as_u64);
    let size = size as u64;
    if let Some(min) = bound(names[0]).filter(|min| size < *min) {
        found.push(Problem::invalid(path, &size.to_string(), &format!("should have at least {min} {what}")));
    }
    if let Some(max) = bound(names[1]).filter(|max| size > *max) {
        let unit = if max == 1 { "item" } else { "items" };
        let message = format!("Too many: {size}: must have at most {max} {unit}");
        found.push(Problem::new("FieldValueTooMany", path, message));
    }
}
