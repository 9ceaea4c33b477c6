//! `spec.decryption`: keys for the encrypted files of a `Sync`.
//!
//! In: YAML.
//! Out: [`DecryptionSpec`], which the controller validates again.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
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
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SopsSpec {
    /// The Secret in the Sync's namespace with the keys: identities of age as NAME.agekey, private keys of OpenPGP as NAME.asc,
    /// a token of Vault as sops.vault-token, credentials of clouds as sops.aws-kms, sops.gcp-kms and sops.azure-kv. It is read with the
    /// permissions of the Sync, and watched. Without it, only keys of clouds decrypt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,

    /// The ServiceAccount in the Sync's namespace whose tokens AWS KMS, Google Cloud KMS and Azure Key Vault accept, where the Secret has
    /// no credentials; defaults to spec.serviceAccountName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ServiceAccount in the Sync's own namespace, such as decrypter"))]
    pub service_account_name: Option<String>,
}
