//! Labels and annotations that were made in several fields at once.
//!
//! For the tool these are one value: whoever changes it in one field changes it in all of them. Here they are noted, so that a later
//! label does the same; and an object in which something else has made them differ is refused, because the tool would not.

use std::collections::BTreeSet;

use serde_json::Value;

use super::configuration::FieldSpec;
use super::field_spec::{Make, visit};

/// The groups of fields that share a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing(Vec<(String, Vec<FieldSpec>)>);

impl Sharing {
    /// Notes the fields in which an entry was made.
    pub(super) fn add(&mut self, key: &str, made: Vec<FieldSpec>) {
        if !made.is_empty() {
            self.0.push((key.to_owned(), made));
        }
    }

    /// The other fields that share an entry with this one.
    pub(super) fn of(&self, key: &str, path: &str) -> Vec<FieldSpec> {
        let holds = |(other, fields): &&(String, Vec<FieldSpec>)| {
            other == key && fields.iter().any(|field| field.path == path)
        };
        self.0.iter().filter(holds).flat_map(|(_, fields)| fields.clone()).collect()
    }

    /// On the way through JSON everything becomes a value of its own.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// An entry that is not the same everywhere any more.
    pub(super) fn broken(&self, body: &mut Value) -> Option<&str> {
        let is_broken = |(key, fields): &&(String, Vec<FieldSpec>)| {
            let mut values = BTreeSet::new();
            for field in fields {
                let mut note = |value: &mut Value| {
                    values.extend(value.get(key).map(ToString::to_string));
                    Ok(())
                };
                // A value that cannot be visited any more shares nothing.
                drop(visit(body, field, Make::Nothing, &mut note));
            }
            values.len() > 1
        };
        self.0.iter().find(is_broken).map(|(key, _)| key.as_str())
    }
}
