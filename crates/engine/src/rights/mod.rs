//! RBAC permissions that a Sync needs for its objects.
//!
//! In: a [`DesiredSet`].
//! Out: [`Permissions`]: minimal rules for the whole cluster and for each namespace. The creator of
//! a Role must hold the permissions that it grants, so those are included.

mod manifest;
mod missing;
mod plural;
mod power;
mod repository;
mod rule;

use std::collections::{BTreeMap, BTreeSet};

pub use manifest::{Subject, for_daemon, manifests};
pub use missing::Granted;
pub use plural::Plurals;
pub use power::power;
pub use rule::Rule;

use crate::desired::{DesiredSet, SCALERS, Scope, Scopes};
use moorline_core::object::ObjectId;

/// Verbs for the whole life of an object: an apply that creates it needs both create and patch.
const ALL: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
const LOOK: [&str; 3] = ["get", "list", "watch"];

/// The rules that a Sync needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rights {
    /// Rules for all namespaces and for cluster-scoped objects.
    pub cluster: BTreeSet<Rule>,
    /// Rules for single namespaces.
    pub namespaces: BTreeMap<Box<str>, BTreeSet<Rule>>,
    /// Kinds whose plural is guessed, because neither Kubernetes nor a definition at hand names it.
    pub guessed: BTreeSet<Box<str>>,
}

impl Rights {
    /// Computes the permissions for a Sync with these objects; `plurals` are those that a server
    /// reported, if any.
    pub fn of(desired: &DesiredSet, plurals: Plurals) -> Self {
        // Without discovery only the built-in autoscalers are known.
        let known = SCALERS.map(|(group, kind)| (group, plurals.of_kind(group, kind)));
        let scalers: Vec<Rule> = known
            .iter()
            .filter(|(_, (_, known))| *known)
            .map(|(group, (plural, _))| Rule::of(group, plural, &LOOK))
            .collect();
        let (mut rights, custom) = Self::of_objects(desired, plurals);
        rights.add_what_is_looked_at(desired, custom, &scalers);
        rights.merged()
    }

    /// Computes the permissions without optional read access.
    pub fn needed(desired: &DesiredSet, plurals: Plurals) -> Self {
        Self::of_objects(desired, plurals).0.merged()
    }

    /// Adds permission to read and watch these objects of a namespace.
    #[must_use]
    pub fn and_to_read<'a>(
        mut self,
        namespace: &str,
        resource: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let rule = Rule::of("", resource, &LOOK).named(names);
        if !rule.names.is_empty() {
            self.namespaces.entry(namespace.into()).or_default().insert(rule);
        }
        self.merged()
    }

    /// Adds permission to write as the field manager of this Sync, or of every Sync of the
    /// namespace if none is named.
    #[must_use]
    pub fn and_to_own(mut self, namespace: &str, sync: Option<&str>) -> Self {
        let rule = Rule::of("moorline.dev", "syncs", &["own"]).named(sync);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    /// Adds permission to get one object of a namespace.
    #[must_use]
    pub fn and_to_get(mut self, namespace: &str, resource: &str, name: &str) -> Self {
        let rule = Rule::of("", resource, &["get"]).named([name]);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    fn merged(mut self) -> Self {
        self.cluster = rule::merged(&self.cluster);
        self.namespaces.values_mut().for_each(|rules| *rules = rule::merged(rules));
        self
    }

    /// Computes the permissions for the objects themselves. Also returns true if some are custom
    /// resources.
    fn of_objects(desired: &DesiredSet, plurals: Plurals) -> (Self, bool) {
        let plurals = plurals.and_of(desired);
        let mut rights = Self::default();
        let mut custom = false;
        let own = Scopes::builtin();
        for object in desired.objects() {
            let (group, kind) = (object.id.group(), object.id.kind());
            let (plural, known) = plurals.of_kind(group, kind);
            if !known {
                rights.guessed.insert(object.id.group_kind().to_string().into());
            }
            custom |= own.of(group, kind).is_none();
            rights.add(&object.id, object.scope, Rule::of(group, &plural, &ALL));
            repository::grants(&mut rights, &object.id, &object.body(), desired);
        }
        (rights, custom)
    }

    /// Adds a rule in the scope of an object.
    fn add(&mut self, id: &ObjectId, scope: Option<Scope>, rule: Rule) {
        match (id.namespace(), scope) {
            (Some(namespace), Some(Scope::Namespaced) | None) => {
                self.namespaces.entry(namespace.into()).or_default().insert(rule);
            }
            (None, _) | (_, Some(Scope::Cluster)) => {
                self.cluster.insert(rule);
            }
        }
    }

    /// Adds read access to objects that the Sync does not own.
    fn add_what_is_looked_at(&mut self, desired: &DesiredSet, custom: bool, scalers: &[Rule]) {
        let places: BTreeSet<&str> = desired.objects().iter().filter_map(|it| it.id.namespace()).collect();
        if !places.is_empty() {
            // Needed to see that they exist and are not being deleted.
            self.cluster.insert(Rule::of("", "namespaces", &LOOK).named(places.iter().copied()));
        }
        if custom {
            self.cluster.insert(Rule::of("apiextensions.k8s.io", "customresourcedefinitions", &LOOK));
        }
        // An autoscaler matters only where Git sets a replica count.
        let has_number = |body: &serde_json::Map<String, serde_json::Value>| {
            body.get("spec").and_then(|spec| spec.get("replicas")).is_some()
        };
        for object in desired.objects().iter().filter(|it| custom || has_number(&it.body())) {
            if let Some(namespace) = object.id.namespace() {
                let rules = self.namespaces.entry(namespace.into()).or_default();
                rules.extend(scalers.iter().cloned());
            }
        }
        desired.objects().iter().for_each(|object| self.add_what_lies_beneath(&object.id));
    }

    /// Adds read access to the dependents that show the cause of an unhealthy object.
    fn add_what_lies_beneath(&mut self, id: &ObjectId) {
        let (rules, list) = (self.namespaces.entry(id.namespace().unwrap_or_default().into()), &["list"]);
        match (id.group(), id.kind()) {
            ("apps", "Deployment") => {
                rules
                    .or_default()
                    .extend([Rule::of("", "pods", list), Rule::of("apps", "replicasets", list)]);
            }
            ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                rules.or_default().insert(Rule::of("", "pods", list));
            }
            ("", "PersistentVolumeClaim") => {
                self.cluster.insert(Rule::of("storage.k8s.io", "storageclasses", &["get"]));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
