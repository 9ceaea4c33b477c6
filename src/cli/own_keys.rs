//! Keys of the person who runs a command, for files that SOPS encrypted.
//!
//! In: the variables and the file that the program `sops` reads. Out: the keys, or the reason why
//! there are none. Nothing is decrypted unless the flag `--decrypt` is given.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::decryption::{DecryptionKeys, Refusals, decrypt_files};
use crate::tree::FileTree;

/// Variable with identities of age.
const IDENTITIES: &str = "SOPS_AGE_KEY";
/// Variable with the path of a file with identities.
const FILE: &str = "SOPS_AGE_KEY_FILE";

/// Returns the tree with its encrypted files decrypted.
pub(super) fn decrypt_with_own_keys(tree: &FileTree) -> anyhow::Result<FileTree> {
    // Only the daemon asks servers for keys.
    Ok(decrypt_files(tree, &own_keys()?, &Refusals::new())?.tree)
}

/// Reads the keys from all places in which there are some.
fn own_keys() -> anyhow::Result<DecryptionKeys> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut found = Vec::new();
    if let Some(text) = variable(IDENTITIES) {
        found.push((IDENTITIES.to_owned(), text.into_encoded_bytes()));
    }
    let named = variable(FILE).map(PathBuf::from);
    let own = default_file(variable("XDG_CONFIG_HOME"), variable("HOME")).filter(|path| path.exists());
    for path in named.into_iter().chain(own) {
        let bytes = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        found.push((path.display().to_string(), bytes));
    }
    if found.is_empty() {
        bail!(
            "--decrypt: there is no key; set {FILE} or {IDENTITIES}, or put identities of age into ~/.config/sops/age/keys.txt"
        );
    }
    let entries = found.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    DecryptionKeys::from_identities(entries).map_err(|error| anyhow::anyhow!("--decrypt: {error}"))
}

/// Returns the file in which `sops` looks for identities.
fn default_file(config: Option<std::ffi::OsString>, home: Option<std::ffi::OsString>) -> Option<PathBuf> {
    let config = config.map(PathBuf::from).or_else(|| Some(PathBuf::from(home?).join(".config")));
    Some(config?.join("sops/age/keys.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_is_that_of_sops() {
        let file = |config: Option<&str>, home: Option<&str>| {
            default_file(config.map(Into::into), home.map(Into::into)).map(|path| path.display().to_string())
        };
        assert_eq!(file(None, Some("/h/a")).as_deref(), Some("/h/a/.config/sops/age/keys.txt"));
        assert_eq!(file(Some("/c"), Some("/h/a")).as_deref(), Some("/c/sops/age/keys.txt"));
        assert_eq!(file(None, None), None);
    }
}
