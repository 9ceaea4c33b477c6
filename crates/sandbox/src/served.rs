//! What is served: Kubernetes' own kinds, and those of definitions.
//!
//! In: the table of built-in kinds; definitions as they come and go. Out: the [`Resource`] that a path means, and what
//! is known of each of its versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::convert::Hook;
use super::kinds::{self, Kind};
use super::refusal::About;
use super::rules::Rules;
use super::schema::Schema;

/// A kind of objects as it is served.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) plural: Box<str>,
    pub(crate) singular: Box<str>,
    pub(crate) short_names: Vec<Box<str>>,
    pub(crate) categories: Vec<Box<str>>,
    pub(crate) namespaced: bool,
    /// The preferred version first; with those in which it is only stored.
    pub(crate) versions: Vec<Version>,
    /// Under which name its objects are stored.
    pub(crate) home: Arc<str>,
    pub(crate) origin: Origin,
}

/// Where a resource comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    Builtin(&'static Kind),
    Definition {
        /// The version in which objects are stored.
        stored: usize,
        /// The revision from which on it is as it is now.
        since: u64,
        /// Who converts its objects, if its versions differ by more than their names.
        hook: Option<Arc<Hook>>,
    },
}

/// One version of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: Box<str>,
    pub(crate) is_served: bool,
    pub(crate) schema: Schema,
    /// The expressions of a definition.
    pub(crate) rules: Option<Rules>,
    pub(crate) has_status: bool,
    /// How its objects are scaled, if they can be: the paths of a definition.
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Option<Value>,
    /// The fields that it can be selected by.
    pub(crate) selectable: Vec<Box<str>>,
    /// The schema as its definition has it, with descriptions.
    pub(crate) described: Option<Value>,
}

/// The paths of a number of replicas, as field names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec: Vec<Box<str>>,
    pub(crate) status: Vec<Box<str>>,
    pub(crate) selector: Option<Vec<Box<str>>>,
}

/// Everything that is served, by group and plural.
#[derive(Debug, Default)]
pub(crate) struct Served(BTreeMap<(Box<str>, Box<str>), Arc<Resource>>);

impl Served {
    /// What a new server serves.
    pub(crate) fn builtin() -> Self {
        let mut served = Self::default();
        for kind in kinds::builtin() {
            served.insert(of_kind(kind));
        }
        served
    }

    /// The resource at a path, and the version that is asked for.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<(Arc<Resource>, usize)> {
        let resource = self.0.get(&(group.into(), plural.into()))?;
        let is_meant = |known: &Version| known.is_served && *known.name == *version;
        let at = resource.versions.iter().position(is_meant)?;
        Some((resource.clone(), at))
    }

    /// The resource of a kind.
    pub(crate) fn of_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.0.values().find(|resource| *resource.group == *group && *resource.kind == *kind)
    }

    /// All of them, by group and plural.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.0.values()
    }

    /// Begins to serve a resource, or serves it as it is now.
    pub(crate) fn insert(&mut self, resource: Resource) {
        self.0.insert((resource.group.clone(), resource.plural.clone()), Arc::new(resource));
    }

    /// Serves a resource no more.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.0.remove(&(group.into(), plural.into()));
    }
}

impl Resource {
    /// What messages about an object of it name.
    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, plural: &self.plural, kind: &self.kind, name }
    }

    /// `apiVersion` of its objects in a version.
    pub(crate) fn api_version(&self, version: usize) -> String {
        match &*self.group {
            "" => self.versions[version].name.to_string(),
            group => format!("{group}/{}", self.versions[version].name),
        }
    }

    /// True if an object was written when its definition said something else of it, perhaps.
    pub(crate) fn is_older(&self, revision: u64) -> bool {
        match &self.origin {
            Origin::Builtin(_) => false,
            Origin::Definition { since, .. } => revision < *since,
        }
    }

    /// The built-in kind that it is.
    pub(crate) fn builtin(&self) -> Option<&'static Kind> {
        match &self.origin {
            Origin::Builtin(kind) => Some(kind),
            Origin::Definition { .. } => None,
        }
    }

    /// The version in which objects are stored.
    pub(crate) fn stored_version(&self) -> usize {
        match &self.origin {
            Origin::Builtin(_) => 0,
            Origin::Definition { stored, .. } => *stored,
        }
    }

    /// The versions in which it can be asked for.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.is_served)
    }

    /// The version that an object is of.
    pub(crate) fn version_of(&self, object: &Value) -> Option<usize> {
        let own = object["apiVersion"].as_str()?;
        (0..self.versions.len()).find(|at| self.api_version(*at) == own)
    }

    /// What can be done with it, in the order of discovery.
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
        home: stored_as(kind.home(), kind.plural),
        origin: Origin::Builtin(kind),
    }
}

/// The name under which the objects of a resource are stored.
pub(crate) fn stored_as(group: &str, plural: &str) -> Arc<str> {
    format!("{group}/{plural}").into()
}

impl Scale {
    fn of_workloads() -> Self {
        let path = |part: &str| vec![part.into(), "replicas".into()];
        Self { spec: path("spec"), status: path("status"), selector: None }
    }
}

/// The fields that objects of a kind can be selected by, besides their names.
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
