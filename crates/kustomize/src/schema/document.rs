//! Reads the OpenAPI document of a kustomization.
//!
//! In: the file of `openapi.path`. Out: [`Schemas`], or the part that cannot be followed. Parts
//! that a merge ignores are ignored here too.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::{Schemas, Scope, Shape, key};

const KINDS: &str = "x-kubernetes-group-version-kind";
const STRATEGY: &str = "x-kubernetes-patch-strategy";
const MERGE_KEY: &str = "x-kubernetes-patch-merge-key";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const DEFINITIONS: &str = "#/definitions/";

/// Reason why an OpenAPI document cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenApiError {
    /// A value of the wrong type.
    #[error("in the OpenAPI document, {place} must be {expected}")]
    WrongType {
        /// Path of the value.
        place: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A reference to something other than a definition.
    #[error(
        "in the OpenAPI document, {place} refers to {target:?}; only references to {DEFINITIONS}NAME are supported"
    )]
    Reference {
        /// Path of the reference.
        place: String,
        /// Target of the reference.
        target: String,
    },
}

/// Reads an OpenAPI document.
pub(super) fn read(document: &Value) -> Result<Schemas, OpenApiError> {
    let root = map(document, "the document")?;
    let none = Map::new();
    let definitions = optional(root, "definitions", "definitions")?.unwrap_or(&none);
    let places = definitions.keys().map(String::as_str).zip(0..).collect();
    let reader = DocumentReader { places };
    let mut schemas = Schemas::default();
    for ((name, definition), place) in definitions.iter().zip(0..) {
        let at = format!("definitions.{name}");
        let body = map(definition, &at)?;
        schemas.definitions.push(reader.shape(body, &at)?);
        for kind in body.get(KINDS).and_then(Value::as_array).into_iter().flatten() {
            schemas.kinds.extend(kind_of(kind, &at)?.map(|kind| (kind, Shape::Defined(place))));
        }
    }
    for (path, item) in optional(root, "paths", "paths")?.unwrap_or(&none) {
        let Some(kind) = item.get("get").and_then(|get| get.get(KINDS)) else { continue };
        let Some(kind) = kind_of(kind, &format!("paths.{path}"))? else { continue };
        match path.contains("namespaces/{namespace}") {
            true => schemas.scopes.insert(kind, Scope::Namespaced),
            false => Some(*schemas.scopes.entry(kind).or_insert(Scope::Cluster)),
        };
    }
    Ok(schemas)
}

/// Returns the key of a kind; none for an invalid one.
fn kind_of(kind: &Value, place: &str) -> Result<Option<String>, OpenApiError> {
    let Value::Object(fields) = kind else { return Ok(None) };
    let word = |name| match fields.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        _ => Err(OpenApiError::WrongType { place: format!("{place}.{KINDS}.{name}"), expected: "a string" }),
    };
    let (version, kind) = (word("version")?, word("kind")?);
    Ok(Some(match fields.get("group").and_then(Value::as_str) {
        Some(group) if !group.is_empty() => key(&format!("{group}/{version}"), kind),
        _ => key(version, kind),
    }))
}

/// Index of each definition.
struct DocumentReader<'a> {
    places: HashMap<&'a str, usize>,
}

impl DocumentReader<'_> {
    /// Reads a schema. The recursion is bounded by the nesting of the document, which is bounded.
    fn shape(&self, schema: &Map<String, Value>, place: &str) -> Result<Shape, OpenApiError> {
        if let Some(target) = schema.get("$ref") {
            return self.reference(target, place);
        }
        if let Some(strategy) = schema.get(STRATEGY) {
            let expected =
                OpenApiError::WrongType { place: format!("{place}.{STRATEGY}"), expected: "a string" };
            if strategy.as_str().ok_or(expected)?.split(',').any(|word| word == "merge") {
                return self.list(schema, place);
            }
        }
        let mut fields = BTreeMap::new();
        for (name, field) in
            optional(schema, "properties", &format!("{place}.properties"))?.into_iter().flatten()
        {
            let at = format!("{place}.properties.{name}");
            fields.insert(name.clone(), self.shape(map(field, &at)?, &at)?);
        }
        let others = match schema.get("additionalProperties") {
            Some(Value::Object(others)) => {
                Some(Box::new(self.shape(others, &format!("{place}.additionalProperties"))?))
            }
            _ => None,
        };
        Ok(match fields.is_empty() && others.is_none() {
            true => Shape::Leaf,
            false => Shape::Map { fields, others },
        })
    }

    fn list(&self, schema: &Map<String, Value>, place: &str) -> Result<Shape, OpenApiError> {
        let wrong =
            |name: &str, expected| OpenApiError::WrongType { place: format!("{place}.{name}"), expected };
        let keys = match (schema.get(MAP_KEYS), schema.get(MERGE_KEY)) {
            (Some(keys), _) => {
                let keys = keys.as_array().into_iter().flatten().map(|key| key.as_str().map(str::to_owned));
                keys.collect::<Option<Vec<_>>>().ok_or_else(|| wrong(MAP_KEYS, "a list of strings"))?
            }
            (None, Some(Value::String(key))) => vec![key.clone()],
            (None, Some(_)) => return Err(wrong(MERGE_KEY, "a string")),
            (None, None) => Vec::new(),
        };
        let is_array = match schema.get("type") {
            Some(Value::String(word)) => word == "array",
            Some(Value::Array(words)) => matches!(&words[..], [Value::String(word)] if word == "array"),
            _ => false,
        };
        let items = match schema.get("items").filter(|_| is_array) {
            Some(items) => {
                let place = format!("{place}.items");
                Some(Box::new(self.shape(map(items, &place)?, &place)?))
            }
            None => None,
        };
        Ok(Shape::List { keys, items })
    }

    fn reference(&self, target: &Value, place: &str) -> Result<Shape, OpenApiError> {
        let place = || format!("{place}.$ref");
        let Value::String(target) = target else {
            return Err(OpenApiError::WrongType { place: place(), expected: "a string" });
        };
        let name = target.strip_prefix(DEFINITIONS).filter(|name| !name.contains(['/', '%']));
        let name = name.ok_or_else(|| OpenApiError::Reference { place: place(), target: target.clone() })?;
        let name = name.replace("~1", "/").replace("~0", "~");
        Ok(self.places.get(name.as_str()).map_or(Shape::Unknown, |place| Shape::Defined(*place)))
    }
}

fn map<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, OpenApiError> {
    value.as_object().ok_or_else(|| OpenApiError::WrongType { place: place.to_owned(), expected: "a map" })
}

/// Returns an optional map.
fn optional<'a>(
    parent: &'a Map<String, Value>,
    name: &str,
    place: &str,
) -> Result<Option<&'a Map<String, Value>>, OpenApiError> {
    parent.get(name).filter(|value| !value.is_null()).map(|value| map(value, place)).transpose()
}
