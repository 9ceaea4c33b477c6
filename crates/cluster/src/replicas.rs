//! Where the objects of a kind keep the number of their replicas.
//!
//! In: kinds. Out: JSON pointers, for those that others can scale. The server's own kinds agree about it; for others
//! their CustomResourceDefinition says it, which is read once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::Cluster;
use super::kinds::{Served, escape};
use super::wire::{Call, Failure};
use moorline_core::object::GroupKind;
use moorline_engine::desired::{ReplicasPaths, replicas_paths};
use moorline_metrics::Class;

/// Where it is, unless a definition says otherwise.
const USUAL: &str = "/spec/replicas";
/// The groups of the server's own kinds that can be scaled.
const BUILT_IN: [&str; 2] = ["", "apps"];

/// What definitions say, by version.
pub(super) type Defined = HashMap<GroupKind, BTreeMap<Box<str>, Box<str>>>;

impl Cluster {
    /// Where objects of these kinds and versions keep their numbers, if others can scale them.
    pub async fn replicas_paths(
        &self,
        wanted: BTreeSet<(GroupKind, Box<str>)>,
    ) -> Result<ReplicasPaths, Failure> {
        let kinds = self.kinds();
        let mut paths = ReplicasPaths::new();
        for (kind, version) in wanted {
            let Some(served) = kinds.get(&kind).filter(|served| !served.scales.is_empty()) else { continue };
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

    /// The definitions of these kinds are read anew when they are needed.
    pub async fn forget_replicas_paths(&self, kinds: &BTreeSet<GroupKind>) {
        self.0.defined.lock().await.retain(|kind, _| !kinds.contains(kind));
    }

    /// What the definition of a kind says. A version that cannot be scaled itself is taken to be like the others.
    async fn defined(
        &self,
        kind: &GroupKind,
        served: &Served,
        version: &str,
    ) -> Result<Option<Box<str>>, Failure> {
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
        served: &Served,
    ) -> Result<BTreeMap<Box<str>, Box<str>>, Failure> {
        let name = escape(&format!("{}.{}", served.plural, kind.group));
        let uri = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        match self.0.wire.send(Call::new(Class::Verify, "get", uri)).await {
            Ok(reply) => Ok(replicas_paths(&reply.json::<Value>()?)),
            // A kind of another API server, or one whose definition others keep to themselves.
            Err(failure) if matches!(failure.code(), Some(403 | 404)) => {
                tracing::debug!(%kind, %failure, "its replicas are taken to be at {USUAL}");
                Ok(served.scales.iter().map(|version| (version.clone(), USUAL.into())).collect())
            }
            Err(failure) => Err(failure),
        }
    }
}
