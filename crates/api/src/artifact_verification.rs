//! `verify` of an artifact and of a chart in a registry: those who may sign it.
//!
//! In: YAML.
//! Out: [`ArtifactVerification`], which the controller validates again.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::SecretRef;

/// Required cosign signatures, and their trusted signers: owners of keys, or identities.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.keys) != has(self.keyless)")
    .message("write exactly one of keys and keyless"),
    validation = Rule::new("has(self.keyless) == has(self.trustedRoot)")
    .message("write trustedRoot with keyless, and only with it: it holds the authorities that prove an identity"))]
pub struct ArtifactVerification {
    /// The owner of one of these keys must have signed. Transparency logs are not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<ArtifactKeys>,

    /// One of these identities must have signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub keyless: Option<Vec<SignerIdentity>>,

    /// The trust root of the Sigstore installation whose certificates prove the identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_root: Option<TrustedRoot>,
}

/// Trusted public keys.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactKeys {
    /// The Secret in the Sync's namespace with public keys in PEM, each in an entry that ends with .pub; other entries are not
    /// read.
    pub secret_ref: SecretRef,
}

/// An identity that may sign.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq)]
pub struct SignerIdentity {
    /// The service that vouches for the subject, such as `https://token.actions.githubusercontent.com`.
    #[schemars(length(min = 1, max = 1024))]
    pub issuer: String,

    /// The exact subject, such as the email address of a person or the URL of a workflow with its ref.
    #[schemars(length(min = 1, max = 1024))]
    pub subject: String,
}

/// The object with the file `trusted_root.json`.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMapRef) != has(self.secretRef)")
    .message("write exactly one of configMapRef and secretRef"))]
pub struct TrustedRoot {
    /// The ConfigMap in the Sync's namespace with the entry trusted_root.json. It is read with the permissions of the Sync, and
    /// watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapRef>,

    /// The Secret in the Sync's namespace with the entry trusted_root.json.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// A ConfigMap in the Sync's own namespace.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct ConfigMapRef {
    /// The name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ConfigMap in the Sync's own namespace, such as sigstore-root"))]
    pub name: String,
}
