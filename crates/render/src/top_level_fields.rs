//! Known top-level fields of the most frequent kinds.
//!
//! The API server rejects an unknown field, and other tools drop it silently. Fields below these
//! are left to the API server; kinds that are not listed may have any field.

/// Fields that an object may have at its top level.
#[derive(Debug, Clone, Copy)]
pub(super) struct TopLevelFields(&'static [&'static str]);

/// Fields that every object may have. `status` is accepted here and dropped later.
const COMMON: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

const SPEC: TopLevelFields = TopLevelFields(&["spec"]);

impl TopLevelFields {
    pub(super) fn contains(self, field: &str) -> bool {
        self.iter().any(|known| known == field)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'static str> {
        COMMON.into_iter().chain(self.0.iter().copied())
    }
}

/// Returns the fields of a kind, if they are known.
pub(super) fn fields_of_kind(group: &str, kind: &str) -> Option<TopLevelFields> {
    let fields = match (group, kind) {
        ("", "Secret") => TopLevelFields(&["data", "stringData", "type", "immutable"]),
        ("", "ConfigMap") => TopLevelFields(&["data", "binaryData", "immutable"]),
        ("", "ServiceAccount") => {
            TopLevelFields(&["secrets", "imagePullSecrets", "automountServiceAccountToken"])
        }
        ("rbac.authorization.k8s.io", "Role") => TopLevelFields(&["rules"]),
        ("rbac.authorization.k8s.io", "ClusterRole") => TopLevelFields(&["rules", "aggregationRule"]),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            TopLevelFields(&["subjects", "roleRef"])
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
