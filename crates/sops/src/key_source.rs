//! The keys that a file is encrypted for, with all that a service needs to decrypt the data key.

use std::collections::BTreeMap;

use super::error::shown;

/// One key of a file, and the data key as encrypted by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeySource {
    /// A recipient of age: X25519, an ssh key, or a plugin.
    Age {
        /// The recipient, such as `age1…` or `ssh-ed25519 …`.
        recipient: String,
        /// The data key in an armored file of age.
        enc: String,
    },
    /// A key of OpenPGP.
    Pgp {
        /// The fingerprint.
        fingerprint: String,
        /// The data key in an armored message.
        enc: String,
    },
    /// A key of AWS KMS.
    AwsKms {
        /// The ARN of the key; it names the region.
        arn: String,
        /// The ARN of a role to assume first; may be empty.
        role: String,
        /// The encryption context.
        context: BTreeMap<String, String>,
        /// The profile of the person who encrypted; may be empty.
        profile: String,
        /// The data key as `CiphertextBlob`, in base64.
        enc: String,
    },
    /// A key of Google Cloud KMS.
    GcpKms {
        /// The resource, such as `projects/p/locations/l/keyRings/r/cryptoKeys/k`.
        resource: String,
        /// The data key as `ciphertext`, in base64.
        enc: String,
    },
    /// A key of Azure Key Vault.
    AzureKeyVault {
        /// The address of the vault.
        vault_url: String,
        /// The name of the key.
        name: String,
        /// The version of the key; may be empty.
        version: String,
        /// The data key, encrypted by RSA-OAEP-256, in base64 for addresses.
        enc: String,
    },
    /// A key of the transit engine of Vault or OpenBao.
    Vault {
        /// The address of the server.
        address: String,
        /// The path of the engine, such as `transit`.
        engine_path: String,
        /// The name of the key.
        key_name: String,
        /// The data key as `ciphertext`, such as `vault:v1:…`.
        enc: String,
    },
    /// A key of Huawei Cloud KMS.
    HuaweiKms {
        /// The key, such as `region:id`.
        key_id: String,
        /// The data key as `cipher_text`.
        enc: String,
    },
}

impl KeySource {
    /// Returns a short name of the key for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Age { recipient, .. } => shown(recipient).into_string(),
            Self::Pgp { fingerprint, .. } => format!("OpenPGP key {}", shown(fingerprint)),
            Self::AwsKms { arn, .. } => format!("AWS key {}", shown(arn)),
            Self::GcpKms { resource, .. } => format!("GCP key {}", shown(resource)),
            Self::AzureKeyVault { vault_url, name, .. } => {
                format!("Azure key {} of {}", shown(name), shown(vault_url))
            }
            Self::Vault { address, key_name, .. } => {
                format!("Vault key {} of {}", shown(key_name), shown(address))
            }
            Self::HuaweiKms { key_id, .. } => format!("Huawei key {}", shown(key_id)),
        }
    }

    /// Returns the order in which the keys of a group are tried: those without a service first.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Age { .. } => 0,
            Self::Pgp { .. } => 1,
            Self::AwsKms { .. }
            | Self::GcpKms { .. }
            | Self::AzureKeyVault { .. }
            | Self::Vault { .. }
            | Self::HuaweiKms { .. } => 2,
        }
    }
}
