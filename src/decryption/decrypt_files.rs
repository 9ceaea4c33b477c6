//! Decrypts the encrypted files of a tree, within its memory limit.
//!
//! In: a tree and keys. Out: the tree in which encrypted files are plain, or keep the reason why
//! they are not; and the data keys that servers have to be asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use moorline_sops::{Format, KeyHolder, SecretBytes, SopsError};
use serde_json::Value;

use super::DecryptionKeys;
use super::services::{Refusals, ServiceHolder, ServiceKeys, WantedKey};
use crate::tree::{DecryptedBytes, FileTree, MemoryLimit, MemoryLimitError, TreeEntry};
use crate::yaml::{self, Dialect};

/// Memory for the parts of an encrypted file, for each of its bytes.
const BYTES_PER_BYTE: u64 = 16;

/// Kind of a custom resource that is applied encrypted: its operator decrypts it.
const APPLIED_ENCRYPTED: &str = "SopsSecret";

/// A tree whose encrypted files are decrypted, as far as that is possible here.
#[derive(Debug)]
pub struct DecryptedFiles {
    /// The tree.
    pub tree: FileTree,
    /// Data keys that servers have to be asked for. The files that need them stay encrypted.
    pub wanted: BTreeSet<WantedKey>,
}

/// Decrypts every file of a tree that SOPS encrypted. `refusals` has the data keys that servers
/// refused.
pub fn decrypt_files(
    tree: &FileTree,
    keys: &DecryptionKeys,
    refusals: &Refusals,
) -> Result<DecryptedFiles, MemoryLimitError> {
    decrypt_all(tree, keys.holders(), &ServiceHolder::new(keys.services(), refusals))
}

/// Decrypts every file of a tree that SOPS encrypted, with the keys of these holders. No server is
/// asked.
pub fn decrypt_with_holders(
    tree: &FileTree,
    holders: Vec<&dyn KeyHolder>,
) -> Result<FileTree, MemoryLimitError> {
    let (keys, refusals) = (ServiceKeys::default(), Refusals::new());
    Ok(decrypt_all(tree, holders, &ServiceHolder::new(&keys, &refusals))?.tree)
}

fn decrypt_all<'a>(
    tree: &FileTree,
    mut holders: Vec<&'a dyn KeyHolder>,
    services: &'a ServiceHolder<'_>,
) -> Result<DecryptedFiles, MemoryLimitError> {
    holders.push(services);
    let (mut entries, mut wanted) = (Vec::new(), BTreeSet::new());
    for (path, entry) in tree.entries() {
        let TreeEntry::File(bytes) = entry else { continue };
        if !has(bytes, b"sops") || is_applied_encrypted(&tree.display_path(path), bytes, tree.memory_limit())?
        {
            continue;
        }
        let memory_limit = tree.memory_limit();
        let cost = BYTES_PER_BYTE * bytes.len() as u64;
        memory_limit.reserve(cost)?;
        memory_limit.check_running()?;
        let decrypted = decrypt(&tree.display_path(path), bytes, &holders);
        memory_limit.give_back(cost);
        let entry = match decrypted {
            Ok(None) => continue,
            Ok(Some(plain)) => {
                memory_limit.reserve(plain.as_bytes().len() as u64)?;
                TreeEntry::Decrypted(DecryptedBytes::new(plain.as_bytes()))
            }
            Err(error) => {
                wanted.append(&mut services.take_wanted());
                TreeEntry::Encrypted { bytes: Arc::clone(bytes), error: error.to_string().into() }
            }
        };
        // Of a file that another key opened, no server is asked.
        services.take_wanted();
        entries.push((Box::from(path), entry));
    }
    let tree = match entries.is_empty() {
        true => tree.clone(),
        false => tree.clone().with_entries(entries),
    };
    Ok(DecryptedFiles { tree, wanted })
}

/// Decrypts a file; none if it is not encrypted.
fn decrypt(shown: &str, bytes: &[u8], holders: &[&dyn KeyHolder]) -> Result<Option<SecretBytes>, SopsError> {
    let format = Format::of_path(shown);
    let mut read = moorline_sops::read(shown, bytes, format)?;
    if read.is_none() && format == Format::Binary && has(bytes, b"\nsops_mac=") {
        // A file of variables may have any name.
        read = moorline_sops::read(shown, bytes, Format::Dotenv)?;
    }
    let Some(file) = read else { return Ok(None) };
    let key = file.data_key(holders)?;
    file.decrypt(&key).map(Some)
}

/// True if a document of the file is a custom resource that is applied encrypted. Such a file stays
/// as it is: decrypted, the resource would be applied in plain.
fn is_applied_encrypted(shown: &str, bytes: &[u8], limit: &MemoryLimit) -> Result<bool, MemoryLimitError> {
    let is_manifest = matches!(Format::of_path(shown), Format::Yaml | Format::Json);
    if !is_manifest || !has(bytes, APPLIED_ENCRYPTED.as_bytes()) {
        return Ok(false);
    }
    let cost = yaml::estimate_file(bytes);
    limit.reserve(cost)?;
    let read = yaml::read_while(shown, bytes, Dialect::Kubectl, &|| limit.check_running().is_ok());
    limit.give_back(cost);
    limit.check_running()?;
    // A file that cannot be read is refused by its reader.
    let is_it = |value: &Value| value.get("kind").and_then(Value::as_str) == Some(APPLIED_ENCRYPTED);
    Ok(read.is_ok_and(|documents| documents.iter().any(|document| is_it(&document.value))))
}

/// True if the bytes contain others.
fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
