//! Selects the resources for a patch or replacement.
//!
//! In: a selector as written. Out: whether it matches a resource, by its current or its first id.

use regex::bytes::{Regex, RegexBuilder};

use super::error::{BuildError, ErrorClass, FieldLocation};
use super::node::{Fields, Node};
use super::resource::Resource;
use moorline_core::name_rules::{label_value, qualified_name};

/// A selector as written.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    pub(super) at: FieldLocation,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) annotations: String,
    pub(super) labels: String,
}

/// Names of its fields.
pub(super) const FIELDS: [&str; 8] =
    ["group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector", "apiVersion"];

/// Most bytes of a compiled expression.
const MAX_EXPRESSION: usize = 1 << 20;

/// Reads a selector.
pub(super) fn selector(node: &Node<'_>) -> Result<Selector, BuildError> {
    read_selector(&node.fields(&FIELDS[..7])?)
}

/// Reads a selector from fields that may have others beside them.
pub(super) fn read_selector(fields: &Fields<'_>) -> Result<Selector, BuildError> {
    Ok(Selector {
        at: fields.at.clone(),
        group: fields.text("group")?,
        version: fields.text("version")?,
        kind: fields.text("kind")?,
        name: fields.text("name")?,
        namespace: fields.text("namespace")?,
        annotations: fields.text("annotationSelector")?,
        labels: fields.text("labelSelector")?,
    })
}

/// A compiled selector.
#[derive(Debug)]
pub(super) struct Selection {
    group: Option<ByteRegex>,
    version: Option<ByteRegex>,
    kind: Option<ByteRegex>,
    name: Option<ByteRegex>,
    namespace: Option<ByteRegex>,
    annotations: Vec<Requirement>,
    labels: Vec<Requirement>,
}

impl Selector {
    pub(super) fn selection(&self) -> Result<Selection, BuildError> {
        let expression =
            |text: &str| full_match(text).map(Some).map_err(|error| self.at.error(ErrorClass::Field, error));
        let optional = |text: &str| if text.is_empty() { Ok(None) } else { expression(text) };
        let requirements = |text: &str| {
            let error =
                || self.at.error(ErrorClass::Field, format!("{text:?} selects by no label or annotation"));
            requirements(text).ok_or_else(error)
        };
        Ok(Selection {
            group: optional(&self.group)?,
            version: optional(&self.version)?,
            kind: optional(&self.kind)?,
            name: optional(&self.name)?,
            namespace: optional(&self.namespace)?,
            annotations: requirements(self.of_people(&self.annotations)?)?,
            labels: requirements(&self.labels)?,
        })
    }
}

impl Selector {
    /// Refuses selectors on the internal annotations of kustomize, which do not exist here.
    fn of_people<'a>(&self, annotations: &'a str) -> Result<&'a str, BuildError> {
        match annotations.contains("internal.config.kubernetes.io") {
            true => Err(self.at.error(
                ErrorClass::Unsupported,
                "selectors on internal annotations of kustomize are not supported",
            )),
            false => Ok(annotations),
        }
    }
}

impl Selection {
    pub(super) fn matches(&self, resource: &Resource) -> bool {
        let fits = |expression: &Option<ByteRegex>, text: &str| {
            expression.as_ref().is_none_or(|expression| expression.is_match(text))
        };
        let (first, now) = (resource.first_id(), resource.id());
        (fits(&self.namespace, first.namespace()) || fits(&self.namespace, now.namespace()))
            && (fits(&self.name, &first.name) || fits(&self.name, &now.name))
            && self.matches_kind(&now.gvk)
            && self.matches_texts(resource)
    }

    pub(super) fn matches_kind(&self, gvk: &super::id::Gvk) -> bool {
        let fits = |expression: &Option<ByteRegex>, text: &str| {
            expression.as_ref().is_none_or(|expression| expression.is_match(text))
        };
        fits(&self.group, &gvk.group) && fits(&self.version, &gvk.version) && fits(&self.kind, &gvk.kind)
    }

    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|expression| expression.is_match(name))
    }

    pub(super) fn matches_namespace(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|expression| expression.is_match(namespace))
    }

    pub(super) fn matches_texts(&self, resource: &Resource) -> bool {
        meets(&self.labels, resource, "labels") && meets(&self.annotations, resource, "annotations")
    }
}

/// Compiles an expression that must match a whole text.
pub(super) fn full_match(text: &str) -> Result<ByteRegex, String> {
    expression(&format!("^(?:{text})$"))
        .map_err(|()| format!("{text:?} is not a valid regular expression, or it is too large"))
}

/// A regular expression over bytes, so that `\d` and `(?i)` mean the same as in kustomize and need
/// no tables.
#[derive(Debug)]
pub(super) struct ByteRegex(Regex);

impl ByteRegex {
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes())
    }
}

pub(super) fn expression(text: &str) -> Result<ByteRegex, ()> {
    if !text.is_ascii() || has_sets(text) {
        return Err(());
    }
    let mut builder = RegexBuilder::new(text);
    let built = builder.unicode(false).size_limit(MAX_EXPRESSION).dfa_size_limit(MAX_EXPRESSION).build();
    built.map(ByteRegex).map_err(|_| ())
}

/// True if there is a class such as `[a--b]` or `[[a]b]`, which kustomize reads differently.
fn has_sets(text: &str) -> bool {
    let (mut rest, mut is_class) = (text, false);
    while let Some(next) = rest.chars().next() {
        let differs = ["&&", "--", "~~"].iter().any(|sign| rest.starts_with(sign));
        match next {
            '\\' => rest = rest.get(1..).unwrap_or_default(),
            _ if is_class && differs => return true,
            '[' if is_class => match rest.strip_prefix("[:").and_then(|rest| rest.find(":]")) {
                Some(end) => rest = rest.get(end + 3..).unwrap_or_default(),
                None => return true,
            },
            '[' => is_class = true,
            ']' => is_class = false,
            _ => {}
        }
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    false
}

/// One condition of a label selector.
#[derive(Debug)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Lacks(String),
    Greater(String, i64),
    Less(String, i64),
}

fn meets(requirements: &[Requirement], resource: &Resource, field: &str) -> bool {
    let get = |key: &str| resource.text_of(field, key);
    let number = |key: &str| get(key).and_then(|text| text.parse::<i64>().ok());
    requirements.iter().all(|requirement| match requirement {
        Requirement::In(key, values) => get(key).is_some_and(|text| values.contains(&text)),
        Requirement::NotIn(key, values) => get(key).is_none_or(|text| !values.contains(&text)),
        Requirement::Exists(key) => get(key).is_some(),
        Requirement::Lacks(key) => get(key).is_none(),
        Requirement::Greater(key, than) => number(key).is_some_and(|value| value > *than),
        Requirement::Less(key, than) => number(key).is_some_and(|value| value < *than),
    })
}

/// Parses the conditions of a text such as `a=b,c!=d,e in (f, g),!h`.
fn requirements(text: &str) -> Option<Vec<Requirement>> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    parts.into_iter().map(|part| requirement(part.trim())).collect()
}

fn requirement(part: &str) -> Option<Requirement> {
    let key = |text: &str| {
        let text = text.trim();
        qualified_name(text).is_none().then(|| text.to_owned())
    };
    let value = |text: &str| {
        let text = text.trim();
        label_value(text).is_none().then(|| text.to_owned())
    };
    if let Some(rest) = part.strip_prefix('!') {
        return Some(Requirement::Lacks(key(rest)?));
    }
    if let Some((left, right)) = part.split_once("!=") {
        return Some(Requirement::NotIn(key(left)?, vec![value(right)?]));
    }
    if let Some((left, right)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(key(left)?, vec![value(right)?]));
    }
    if let Some((left, right)) = part.split_once('>') {
        return Some(Requirement::Greater(key(left)?, value(right)?.parse().ok()?));
    }
    if let Some((left, right)) = part.split_once('<') {
        return Some(Requirement::Less(key(left)?, value(right)?.parse().ok()?));
    }
    let Some((left, list)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) else {
        return Some(Requirement::Exists(key(part)?));
    };
    let values = list.split(',').map(value).collect::<Option<Vec<_>>>()?;
    let (left, word) = left.trim().rsplit_once(char::is_whitespace)?;
    match word {
        "in" => Some(Requirement::In(key(left)?, values)),
        "notin" => Some(Requirement::NotIn(key(left)?, values)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
