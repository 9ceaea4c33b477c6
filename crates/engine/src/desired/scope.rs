//! Scopes of kinds: namespaced or cluster-scoped.
//!
//! Discovery reports them. Without a server, built-in kinds come from the table in this file (a
//! test compares it with a real server), and custom resources from the definitions at hand.

use std::collections::HashMap;

use moorline_core::object::{GroupKind, Object, ObjectId};

/// Scope of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Cluster-scoped.
    Cluster,
    /// Namespaced.
    Namespaced,
}

/// Scopes of kinds, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct Scopes(HashMap<GroupKind, Scope>);

impl Scopes {
    /// Returns the scopes of the built-in kinds.
    pub fn builtin() -> Self {
        let mut scopes = Self::default();
        for (kinds, scope) in [(NAMESPACED, Scope::Namespaced), (CLUSTER, Scope::Cluster)] {
            for (group, kinds) in kinds {
                kinds.split(' ').for_each(|kind| scopes.insert(GroupKind::new(group, kind), scope));
            }
        }
        scopes
    }

    /// Records the scope of a kind.
    pub fn insert(&mut self, kind: GroupKind, scope: Scope) {
        self.0.insert(kind, scope);
    }

    /// Records the kind of a CustomResourceDefinition; ignores other objects.
    pub fn record_definition(&mut self, object: &Object) {
        if !defines_kind(&object.id) {
            return;
        }
        let Some(spec) = object.body.get("spec") else { return };
        let text = |value: Option<&serde_json::Value>| value?.as_str().map(str::to_owned);
        let kind = text(spec.get("names").and_then(|names| names.get("kind")));
        if let (Some(group), Some(kind), Some(scope)) =
            (text(spec.get("group")), kind, text(spec.get("scope")))
        {
            let scope = match scope.as_str() {
                "Cluster" => Scope::Cluster,
                _ => Scope::Namespaced,
            };
            self.insert(GroupKind::new(&group, &kind), scope);
        }
    }

    /// Returns the scope of a kind, if it is known.
    pub fn get(&self, group: &str, kind: &str) -> Option<Scope> {
        self.0.get(&GroupKind::new(group, kind)).copied()
    }

    /// Returns every known kind with its scope.
    pub fn iter(&self) -> impl Iterator<Item = (&GroupKind, Scope)> {
        self.0.iter().map(|(kind, scope)| (kind, *scope))
    }
}

const NAMESPACED: &[(&str, &str)] = &[
    (
        "",
        "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController \
         ResourceQuota Secret Service ServiceAccount",
    ),
    ("apps", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob Job"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("networking.k8s.io", "Ingress NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "Role RoleBinding"),
    ("resource.k8s.io", "ResourceClaim ResourceClaimTemplate"),
    ("storage.k8s.io", "CSIStorageCapacity"),
];

const CLUSTER: &[(&str, &str)] = &[
    ("", "Namespace Node PersistentVolume"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration \
         ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema PriorityLevelConfiguration"),
    ("networking.k8s.io", "IPAddress IngressClass ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"),
];

/// True for a CustomResourceDefinition.
pub(super) fn defines_kind(id: &ObjectId) -> bool {
    id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use moorline_core::object::Origin;

    #[test]
    fn a_definition_teaches_the_scope_of_its_kind() {
        let learned = |kind: &str, scope: &str| {
            let body = json!({"spec": {"group": "example.com", "scope": scope, "names": {"kind": "Widget"}}});
            let Value::Object(body) = body else { unreachable!("a literal mapping") };
            let id = ObjectId::new("apiextensions.k8s.io", kind, "", "widgets.example.com").unwrap();
            let origin = Origin { file: "a.yaml".into(), document: 0, line: 1, item: None };
            let mut scopes = Scopes::default();
            scopes.record_definition(&Object { id, version: "v1".into(), body, origin });
            scopes.get("example.com", "Widget")
        };
        assert_eq!(learned("CustomResourceDefinition", "Cluster"), Some(Scope::Cluster));
        assert_eq!(learned("CustomResourceDefinition", "Namespaced"), Some(Scope::Namespaced));
        assert_eq!(learned("ConversionReview", "Cluster"), None);
    }

    #[test]
    fn the_kinds_of_kubernetes_are_known_once() {
        let scopes = Scopes::builtin();
        assert_eq!(scopes.get("", "Namespace"), Some(Scope::Cluster));
        assert_eq!(scopes.get("apps", "Deployment"), Some(Scope::Namespaced));
        assert_eq!(scopes.get("", "Deployment"), None);
        let listed = [NAMESPACED, CLUSTER].into_iter().flatten().map(|(_, kinds)| kinds.split(' ').count());
        assert_eq!(scopes.iter().count(), listed.sum::<usize>(), "a kind stands in both tables");
    }
}
