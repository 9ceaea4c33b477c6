//! Validates values against the JSON schemas of this repository.
//!
//! In: a schema of the words that are used there, and a value. Out: the paths at which they differ.
//! A field that no schema names is an error, too, so that no output has undocumented fields.

use serde_json::Value;

/// Returns every difference.
pub(crate) fn misfits(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check("", schema, value, &mut found);
    found
}

fn check(path: &str, schema: &Value, value: &Value, found: &mut Vec<String>) {
    if !has_type(&schema["type"], value) {
        found.push(format!("{path}: {value} is not {}", schema["type"]));
        return;
    }
    if schema.get("enum").is_some_and(|words| !words.as_array().unwrap().contains(value)) {
        found.push(format!("{path}: {value} is not in {}", schema["enum"]));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        found.push(format!("{path}: {value} is not {}", schema["const"]));
    }
    if let Value::Object(fields) = value {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                found.push(format!("{path}.{name}: is missing"));
            }
        }
        for (name, field) in fields {
            let more = &schema["additionalProperties"];
            match schema["properties"].get(name) {
                Some(known) => check(&format!("{path}.{name}"), known, field, found),
                None if more.is_object() => check(&format!("{path}.{name}"), more, field, found),
                None if more == &Value::Bool(true) || schema.get("properties").is_none() => {}
                None => found.push(format!("{path}.{name}: is in no schema")),
            }
        }
    }
    if let Value::Array(items) = value {
        let item = |(at, item)| check(&format!("{path}[{at}]"), &schema["items"], item, found);
        items.iter().enumerate().for_each(item);
    }
}

fn has_type(types: &Value, value: &Value) -> bool {
    let fits = |type_: &str| match type_ {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("the type {other} is not known here"),
    };
    match types {
        Value::Null => true,
        Value::Array(types) => types.iter().filter_map(Value::as_str).any(fits),
        one => one.as_str().is_some_and(fits),
    }
}
