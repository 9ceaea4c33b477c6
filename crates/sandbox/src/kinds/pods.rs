//! Completes a new Pod as the admission of a real server does: ServiceAccount and its token,
//! tolerations, priority, QoS class.
//!
//! In: a Pod with defaults.
//! Out: the Pod as it is stored.

use serde_json::{Value, json};

use super::Allocator;
use moorline_cel::quantity;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Time for which a Pod stays on a lost Node.
const TOLERATED_SECONDS: u32 = 300;

/// Completes a new Pod.
pub(crate) fn complete(pod: &mut Value, allocate: &mut dyn Allocator) {
    let class = class_of_service(&pod["spec"]);
    pod["status"]["qosClass"] = class.into();
    let spec = &mut pod["spec"];
    if spec.get("serviceAccountName").is_none() {
        spec["serviceAccountName"] = "default".into();
        spec["serviceAccount"] = "default".into();
    }
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, taint);
    }
    if spec.get("priority").is_none() {
        let class = spec["priorityClassName"].as_str().unwrap_or_default();
        let (priority, policy) = allocate.priority(class);
        spec["priority"] = priority.into();
        if spec.get("preemptionPolicy").is_none() {
            spec["preemptionPolicy"] = policy.into();
        }
    }
    let account = spec["serviceAccountName"].as_str().unwrap_or_default();
    let mounts =
        spec["automountServiceAccountToken"].as_bool().unwrap_or_else(|| allocate.mounts_token(account));
    if mounts {
        mount_token(spec, allocate);
    }
}

fn tolerate(spec: &mut Value, taint: &str) {
    let fits = |it: &Value, field: &str, wanted: &str| {
        it[field].as_str().is_none_or(|it| it.is_empty() || it == wanted)
    };
    let tolerates = |it: &Value| fits(it, "key", taint) && fits(it, "effect", "NoExecute");
    let all = &mut spec["tolerations"];
    let own = all.as_array().is_some_and(|all| all.iter().any(tolerates));
    let added = json!({
        "effect": "NoExecute", "key": taint, "operator": "Exists", "tolerationSeconds": TOLERATED_SECONDS,
    });
    match all.as_array_mut() {
        _ if own => {}
        Some(all) => all.push(added),
        None => *all = json!([added]),
    }
}

/// Mounts the token of the ServiceAccount in every container, unless the container mounts something
/// else there.
fn mount_token(spec: &mut Value, allocate: &mut dyn Allocator) {
    let mut name = None;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else { continue };
            if !mounts.iter().any(|it| it["mountPath"] == TOKEN_PATH) {
                let name = name.get_or_insert_with(|| format!("kube-api-access-{}", allocate.suffix()));
                mounts.push(json!({"mountPath": TOKEN_PATH, "name": name, "readOnly": true}));
            }
        }
    }
    let Some(name) = name else { return };
    let volume = json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [
            {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"},
        ]}},
    ]}});
    match spec["volumes"].as_array_mut() {
        Some(volumes) => volumes.push(volume),
        None => spec["volumes"] = json!([volume]),
    }
}

/// Returns the QoS class of a Pod.
fn class_of_service(spec: &Value) -> &'static str {
    let lists = ["containers", "initContainers"].map(|list| spec[list].as_array());
    let containers: Vec<_> = lists.into_iter().flatten().flatten().map(|it| &it["resources"]).collect();
    let amount = |resources: &Value, what: &str, of: &str| {
        resources[what][of].as_str().and_then(quantity::millis).filter(|it| *it > 0)
    };
    let both = ["cpu", "memory"];
    let asks = |it: &&&Value| {
        both.iter().any(|of| ["limits", "requests"].iter().any(|what| amount(it, what, of).is_some()))
    };
    let is_bound = |it: &&Value| {
        both.iter().all(|of| {
            amount(it, "limits", of).is_some() && amount(it, "limits", of) == amount(it, "requests", of)
        })
    };
    if !containers.iter().any(|it| asks(&it)) {
        "BestEffort"
    } else if containers.iter().all(is_bound) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
