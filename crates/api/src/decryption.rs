//! `spec.decryption`: keys for the encrypted files of a `Sync`.
//!
//! In: YAML.
//! Out: [`DecryptionSpec`], which the controller validates again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::SecretRef;

/// Decryption of encrypted files.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct DecryptionSpec {
    /// Files that SOPS encrypted, with the ending .yaml, .yml, .json, .env or .ini, or any other as a binary file.
    pub sops: SopsSpec,
}

/// Keys for files that SOPS encrypted.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SopsSpec {
    /// The Secret in the Sync's namespace with the keys: identities of age as NAME.agekey, private keys of OpenPGP as NAME.asc,
    /// a token of Vault as sops.vault-token. It is read with the permissions of the Sync, and watched.
    pub secret_ref: SecretRef,
}
