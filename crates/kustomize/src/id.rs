//! Ids of resources during a build.
//!
//! Unlike an [`ObjectId`](moorline_core::object::ObjectId), an id of kustomize contains the
//! version, and its namespace depends on whether the kind is known to be cluster-scoped.

use super::schema::{Schemas, Scope};

/// Group, version and kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Gvk {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl Gvk {
    pub(super) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    pub(super) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// True if the selection `by` matches; its empty parts match everything.
    pub(super) fn is_selected(&self, by: &Self) -> bool {
        let fits = |ours: &str, wanted: &str| wanted.is_empty() || ours == wanted;
        fits(&self.group, &by.group) && fits(&self.version, &by.version) && fits(&self.kind, &by.kind)
    }

    pub(super) fn is_cluster_scoped(&self) -> bool {
        Schemas::builtin().scope_of(&self.api_version(), &self.kind) == Some(Scope::Cluster)
    }

    /// Sort key among kinds of the same rank.
    pub(super) fn sort_text(&self) -> String {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        format!("{}_{}_{}", or(&self.group, "~G"), or(&self.version, "~V"), or(&self.kind, "~K"))
    }
}

/// Id of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ResourceId {
    pub(super) gvk: Gvk,
    pub(super) name: String,
    /// As written; empty if there is none.
    pub(super) namespace: String,
}

/// Effective namespace of a cluster-scoped object.
pub(super) const NO_NAMESPACE: &str = "_non_namespaceable_";
const DEFAULT_NAMESPACE: &str = "default";

impl ResourceId {
    /// Effective namespace, with the default filled in.
    pub(super) fn namespace(&self) -> &str {
        match self.namespace.as_str() {
            _ if self.gvk.is_cluster_scoped() => NO_NAMESPACE,
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.gvk == other.gvk && self.namespace() == other.namespace()
    }

    /// Returns the id with its effective namespace; equal ids have equal keys.
    pub(super) fn key(&self) -> Self {
        Self { gvk: self.gvk.clone(), name: self.name.clone(), namespace: self.namespace().to_owned() }
    }
}

impl std::fmt::Display for ResourceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.gvk.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{} ({})", self.name, self.gvk.api_version())
    }
}
