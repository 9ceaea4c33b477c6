//! The CustomResourceDefinitions of all kinds of Moorline, as `moorline crd` prints them,
//! `config/crd/` holds them and the tests install them.
//!
//! In: the files of `config/crd/`, which the build script compresses. The code that generates them
//! from the types is larger than that, and is for the tests alone.
//! Out: the definitions as JSON.

use miniz_oxide::inflate::decompress_to_vec_with_limit;
use moorline_yaml::Dialect;
use serde::de::Error as _;
use serde_json::{Error, Value};

/// The compressed file of a definition.
macro_rules! packed {
    ($plural:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $plural, ".deflate"))
    };
}

/// Maximum size of a file, uncompressed.
const MAX_FILE: usize = 1 << 20;

/// Returns the CustomResourceDefinition of Sync as JSON.
pub fn definition() -> Result<Value, Error> {
    unpacked(packed!("syncs"))
}

/// Returns the CustomResourceDefinition of Notifier as JSON.
pub fn notifier_definition() -> Result<Value, Error> {
    unpacked(packed!("notifiers"))
}

/// Returns the CustomResourceDefinition of ChangeWindow as JSON.
pub fn change_window_definition() -> Result<Value, Error> {
    unpacked(packed!("changewindows"))
}

/// Returns the CustomResourceDefinition of NamespaceChangeWindow as JSON.
pub fn namespace_change_window_definition() -> Result<Value, Error> {
    unpacked(packed!("namespacechangewindows"))
}

/// Returns the CustomResourceDefinition of SyncSet as JSON.
pub fn sync_set_definition() -> Result<Value, Error> {
    unpacked(packed!("syncsets"))
}

/// Returns all CustomResourceDefinitions as JSON, that of Sync first.
pub fn definitions() -> Result<[Value; 5], Error> {
    Ok([
        definition()?,
        notifier_definition()?,
        sync_set_definition()?,
        change_window_definition()?,
        namespace_change_window_definition()?,
    ])
}

fn unpacked(packed: &[u8]) -> Result<Value, Error> {
    let text = decompress_to_vec_with_limit(packed, MAX_FILE).map_err(Error::custom)?;
    let documents = moorline_yaml::read("config/crd", &text, Dialect::Kubectl).map_err(Error::custom)?;
    let mut values = documents.into_iter().map(|document| document.value);
    values.next().ok_or_else(|| Error::custom("config/crd has an empty file"))
}

#[cfg(test)]
mod tests;
