//! Marks in the place of the placeholders of a template.
//!
//! In: a template with placeholders. Out: the same with a mark for each, and later, for the Sync
//! that it became, the fields with marks as expressions. A mark is a plain word, so that a
//! conversion carries it as it carries any value.

use serde_json::{Value, json};

use super::FieldRemark;
use super::set_placeholders::{ParameterNames, Piece, expression};
use super::sync_builder::is_set;
use crate::sync_set::is_settable;

/// Start and end of a mark.
const MARK: (&str, &str) = ("moorlineparam", "end");

/// Starts of a text that say what it is: they stay in front of its mark.
const STARTS: [&str; 6] = ["./", "/", "https://", "http://", "ssh://", "oci://"];

/// A text of the template that has placeholders.
struct MarkedText {
    /// The field of the ApplicationSet.
    field: String,
    /// The text as it is written.
    written: String,
    pieces: Vec<Piece>,
}

/// The marks of a template.
pub(super) struct TemplateMarks<'a> {
    names: &'a ParameterNames,
    texts: Vec<MarkedText>,
    pub(super) lost: Vec<FieldRemark>,
    pub(super) refused: Vec<FieldRemark>,
}

impl<'a> TemplateMarks<'a> {
    pub(super) fn new(names: &'a ParameterNames) -> Self {
        Self { names, texts: Vec::new(), lost: Vec::new(), refused: Vec::new() }
    }

    /// Returns the value with a mark in the place of each text with placeholders.
    pub(super) fn mark(&mut self, field: &str, value: &Value) -> Value {
        match value {
            Value::String(text) if text.contains("{{") => self.mark_text(field, text).into(),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| self.mark(&format!("{field}[{at}]"), item)).collect()
            }
            Value::Object(fields) => {
                let mut marked = serde_json::Map::new();
                for (name, value) in fields {
                    if name.contains("{{") {
                        self.refuse(field, "a name of a field is a literal");
                    }
                    marked.insert(name.clone(), self.mark(&format!("{field}.{name}"), value));
                }
                marked.into()
            }
            other => other.clone(),
        }
    }

    fn mark_text(&mut self, field: &str, text: &str) -> String {
        let pieces = match self.names.read(text) {
            // The cluster is converted by itself.
            Err(_) if field.ends_with("destination.server") || field.ends_with("destination.name") => {
                Vec::new()
            }
            Err(_) if field == "spec.template.metadata.name" => Vec::new(),
            Err(why) => {
                self.refuse(field, why);
                Vec::new()
            }
            Ok(pieces) => pieces,
        };
        self.remark(field);
        let mark = format!("{}{}{}", MARK.0, self.texts.len(), MARK.1);
        self.texts.push(MarkedText { field: field.to_owned(), written: text.to_owned(), pieces });
        // The start and the end of a path say what it is relative to.
        let start = STARTS.into_iter().find(|start| text.starts_with(start)).unwrap_or_default();
        let end = if text.ends_with('/') { "/" } else { "" };
        format!("{start}{mark}{end}")
    }

    /// Tells what a value of a parameter cannot say about itself.
    fn remark(&mut self, field: &str) {
        let why = if field.ends_with(".targetRevision") {
            "a revision of a parameter is taken for a branch: change the field in set to tag, semver or commit if it is one"
        } else if field.ends_with(".helm.values") {
            return self
                .refuse(field, "write valuesObject: in a text, a parameter could change the structure");
        } else if field.contains(".parameters[") && field.ends_with(".value") {
            "a value of a parameter is a text here, also where Argo CD takes it for a number or a boolean"
        } else {
            return;
        };
        self.lost.push(FieldRemark { field: field.into(), why: why.into() });
    }

    fn refuse(&mut self, field: &str, why: impl Into<Box<str>>) {
        self.refused.push(FieldRemark { field: field.into(), why: why.into() });
    }

    /// Removes the fields with marks from a template, and returns them with their expressions.
    pub(super) fn take_fields(&mut self, template: &mut Value) -> Vec<Value> {
        let mut fields = Vec::new();
        self.take_below(template, "", &mut fields);
        fields
    }

    fn take_below(&mut self, value: &mut Value, pointer: &str, fields: &mut Vec<Value>) {
        let Value::Object(map) = value else { return };
        let mut taken = Vec::new();
        for (name, inner) in map.iter_mut() {
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            if inner.is_object() {
                let was_set = is_set(inner);
                self.take_below(inner, &pointer, fields);
                if was_set && inner.as_object().is_some_and(serde_json::Map::is_empty) {
                    taken.push(name.clone());
                }
            } else if let Some(first) = self.first_mark(inner) {
                match self.expression_of(inner).filter(|_| is_settable(&pointer)) {
                    Some(cel) => fields.push(json!({"field": pointer, "value": cel})),
                    None => {
                        let field = self.texts[first].field.clone();
                        let why = format!(
                            "an expression cannot set {pointer} of a Sync: write a literal, and a SyncSet for each value"
                        );
                        self.refuse(&field, why);
                    }
                }
                taken.push(name.clone());
            }
        }
        for name in taken {
            map.remove(&name);
        }
    }

    /// Returns the number of the first text of which the value has the mark.
    fn first_mark(&self, value: &Value) -> Option<usize> {
        let text = value.to_string();
        (0..self.texts.len()).find(|at| text.contains(&format!("{}{at}{}", MARK.0, MARK.1)))
    }

    /// Returns the expression of a text, or of a list of texts.
    fn expression_of(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(expression(&self.pieces_of(text))),
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(|item| self.expression_of(item)).collect();
                Some(format!("[{}]", items?.join(", ")))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    /// Returns the pieces of a text with marks. Characters of two neighbours are one piece.
    fn pieces_of(&self, text: &str) -> Vec<Piece> {
        let (mut pieces, mut rest) = (Vec::<Piece>::new(), text);
        let mut add = |piece: &Piece| match (pieces.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(text),
            (_, Piece::Text(text)) if text.is_empty() => {}
            _ => pieces.push(piece.clone()),
        };
        while let Some((before, behind)) = rest.split_once(MARK.0) {
            add(&Piece::Text(before.to_owned()));
            let (number, after) = behind.split_once(MARK.1).unwrap_or((behind, ""));
            let marked = number.parse::<usize>().ok().and_then(|at| self.texts.get(at));
            if let Some(marked) = marked {
                let trimmed = trim_ends(&marked.pieces);
                trimmed.iter().for_each(&mut add);
            }
            rest = after;
        }
        add(&Piece::Text(rest.to_owned()));
        pieces
    }

    /// Returns remarks with the placeholders in the place of their marks.
    pub(super) fn restored(&self, mut remarks: Vec<FieldRemark>) -> Vec<FieldRemark> {
        for remark in &mut remarks {
            for (at, marked) in self.texts.iter().enumerate() {
                let mark = format!("{}{at}{}", MARK.0, MARK.1);
                if remark.why.contains(&mark) {
                    remark.why = remark.why.replace(&mark, &marked.written).into();
                }
                if remark.field.contains(&mark) {
                    remark.field = remark.field.replace(&mark, &marked.written).into();
                }
            }
        }
        remarks
    }
}

/// Removes what stands beside the mark at both ends.
fn trim_ends(pieces: &[Piece]) -> Vec<Piece> {
    let mut pieces = pieces.to_vec();
    if let Some(Piece::Text(first)) = pieces.first_mut() {
        let rest = STARTS.into_iter().find_map(|start| first.strip_prefix(start));
        *first = rest.unwrap_or(first).to_owned();
    }
    if let Some(Piece::Text(last)) = pieces.last_mut() {
        *last = last.strip_suffix('/').unwrap_or(last).to_owned();
    }
    pieces
}
