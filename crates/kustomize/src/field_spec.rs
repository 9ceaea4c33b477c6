//! Walks to the fields of a specification: into mappings by name, and into every item of a list.

use serde_json::{Map, Value};

use super::configuration::FieldSpec;
use super::id::Gvk;

/// Value that is created where a field is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CreatedValue {
    Nothing,
    Mapping,
    Scalar,
}

/// Change of one field.
pub(super) type Change<'a> = dyn FnMut(&mut Value) -> Result<(), String> + 'a;

/// Changes every field of the specification, if it applies to this kind of object.
pub(super) fn change_fields(
    body: &mut Value,
    spec: &FieldSpec,
    make: CreatedValue,
    change: &mut Change<'_>,
) -> Result<(), String> {
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default();
    if !Gvk::new(text("apiVersion"), text("kind")).is_selected(&spec.gvk) {
        return Ok(());
    }
    let make = if spec.create { make } else { CreatedValue::Nothing };
    let path = split_escaped(&spec.path, '/');
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    walk(body, &steps, make, change).map_err(|text| format!("the field {}: {text}", spec.path))
}

fn walk(value: &mut Value, path: &[&str], make: CreatedValue, change: &mut Change<'_>) -> Result<(), String> {
    let Some((step, rest)) = path.split_first() else { return change(value) };
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => items.iter_mut().try_for_each(|item| walk(item, path, make, change)),
        Value::Object(map) => enter(map, step, rest, make, change),
        _ => Err(format!("{step} is applied to a value that is neither a mapping nor a list")),
    }
}

fn enter(
    map: &mut Map<String, Value>,
    step: &str,
    rest: &[&str],
    make: CreatedValue,
    change: &mut Change<'_>,
) -> Result<(), String> {
    let (name, is_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
    if name.is_empty() {
        return Err("a name in it is empty".to_owned());
    }
    let fresh = || match (make, rest.is_empty()) {
        (CreatedValue::Scalar, true) => Value::Null,
        _ => Value::Object(Map::new()),
    };
    let makes = make != CreatedValue::Nothing && !is_list;
    let field = match map.get_mut(name) {
        Some(field) => field,
        None if makes => map.entry(name).or_insert_with(fresh),
        None => return Ok(()),
    };
    if field.is_null() {
        match (makes, is_list) {
            (true, _) => *field = fresh(),
            (false, true) => *field = Value::Array(Vec::new()),
            (false, false) => {}
        }
    }
    walk(field, rest, make, change)
}

/// Splits a path; a delimiter after a backslash is part of the name.
pub(super) fn split_escaped(path: &str, delimiter: char) -> Vec<String> {
    let path = path.strip_prefix(delimiter).filter(|_| path.len() > 1).unwrap_or(path);
    let mut parts: Vec<String> = Vec::new();
    for part in path.split(delimiter) {
        match parts.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Returns the text of a scalar.
pub(super) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null => Some("null".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Sets an entry of a mapping.
pub(super) fn set_entry(value: &mut Value, key: &str, text: &str) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            map.insert(key.to_owned(), text.into());
            Ok(())
        }
        _ => Err("found a value that is not a mapping".to_owned()),
    }
}

/// Sets a scalar.
pub(super) fn set_scalar(value: &mut Value, new: Value) -> Result<(), String> {
    match value {
        Value::Array(_) | Value::Object(_) => Err("found a mapping or a list, expected a string".to_owned()),
        _ => {
            *value = new;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(mut body: Value, path: &str, create: bool, make: CreatedValue) -> Value {
        let spec = FieldSpec { gvk: Gvk::default(), path: path.to_owned(), create };
        let mut set = |value: &mut Value| {
            if value.is_object() {
                return set_entry(value, "k", "v");
            }
            set_scalar(value, "new".into())
        };
        change_fields(&mut body, &spec, make, &mut set).unwrap();
        body
    }

    #[test]
    fn lists_are_walked_through_and_only_mappings_are_made() {
        let body = json!({"spec": {"containers": [{"image": "a"}, {"name": "b"}]}});
        let image = json!({"spec": {"containers": [{"image": "new"}, {"name": "b"}]}});
        assert_eq!(changed(body.clone(), "spec/containers[]/image", true, CreatedValue::Nothing), image);
        assert_eq!(changed(body, "spec/containers/image", false, CreatedValue::Scalar), image);
        let made = json!({"spec": {"template": {"metadata": {"labels": {"k": "v"}}}}});
        assert_eq!(changed(json!({}), "spec/template/metadata/labels", true, CreatedValue::Mapping), made);
        assert_eq!(changed(json!({}), "spec/labels", false, CreatedValue::Mapping), json!({}));
        assert_eq!(
            changed(json!({"spec": null}), "spec/labels", true, CreatedValue::Mapping),
            json!({"spec": {"labels": {"k": "v"}}})
        );
        assert_eq!(
            changed(json!({"list": null}), "list[]/x", true, CreatedValue::Mapping),
            json!({"list": []})
        );
    }

    #[test]
    fn a_delimiter_behind_a_backslash_belongs_to_the_name() {
        assert_eq!(split_escaped("metadata/annotations/a.b\\/c", '/'), ["metadata", "annotations", "a.b/c"]);
        assert_eq!(split_escaped("/spec", '/'), ["spec"]);
    }
}
