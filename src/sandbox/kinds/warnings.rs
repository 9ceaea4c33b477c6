//! What a writer should know although nothing is refused.
//!
//! In: an object as it will be kept. Out: sentences, each with the place that it is about.

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
