//! Records how values are spelled, for Kustomize, where the value alone does not say it.
//!
//! In: a scalar that Kustomize reads, and its value. Out: notes on the document: values in another
//! form, nulls, and the original texts of labels and annotations.

use serde_json::Value;

use super::{Collection, Composer, Fields, Frame, PendingKey};
use crate::parser::Scalar;
use crate::scalar;

impl Composer {
    /// Records the spelling of a scalar where it differs from its value.
    pub(super) fn record_spelling(&mut self, scalar: &Scalar<'_>, flow: bool, value: &mut Value) {
        let is_left_out = scalar.implicit && scalar.text.is_empty();
        let other = match is_left_out && flow {
            true => Some(Value::String(String::new()).to_string()),
            false => scalar::json_if_respelled(scalar, value),
        };
        if other.is_none() && !value.is_null() {
            return;
        }
        let path = self.path();
        match path.strip_prefix("metadata/") {
            // An annotation without a value is dropped, in flow style too.
            Some("annotations") if is_left_out => *value = Value::Null,
            Some(field) if field.contains('/') => {
                self.original_texts.insert(field.to_owned(), scalar.text.to_owned());
            }
            Some(_) | None => {}
        }
        self.rewritten_values.extend(other);
        self.nulls.has_missing_in_braces |= is_left_out && value.is_string();
        self.nulls.has_implicit |= value.is_null() && scalar.text.is_empty() && !flow;
        self.nulls.has_explicit |= value.is_null() && !scalar.text.is_empty();
    }

    /// True if the annotations of the document come next.
    pub(super) fn is_at_annotations(&self) -> bool {
        self.frames.len() == 2 && self.path() == "metadata/annotations"
    }

    /// Returns the path of the next value inside the document's metadata, such as
    /// `metadata/labels/key`; empty for other values.
    fn path(&self) -> String {
        let keys: Vec<&str> = self.frames.iter().take(4).filter_map(Frame::key).collect();
        match keys.as_slice() {
            ["metadata", "labels" | "annotations"] | ["metadata", "labels" | "annotations", _]
                if keys.len() == self.frames.len() =>
            {
                keys.join("/")
            }
            _ => String::new(),
        }
    }
}

impl Frame {
    /// Returns the key whose value comes next.
    fn key(&self) -> Option<&str> {
        match &self.shape {
            Collection::Map(Fields { key: PendingKey::Text(key), .. }) => Some(key),
            Collection::Map(_) | Collection::List(_) => None,
        }
    }
}
