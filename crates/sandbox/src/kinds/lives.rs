//! Facts about how objects of each kind live: what moves their generation, what a new one's status is, what a write to the status
//! leaves alone.
//!
//! In: a kind's name. Out: the fact. `tests/sandbox_kinds.rs` compares what follows from them with a real API server.

use serde_json::Value;

/// What moves `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Nothing: the kind has none.
    Absent,
    /// Nothing: it is 1 for ever.
    Constant,
    /// It is made by the first change of this field, and moves with it.
    Late(&'static str),
    /// A change of this field.
    Field(&'static str),
    /// A change of the spec or of an annotation.
    SpecAndAnnotations,
    /// A change of anything but the metadata, or of a label.
    BodyAndLabels,
}

/// The rule of a built-in kind. Names tell them apart: no two groups share a kind but Event, which has no generation.
pub(crate) fn generation(kind: &str) -> Generation {
    match kind {
        "Deployment" => Generation::SpecAndAnnotations,
        "EndpointSlice" => Generation::BodyAndLabels,
        "PriorityClass" => Generation::Constant,
        "CSIDriver" => Generation::Late("spec"),
        "PodTemplate" => Generation::Field("template"),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => Generation::Field("webhooks"),
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
        | "ValidatingAdmissionPolicyBinding" => Generation::Field("spec"),
        _ => Generation::Absent,
    }
}

/// The status of a new object, whatever was sent.
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

/// What of the metadata a write to the status leaves as it was.
pub(crate) fn kept_by_a_status(kind: &str) -> &'static [&'static str] {
    match kind {
        "Deployment" => &["labels"],
        "Pod" => &["ownerReferences", "deletionTimestamp"],
        "APIService" | "ResourceClaim" | "ServiceCIDR" | "ValidatingAdmissionPolicy" | "VolumeAttachment" => {
            &["labels", "annotations", "finalizers", "ownerReferences"]
        }
        _ => &[],
    }
}

/// Whether a PUT makes an object that is not there.
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

/// Whether a PUT must name the resource version that it changes.
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
