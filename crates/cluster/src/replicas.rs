//! Finds the paths at which kinds keep their number of replicas.
//!
//! In: kinds.
//! Out: JSON pointers, for kinds with a scale subresource. Built-in kinds use one path; for others
//! it is in their CustomResourceDefinition, which is read once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

use super::kinds::{Kinds, ServedKind, escape};
use crate::api_client::{ApiClient, ApiRequest};
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_engine::desired::{ReplicaPaths, parse_replica_paths};
use moorline_metrics::RequestClass;

/// The path, unless a definition says otherwise.
const USUAL: &str = "/spec/replicas";
/// API groups of the built-in kinds that can be scaled.
const BUILT_IN: [&str; 2] = ["", "apps"];

/// Paths in definitions, by kind and version.
type DefinedPaths = HashMap<GroupKind, BTreeMap<Box<str>, Box<str>>>;

/// Cache of the paths in definitions.
#[derive(Debug, Default)]
pub(super) struct ReplicaPathCache(Mutex<DefinedPaths>);

impl ReplicaPathCache {
    pub(super) async fn lock(&self) -> MutexGuard<'_, DefinedPaths> {
        self.0.lock().await
    }

    /// Returns the paths of these kinds and versions, if they can be scaled.
    pub(super) async fn find(
        &self,
        wire: &ApiClient,
        kinds: &Kinds,
        wanted: BTreeSet<(GroupKind, Box<str>)>,
    ) -> Result<ReplicaPaths, ApiError> {
        let mut paths = ReplicaPaths::new();
        for (kind, version) in wanted {
            let Some(served) = kinds.get(&kind).filter(|served| !served.scale_versions.is_empty()) else {
                continue;
            };
            let path = match BUILT_IN.contains(&&*kind.group) {
                true => Some(USUAL.into()),
                false => self.defined(wire, (&kind, served), &version).await?,
            };
            if let Some(path) = path {
                paths.insert((kind, version), path);
            }
        }
        Ok(paths)
    }

    /// Returns the path in the definition of a kind. A version without a scale subresource is
    /// treated like the others.
    async fn defined(
        &self,
        wire: &ApiClient,
        (kind, served): (&GroupKind, &ServedKind),
        version: &str,
    ) -> Result<Option<Box<str>>, ApiError> {
        let mut known = self.lock().await;
        if !known.contains_key(kind) {
            known.insert(kind.clone(), read_definition(wire, kind, served).await?);
        }
        let paths = known.get(kind);
        Ok(paths.and_then(|paths| paths.get(version).or_else(|| paths.values().next()).cloned()))
    }
}

/// Reads the paths of all versions of a kind.
async fn read_definition(
    wire: &ApiClient,
    kind: &GroupKind,
    served: &ServedKind,
) -> Result<BTreeMap<Box<str>, Box<str>>, ApiError> {
    let name = escape(&format!("{}.{}", served.plural, kind.group));
    let uri = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    match wire.send(ApiRequest::new(RequestClass::Verify, "get", uri)).await {
        Ok(reply) => Ok(parse_replica_paths(&reply.json::<Value>()?)),
        // A kind of an aggregated API server, or a definition that may not be read.
        Err(failure) if matches!(failure.code(), Some(403 | 404)) => {
            tracing::debug!(%kind, %failure, "cannot read its CustomResourceDefinition; its replicas are assumed to be at {USUAL}");
            Ok(served.scale_versions.iter().map(|version| (version.clone(), USUAL.into())).collect())
        }
        Err(failure) => Err(failure),
    }
}
