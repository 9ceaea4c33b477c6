//! Keys of the person who runs a command, for files that SOPS encrypted.
//!
//! In: the variables, the files and the keyring that the program `sops` uses. Out: the tree with
//! its encrypted files decrypted. Nothing is decrypted unless the flag `--decrypt` is given.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use moorline_sops::{KeyHolder, KeyRefusal, KeySource, SecretBytes};

use super::gpg::Gpg;
use super::own_ssh_keys::{OwnSshKeys, is_of_ssh};
use crate::decryption::{DecryptionKeys, decrypt_with_holders};
use crate::tree::FileTree;

/// Variable with identities of age.
const IDENTITIES: &str = "SOPS_AGE_KEY";
/// Variable with the path of a file with identities.
const FILE: &str = "SOPS_AGE_KEY_FILE";
/// Variable with the path of a private key of ssh.
const SSH_FILE: &str = "SOPS_AGE_SSH_PRIVATE_KEY_FILE";
/// Variable with the program of GnuPG.
const GPG: &str = "SOPS_GPG_EXEC";

/// Returns the tree with its encrypted files decrypted. Only the daemon asks servers for keys.
pub(super) fn decrypt_with_own_keys(tree: &FileTree) -> anyhow::Result<FileTree> {
    let identities = own_identities()?;
    let ssh = OwnSshKeys::new(variable(SSH_FILE).map(PathBuf::from), variable("HOME").map(PathBuf::from));
    let gpg = Gpg::new(variable(GPG));
    let mut holders: Vec<&dyn KeyHolder> = match &identities {
        Some(identities) => identities.holders(),
        None => vec![&NoIdentities],
    };
    holders.push(&ssh);
    holders.push(&gpg);
    Ok(decrypt_with_holders(tree, holders)?)
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Reads the identities of age from all places in which there are some.
fn own_identities() -> anyhow::Result<Option<DecryptionKeys>> {
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
        return Ok(None);
    }
    let entries = found.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let read = DecryptionKeys::from_identities(entries);
    read.map(Some).map_err(|error| anyhow::anyhow!("--decrypt: {error}"))
}

/// Holder in place of identities of age, if the person has none.
struct NoIdentities;

impl KeyHolder for NoIdentities {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        match source {
            KeySource::Age { recipient, .. } if !is_of_ssh(recipient) => Err(KeyRefusal(format!(
                "--decrypt: there is no key; set {FILE} or {IDENTITIES}, or put identities of age into ~/.config/sops/age/keys.txt"
            ))),
            _ => Ok(None),
        }
    }
}

/// Returns the file in which `sops` looks for identities.
fn default_file(config: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
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
