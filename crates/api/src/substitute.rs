//! `spec.render.substitute`: variables of manifests and the sources of their values.
//!
//! In: YAML.
//! Out: [`SubstituteSpec`], which the controller validates again.

#![expect(
    unreachable_pub,
    reason = "the derive of the schema copies each struct into a function, with its pub"
)]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The variables that are replaced in manifests once they are built, and where their values are.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, Default, PartialEq)]
pub struct SubstituteSpec {
    /// Variables and their values. They take precedence over those of `from`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    #[x_kube(validation = Rule::new("self.all(name, name.matches('^[A-Za-z_][A-Za-z0-9_]*$'))")
        .message("name variables with letters, digits and _, and no digit first, such as CLUSTER_NAME"))]
    pub vars: BTreeMap<String, VariableText>,

    /// ConfigMaps and Secrets in the Sync's own namespace whose keys are variables; for a repeated key the last one takes precedence. They are
    /// read with the permissions of the Sync, and watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub from: Vec<ValuesFrom>,
}

/// The value of a variable.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default, PartialEq)]
pub struct VariableText(#[schemars(length(max = 4096))] pub String);

/// An object whose keys are variables.
#[derive(Serialize, Deserialize, KubeSchema, Debug, Clone, PartialEq)]
pub struct ValuesFrom {
    /// ConfigMap or Secret.
    pub kind: ValuesKind,

    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("write the name of a ConfigMap or Secret in the Sync's own namespace, such as cluster-settings"))]
    pub name: String,

    /// If true, a missing object is ignored. Otherwise the Sync reports it and keeps the last values.
    #[serde(default)]
    pub optional: bool,
}

/// Kind of an object with values.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValuesKind {
    /// Values that may be shown.
    ConfigMap,
    /// Values that are never shown; objects that contain one are not quoted either.
    Secret,
}

impl ValuesKind {
    /// Returns the kind, such as `ConfigMap`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the plural resource name, such as `configmaps`.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}
