//! `provider` of a source: the cloud that gives the login for a ServiceAccount.
//!
//! In: YAML.
//! Out: [`CloudProvider`] and [`GitProvider`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cloud that gives the login for a registry, in exchange for a token of a ServiceAccount.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudProvider {
    /// Elastic Container Registry of Amazon Web Services.
    #[serde(rename = "AWS")]
    Aws,
    /// Artifact Registry of Google Cloud.
    #[serde(rename = "GCP")]
    Gcp,
    /// Container Registry of Microsoft Azure.
    Azure,
}

/// The cloud that gives the login for repositories, in exchange for a token of a ServiceAccount: Azure for Azure DevOps.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitProvider {
    /// Azure DevOps.
    Azure,
}
