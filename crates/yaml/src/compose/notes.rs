//! What a value does not tell of how it is written.
//!
//! In: a scalar that Kustomize reads, and its value. Out: the notes of the document: values in another form, nulls, and the
//! texts of labels and annotations.

use serde_json::Value;

use super::{Composer, Fields, Frame, Key, Shape};
use crate::parser::Scalar;
use crate::scalar;

impl Composer {
    /// Notes what the value does not tell of how it is written.
    pub(super) fn note(&mut self, scalar: &Scalar<'_>, flow: bool, value: &mut Value) {
        let is_left_out = scalar.implicit && scalar.text.is_empty();
        let other = match is_left_out && flow {
            true => Some(Value::String(String::new()).to_string()),
            false => scalar::other_text(scalar, value),
        };
        if other.is_none() && !value.is_null() {
            return;
        }
        let path = self.path();
        match path.strip_prefix("metadata/") {
            // Annotations without a value are none, in braces as elsewhere.
            Some("annotations") if is_left_out => *value = Value::Null,
            Some(field) if field.contains('/') => {
                self.texts.insert(field.to_owned(), scalar.text.to_owned());
            }
            Some(_) | None => {}
        }
        self.odd.extend(other);
        self.nulls.in_braces |= is_left_out && value.is_string();
        self.nulls.left_out |= value.is_null() && scalar.text.is_empty() && !flow;
        self.nulls.written |= value.is_null() && !scalar.text.is_empty();
    }

    /// The place of the next value in the metadata of the document, as `metadata/labels/key`. Empty for other values.
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
    /// The key whose value comes next.
    fn key(&self) -> Option<&str> {
        match &self.shape {
            Shape::Map(Fields { key: Key::Text(key), .. }) => Some(key),
            Shape::Map(_) | Shape::List(_) => None,
        }
    }
}
