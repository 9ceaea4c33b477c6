//! What a writer should know although nothing is refused.
//!
//! In: an object as it will be kept, or a resource. Out: sentences, each with the place that it is about.

use serde_json::Value;

/// The warnings about an object.
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

/// What whoever asks for a resource is told, because there is a newer one in its place.
pub(crate) fn deprecation(group: &str, plural: &str) -> Option<&'static str> {
    let words = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    ((group, plural) == ("", "endpoints")).then_some(words)
}

/// Variables that stand twice: an apply keeps one of them.
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
