//! Warnings to the writer of a valid object.
//!
//! In: an object as it is stored, or a resource.
//! Out: sentences with the path of the field.

use serde_json::Value;

/// Returns the warnings for an object.
pub(crate) fn warnings(kind: &str, object: &Value) -> Vec<String> {
    let place = match kind {
        "Pod" => "spec",
        "PodTemplate" => "template.spec",
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            "spec.template.spec"
        }
        "CronJob" => "spec.jobTemplate.spec.template.spec",
        _ => return Vec::new(),
    };
    let spec = place.split('.').fold(object, |value, name| &value[name]);
    let mut told = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            hidden(&format!("{place}.{list}[{at}].env"), &container["env"], &mut told);
        }
    }
    told
}

/// Returns the deprecation warning of a resource.
pub(crate) fn deprecation(group: &str, plural: &str) -> Option<&'static str> {
    let words = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    ((group, plural) == ("", "endpoints")).then_some(words)
}

/// Finds duplicate environment variables: an apply keeps only one of them.
fn hidden(place: &str, variables: &Value, told: &mut Vec<String>) {
    let names: Vec<&Value> = variables.as_array().into_iter().flatten().map(|it| &it["name"]).collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            told.push(format!(
                "{place}[{at}]: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}
