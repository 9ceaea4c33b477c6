//! Values of a chart from ConfigMaps and Secrets, merged.
//!
//! In: the texts of their keys, in their order.
//! Out: [`ExternalValues`], which cannot be formatted. Errors say where a text is wrong, and never
//! quote it.

use std::fmt;

use serde_json::{Map, Value};

use super::values_path::ValuesPath;
use crate::Visibility;
use crate::documents::DIALECT;
use moorline_yaml as yaml;

/// Values of a chart that are in neither the repository nor the Sync.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExternalValues {
    values: Map<String, Value>,
    contains_secret: bool,
}

/// Error of reading such values; the rest of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExternalValuesError {
    /// A text that is not YAML.
    #[error("is not YAML at line {line}")]
    NotYaml {
        /// The line.
        line: u32,
    },
    /// A text that is no values file.
    #[error("is no values file: it must be a mapping, such as `replicas: 3`, or targetPath must be set")]
    NoMapping,
    /// A value that cannot be set.
    #[error("{0}")]
    Path(String),
}

impl ExternalValues {
    /// Returns the values with those of another text, which take precedence.
    pub fn with(
        mut self,
        text: &str,
        path: Option<&ValuesPath>,
        seen: Visibility,
    ) -> Result<Self, ExternalValuesError> {
        self.contains_secret |= seen == Visibility::Secret;
        match path {
            Some(path) => path.set(&mut self.values, text).map_err(ExternalValuesError::Path)?,
            None => merge(&mut self.values, read(text)?),
        }
        Ok(self)
    }

    /// True if a value comes from a Secret.
    pub(super) fn contains_secret(&self) -> bool {
        self.contains_secret
    }

    /// Returns the values as a values file; none if there are no values.
    pub(super) fn to_file(&self) -> Option<Vec<u8>> {
        let is_empty = self.values.is_empty() && !self.contains_secret;
        (!is_empty).then(|| serde_json::to_vec(&self.values).unwrap_or_default())
    }
}

impl fmt::Debug for ExternalValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Reads a values file; an empty one has no values.
fn read(text: &str) -> Result<Map<String, Value>, ExternalValuesError> {
    let documents = yaml::read("values", text.as_bytes(), DIALECT);
    let documents = documents.map_err(|error| ExternalValuesError::NotYaml { line: error.line() })?;
    match documents.into_iter().next().map_or(Value::Null, |document| document.value) {
        Value::Object(values) => Ok(values),
        Value::Null => Ok(Map::new()),
        _ => Err(ExternalValuesError::NoMapping),
    }
}

/// Merges values as helm merges values files: mappings field by field, everything else as a whole.
fn merge(into: &mut Map<String, Value>, values: Map<String, Value>) {
    for (name, value) in values {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(before)), Value::Object(fields)) => merge(before, fields),
            (_, value) => drop(into.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn later_texts_take_precedence() {
        let path = ValuesPath::parse("db.password", true).unwrap();
        let values = ExternalValues::default()
            .with("a: {b: 1, c: [1, 2]}\nd: x\n", None, Visibility::Public)
            .and_then(|values| values.with("a: {c: [3]}\nd: {e: null}\n", None, Visibility::Public))
            .unwrap();
        assert!(!values.contains_secret());
        let values = values.with("planted", Some(&path), Visibility::Secret).unwrap();
        let file: Value = serde_json::from_slice(&values.to_file().unwrap()).unwrap();
        assert_eq!(file, json!({"a": {"b": 1, "c": [3]}, "d": {"e": null}, "db": {"password": "planted"}}));
        assert!(values.contains_secret());
        assert_eq!(format!("{values:?}"), "…");
        assert_eq!(ExternalValues::default().to_file(), None);
    }

    #[test]
    fn what_is_wrong_is_not_quoted() {
        for (text, expect) in
            [("planted: [", "not YAML at line"), ("planted", "no values file"), ("[a]", "no values file")]
        {
            let problem =
                ExternalValues::default().with(text, None, Visibility::Secret).unwrap_err().to_string();
            assert!(problem.contains(expect) && !problem.contains("planted"), "{problem}");
        }
        assert!(ExternalValues::default().with("", None, Visibility::Public).is_ok());
    }
}
