//! Reads and writes YAML exactly as Kubernetes tools do.
//!
//! In: the bytes of one file. Out: its documents as JSON values, each with its first line; the
//! position of a field, for messages; and values as text. No library reads YAML as the API server's
//! tools do (`0644` is 420, `yes` is true, `<<` merges in order), so scalars and maps are resolved
//! here, on top of libyaml's events, and every rule is tested against answers recorded from
//! `kubectl` (`tests/yaml/recorded.json`).
//!
//! There are two dialects, because Kubernetes users meet two readers: see [`Dialect`].
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input must never cause a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod budget;
mod common_mistakes;
mod compose;
mod error;
mod events;
mod expectation;
mod json;
mod locate;
mod memory_cost;
mod parser;
mod scalar;
mod split;
mod timestamp;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use error::{
    Error, MAX_ALIAS_BYTES, MAX_ALIAS_NODES, MAX_DEPTH, MAX_DOCUMENTS, MAX_FILE_BYTES, MAX_NODES,
};
use error::{ErrorKind, MarkedError};
pub use events::{NodeEvent, NodeEventKind, read_events};
pub use expectation::expectation;
pub use locate::{Position, Step, locate};
pub use memory_cost::{estimate_file, estimate_value};
use parser::Mark;
pub use write::write;

/// Reads the documents of one file, in order. Empty documents are left out, as kubectl does.
///
/// Pure and bounded: the bounds are the `MAX_` constants of this crate.
pub fn read(file: &str, bytes: &[u8], dialect: Dialect) -> Result<Vec<Document>, Error> {
    read_while(file, bytes, dialect, &|| true)
}

/// Like [`read`], but stops once `go_on` returns false: a large file takes seconds.
pub fn read_while(
    file: &str,
    bytes: &[u8],
    dialect: Dialect,
    go_on: KeepGoing<'_>,
) -> Result<Vec<Document>, Error> {
    documents(bytes, dialect, true, go_on)
        .map_err(|fault| crate::common_mistakes::explain_mistake(bytes, fault).in_file(file))
}

/// Like [`read`] for kubectl, but does not complete the last line: kustomize reads its own files
/// so.
pub fn read_as_written(file: &str, bytes: &[u8], go_on: KeepGoing<'_>) -> Result<Vec<Document>, Error> {
    let read = documents(bytes, Dialect::Kubectl, false, go_on);
    read.map_err(|fault| crate::common_mistakes::explain_mistake(bytes, fault).in_file(file))
}

/// Cancellation check: returns false once reading must stop.
pub type KeepGoing<'a> = &'a dyn Fn() -> bool;

/// Number of nodes between two cancellation checks.
const NODES_AT_ONCE: usize = 4096;

/// Resolves a plain scalar, or one with a standard tag such as `int`, to its value. Returns none if
/// the text does not fit its tag.
pub fn resolve_scalar(text: &str, tag: Option<&str>, dialect: Dialect) -> Option<Value> {
    scalar::scalar_value(&scalar::plain_scalar(text, tag), false, dialect).ok()
}

/// The reader whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// kubectl and the API server: `yes` is true, keys become text, the last of equal keys wins.
    Kubectl,
    /// Kustomize's resources: `yes` is text, dates become times, keys must be text and differ.
    Kustomize,
}

/// Returns the type of a value, in the words of YAML.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a sequence",
        Value::Object(_) => "a mapping",
    }
}

/// One document of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value of its root node.
    pub value: Value,
    /// The line of its first node, from 1.
    pub line: u32,
    /// Index in the file, from 0, empty documents included; [`locate()`] takes it.
    pub index: u32,
    /// For Kustomize: the JSON of scalars that are spelled differently: `1.5` where the file has
    /// `1.50`.
    pub rewritten_values: BTreeSet<String>,
    /// For Kustomize: the spellings of null that occur.
    pub nulls: NullForms,
    /// For Kustomize: the labels and annotations whose spelling differs from their value.
    pub original_texts: OriginalTexts,
    /// For Kustomize: the annotations are written in braces, in which no text is folded.
    pub annotations_in_braces: bool,
}

/// Original spelling of labels and annotations, by `labels/` or `annotations/` and the key.
pub type OriginalTexts = BTreeMap<String, String>;

/// Spellings of null in a document: when merging, Kustomize keeps explicit nulls and drops implicit
/// ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NullForms {
    /// Some value is missing after its colon.
    pub has_implicit: bool,
    /// Some value is an explicit `null` or `~`.
    pub has_explicit: bool,
    /// Some value inside braces is missing, which means an empty text or null.
    pub has_missing_in_braces: bool,
}

fn documents(
    bytes: &[u8],
    dialect: Dialect,
    completes: bool,
    go_on: KeepGoing<'_>,
) -> Result<Vec<Document>, MarkedError> {
    let text = text(bytes)?;
    let mut documents = Vec::new();
    if split::is_json(text, dialect) {
        for (index, found) in (0..).zip(json::read_documents(text, go_on)?) {
            let line = found.mark.line;
            let found = compose::ComposedDocument {
                value: found.value,
                start: 0,
                rewritten_values: BTreeSet::new(),
                nulls: NullForms::default(),
                original_texts: OriginalTexts::new(),
                annotations_in_braces: false,
            };
            push(&mut documents, found, line, index);
        }
        return Ok(documents);
    }
    // A file with too many documents is refused before the first is read; only large files need the
    // check.
    if text.len() > MAX_DOCUMENTS as usize {
        let fault = split::chunks(text, dialect).find_map(Result::err);
        if let Some(fault) = fault.filter(|fault| fault.kind == ErrorKind::Documents) {
            return Err(fault);
        }
    }
    for (index, chunk) in (0..).zip(split::chunks(text, dialect)) {
        let chunk = chunk?;
        if !go_on() {
            return Err(MarkedError::new(chunk.mark(), ErrorKind::Stopped));
        }
        if chunk.is_blank() {
            continue;
        }
        if let Some(mark) = chunk.find_directive() {
            return Err(MarkedError::new(mark, ErrorKind::Directive));
        }
        // A byte order mark would count as a column, and end the mapping before its second field.
        let without_mark = chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text);
        let text = if completes { chunk.parser_text(dialect) } else { without_mark.into() };
        let place = |offset| chunk.mark().after(text.get(..offset).unwrap_or(&text));
        let found = compose::compose_document(&text, dialect, go_on);
        let found = found.map_err(|refusal| MarkedError::new(place(refusal.offset), refusal.kind))?;
        if let Some(found) = found {
            let line = place(found.start).line;
            push(&mut documents, found, line, index);
        }
    }
    Ok(documents)
}

/// Adds a document unless it is empty.
fn push(documents: &mut Vec<Document>, found: compose::ComposedDocument, line: u32, index: u32) {
    let compose::ComposedDocument {
        value,
        rewritten_values: odd,
        nulls,
        original_texts: texts,
        annotations_in_braces,
        ..
    } = found;
    if !value.is_null() {
        documents.push(Document {
            value,
            line: line.saturating_add(1),
            index,
            rewritten_values: odd,
            nulls,
            original_texts: texts,
            annotations_in_braces,
        });
    }
}

/// Returns the file as text, unless it is too large or not UTF-8.
fn text(bytes: &[u8]) -> Result<&str, MarkedError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(MarkedError::new(Mark::default(), ErrorKind::FileBytes(bytes.len())));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        MarkedError::new(Mark::default().after(&valid), ErrorKind::Encoding)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(text: &str, dialect: Dialect) -> Vec<(u32, u32)> {
        let documents = read("f.yaml", text.as_bytes(), dialect).expect("reads");
        documents.iter().map(|document| (document.line, document.index)).collect()
    }

    #[test]
    fn documents_know_their_line_and_their_index() {
        let text = "# head\n---\n\na: 1\n---\n# nothing\n---\r\n# c\r\nb: 2\r\n---\nc: |\n  x";
        for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
            assert_eq!(lines(text, dialect), [(4, 1), (9, 3), (11, 4)]);
        }
        assert_eq!(lines("\n{\"a\": 1}\n\n {\"b\":\n2}{}", Dialect::Kubectl), [(2, 0), (4, 1), (5, 2)]);
        assert_eq!(lines("\u{feff}a: 1\n---\n\u{feff}b: 1\n", Dialect::Kubectl), [(1, 0), (3, 1)]);
    }

    #[test]
    fn a_missing_last_break_is_added_for_kubectl_only() {
        let value = |dialect| read("f.yaml", b"a: |\n  x", dialect).expect("reads")[0].value.clone();
        assert_eq!(value(Dialect::Kubectl), json!({"a": "x\n"}));
        assert_eq!(value(Dialect::Kustomize), json!({"a": "x"}));
    }

    fn check(text: &str, expect: &str) {
        let error = read("dir/f.yaml", text.as_bytes(), Dialect::Kustomize).expect_err(text);
        assert_eq!(error.to_string(), expect);
        assert!(!error.reason().is_empty());
    }

    #[test]
    fn refusals_say_where_and_what() {
        check(
            "a: 1\n---\nb: [é, *x]\n",
            "dir/f.yaml:3:8: found an alias of the anchor \"x\", which is not defined above it in this document",
        );
        check("a: 1\nb: 2\na: 3\n", "dir/f.yaml:3:1: found the key \"a\" a second time in one map");
        check(
            "a: b\u{2028}\nc: {d: \u{1}}\n",
            "dir/f.yaml:2:8: found text that is not YAML: control characters are not allowed",
        );
        check(
            "# c\n%YAML 1.2\n---\na: 1\n",
            "dir/f.yaml:2:1: found a % directive, expected a document without one",
        );
        check(
            "a: {{ .x }}\n",
            "dir/f.yaml:1:4: found `{{`, expected plain YAML: this is an unrendered template",
        );
        check(
            "a: 1\n--- {b: 1}\n",
            "dir/f.yaml:2:4: found text after `---`, expected the end of the line or a comment",
        );
    }
}
