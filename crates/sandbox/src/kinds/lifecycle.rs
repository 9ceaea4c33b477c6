//! Life cycle of the built-in kinds: changes that increment the generation, initial status, effect
//! of a status update.
//!
//! In: the name of a kind.
//! Out: the property. `tests/sandbox/sandbox_kinds.rs` compares the results with a real API server.

use serde_json::Value;

/// Changes that increment `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenerationRule {
    /// The kind has no generation.
    Absent,
    /// The generation is always 1.
    Constant,
    /// Set by the first change of this field, incremented by later ones.
    Late(&'static str),
    /// Incremented by a change of this field.
    Field(&'static str),
    /// Incremented by a change of the spec or of an annotation.
    SpecAndAnnotations,
    /// Incremented by a change of a label or of anything outside the metadata.
    BodyAndLabels,
}

/// Returns the rule of a built-in kind. The name is enough: no two groups share a kind except
/// Event, which has no generation.
pub(crate) fn generation(kind: &str) -> GenerationRule {
    match kind {
        "Deployment" => GenerationRule::SpecAndAnnotations,
        "EndpointSlice" => GenerationRule::BodyAndLabels,
        "PriorityClass" => GenerationRule::Constant,
        "CSIDriver" => GenerationRule::Late("spec"),
        "PodTemplate" => GenerationRule::Field("template"),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            GenerationRule::Field("webhooks")
        }
        "CronJob"
        | "CustomResourceDefinition"
        | "DaemonSet"
        | "DeviceClass"
        | "FlowSchema"
        | "Ingress"
        | "IngressClass"
        | "Job"
        | "MutatingAdmissionPolicy"
        | "MutatingAdmissionPolicyBinding"
        | "NetworkPolicy"
        | "Pod"
        | "PodDisruptionBudget"
        | "PriorityLevelConfiguration"
        | "ReplicaSet"
        | "ReplicationController"
        | "ResourceSlice"
        | "StatefulSet"
        | "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding" => GenerationRule::Field("spec"),
        _ => GenerationRule::Absent,
    }
}

/// Returns the status of a new object; the status in the request is ignored.
pub(crate) fn first_status(kind: &str, api_version: &str) -> Value {
    let text = match kind {
        "ReplicaSet" | "ReplicationController" => r#"{"replicas":0}"#,
        "StatefulSet" => r#"{"availableReplicas":0,"replicas":0}"#,
        "DaemonSet" => {
            r#"{"currentNumberScheduled":0,"desiredNumberScheduled":0,"numberMisscheduled":0,"numberReady":0}"#
        }
        "HorizontalPodAutoscaler" if api_version == "autoscaling/v1" => {
            r#"{"currentReplicas":0,"desiredReplicas":0}"#
        }
        "HorizontalPodAutoscaler" => r#"{"currentMetrics":null,"desiredReplicas":0}"#,
        "Ingress" | "Service" => r#"{"loadBalancer":{}}"#,
        "PodDisruptionBudget" => {
            r#"{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0}"#
        }
        "VolumeAttachment" => r#"{"attached":false}"#,
        "CustomResourceDefinition" => {
            r#"{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":null}"#
        }
        "PersistentVolumeClaim" | "PersistentVolume" | "Pod" => r#"{"phase":"Pending"}"#,
        "Namespace" => r#"{"phase":"Active"}"#,
        _ => "{}",
    };
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns the metadata that a status update does not change.
pub(crate) fn metadata_kept_by_status_update(kind: &str) -> &'static [&'static str] {
    match kind {
        "Deployment" => &["labels"],
        "Pod" => &["ownerReferences", "deletionTimestamp"],
        "APIService" | "ResourceClaim" | "ServiceCIDR" | "ValidatingAdmissionPolicy" | "VolumeAttachment" => {
            &["labels", "annotations", "finalizers", "ownerReferences"]
        }
        _ => &[],
    }
}

/// True if a PUT creates a missing object.
pub(crate) fn is_made_by_update(kind: &str) -> bool {
    matches!(
        kind,
        "ClusterRole"
            | "ClusterRoleBinding"
            | "Endpoints"
            | "Event"
            | "Lease"
            | "LimitRange"
            | "Role"
            | "RoleBinding"
            | "RuntimeClass"
            | "Service"
    )
}

/// True if a PUT must contain the resourceVersion.
pub(crate) fn needs_version(kind: &str) -> bool {
    matches!(
        kind,
        "APIService"
            | "CSIDriver"
            | "CSINode"
            | "CSIStorageCapacity"
            | "CustomResourceDefinition"
            | "Lease"
            | "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding"
            | "MutatingWebhookConfiguration"
            | "PodDisruptionBudget"
            | "RuntimeClass"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "ValidatingWebhookConfiguration"
            | "VolumeAttachment"
    )
}
