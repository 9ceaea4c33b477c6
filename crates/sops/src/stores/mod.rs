//! Formats of files: each finds the leaves and the metadata, and writes the plain file.
//!
//! In: the bytes of a file, and later the plain value of each encrypted leaf. Out: the leaves with
//! the metadata, and the bytes of the plain file.

mod dotenv;
mod ini;
mod json;
mod json_text;
mod yaml;
mod yaml_text;

use super::error::{MAX_VALUES, Problem, Refusal};
use super::format::Format;
use super::leaves::Leaves;
use super::node::Node;
use super::secret::SecretBytes;
use super::value::{Kind, Plain};

/// A file with its parts.
#[derive(Debug)]
pub(crate) struct Loaded<'a> {
    pub(crate) leaves: Leaves,
    /// The tree below `sops`.
    pub(crate) metadata: Node,
    pub(crate) metadata_line: u32,
    pub(crate) layout: Layout<'a>,
}

/// All of a file but the leaves and the metadata.
#[derive(Debug)]
pub(crate) enum Layout<'a> {
    Yaml(yaml::YamlLayout<'a>),
    Json(Node),
    Binary(Node),
    Dotenv(Vec<dotenv::Line>),
    Ini(Vec<ini::Section>),
}

/// Reads an encrypted file; none if it has no metadata.
pub(crate) fn load(bytes: &[u8], format: Format) -> Result<Option<Loaded<'_>>, Refusal> {
    match format {
        Format::Yaml => yaml::load(bytes),
        Format::Json => json::load(bytes),
        Format::Binary => Ok(json::load_binary(bytes)),
        Format::Dotenv => dotenv::load(bytes),
        Format::Ini => ini::load(bytes),
    }
}

impl Layout<'_> {
    /// Writes the plain file. `plains` has a value for each leaf that was encrypted.
    pub(crate) fn write(&self, leaves: &Leaves, plains: &[Option<Plain>]) -> Result<SecretBytes, Refusal> {
        match self {
            Self::Yaml(layout) => layout.write(leaves, plains),
            Self::Json(root) => json::write(root, leaves, plains),
            Self::Binary(root) => json::write_binary(root, leaves, plains),
            Self::Dotenv(lines) => dotenv::write(lines, leaves, plains),
            Self::Ini(sections) => ini::write(sections, leaves, plains),
        }
    }
}

/// Number of a line, from 1, for the line at an index.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns the bytes as text.
fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = number(before.iter().filter(|byte| **byte == b'\n').count());
        Refusal::new(line, Problem::Syntax("the text is not UTF-8".into()))
    })
}

/// Returns the bytes as text with a bounded number of lines.
fn bounded_lines(bytes: &[u8]) -> Result<&str, Refusal> {
    match bytes.iter().filter(|byte| **byte == b'\n').nth(MAX_VALUES) {
        Some(_) => {
            Err(Refusal::new(number(MAX_VALUES), Problem::TooMany { what: "lines", most: MAX_VALUES }))
        }
        None => text(bytes),
    }
}

/// Returns a decrypted value as the formats without types have it.
fn untyped(plain: &Plain) -> SecretBytes {
    match plain.kind {
        Kind::Text | Kind::Int | Kind::Time | Kind::Comment => {
            let mut copy = SecretBytes::with_capacity(plain.text.as_bytes().len());
            copy.push(plain.text.as_bytes());
            copy
        }
        Kind::Float => SecretBytes::from(super::numbers::general_upper(plain.as_float()).as_str()),
        Kind::Bool => SecretBytes::from(if plain.is_true() { "true" } else { "false" }),
    }
}
