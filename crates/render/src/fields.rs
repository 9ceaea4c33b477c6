//! Known top-level fields of the most frequent kinds.
//!
//! The API server rejects an unknown field, and other tools drop it silently. Fields below these
//! are left to the API server; kinds that are not listed may have any field.

/// Fields that an object may have at its top level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields(&'static [&'static str]);

/// Fields that every object may have. `status` is accepted here and dropped later.
const COMMON: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

const SPEC: Fields = Fields(&["spec"]);

impl Fields {
    pub(super) fn contains(self, field: &str) -> bool {
        self.iter().any(|known| known == field)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'static str> {
        COMMON.into_iter().chain(self.0.iter().copied())
    }
}

/// Returns the fields of a kind, if they are known.
pub(super) fn of(group: &str, kind: &str) -> Option<Fields> {
    let fields = match (group, kind) {
        ("", "Secret") => Fields(&["data", "stringData", "type", "immutable"]),
        ("", "ConfigMap") => Fields(&["data", "binaryData", "immutable"]),
        ("", "ServiceAccount") => Fields(&["secrets", "imagePullSecrets", "automountServiceAccountToken"]),
        ("rbac.authorization.k8s.io", "Role") => Fields(&["rules"]),
        ("rbac.authorization.k8s.io", "ClusterRole") => Fields(&["rules", "aggregationRule"]),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            Fields(&["subjects", "roleRef"])
        }
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job" | "CronJob") => SPEC,
        (
            "",
            "Namespace"
            | "Pod"
            | "Service"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "ResourceQuota"
            | "LimitRange",
        ) => SPEC,
        ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy") => SPEC,
        ("autoscaling", "HorizontalPodAutoscaler") | ("policy", "PodDisruptionBudget") => SPEC,
        _ => return None,
    };
    Some(fields)
}
