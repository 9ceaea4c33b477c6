//! What the value of a field does not tell of how it was written, and what a replacement or a variable depends on: `1.50` is
//! the text `1.50` where it is put into a text, and the number 1.5 where it stands.
//!
//! In: what the reader of YAML noted ([`Document::odd`](crate::yaml::Document)), and what replacements have made. Out: whether the
//! text of a value is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::field_path::Step;
use crate::yaml::{self, Dialect, Nulls};

/// What is known of how an object is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelling {
    /// The JSON of values that are written in another way somewhere in the object.
    odd: Arc<BTreeSet<String>>,
    /// Fields that a replacement has made, as texts that have no type yet.
    untyped: BTreeMap<Vec<Step>, String>,
    nulls: Nulls,
    /// It went through JSON, and nothing else has come in since.
    is_json: bool,
}

impl Spelling {
    /// Of a document as it was read.
    pub(super) fn new(odd: BTreeSet<String>, nulls: Nulls) -> Self {
        Self { odd: Arc::new(odd), untyped: BTreeMap::new(), nulls, is_json: false }
    }

    /// Whether a merge keeps the nulls that are there: it drops those that are not written, which nobody can tell from others
    /// in the same object.
    pub(super) fn keeps_nulls(&self) -> Result<bool, &'static str> {
        match self.nulls {
            Nulls { left_out: true, written: true } => Err(
                "has fields without a value and fields with null, of which a merge keeps the latter only; write all alike",
            ),
            Nulls { left_out, .. } => Ok(!left_out),
        }
    }

    /// What a null was written as, where all are written alike.
    pub(super) fn null_text(&self) -> Option<&'static str> {
        match self.nulls {
            Nulls { left_out: true, written: false } => Some(""),
            Nulls { left_out: false, .. } => Some("null"),
            Nulls { left_out: true, written: true } => None,
        }
    }

    /// From here on every null is written.
    pub(super) fn writes_nulls(&mut self) {
        self.nulls.left_out = false;
    }

    /// A JSON patch was applied: every null is written, and numbers were floats.
    pub(super) fn went_through_json(&mut self) {
        self.writes_nulls();
        self.is_json = true;
    }

    /// Whether it went through JSON already.
    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Adds what is known of a patch that was merged in.
    pub(super) fn merge(&mut self, other: &Self) {
        // Those that were not written are gone, and those of the patch have deleted something.
        self.nulls.left_out = false;
        self.is_json = false;
        if !other.odd.is_empty() {
            Arc::make_mut(&mut self.odd).extend(other.odd.iter().cloned());
        }
    }

    /// Whether a value like this one may have been written in another way than JSON writes it.
    pub(super) fn is_odd(&self, value: &Value) -> bool {
        !self.odd.is_empty()
            && !value.is_array()
            && !value.is_object()
            && self.odd.contains(&value.to_string())
    }

    /// Notes a field that was made.
    pub(super) fn note_untyped(&mut self, way: &[Step], text: &str) {
        self.untyped.insert(way.to_vec(), text.to_owned());
    }

    /// The text of a field that was made and has not changed since.
    pub(super) fn untyped(&self, way: &[Step], value: &Value) -> Option<&str> {
        let text = self.untyped.get(way)?;
        (yaml::scalar(text, None, Dialect::Kustomize).as_ref() == Some(value)).then_some(text)
    }

    /// Whether fields that were made hold something else than text.
    pub(super) fn has_untyped_values(&self) -> bool {
        let is_text = |text: &String| {
            yaml::scalar(text, None, Dialect::Kustomize).is_some_and(|value| value.is_string())
        };
        !self.untyped.values().all(is_text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn odd(text: &str) -> Vec<String> {
        let documents = yaml::read("r.yaml", text.as_bytes(), Dialect::Kustomize).unwrap();
        documents.into_iter().flat_map(|document| document.odd).collect()
    }

    #[test]
    fn what_is_written_in_another_way_is_noted() {
        assert_eq!(odd("a: 1\nb: x\nc: \"8\"\nd: true\ne: ~\nf: 1.5\n"), [""; 0]);
        let text = "a: 1.50\nb: 0x10\nc: True\nd: 2020-01-01\ne: 1e3\nf: &a 0644\ng: *a\n";
        assert_eq!(odd(text), ["\"2020-01-01T00:00:00Z\"", "1.5", "1000", "16", "420", "true"]);
        let spelling = Spelling::new(odd(text).into_iter().collect(), Nulls::default());
        assert!(
            spelling.is_odd(&json!(1.5)) && !spelling.is_odd(&json!(2.5)) && !spelling.is_odd(&json!({}))
        );
    }

    #[test]
    fn a_field_that_was_made_is_known_until_it_changes() {
        let mut spelling = Spelling::default();
        let way = [Step::Key("a".into())];
        spelling.note_untyped(&way, "0x7");
        assert_eq!(spelling.untyped(&way, &json!(7)), Some("0x7"));
        assert_eq!(spelling.untyped(&way, &json!("7")), None);
        assert!(spelling.has_untyped_values());
    }
}
