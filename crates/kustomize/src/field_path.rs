//! Paths of fields as replacements and variables write them: `spec.containers.[name=web].image`.
//!
//! In: a path and an object. Out: its parts, and the single field at the path. Fields that are
//! written to are found in `field_walk.rs`, with another syntax: here `-` is the last item and
//! values are compared as text, there `*` is every item and values are regular expressions.

use serde_json::Value;

use super::error::ErrorClass;
use super::field_spec::{scalar_text, split_escaped};

/// One step from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    Key(String),
    Item(usize),
}

/// Reason why a field is not reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FieldPathError {
    pub(super) class: ErrorClass,
    pub(super) text: String,
}

impl FieldPathError {
    pub(super) fn with_class(class: ErrorClass, text: impl Into<String>) -> Self {
        Self { class, text: text.into() }
    }

    pub(super) fn new(text: impl Into<String>) -> Self {
        Self::with_class(ErrorClass::Replacement, text)
    }

    pub(super) fn unsupported(text: impl Into<String>) -> Self {
        Self::with_class(ErrorClass::Unsupported, text)
    }
}

/// Most parts of a path.
const MAX_PARTS: usize = 256;
/// Splits a path at its dots. A name that contains dots is written in brackets, which are removed;
/// a selection such as `[name=web]` keeps its brackets.
pub(super) fn path_parts(path: &str) -> Result<Vec<String>, FieldPathError> {
    let mut parts = Vec::new();
    let mut pieces = split_escaped(path, '.').into_iter();
    while let Some(mut part) = pieces.next() {
        if part.starts_with('[') && !part.ends_with(']') {
            for piece in pieces.by_ref() {
                part.push('.');
                part.push_str(&piece);
                if piece.ends_with(']') {
                    break;
                }
            }
            if !part.contains('=') {
                part = part.trim_matches(['[', ']']).to_owned();
            }
        }
        parts.push(part);
    }
    match parts.len() > MAX_PARTS {
        true => Err(FieldPathError::with_class(
            ErrorClass::Bound,
            format!("a path of more than {MAX_PARTS} parts"),
        )),
        false => Ok(parts),
    }
}

fn number(part: &str) -> Option<i64> {
    part.parse().ok()
}

pub(super) fn parse_index(part: &str) -> Option<usize> {
    usize::try_from(number(part)?).ok()
}

pub(super) fn is_selection(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

/// Splits `[field=value]` into field and value.
pub(super) fn parse_selection(part: &str) -> Result<(&str, &str), FieldPathError> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    let wrong = || FieldPathError::new(format!("{part} is not a valid selection: write [field=value]"));
    inner.split_once('=').ok_or_else(wrong)
}

pub(super) fn type_error(what: &str, part: &str) -> FieldPathError {
    FieldPathError::new(format!("{part} is applied to a value that is not a {what}"))
}

/// Returns the value at the end of a path.
pub(super) fn value_at<'v>(value: &'v mut Value, way: &[PathStep]) -> Option<&'v mut Value> {
    way.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get_mut(key),
        PathStep::Item(item) => value.get_mut(item),
    })
}

/// Returns the single field at a path, if it exists.
pub(super) fn find_field<'v>(
    value: &'v Value,
    parts: &[String],
) -> Result<Option<(Vec<PathStep>, &'v Value)>, FieldPathError> {
    let (mut way, mut value) = (Vec::new(), value);
    for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
        let Some((step, next)) = step_to(value, part)? else { return Ok(None) };
        way.push(step);
        value = next;
    }
    Ok(Some((way, value)))
}

fn step_to<'v>(value: &'v Value, part: &str) -> Result<Option<(PathStep, &'v Value)>, FieldPathError> {
    let item = |items: &'v [Value], at: usize| items.get(at).map(|item| (PathStep::Item(at), item));
    let is_of_list = number(part).is_some() || part == "-" || is_selection(part);
    match value {
        _ if part == "*" => {
            Err(FieldPathError::new("* matches several fields, and only one is allowed here"))
        }
        _ if number(part).is_some_and(|number| number < 0) => {
            Err(FieldPathError::new(format!("{part} is not a valid list index")))
        }
        Value::Null if part == "-" => Err(FieldPathError::new("the list is empty and has no last item")),
        Value::Null => Ok(None),
        Value::Array(items) if is_selection(part) => Ok(equal(items, part)?.and_then(|at| item(items, at))),
        Value::Array(items) if part == "-" => {
            let last = items.len().checked_sub(1).and_then(|at| item(items, at));
            last.map(Some).ok_or_else(|| FieldPathError::new("the list is empty and has no last item"))
        }
        Value::Array(items) if is_of_list => Ok(parse_index(part).and_then(|at| item(items, at))),
        Value::Object(map) if !is_of_list => {
            Ok(map.get(part).map(|field| (PathStep::Key(part.to_owned()), field)))
        }
        _ if is_of_list => Err(type_error("list", part)),
        _ => Err(type_error("mapping", part)),
    }
}

/// Returns the first item that matches `[field=value]` or `[=value]`, compared as text.
fn equal(items: &[Value], part: &str) -> Result<Option<usize>, FieldPathError> {
    let (field, text) = parse_selection(part)?;
    for (at, item) in items.iter().enumerate() {
        let value = match (field, item) {
            ("", item) => Some(item),
            (field, Value::Object(map)) => map.get(field),
            _ => None,
        };
        match value {
            Some(Value::Null) if ["", "~", "null"].contains(&text) => {
                return Err(FieldPathError::unsupported(format!(
                    "{part} matches a null, whose spelling is ambiguous"
                )));
            }
            Some(value) if scalar_text(value).unwrap_or_default() == text => return Ok(Some(at)),
            _ => {}
        }
    }
    Ok(None)
}
