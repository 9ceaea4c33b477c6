//! Registry of the served resources: built-in kinds and those of definitions.
//!
//! In: the table of built-in kinds; definitions as they are created and deleted.
//! Out: the [`Resource`] of a path, with the schema and the options of each of its versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::convert::ConversionWebhook;
use super::kinds::{self, Kind};
use super::schema::Schema;
use crate::cel_rules::CelRules;
use crate::status_error::ErrorSubject;

/// A resource type that is served.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) plural: Box<str>,
    pub(crate) singular: Box<str>,
    pub(crate) short_names: Vec<Box<str>>,
    pub(crate) categories: Vec<Box<str>>,
    pub(crate) namespaced: bool,
    /// All versions, the preferred one first; includes those that are stored but not served.
    pub(crate) versions: Vec<Version>,
    /// Name under which its objects are stored.
    pub(crate) storage_key: Arc<str>,
    pub(crate) origin: Origin,
}

/// Origin of a resource.
#[derive(Debug)]
pub(crate) enum Origin {
    Builtin(&'static Kind),
    Definition {
        /// Index of the version in which objects are stored.
        stored: usize,
        /// Revision since which the current definition applies.
        since: u64,
        /// Conversion webhook, if the definition has one.
        hook: Option<Arc<ConversionWebhook>>,
    },
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: Box<str>,
    pub(crate) is_served: bool,
    pub(crate) schema: Schema,
    /// CEL rules of a definition.
    pub(crate) rules: Option<CelRules>,
    pub(crate) has_status: bool,
    /// Paths of the scale subresource, if it has one.
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Option<Value>,
    /// Fields that field selectors can use.
    pub(crate) selectable: Vec<Box<str>>,
    /// OpenAPI schema as in the definition, with descriptions.
    pub(crate) described: Option<Value>,
}

/// Paths of the replica counts, as lists of field names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec: Vec<Box<str>>,
    pub(crate) status: Vec<Box<str>>,
    pub(crate) selector: Option<Vec<Box<str>>>,
}

/// All served resources, by group and plural.
#[derive(Debug, Default)]
pub(crate) struct ResourceRegistry(BTreeMap<(Box<str>, Box<str>), Arc<Resource>>);

impl ResourceRegistry {
    /// Returns the resources of a new server.
    pub(crate) fn builtin() -> Self {
        let mut served = Self::default();
        for kind in kinds::builtin_kinds() {
            served.insert(of_kind(kind));
        }
        served
    }

    /// Returns the resource of a path, and the index of the requested version.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<(Arc<Resource>, usize)> {
        let resource = self.0.get(&(group.into(), plural.into()))?;
        let is_meant = |known: &Version| known.is_served && *known.name == *version;
        let at = resource.versions.iter().position(is_meant)?;
        Some((resource.clone(), at))
    }

    /// Returns the resource of a kind.
    pub(crate) fn of_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.0.values().find(|resource| *resource.group == *group && *resource.kind == *kind)
    }

    /// Returns all resources, ordered by group and plural.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.0.values()
    }

    /// Adds or replaces a resource.
    pub(crate) fn insert(&mut self, resource: Resource) {
        self.0.insert((resource.group.clone(), resource.plural.clone()), Arc::new(resource));
    }

    /// Removes a resource.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.0.remove(&(group.into(), plural.into()));
    }
}

impl Resource {
    /// Returns the subject of errors about one of its objects.
    pub(crate) fn about<'a>(&'a self, name: &'a str) -> ErrorSubject<'a> {
        ErrorSubject { group: &self.group, plural: &self.plural, kind: &self.kind, name }
    }

    /// Returns the `apiVersion` of its objects in a version.
    pub(crate) fn api_version(&self, version: usize) -> String {
        match &*self.group {
            "" => self.versions[version].name.to_string(),
            group => format!("{group}/{}", self.versions[version].name),
        }
    }

    /// True if an object may have been written under an older definition.
    pub(crate) fn is_older(&self, revision: u64) -> bool {
        match &self.origin {
            Origin::Builtin(_) => false,
            Origin::Definition { since, .. } => revision < *since,
        }
    }

    /// Returns the built-in kind; `None` for a custom resource.
    pub(crate) fn builtin(&self) -> Option<&'static Kind> {
        match &self.origin {
            Origin::Builtin(kind) => Some(kind),
            Origin::Definition { .. } => None,
        }
    }

    /// Returns the index of the version in which objects are stored.
    pub(crate) fn stored_version(&self) -> usize {
        match &self.origin {
            Origin::Builtin(_) => 0,
            Origin::Definition { stored, .. } => *stored,
        }
    }

    /// Returns the versions that are served.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.is_served)
    }

    /// Returns the index of the version that an object has.
    pub(crate) fn version_of(&self, object: &Value) -> Option<usize> {
        let own = object["apiVersion"].as_str()?;
        (0..self.versions.len()).find(|at| self.api_version(*at) == own)
    }

    /// Returns the supported verbs, in the order of discovery.
    pub(crate) fn verbs(&self) -> &[&'static str] {
        const ALL: [&str; 8] =
            ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        self.builtin().map_or(&ALL[..], |kind| &kind.verbs)
    }
}

fn of_kind(kind: &'static Kind) -> Resource {
    let texts = |words: &[&str]| words.iter().map(|word| (*word).into()).collect();
    let version = |name: &&str| Version {
        name: (*name).into(),
        is_served: true,
        schema: Schema::builtin(kind.group, name, kind.kind)
            .unwrap_or_else(|| Schema::of_definition(&Value::Null)),
        rules: None,
        has_status: kind.subresource("status").is_some(),
        scale: kind.subresource("scale").is_some().then(Scale::of_workloads),
        columns: None,
        selectable: selectable(kind.kind).iter().map(|path| (*path).into()).collect(),
        described: None,
    };
    Resource {
        group: kind.group.into(),
        kind: kind.kind.into(),
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        short_names: texts(&kind.short_names),
        categories: texts(&kind.categories),
        namespaced: kind.namespaced,
        versions: kind.versions.iter().map(version).collect(),
        storage_key: storage_key(kind.storage_group(), kind.plural),
        origin: Origin::Builtin(kind),
    }
}

/// Returns the name under which the objects of a resource are stored.
pub(crate) fn storage_key(group: &str, plural: &str) -> Arc<str> {
    format!("{group}/{plural}").into()
}

impl Scale {
    fn of_workloads() -> Self {
        let path = |part: &str| vec![part.into(), "replicas".into()];
        Self { spec: path("spec"), status: path("status"), selector: None }
    }
}

/// Returns the fields that field selectors of a kind can use, besides name and namespace.
fn selectable(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "Event" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "Namespace" => &["status.phase"],
        "Node" => &["spec.unschedulable"],
        "Secret" => &["type"],
        "Job" => &["status.successful"],
        "ReplicaSet" | "ReplicationController" => &["status.replicas"],
        _ => &[],
    }
}
