//! `provider` of a source: the cloud that gives the login for a ServiceAccount.
//!
//! In: YAML.
//! Out: [`CloudProvider`] and [`GitProvider`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cloud that gives a login for a registry.
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

/// A cloud that gives a login for repositories.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitProvider {
    /// Azure DevOps.
    Azure,
}
