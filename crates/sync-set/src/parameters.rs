//! One set of parameters.
//!
//! In: the values that generators give. Out: [`Parameters`]. The cluster beside the values comes
//! from a generator of clusters alone, so no list and no file can name a Secret.

use moorline_api::ClusterSecretRef;
use serde_json::{Map, Value};

/// One set of parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parameters {
    /// The values that expressions see.
    pub(crate) values: Map<String, Value>,
    /// The Secret that a generator of clusters found.
    pub(crate) cluster: Option<ClusterSecretRef>,
}

impl Parameters {
    /// Returns a set of these values, without a cluster.
    pub(crate) fn of_values(values: Map<String, Value>) -> Self {
        Self { values, cluster: None }
    }

    /// True unless the parameter `cluster.name` is another one than the Secret.
    pub(crate) fn agrees_with_cluster(&self) -> bool {
        let shown = self.values.get("cluster").and_then(|cluster| cluster.get("name"));
        self.cluster.as_ref().is_none_or(|cluster| shown.and_then(Value::as_str) == Some(&cluster.name))
    }
}
