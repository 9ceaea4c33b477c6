//! Finds the paths at which kinds keep their number of replicas.
//!
//! In: kinds.
//! Out: JSON pointers, for kinds with a scale subresource. Built-in kinds use one path; for others
//! it is in their CustomResourceDefinition, which is read once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::Cluster;
use super::kinds::{ServedKind, escape};
use crate::api_client::ApiRequest;
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_engine::desired::{ReplicaPaths, parse_replica_paths};
use moorline_metrics::RequestClass;

/// The path, unless a definition says otherwise.
const USUAL: &str = "/spec/replicas";
/// API groups of the built-in kinds that can be scaled.
const BUILT_IN: [&str; 2] = ["", "apps"];

/// Paths in definitions, by version.
pub(super) type Defined = HashMap<GroupKind, BTreeMap<Box<str>, Box<str>>>;

impl Cluster {
    /// Returns the replicas paths of these kinds and versions, if they can be scaled.
    pub async fn replicas_paths(
        &self,
        wanted: BTreeSet<(GroupKind, Box<str>)>,
    ) -> Result<ReplicaPaths, ApiError> {
        let kinds = self.kinds();
        let mut paths = ReplicaPaths::new();
        for (kind, version) in wanted {
            let Some(served) = kinds.get(&kind).filter(|served| !served.scale_versions.is_empty()) else {
                continue;
            };
            let path = match BUILT_IN.contains(&&*kind.group) {
                true => Some(USUAL.into()),
                false => self.defined(&kind, served, &version).await?,
            };
            if let Some(path) = path {
                paths.insert((kind, version), path);
            }
        }
        Ok(paths)
    }

    /// Forgets the definitions of these kinds; they are read again when needed.
    pub async fn forget_replicas_paths(&self, kinds: &BTreeSet<GroupKind>) {
        self.0.defined.lock().await.retain(|kind, _| !kinds.contains(kind));
    }

    /// Returns the path in the definition of a kind. A version without a scale subresource is
    /// treated like the others.
    async fn defined(
        &self,
        kind: &GroupKind,
        served: &ServedKind,
        version: &str,
    ) -> Result<Option<Box<str>>, ApiError> {
        let mut known = self.0.defined.lock().await;
        if !known.contains_key(kind) {
            known.insert(kind.clone(), self.definition(kind, served).await?);
        }
        let paths = known.get(kind);
        Ok(paths.and_then(|paths| paths.get(version).or_else(|| paths.values().next()).cloned()))
    }

    async fn definition(
        &self,
        kind: &GroupKind,
        served: &ServedKind,
    ) -> Result<BTreeMap<Box<str>, Box<str>>, ApiError> {
        let name = escape(&format!("{}.{}", served.plural, kind.group));
        let uri = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        match self.0.wire.send(ApiRequest::new(RequestClass::Verify, "get", uri)).await {
            Ok(reply) => Ok(parse_replica_paths(&reply.json::<Value>()?)),
            // A kind of an aggregated API server, or a definition that may not be read.
            Err(failure) if matches!(failure.code(), Some(403 | 404)) => {
                tracing::debug!(%kind, %failure, "cannot read its CustomResourceDefinition; its replicas are assumed to be at {USUAL}");
                Ok(served.scale_versions.iter().map(|version| (version.clone(), USUAL.into())).collect())
            }
            Err(failure) => Err(failure),
        }
    }
}
