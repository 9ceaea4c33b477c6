//! `moorline schema`: JSON schemas of everything that programs read.
//!
//! In: the name of a document. Out: its schema, or the list of all. The same schemas are in
//! config/schemas, and a test compares both, and validates real outputs.

mod change_rule;
mod clusters;
mod documents;
mod parts;

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::Streams;
use super::exit::Exit;
use super::operate::table::table;
use super::operate::write;
pub use change_rule::breaking_changes;
pub use documents::DOCUMENTS;

/// The dialect of all schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A document that programs read.
#[derive(Debug, Clone, Copy)]
pub struct Document {
    /// Its name, as in `moorline schema NAME`.
    pub name: &'static str,
    /// Its version, which is raised when a field is removed or gets another type.
    pub version: u32,
    /// The command or the path that gives it.
    pub source: &'static str,
    schema: fn() -> Value,
}

impl Document {
    /// Returns the schema.
    pub fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        schema["$schema"] = DIALECT.into();
        schema["$id"] = format!("urn:moorline:schema:{}:v{}", self.name, self.version).into();
        schema["title"] = self.source.into();
        schema
    }

    /// Returns the name of its file in config/schemas.
    pub fn file_name(&self) -> String {
        format!("{}.v{}.json", self.name, self.version)
    }
}

/// Returns the document of a name.
pub(super) fn find_document(name: &str) -> Option<&'static Document> {
    DOCUMENTS.iter().find(|document| document.name == name)
}

/// Print the JSON schema of a command's output, or of the status page's JSON
///
/// Without a name, all of them are listed. A version is raised when a field is removed or gets
/// another type; fields can be added at any time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline schema
  moorline schema plan > plan.v1.json")]
pub(super) struct SchemaArgs {
    /// The document, such as plan or status
    name: Option<String>,
}

pub(super) fn run(arguments: &SchemaArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    match &arguments.name {
        None => {
            let row = |document: &Document| {
                vec![document.name.to_owned(), format!("v{}", document.version), document.source.to_owned()]
            };
            write(&table(&DOCUMENTS.iter().map(row).collect::<Vec<_>>()), streams)?;
        }
        Some(name) => {
            let document = find_document(name);
            let document =
                document.ok_or_else(|| anyhow!("there is no schema {name}; `moorline schema` lists them"))?;
            writeln!(streams.data, "{:#}", document.schema())?;
        }
    }
    Ok(Exit::Done)
}

/// Returns names and versions of all schemas.
pub(super) fn list_documents() -> Value {
    let row = |document: &Document| json!({"name": document.name, "version": document.version, "source": document.source});
    DOCUMENTS.iter().map(row).collect()
}
