//! Substitutes variables in manifests: `${name}` becomes a value, with the operators of shells.
//!
//! In: the body of an object as it was built, and [`Variables`]. Out: the body with the values, and
//! whether one of them comes from a Secret; or every problem with its position. Substitution works
//! on parsed values and not on the text of a file, so a value can never add fields beside its own.

mod error;
mod evaluate;
mod expression;
mod field_rules;
mod pattern;
#[cfg(test)]
mod tests;
mod variables;

use serde_json::{Map, Value};

pub use error::VariableError;
pub use variables::{Variables, Visibility, variable_rule};

use super::documents::{DIALECT, MAX_PROBLEMS_PER_FILE, Manifest, position_in};
use super::problem::Problem;
use evaluate::{Evaluation, MAX_BYTES};
use expression::Template;
use moorline_api::SUBSTITUTE_SWITCHES;
use moorline_core::tree::MemoryLimit;
use moorline_yaml::{self as yaml, Step};

/// A manifest after substitution.
#[derive(Debug)]
pub(super) struct Substituted {
    pub(super) manifest: Manifest,
    /// Contains a value from a Secret.
    pub(super) contains_secret: bool,
}

/// Substitutes the variables of a manifest, unless its annotation disables that.
pub(super) fn substitute(
    manifest: Manifest,
    source: (&[u8], &MemoryLimit),
    variables: &Variables,
) -> Result<Substituted, Vec<Problem>> {
    let Manifest { body, origin } = manifest;
    if is_left_out(&body) || !body.iter().any(|(key, value)| key.contains('$') || has_any(value)) {
        return Ok(Substituted { manifest: Manifest { body, origin }, contains_secret: false });
    }
    let called = display_name(&body);
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let evaluation = Evaluation { variables, remaining_bytes: MAX_BYTES };
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let mut walk =
        ObjectWalk { group, kind: &kind, evaluation, path: Vec::new(), faults: Vec::new(), secret: false };
    let body = walk.map(body);
    let (secret, faults) = (walk.secret, walk.faults);
    if faults.is_empty() {
        return Ok(Substituted { manifest: Manifest { body, origin }, contains_secret: secret });
    }
    let problem = |(path, fault): (Vec<OwnedStep>, VariableError)| {
        let steps: Vec<Step<'_>> = path.iter().map(OwnedStep::step).collect();
        let place = position_in(source, &origin, &steps);
        Problem::Substitution {
            place,
            field: display_path(&steps),
            object: called.clone(),
            fault: Box::new(fault),
        }
    };
    Err(faults.into_iter().map(problem).collect())
}

/// True if an annotation or label of the object disables substitution.
fn is_left_out(body: &Map<String, Value>) -> bool {
    let Some(metadata) = body.get("metadata") else { return false };
    let said = |field: &str, key: &str| metadata.get(field).and_then(|texts| texts.get(key));
    let places = ["annotations", "labels"].into_iter();
    let mut said = places.flat_map(|field| SUBSTITUTE_SWITCHES.map(|key| said(field, key)));
    said.any(|text| text.and_then(Value::as_str) == Some("disabled"))
}

/// True if the value may contain a variable.
fn has_any(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('$'),
        Value::Array(items) => items.iter().any(has_any),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains('$') || has_any(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns kind and name of the object as they are written, for messages.
fn display_name(body: &Map<String, Value>) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = |field: &str| text(body.get("metadata").and_then(|metadata| metadata.get(field)));
    let (kind, namespace, name) = (text(body.get("kind")), metadata("namespace"), metadata("name"));
    match &*namespace {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// One step of the path to a field, owned.
#[derive(Debug, Clone)]
enum OwnedStep {
    Key(String),
    Item(usize),
}

impl OwnedStep {
    fn step(&self) -> Step<'_> {
        match self {
            Self::Key(key) => Step::Key(key),
            Self::Item(at) => Step::Item(*at),
        }
    }
}

/// State of the walk through an object.
struct ObjectWalk<'a> {
    group: &'a str,
    kind: &'a str,
    evaluation: Evaluation<'a>,
    path: Vec<OwnedStep>,
    faults: Vec<(Vec<OwnedStep>, VariableError)>,
    secret: bool,
}

impl ObjectWalk<'_> {
    fn map(&mut self, map: Map<String, Value>) -> Map<String, Value> {
        let mut made = Map::new();
        for (key, value) in map {
            // Fields beyond the limit are left out here; the object is refused anyway.
            if self.faults.len() >= MAX_PROBLEMS_PER_FILE {
                break;
            }
            self.path.push(OwnedStep::Key(key.clone()));
            let key = if key.contains('$') { self.key(key) } else { key };
            let value = self.value(value);
            if made.insert(key, value).is_some() {
                self.fails(VariableError::KeyTwice);
            }
            self.path.pop();
        }
        made
    }

    fn value(&mut self, value: Value) -> Value {
        if self.faults.len() >= MAX_PROBLEMS_PER_FILE {
            return value;
        }
        match value {
            Value::String(text) if text.contains('$') => self.text(text),
            Value::Array(items) => {
                let mut made = Vec::with_capacity(items.len());
                for (at, item) in items.into_iter().enumerate() {
                    self.path.push(OwnedStep::Item(at));
                    made.push(self.value(item));
                    self.path.pop();
                }
                Value::Array(made)
            }
            Value::Object(map) => Value::Object(self.map(map)),
            value => value,
        }
    }

    fn key(&mut self, key: String) -> String {
        let found = Template::read(&key).and_then(|template| self.evaluation.evaluate(&template));
        match found {
            Ok(found) if found.contains_secret => self.fails(VariableError::SecretInKey),
            Ok(found) => return found.text,
            Err(fault) => self.fails(fault),
        }
        key
    }

    fn text(&mut self, text: String) -> Value {
        match self.substitute_text(&text) {
            Ok(value) => value,
            Err(fault) => {
                self.fails(fault);
                Value::String(text)
            }
        }
    }

    fn substitute_text(&mut self, text: &str) -> Result<Value, VariableError> {
        let template = Template::read(text)?;
        let made = self.evaluation.evaluate(&template)?;
        let steps: Vec<Step<'_>> = self.path.iter().map(OwnedStep::step).collect();
        if made.contains_secret && crate::substitute::field_rules::is_name(self.group, self.kind, &steps) {
            return Err(VariableError::SecretInName);
        }
        self.secret |= made.contains_secret;
        if !template.has_expressions() {
            return Ok(Value::String(made.text));
        }
        let is_whole = template.is_one_expression();
        let is_text = crate::substitute::field_rules::is_text(self.group, self.kind, &steps);
        read(made.text, is_whole, is_text, made.contains_secret)
    }

    fn fails(&mut self, fault: VariableError) {
        self.faults.push((self.path.clone(), fault));
    }
}

/// Returns the value of a text after substitution: in most fields `3` becomes a number and `true` a
/// boolean. A quoted text stays text, and a field that is exactly one variable may become a list or
/// a mapping.
fn read(text: String, is_whole: bool, is_text: bool, secret: bool) -> Result<Value, VariableError> {
    let quoted = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if is_whole && (quoted('"') || quoted('\'')) {
        return Ok(parse_whole_value(&text).filter(Value::is_string).unwrap_or(Value::String(text)));
    }
    if is_text {
        return Ok(Value::String(text));
    }
    if is_whole && !secret && text.starts_with(['[', '{']) {
        return parse_whole_value(&text).ok_or(VariableError::Broken);
    }
    match yaml::resolve_scalar(&text, None, DIALECT) {
        Some(value) if !value.is_string() => Ok(value),
        Some(_) | None => Ok(Value::String(text)),
    }
}

/// Parses a text as the value of a field.
fn parse_whole_value(text: &str) -> Option<Value> {
    // Parsed inside a mapping, because a text that begins with a brace would be read as JSON.
    let documents = yaml::read("", format!("field: {text}").as_bytes(), DIALECT).ok()?;
    match <[_; 1]>::try_from(documents) {
        Ok([document]) => match document.value {
            Value::Object(mut map) if map.len() == 1 => map.remove("field"),
            _ => None,
        },
        Err(_) => None,
    }
}

/// Formats a path for messages.
fn display_path(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if key.contains(['.', '/', '[']) => text.push_str(&format!("[{key:?}]")),
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.push_str(&format!(".{key}")),
            Step::Item(at) => text.push_str(&format!("[{at}]")),
        }
    }
    text
}
