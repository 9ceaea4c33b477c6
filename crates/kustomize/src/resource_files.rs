//! Reads the resources in a file: documents, flattened lists, checks.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::error::{BuildError, ErrorClass, FieldLocation};
use super::files::Files;
use super::resource::Resource;
use super::scalar_style::Spelling;
use moorline_core::grammar::with_article;
use moorline_core::object::Origin;
use moorline_core::position::SourcePosition;
use moorline_yaml::{self as yaml, Dialect, KeepGoing};

/// Most resources in one file, after lists are flattened.
const MAX_RESOURCES: usize = 100_000;

/// Returns the resources in a file.
fn resources(shown: &str, bytes: &[u8], go_on: KeepGoing<'_>) -> Result<Vec<Resource>, BuildError> {
    let documents = yaml::read_while(shown, bytes, Dialect::Kustomize, go_on);
    let documents = documents.map_err(|error| BuildError::invalid_yaml(ErrorClass::Resource, &error))?;
    if let Some(line) = line_of_schema(bytes) {
        let place = SourcePosition { file: shown.to_owned(), line, column: 1 };
        let text = "a comment refers to a schema, which would change how lists merge, and is not supported";
        return Err(BuildError::at_position(ErrorClass::Unsupported, place, text));
    }
    let name: Arc<str> = shown.into();
    let mut waiting = VecDeque::with_capacity(documents.len());
    for document in documents {
        let origin = Origin { file: name.clone(), document: document.index, line: document.line, item: None };
        let spelling = Spelling::from_document(&document);
        waiting.push_back((check_document(document.value, &origin)?, origin, spelling));
    }
    let mut found = Vec::with_capacity(waiting.len());
    // Kustomize puts list items after the other documents of the file.
    while let Some((body, origin, mut spelling)) = waiting.pop_front() {
        let Some(body) = body else { continue };
        if found.len() + waiting.len() > MAX_RESOURCES {
            return Err(resource_error(&origin, format!("the file holds more than {MAX_RESOURCES} objects")));
        }
        match take_items(body, &origin)? {
            ResourceOrItems::One(body) => {
                let mut resource = Resource::new(Value::Object(body), origin);
                resource.spelling = spelling;
                check_annotations(&resource)?;
                found.push(resource);
            }
            ResourceOrItems::Items(items) => {
                // Labels and annotations of the list itself do not apply to its items.
                spelling.make_nulls_explicit();
                spelling.forget_texts();
                for (at, item) in (0..).zip(items) {
                    let origin = Origin { item: origin.item.or(Some(at)), ..origin.clone() };
                    waiting.push_back((check_document(item, &origin)?, origin, spelling.clone()));
                }
            }
        }
    }
    Ok(found)
}

impl Files<'_> {
    /// Counts visits; an error if the build exceeds its bound, or was cancelled.
    pub(super) fn count_visits(
        &self,
        objects: usize,
        things: usize,
        at: &FieldLocation,
    ) -> Result<(), BuildError> {
        self.reserve(0, at)?;
        self.bounds.count_visits(objects, things, at)
    }

    /// Returns the resources in a file, unless the build is cancelled.
    pub(super) fn resources(&self, shown: &str, bytes: &[u8]) -> Result<Vec<Resource>, BuildError> {
        resources(shown, bytes, &|| self.is_awaited())
    }
}

/// Returns the first line with a comment that kustomize takes for a schema.
fn line_of_schema(bytes: &[u8]) -> Option<u32> {
    let says_so = |line: &str| {
        let comment = line.split_once('#').map_or("", |(_, comment)| comment.trim_start());
        comment.starts_with('{') && ["\"$openapi\"", "\"$ref\""].iter().any(|word| comment.contains(word))
    };
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains("\"$"))?;
    let at = text.lines().position(says_so)?;
    u32::try_from(at + 1).ok()
}

enum ResourceOrItems {
    One(Map<String, Value>),
    Items(Vec<Value>),
}

fn take_items(mut body: Map<String, Value>, origin: &Origin) -> Result<ResourceOrItems, BuildError> {
    let is_list = body.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match body.get_mut("items") {
        Some(items) if is_list => match items.take() {
            Value::Array(items) => Ok(ResourceOrItems::Items(items)),
            Value::Null => Ok(ResourceOrItems::Items(Vec::new())),
            _ => Err(resource_error(origin, "items is not a list")),
        },
        _ => Ok(ResourceOrItems::One(body)),
    }
}

/// Checks that a document has the fields of a resource; none for an empty document.
fn check_document(value: Value, origin: &Origin) -> Result<Option<Map<String, Value>>, BuildError> {
    let body = match value {
        Value::Null => return Ok(None),
        Value::Object(body) if body.is_empty() => return Ok(None),
        Value::Object(body) => body,
        _ => return Err(resource_error(origin, "found a value that is not a mapping, expected an object")),
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text(body.get("kind"));
    if kind.is_empty() {
        return Err(resource_error(origin, "found an object without a kind"));
    }
    let metadata = body.get("metadata");
    if metadata.is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(resource_error(origin, "metadata is not a mapping"));
    }
    let name = text(metadata.and_then(|metadata| metadata.get("name")));
    if name.is_empty() && !kind.ends_with("List") {
        return Err(resource_error(origin, format!("found {} without metadata.name", with_article(&kind))));
    }
    Ok(Some(body))
}

/// Refuses the internal annotations of kustomize.
fn check_annotations(resource: &Resource) -> Result<(), BuildError> {
    let mut keys = resource.texts("annotations").into_iter().flat_map(Map::keys);
    match keys.find(|key| key.starts_with("internal.config.kubernetes.io/")) {
        None => Ok(()),
        Some(key) => {
            let text = format!("the annotation {key} is internal to kustomize");
            Err(resource_error(&resource.origin, text).with_class(ErrorClass::Unsupported))
        }
    }
}

pub(super) fn resource_error(origin: &Origin, text: impl Into<String>) -> BuildError {
    let place = SourcePosition { file: origin.file.to_string(), line: origin.line, column: 1 };
    BuildError::at_position(ErrorClass::Resource, place, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_that_is_a_schema_is_found() {
        assert_eq!(line_of_schema(b"a: 1\nb: 2 # {\"$openapi\": \"x\"}\n"), Some(2));
        assert_eq!(line_of_schema(b"a: 1 # {\"$ref\": \"#/definitions/x\"}\n"), Some(1));
        assert_eq!(line_of_schema(b"a: '{\"$ref\": 1}' # words\n# $kpt-set: x\n"), None);
    }
}
