//! Files of environment variables: a line `NAME=value` for each, `\n` for a line break.
//!
//! The metadata is in variables `sops_…`, flattened. Comments are lines that begin with `#`.

use super::super::error::{MAX_KEYS, Problem, Refusal, shown};
use super::super::leaves::{Content, Leaves};
use super::super::node::{Field, Node, unflatten};
use super::super::secret::SecretBytes;
use super::super::value::{self, Plain};
use super::{Layout, Loaded, number};

/// Begin of each variable with metadata.
const PREFIX: &str = "sops_";
/// Most fields of flat metadata.
const MAX_FLAT_FIELDS: usize = 20 * MAX_KEYS;

/// A line of the plain file.
#[derive(Debug)]
pub(crate) enum Line {
    /// A comment that is not encrypted.
    Comment(String),
    /// A comment that is the next leaf.
    EncryptedComment,
    /// A variable, whose value is the next leaf.
    Variable(String),
}

/// Reads a file.
pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded<'_>>, Refusal> {
    let text = super::bounded_lines(bytes)?;
    let mut leaves = Leaves::default();
    let (mut flat, mut lines) = (Vec::new(), Vec::new());
    let mut metadata_line = None;
    for (index, line) in text.split('\n').enumerate() {
        let at = number(index);
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            match value::looks_encrypted(comment) {
                true => {
                    leaves.push(at, None, Content::Comment(comment.to_owned(), None));
                    lines.push(Line::EncryptedComment);
                }
                false => lines.push(Line::Comment(comment.to_owned())),
            }
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            let fault = "a line is no comment and has no equals sign";
            return Err(Refusal::new(at, Problem::Syntax(fault.into())));
        };
        let value = value.replace("\\n", "\n");
        match name.strip_prefix(PREFIX) {
            Some(key) => {
                metadata_line.get_or_insert(at);
                flat.push(Field { key: key.to_owned(), line: at, value: Node::Text(value) });
            }
            None => {
                let path = leaves.paths.add(None, name);
                leaves.push(at, Some(path), Content::Text(value));
                lines.push(Line::Variable(name.to_owned()));
            }
        }
    }
    let Some(metadata_line) = metadata_line else { return Ok(None) };
    if !flat.iter().any(|field| matches!(field.key.as_str(), "mac" | "lastmodified")) {
        return Ok(None);
    }
    let metadata = tree(flat, metadata_line, PREFIX)?;
    Ok(Some(Loaded { leaves, metadata, metadata_line, layout: Layout::Dotenv(lines) }))
}

/// Builds the tree of flat metadata.
pub(super) fn tree(flat: Vec<Field>, line: u32, field: &str) -> Result<Node, Refusal> {
    if flat.len() > MAX_FLAT_FIELDS {
        let what = "fields of metadata";
        return Err(Refusal::new(line, Problem::TooMany { what, most: MAX_FLAT_FIELDS }));
    }
    let expected = "the flattened metadata of sops, with each key once";
    let unfit = || Refusal::new(line, Problem::Metadata { field: shown(field), expected });
    unflatten(flat).ok_or_else(unfit)
}

/// Writes the plain file.
pub(super) fn write(
    lines: &[Line],
    leaves: &Leaves,
    plains: &[Option<Plain>],
) -> Result<SecretBytes, Refusal> {
    let mut out = SecretBytes::with_capacity(4096);
    let mut values = leaves.list.iter().zip(plains);
    for line in lines {
        let name = match line {
            Line::Comment(comment) => {
                out.push(b"#");
                out.push(comment.as_bytes());
                out.push(b"\n");
                continue;
            }
            Line::EncryptedComment => None,
            Line::Variable(name) => Some(name),
        };
        let Some((leaf, plain)) = values.next() else { break };
        match name {
            Some(name) => {
                out.push(name.as_bytes());
                out.push(b"=");
            }
            None => out.push(b"#"),
        }
        let value = match (&leaf.content, plain) {
            (_, Some(plain)) => super::untyped(plain),
            (Content::Text(text) | Content::Other(text) | Content::Comment(text, _), None) => {
                SecretBytes::from(text.as_str())
            }
        };
        match name {
            Some(_) => {
                for (nth, part) in value.as_bytes().split(|byte| *byte == b'\n').enumerate() {
                    out.push(if nth == 0 { b"" } else { b"\\n" });
                    out.push(part);
                }
            }
            None => out.push(value.as_bytes()),
        }
        out.push(b"\n");
    }
    Ok(out)
}
