//! Decodes values of a kustomization as Go's JSON decoder does: field names match in any case,
//! unknown fields are refused, null counts as missing, and types are not converted.
//!
//! In: a value with its path. Out: texts, flags, lists and fields, or an error with the position.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use moorline_core::did_you_mean::nearest_name;
use moorline_yaml::type_name;

/// A value and its path in the file.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    pub(super) at: FieldLocation,
}

/// Fields of a mapping, by their known names.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) at: FieldLocation,
    values: BTreeMap<&'static str, (String, &'a Value)>,
}

impl<'a> Node<'a> {
    pub(super) fn new(value: &'a Value, at: FieldLocation) -> Self {
        Self { value, at }
    }

    fn expected(&self, what: &str) -> BuildError {
        let hint = match (what, self.value) {
            ("text", Value::Number(_) | Value::Bool(_)) => "; put it in quotes",
            _ => "",
        };
        let found = type_name(self.value);
        self.at.error(ErrorClass::Field, format!("found {found}, expected {what}{hint}"))
    }

    /// Returns the fields of a mapping; null has none.
    pub(super) fn fields(&self, known: &[&'static str]) -> Built<Fields<'a>> {
        let mut values: BTreeMap<&'static str, (String, &'a Value)> = BTreeMap::new();
        let map = match self.value {
            Value::Null => return Ok(Fields { at: self.at.clone(), values }),
            Value::Object(map) => map,
            _ => return Err(self.expected("a mapping")),
        };
        for (key, value) in map {
            let exact = known.iter().find(|name| *name == key);
            let Some(name) = exact.or_else(|| known.iter().find(|name| name.eq_ignore_ascii_case(key)))
            else {
                let meant = nearest_name(key, known.iter().copied());
                let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                let text = format!("unknown field {key}{meant}");
                return Err(self.at.key(key).error(ErrorClass::UnknownField, text));
            };
            // A null does not override the same field in another case.
            if !value.is_null() || !values.contains_key(name) {
                values.insert(name, (key.clone(), value));
            }
        }
        Ok(Fields { at: self.at.clone(), values })
    }

    pub(super) fn text(&self) -> Built<String> {
        match self.value {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            _ => Err(self.expected("text")),
        }
    }

    pub(super) fn flag(&self) -> Built<bool> {
        match self.value {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(*flag),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(super) fn integer(&self) -> Built<i64> {
        match self.value {
            Value::Null => Ok(0),
            value => value.as_i64().ok_or_else(|| self.expected("an integer")),
        }
    }

    pub(super) fn list(&self) -> Built<Vec<Node<'a>>> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => {
                let node = |(index, value)| Node { value, at: self.at.item(index) };
                Ok(items.iter().enumerate().map(node).collect())
            }
            _ => Err(self.expected("a list")),
        }
    }

    pub(super) fn text_map(&self) -> Built<BTreeMap<String, String>> {
        match self.value {
            Value::Null => Ok(BTreeMap::new()),
            Value::Object(map) => {
                let text = |(key, value): (&String, &'a Value)| {
                    Ok((key.clone(), Node { value, at: self.at.key(key) }.text()?))
                };
                map.iter().map(text).collect()
            }
            _ => Err(self.expected("a mapping of texts")),
        }
    }
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, name: &'static str) -> Option<Node<'a>> {
        let (key, value) = self.values.get(name)?;
        (!value.is_null()).then(|| Node { value, at: self.at.key(key) })
    }

    pub(super) fn text(&self, name: &'static str) -> Built<String> {
        self.get(name).map_or(Ok(String::new()), |node| node.text())
    }

    pub(super) fn flag(&self, name: &'static str) -> Built<bool> {
        self.get(name).map_or(Ok(false), |node| node.flag())
    }

    pub(super) fn integer(&self, name: &'static str) -> Built<i64> {
        self.get(name).map_or(Ok(0), |node| node.integer())
    }

    pub(super) fn list(&self, name: &'static str) -> Built<Vec<Node<'a>>> {
        self.get(name).map_or(Ok(Vec::new()), |node| node.list())
    }

    pub(super) fn text_map(&self, name: &'static str) -> Built<BTreeMap<String, String>> {
        self.get(name).map_or(Ok(BTreeMap::new()), |node| node.text_map())
    }

    /// Returns the texts of a list, each with its path.
    pub(super) fn texts(&self, name: &'static str) -> Built<Vec<LocatedText>> {
        self.list(name)?.into_iter().map(|node| Ok(LocatedText { text: node.text()?, at: node.at })).collect()
    }

    /// Reads every item of a list.
    pub(super) fn each<T>(&self, name: &'static str, read: impl Fn(&Node<'a>) -> Built<T>) -> Built<Vec<T>> {
        self.list(name)?.iter().map(read).collect()
    }
}

/// A text and its path in the file.
#[derive(Debug, Clone)]
pub(super) struct LocatedText {
    pub(super) text: String,
    pub(super) at: FieldLocation,
}

impl LocatedText {
    /// Returns the text if it has one line, as paths have; else an empty text.
    pub(super) fn one_line(&self) -> &str {
        if self.text.contains('\n') { "" } else { &self.text }
    }
}
