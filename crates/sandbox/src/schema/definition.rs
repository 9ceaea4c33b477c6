//! Reads the schema of a CustomResourceDefinition.
//!
//! In: the `openAPIV3Schema` of a version.
//! Out: a [`Schema`]. By default maps are granular and lists atomic. Restrictions of values are
//! kept in their original form, for validation.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::{Field, Fields, Link, List, ListType, Node, Scalar, Schema, Shape, WritePolicy, table};

/// Maximum depth; values below it are untyped. Real definitions have a few levels.
const MAX_DEPTH: usize = 100;

/// Keywords that are not kept as rules: they are part of the tree, or only documentation.
const NOT_RULES: [&str; 8] = [
    "properties",
    "items",
    "additionalProperties",
    "description",
    "title",
    "example",
    "externalDocs",
    "$schema",
];

/// Reads the schema for the objects of a version.
pub(super) fn read(schema: &Value) -> Schema {
    let empty = Map::new();
    let schema = schema.as_object().unwrap_or(&empty);
    let shape = Shape::Fields(fields(schema, true, false, MAX_DEPTH));
    with_rules(shape, schema)
}

fn node(schema: &Map<String, Value>, preserved: bool, depth: usize) -> Schema {
    let Some(depth) = depth.checked_sub(1) else { return Schema::new(Shape::Anything) };
    let preserved = preserved || says(schema, "x-kubernetes-preserve-unknown-fields");
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let shape = match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        _ if says(schema, "x-kubernetes-int-or-string") => Shape::Scalar(Scalar::IntOrString),
        "string" => Shape::Scalar(match format {
            "" => Scalar::String,
            "byte" => Scalar::Bytes,
            _ => Scalar::Formatted,
        }),
        "integer" => Shape::Scalar(if format == "int32" { Scalar::Int32 } else { Scalar::Int64 }),
        "number" => Shape::Scalar(Scalar::Number),
        "boolean" => Shape::Scalar(Scalar::Boolean),
        "array" => Shape::List(list(schema, preserved, depth)),
        "" if !schema.contains_key("properties") => Shape::Anything,
        _ => Shape::Fields(fields(schema, false, preserved, depth)),
    };
    with_rules(shape, schema)
}

fn with_rules(shape: Shape, schema: &Map<String, Value>) -> Schema {
    let rules = schema.iter().filter(|(name, _)| !NOT_RULES.contains(&name.as_str()));
    let rules = rules.map(|(name, rule)| (name.clone(), rule.clone())).collect();
    Schema(Arc::new(Node { shape, name: "".into(), rules, pattern: OnceLock::new() }))
}

fn list(schema: &Map<String, Value>, preserved: bool, depth: usize) -> List {
    let items = schema.get("items").and_then(Value::as_object);
    let items = items.map_or_else(|| Schema::new(Shape::Opaque), |items| node(items, preserved, depth));
    let merge = match schema.get("x-kubernetes-list-type").and_then(Value::as_str).unwrap_or_default() {
        "set" => ListType::Set,
        "map" => ListType::Keyed(texts(schema, "x-kubernetes-list-map-keys").map(Box::from).collect()),
        _ => ListType::Atomic,
    };
    List { items: Link::Own(items), merge }
}

fn fields(schema: &Map<String, Value>, is_object: bool, preserved: bool, depth: usize) -> Fields {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_required = |name: &str| texts(schema, "required").any(|required| required == name);
    let declared = properties.into_iter().flatten();
    let mut known: Vec<Field> = declared
        .filter_map(|(name, property)| {
            let property = property.as_object()?;
            let schema = Link::Own(node(property, preserved, depth));
            let default = property.get("default").filter(|default| !default.is_null()).cloned();
            Some(field(name, schema, is_required(name), default))
        })
        .collect();
    let is_whole = is_object || says(schema, "x-kubernetes-embedded-resource");
    if is_whole {
        known.retain(|field| !["apiVersion", "kind", "metadata"].contains(&&*field.name));
        let text = || Link::Own(Schema::new(Shape::Scalar(Scalar::String)));
        known.push(field("apiVersion", text(), true, None));
        known.push(field("kind", text(), true, None));
        known.push(field("metadata", Link::Own(table::metadata().clone()), is_required("metadata"), None));
    }
    known.sort_by(|one, other| one.name.cmp(&other.name));
    let keeps_unknown = says(schema, "x-kubernetes-preserve-unknown-fields");
    let anything = || Link::Own(Schema::new(Shape::Anything));
    let values = schema.get("additionalProperties");
    let others = match values {
        Some(Value::Object(values)) => Some(Link::Own(node(values, preserved, depth))),
        Some(Value::Bool(true)) => Some(anything()),
        Some(_) => None,
        None if preserved || keeps_unknown || known.is_empty() => Some(anything()),
        None => None,
    };
    Fields {
        known,
        others,
        atomic: schema.get("x-kubernetes-map-type").is_some_and(|how| how == "atomic"),
        is_map: values.is_some_and(|values| *values != false),
        keeps_unknown,
    }
}

fn field(name: &str, link: Link, required: bool, default: Option<Value>) -> Field {
    Field {
        name: name.into(),
        link,
        required,
        pointer: true,
        write_policy: WritePolicy::UnlessEmpty,
        default,
        patch: None,
    }
}

fn says(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn texts<'a>(schema: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a str> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
