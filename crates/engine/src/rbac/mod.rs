//! RBAC permissions that a Sync needs for its objects.
//!
//! In: a [`DesiredSet`].
//! Out: [`Permissions`]: minimal rules for the whole cluster and for each namespace. The creator of
//! a Role must hold the permissions that it grants, so those are included.

mod escalation;
mod granted_roles;
mod manifest;
mod missing;
mod plural_names;
mod policy_rule;
mod sync_verbs;

use std::collections::{BTreeMap, BTreeSet};

pub use escalation::escalation_reason;
pub use manifest::{RoleSubject, daemon_manifests, manifests};
pub use missing::GrantedRules;
pub use plural_names::PluralNames;
pub use policy_rule::PolicyRule;

use crate::desired::{AUTOSCALERS, DesiredSet, Scope, Scopes};
use moorline_core::object::{GroupKind, ObjectId};

/// Verbs for the whole life of an object: an apply that creates it needs both create and patch.
const ALL: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
const LOOK: [&str; 3] = ["get", "list", "watch"];

/// The rules that a Sync needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    /// Rules for all namespaces and for cluster-scoped objects.
    pub cluster: BTreeSet<PolicyRule>,
    /// Rules for single namespaces.
    pub namespaces: BTreeMap<Box<str>, BTreeSet<PolicyRule>>,
    /// Kinds whose plural is guessed, because neither Kubernetes nor a definition at hand names it.
    pub guessed: BTreeSet<Box<str>>,
}

impl Permissions {
    /// Computes the permissions for a Sync with these objects; `plurals` are those that a server
    /// reported, if any.
    pub fn for_sync(desired: &DesiredSet, plurals: PluralNames) -> Self {
        // Without discovery only the built-in autoscalers are known.
        let known = AUTOSCALERS.map(|(group, kind)| (group, plurals.plural_of(group, kind)));
        let scalers: Vec<PolicyRule> = known
            .iter()
            .filter(|(_, (_, known))| *known)
            .map(|(group, (plural, _))| PolicyRule::for_resource(group, plural, &LOOK))
            .collect();
        let (mut rights, custom) = Self::of_objects(desired, plurals);
        rights.add_what_is_looked_at(desired, custom, &scalers);
        // Only for the policy of the chart, so that nothing is missing where it is switched off.
        sync_verbs::add_sync_verbs(&mut rights, desired);
        rights.merged()
    }

    /// Computes the permissions without optional read access.
    pub fn required(desired: &DesiredSet, plurals: PluralNames) -> Self {
        Self::of_objects(desired, plurals).0.merged()
    }

    /// Adds permission to read and watch these objects of a namespace.
    #[must_use]
    pub fn with_read<'a>(
        mut self,
        namespace: &str,
        resource: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let rule = PolicyRule::for_resource("", resource, &LOOK).with_names(names);
        if !rule.names.is_empty() {
            self.namespaces.entry(namespace.into()).or_default().insert(rule);
        }
        self.merged()
    }

    /// Adds permission to write as the field manager of this Sync, or of every Sync of the
    /// namespace if none is named.
    #[must_use]
    pub fn with_field_manager(mut self, namespace: &str, sync: Option<&str>) -> Self {
        let rule = PolicyRule::for_resource("moorline.dev", "syncs", &["own"]).with_names(sync);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    /// Adds these verbs on the Syncs of a namespace.
    #[must_use]
    pub fn with_syncs(mut self, namespace: &str, verbs: &[&str]) -> Self {
        let rule = PolicyRule::for_resource("moorline.dev", "syncs", verbs);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    /// Adds permission to get one object of a namespace.
    #[must_use]
    pub fn with_get(mut self, namespace: &str, resource: &str, name: &str) -> Self {
        let rule = PolicyRule::for_resource("", resource, &["get"]).with_names([name]);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    /// Adds permission for all objects of a resource in a namespace.
    #[must_use]
    pub fn with_all(mut self, namespace: &str, resource: &str, verbs: &[&str]) -> Self {
        let rule = PolicyRule::for_resource("", resource, verbs);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    /// Adds permission to read for viewers: lists of these kinds by namespace, logs of Pods if they
    /// are among them, and the Events of these namespaces.
    #[must_use]
    pub fn with_viewer_reads<'a>(
        mut self,
        lists: impl IntoIterator<Item = (&'a str, &'a GroupKind)>,
        namespaces: impl IntoIterator<Item = &'a str>,
        plurals: &PluralNames,
    ) -> Self {
        for (namespace, kind) in lists {
            let (plural, known) = plurals.plural_of(&kind.group, &kind.kind);
            if !known {
                self.guessed.insert(kind.to_string().into());
            }
            let rules = self.namespaces.entry(namespace.into()).or_default();
            rules.insert(PolicyRule::for_resource(&kind.group, &plural, &["list"]));
            if (&*kind.group, &*kind.kind) == ("", "Pod") {
                rules.insert(PolicyRule::for_resource("", "pods/log", &["get"]));
            }
        }
        for namespace in namespaces {
            let rules = self.namespaces.entry(namespace.into()).or_default();
            rules.insert(PolicyRule::for_resource("", "events", &["list"]));
        }
        self.merged()
    }

    /// Adds permission to request tokens of a ServiceAccount.
    #[must_use]
    pub fn with_token(mut self, namespace: &str, name: &str) -> Self {
        let rule = PolicyRule::for_resource("", "serviceaccounts/token", &["create"]).with_names([name]);
        self.namespaces.entry(namespace.into()).or_default().insert(rule);
        self.merged()
    }

    fn merged(mut self) -> Self {
        self.cluster = crate::rbac::policy_rule::merged(&self.cluster);
        self.namespaces.values_mut().for_each(|rules| *rules = crate::rbac::policy_rule::merged(rules));
        self
    }

    /// Computes the permissions for the objects themselves. Also returns true if some are custom
    /// resources.
    fn of_objects(desired: &DesiredSet, plurals: PluralNames) -> (Self, bool) {
        let plurals = plurals.with_definitions(desired);
        let mut rights = Self::default();
        let mut custom = false;
        let own = Scopes::builtin();
        for object in desired.objects() {
            let (group, kind) = (object.id.group(), object.id.kind());
            let (plural, known) = plurals.plural_of(group, kind);
            if !known {
                rights.guessed.insert(object.id.group_kind().to_string().into());
            }
            custom |= own.get(group, kind).is_none();
            rights.add(&object.id, object.scope, PolicyRule::for_resource(group, &plural, &ALL));
            crate::rbac::granted_roles::add_granted(&mut rights, &object.id, &object.body(), desired);
        }
        (rights, custom)
    }

    /// Adds a rule in the scope of an object.
    fn add(&mut self, id: &ObjectId, scope: Option<Scope>, rule: PolicyRule) {
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
    fn add_what_is_looked_at(&mut self, desired: &DesiredSet, custom: bool, scalers: &[PolicyRule]) {
        let places: BTreeSet<&str> = desired.objects().iter().filter_map(|it| it.id.namespace()).collect();
        if !places.is_empty() {
            // Needed to see that they exist and are not being deleted.
            self.cluster
                .insert(PolicyRule::for_resource("", "namespaces", &LOOK).with_names(places.iter().copied()));
        }
        if custom {
            self.cluster.insert(PolicyRule::for_resource(
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                &LOOK,
            ));
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
                rules.or_default().extend([
                    PolicyRule::for_resource("", "pods", list),
                    PolicyRule::for_resource("apps", "replicasets", list),
                ]);
            }
            ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
                rules.or_default().insert(PolicyRule::for_resource("", "pods", list));
            }
            ("", "PersistentVolumeClaim") => {
                self.cluster.insert(PolicyRule::for_resource("storage.k8s.io", "storageclasses", &["get"]));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
