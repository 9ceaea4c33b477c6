//! Stands in for the library of this name, by which kube reads YAML.
//!
//! In: text. Out: the values in it, read as kubectl reads them. Errors quote no value: the text is
//! a kubeconfig, or what a login program printed.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input must never cause a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

use moorline_yaml::{Dialect, Document, expectation};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Text that is no YAML, or holds another value than the one that is expected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Reads text with one document; without one, the value is null.
///
/// # Errors
///
/// Fails if it is no YAML, has a second document, or is no `T`.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let mut documents = documents(text)?.into_iter();
    match (documents.next(), documents.next()) {
        (None, _) => value(1, &Value::Null),
        (Some(only), None) => value(only.line, &only.value),
        (Some(_), Some(second)) => Err(Error(format!("line {}: a second document is found", second.line))),
    }
}

/// The same for text.
///
/// # Errors
///
/// Those of [`from_slice`].
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_slice(text.as_bytes())
}

/// Reads every document that is not empty.
///
/// # Errors
///
/// Fails if it is no YAML, or a document is no `T`.
pub fn from_multiple<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Error> {
    documents(text.as_bytes())?.iter().map(|document| value(document.line, &document.value)).collect()
}

fn documents(text: &[u8]) -> Result<Vec<Document>, Error> {
    moorline_yaml::read("", text, Dialect::Kubectl)
        .map_err(|error| Error(format!("line {}: {}", error.line(), error.finding())))
}

fn value<T: DeserializeOwned>(line: u32, value: &Value) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| {
        let expected = expectation(&error.to_string()).map_or_else(String::new, |text| format!("; {text}"));
        Error(format!("line {line}: the document cannot be used{expected}"))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Texts = BTreeMap<String, String>;

    #[test]
    fn one_document_is_read_as_kubectl_reads_it() {
        let texts: Texts = from_slice(b"# a\n---\nkind: ExecCredential\ntoken: 'yes'\n").unwrap();
        assert_eq!((&*texts["kind"], &*texts["token"]), ("ExecCredential", "yes"));
        let texts: Texts = from_str(r#"{"kind": "ExecCredential"}"#).unwrap();
        assert_eq!(texts["kind"], "ExecCredential");
        assert_eq!(from_str::<Option<Texts>>("").unwrap(), None);
        assert!(
            from_str::<Texts>("a: b\n---\nc: d\n").unwrap_err().to_string().starts_with("line 3: a second")
        );
    }

    #[test]
    fn each_of_several_documents_is_read() {
        let all: Vec<Texts> = from_multiple("a: b\n---\n# empty\n---\nc: d\n").unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1]["c"], "d");
        assert!(from_multiple::<Texts>("").unwrap().is_empty());
    }

    #[test]
    fn an_error_names_the_line_and_no_value() {
        let error = |text: &str| from_multiple::<Texts>(text).unwrap_err().to_string();
        assert_eq!(
            error("a: b\n---\ntoken: 12345\n"),
            "line 3: the document cannot be used; a string is expected"
        );
        let broken = error("a: b\ntoken: 'planted\n");
        assert!(broken.starts_with("line ") && !broken.contains("planted"), "{broken}");
    }
}
