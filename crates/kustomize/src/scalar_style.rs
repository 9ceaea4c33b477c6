//! Spelling of scalars, on which replacements and variables depend: `1.50` is the text `1.50`
//! inside a text, and the number 1.5 in its own field.
//!
//! In: notes of the YAML reader ([`Document::rewritten_values`](moorline_yaml::Document)), and
//! results of replacements. Out: the text of a value, if it is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::field_path::{PathStep, value_at};
use super::field_spec::scalar_text;
use moorline_yaml::{self as yaml, Dialect, Document, NullForms};

/// Known spellings in one object.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelling {
    /// JSON of values that are spelled differently somewhere in the object.
    rewritten_values: Arc<BTreeSet<String>>,
    /// Fields created by replacements, as texts without a type.
    untyped: BTreeMap<Vec<PathStep>, String>,
    /// Labels and annotations whose spelling differs, by `labels/key`: the value, and the text.
    texts: BTreeMap<String, (Value, String)>,
    /// Texts that were numbers or truth values in a patch, which quotes of the object turned into
    /// texts. To kustomize they still have their type.
    quoted_scalars: BTreeSet<String>,
    /// The annotations are written in braces, in which no text stays folded.
    annotations_in_braces: bool,
    nulls: NullForms,
    /// It went through JSON, and nothing was merged in since.
    is_json: bool,
    /// It went through JSON at some time.
    was_json: bool,
}

impl Spelling {
    /// Creates the spellings of a document as it was read.
    pub(super) fn new(odd: BTreeSet<String>, nulls: NullForms) -> Self {
        Self { rewritten_values: Arc::new(odd), nulls, ..Self::default() }
    }

    /// Creates the spellings of a document, including labels and annotations.
    pub(super) fn from_document(document: &Document) -> Self {
        let metadata = document.value.get("metadata");
        let value = |place: &str| {
            let (field, key) = place.split_once('/')?;
            metadata?.get(field)?.get(key).cloned()
        };
        let texts = document.original_texts.iter();
        let texts = texts.filter_map(|(place, text)| Some((place.clone(), (value(place)?, text.clone()))));
        Self {
            texts: texts.collect(),
            annotations_in_braces: document.annotations_in_braces,
            ..Self::new(document.rewritten_values.clone(), document.nulls)
        }
    }

    /// True if a merge keeps existing nulls. It drops implicit ones, so an object with both kinds
    /// is an error.
    pub(super) fn keeps_nulls(&self) -> Result<bool, &'static str> {
        match self.nulls {
            NullForms { has_missing_in_braces: true, .. } => Err(
                "has a field without a value inside braces, which kustomize merges as null; write null or ''",
            ),
            NullForms { has_implicit: true, has_explicit: true, .. } => Err(
                "has fields without a value and fields with null, of which a merge keeps the latter only; write all alike",
            ),
            NullForms { has_implicit: left_out, .. } => Ok(!left_out),
        }
    }

    /// Returns the spelling of nulls, if it is the same for all.
    pub(super) fn null_text(&self) -> Option<&'static str> {
        match self.nulls {
            NullForms { has_implicit: true, has_explicit: false, .. } => Some(""),
            NullForms { has_implicit: false, .. } => Some("null"),
            NullForms { has_implicit: true, has_explicit: true, .. } => None,
        }
    }

    /// Returns the text of a label or annotation, by `labels/key`; none if unknown, empty for a map
    /// or list.
    pub(super) fn text(&self, place: &str, value: &Value) -> Option<String> {
        match (self.texts.get(place), value) {
            (_, Value::Object(_) | Value::Array(_)) => Some(String::new()),
            (Some((written, text)), value) if written == value => Some(text.clone()),
            (_, Value::Null) => self.null_text().map(str::to_owned),
            (_, value) => self.scalar(value),
        }
    }

    /// True if a label or annotation has other line breaks than its value: a folded text with an
    /// indented line gets one more.
    pub(super) fn has_folded_texts(&self) -> bool {
        self.texts.values().any(|(value, text)| text.contains('\n') && value.as_str() != Some(text))
    }

    /// True if the annotations are written in braces.
    pub(super) fn has_annotations_in_braces(&self) -> bool {
        self.annotations_in_braces
    }

    /// Records that kustomize wrote all annotations again: each on a line, without braces.
    pub(super) fn record_written_annotations(&mut self) {
        self.annotations_in_braces = false;
    }

    /// Forgets the text of a label or annotation, because its value changes.
    pub(super) fn forget_text(&mut self, place: &str) {
        self.texts.remove(place);
    }

    /// Forgets the texts of all labels and annotations.
    pub(super) fn forget_texts(&mut self) {
        self.texts.clear();
    }

    /// Records that a label or annotation became a text.
    pub(super) fn set_text(&mut self, place: &str, text: &str) {
        let value = Value::String(text.to_owned());
        self.texts.remove(place);
        if self.is_rewritten(&value) {
            self.texts.insert(place.to_owned(), (value, text.to_owned()));
        }
    }

    /// True if a value inside braces is missing.
    pub(super) fn has_nulls_in_braces(&self) -> bool {
        self.nulls.has_missing_in_braces
    }

    /// Records that every null is now explicit.
    pub(super) fn make_nulls_explicit(&mut self) {
        self.nulls.has_implicit = false;
    }

    /// Records a JSON patch: every null is explicit, and numbers went through floats, the large
    /// ones with an exponent.
    pub(super) fn record_json_round_trip(&mut self, body: &Value) {
        self.make_nulls_explicit();
        self.forget_texts();
        self.record_written_annotations();
        self.untyped.clear();
        self.quoted_scalars.clear();
        let mut odd = BTreeSet::new();
        note_exponents(body, &mut odd);
        self.rewritten_values = Arc::new(odd);
        (self.is_json, self.was_json) = (true, true);
    }

    /// True if a text is quoted although it needs no quotes; none if unknown. After a round trip
    /// through JSON, only texts that older YAML takes for another type are quoted.
    pub(super) fn is_quoted(&self, text: &str, in_file: impl Fn(&str) -> Option<bool>) -> Option<bool> {
        if !self.was_json {
            return in_file(text);
        }
        let is_word = ["y", "n", "yes", "no", "on", "off"].iter().any(|word| {
            let title = format!("{}{}", word[..1].to_uppercase(), &word[1..]);
            text == *word || text == title || text == word.to_uppercase()
        });
        let is_plain = text.chars().all(|char| char.is_ascii_alphanumeric() || "._/-".contains(char));
        match self.is_json {
            true if is_word => Some(true),
            true => is_plain.then_some(false),
            // A patch was merged in since, with or without quotes.
            false => in_file(text).filter(|is_quoted| !is_quoted),
        }
    }

    /// Returns the text of a scalar; none if the value does not determine it.
    pub(super) fn scalar(&self, value: &Value) -> Option<String> {
        match value {
            Value::Number(number) if self.is_json => Some(float_text(number)),
            value if self.is_rewritten(value) => None,
            value => scalar_text(value),
        }
    }

    /// Adds the spellings of a merged patch.
    pub(super) fn merge(&mut self, other: &Self) {
        // Implicit nulls of the object are gone, and those of the patch have deleted fields.
        self.nulls.has_implicit = false;
        self.is_json = false;
        self.texts.extend(other.texts.clone());
        if !other.rewritten_values.is_empty() {
            Arc::make_mut(&mut self.rewritten_values).extend(other.rewritten_values.iter().cloned());
        }
    }

    /// Records texts that a merge made of numbers and truth values.
    pub(super) fn record_quoted_scalars(&mut self, texts: BTreeSet<String>) {
        self.quoted_scalars.extend(texts);
    }

    /// True if a text may have the type of a number or truth value.
    pub(super) fn may_be_quoted_scalar(&self, text: &str) -> bool {
        self.quoted_scalars.contains(text)
    }

    /// True if a value equal to this one may be spelled differently from JSON.
    pub(super) fn is_rewritten(&self, value: &Value) -> bool {
        !self.rewritten_values.is_empty()
            && !value.is_array()
            && !value.is_object()
            && self.rewritten_values.contains(&value.to_string())
    }

    /// Records a field created by a replacement.
    pub(super) fn record_untyped(&mut self, way: &[PathStep], text: &str) {
        self.untyped.insert(way.to_vec(), text.to_owned());
    }

    /// Returns the text of a created field that has not changed since.
    pub(super) fn untyped(&self, way: &[PathStep], value: &Value) -> Option<&str> {
        let text = self.untyped.get(way)?;
        (yaml::resolve_scalar(text, None, Dialect::Kustomize).as_ref() == Some(value)).then_some(text)
    }

    /// Removes the record of a field that was written without a type; true if there was one.
    pub(super) fn take_untyped(&mut self, way: &[PathStep]) -> bool {
        self.untyped.remove(way).is_some()
    }

    /// Gives the created fields a type on a merge: text, or inside lists the type of the items.
    pub(super) fn resolve_untyped(&mut self, body: &mut Value) -> Result<(), &'static str> {
        for (way, text) in std::mem::take(&mut self.untyped) {
            let plain = yaml::resolve_scalar(&text, None, Dialect::Kustomize);
            let Some(field) = value_at(body, &way).filter(|field| Some(&**field) == plain.as_ref()) else {
                continue;
            };
            if field.is_string() {
                continue;
            }
            if way.iter().any(|step| matches!(step, PathStep::Item(_))) {
                return Err(
                    "has a field in a list that a replacement has made, whose type a merge changes; write the field",
                );
            }
            *field = Value::String(text);
        }
        Ok(())
    }

    /// True if a created field is not a text.
    pub(super) fn has_untyped_values(&self) -> bool {
        let is_text = |text: &String| {
            yaml::resolve_scalar(text, None, Dialect::Kustomize).is_some_and(|value| value.is_string())
        };
        !self.untyped.values().all(is_text)
    }
}

/// Records numbers that Go writes with an exponent after they were floats.
fn note_exponents(value: &Value, odd: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| note_exponents(item, odd)),
        Value::Object(fields) => fields.values().for_each(|field| note_exponents(field, odd)),
        Value::Number(number) => {
            let text = number.to_string();
            if float_text(number) != text {
                odd.insert(text);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Formats a number as Go writes a float in YAML: with an exponent below 1e-4 and from 1e6 on.
pub(super) fn float_text(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64() else { return number.to_string() };
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn odd(text: &str) -> Vec<String> {
        let documents = yaml::read("r.yaml", text.as_bytes(), Dialect::Kustomize).unwrap();
        documents.into_iter().flat_map(|document| document.rewritten_values).collect()
    }

    #[test]
    fn what_is_written_in_another_way_is_noted() {
        assert_eq!(odd("a: 1\nb: x\nc: \"8\"\nd: true\ne: ~\nf: 1.5\n"), [""; 0]);
        let text = "a: 1.50\nb: 0x10\nc: True\nd: 2020-01-01\ne: 1e3\nf: &a 0644\ng: *a\n";
        assert_eq!(odd(text), ["\"2020-01-01T00:00:00Z\"", "1.5", "1000", "16", "420", "true"]);
        let spelling = Spelling::new(odd(text).into_iter().collect(), NullForms::default());
        assert!(
            spelling.is_rewritten(&json!(1.5))
                && !spelling.is_rewritten(&json!(2.5))
                && !spelling.is_rewritten(&json!({}))
        );
    }

    #[test]
    fn a_field_that_was_made_is_known_until_it_changes() {
        let mut spelling = Spelling::default();
        let way = [PathStep::Key("a".into())];
        spelling.record_untyped(&way, "0x7");
        assert_eq!(spelling.untyped(&way, &json!(7)), Some("0x7"));
        assert_eq!(spelling.untyped(&way, &json!("7")), None);
        assert!(spelling.has_untyped_values());
    }
}
