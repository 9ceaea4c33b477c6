//! Reads the resources in a file: documents, flattened lists, checks.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fault::{Class, Refusal};
use super::files::Files;
use super::resource::Resource;
use super::spelling::Spelling;
use crate::problem::Place;
use moorline_core::grammar::with_article;
use moorline_core::object::Origin;
use moorline_yaml::{self as yaml, Dialect, GoOn};

/// Most resources in one file, after lists are flattened.
const MAX_RESOURCES: usize = 100_000;

/// Returns the resources in a file.
fn resources(shown: &str, bytes: &[u8], go_on: GoOn<'_>) -> Result<Vec<Resource>, Refusal> {
    let documents = yaml::read_while(shown, bytes, Dialect::Kustomize, go_on);
    let documents = documents.map_err(|error| Refusal::unreadable(Class::Resource, &error))?;
    if let Some(line) = line_of_schema(bytes) {
        let place = Place { file: shown.to_owned(), line, column: 1 };
        let text = "a comment refers to a schema, which would change how lists merge, and is not supported";
        return Err(Refusal::placed(Class::Unsupported, place, text));
    }
    let name: Arc<str> = shown.into();
    let mut waiting = VecDeque::with_capacity(documents.len());
    for document in documents {
        let origin = Origin { file: name.clone(), document: document.index, line: document.line, item: None };
        let spelling = Spelling::of(&document);
        waiting.push_back((checked(document.value, &origin)?, origin, spelling));
    }
    let mut found = Vec::with_capacity(waiting.len());
    // Kustomize puts list items after the other documents of the file.
    while let Some((body, origin, mut spelling)) = waiting.pop_front() {
        let Some(body) = body else { continue };
        if found.len() + waiting.len() > MAX_RESOURCES {
            return Err(refuse(&origin, format!("the file holds more than {MAX_RESOURCES} objects")));
        }
        match take_items(body, &origin)? {
            Taken::One(body) => {
                let mut resource = Resource::new(Value::Object(body), origin);
                resource.spelling = spelling;
                check_annotations(&resource)?;
                found.push(resource);
            }
            Taken::Items(items) => {
                // Labels and annotations of the list itself do not apply to its items.
                spelling.writes_nulls();
                spelling.forget_texts();
                for (at, item) in (0..).zip(items) {
                    let origin = Origin { item: origin.item.or(Some(at)), ..origin.clone() };
                    waiting.push_back((checked(item, &origin)?, origin, spelling.clone()));
                }
            }
        }
    }
    Ok(found)
}

impl Files<'_> {
    /// Returns the resources in a file, unless the build is cancelled.
    pub(super) fn resources(&self, shown: &str, bytes: &[u8]) -> Result<Vec<Resource>, Refusal> {
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

enum Taken {
    One(Map<String, Value>),
    Items(Vec<Value>),
}

fn take_items(mut body: Map<String, Value>, origin: &Origin) -> Result<Taken, Refusal> {
    let is_list = body.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match body.get_mut("items") {
        Some(items) if is_list => match items.take() {
            Value::Array(items) => Ok(Taken::Items(items)),
            Value::Null => Ok(Taken::Items(Vec::new())),
            _ => Err(refuse(origin, "the items of a list are no list")),
        },
        _ => Ok(Taken::One(body)),
    }
}

/// Checks that a document has the fields of a resource; none for an empty document.
fn checked(value: Value, origin: &Origin) -> Result<Option<Map<String, Value>>, Refusal> {
    let body = match value {
        Value::Null => return Ok(None),
        Value::Object(body) if body.is_empty() => return Ok(None),
        Value::Object(body) => body,
        _ => return Err(refuse(origin, "found something that is no mapping, expected an object")),
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text(body.get("kind"));
    if kind.is_empty() {
        return Err(refuse(origin, "found an object without a kind"));
    }
    let metadata = body.get("metadata");
    if metadata.is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(refuse(origin, "the metadata of an object are no mapping"));
    }
    let name = text(metadata.and_then(|metadata| metadata.get("name")));
    if name.is_empty() && !kind.ends_with("List") {
        return Err(refuse(origin, format!("found {} without metadata.name", with_article(&kind))));
    }
    Ok(Some(body))
}

/// Refuses the internal annotations of kustomize.
fn check_annotations(resource: &Resource) -> Result<(), Refusal> {
    let mut keys = resource.texts("annotations").into_iter().flat_map(Map::keys);
    match keys.find(|key| key.starts_with("internal.config.kubernetes.io/")) {
        None => Ok(()),
        Some(key) => {
            let text = format!("the annotation {key} is one that the tool makes for itself");
            Err(refuse(&resource.origin, text).of(Class::Unsupported))
        }
    }
}

pub(super) fn refuse(origin: &Origin, text: impl Into<String>) -> Refusal {
    let place = Place { file: origin.file.to_string(), line: origin.line, column: 1 };
    Refusal::placed(Class::Resource, place, text)
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
