//! Validation of updates: fields that are immutable.
//!
//! In: the value that a line of `rules.txt` selects, before and after the update.
//! Out: the changes that are refused.

use serde_json::{Value, json};

use super::{Cause, CustomCheck, RuleInput, forbidden, invalid, required};

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    Some(match name {
        "claim-change" => claim_change,
        "driver-change" => driver_change,
        "immutable-data" => immutable_data,
        "job-completions" => job_completions,
        "job-template" => job_template,
        "pod-change" => pod_change,
        "same-role" => same_role,
        "scope-change" => scope_change,
        "service-address" => service_address,
        "stateful-change" => stateful_change,
        "volume-change" => volume_change,
        _ => return None,
    })
}

/// Checks an immutable field.
pub(super) fn fixed(seen: &RuleInput, words: &str, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let pointer = format!("/{}", seen.at.replace('.', "/"));
    let before = old.pointer(&pointer).filter(|it| !it.is_null());
    if before != seen.value {
        causes.push(match words {
            "" => invalid(&seen.at, seen.value, "field is immutable"),
            words => forbidden(&seen.at, words),
        });
    }
}

fn immutable_data(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old.filter(|it| it["immutable"] == true) else { return };
    for field in ["immutable", "data", "binaryData"] {
        if old.get(field) != seen.root.get(field) {
            causes.push(forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

fn service_address(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let (before, now) = (&old["spec"]["clusterIPs"], &seen.root["spec"]["clusterIPs"]);
    let external = [old, seen.root].iter().any(|it| it["spec"]["type"] == "ExternalName");
    if !external && before[0].is_string() && before[0] != now[0] {
        causes.push(if now[0].is_null() {
            required("spec.clusterIPs[0]", "primary clusterIP can not be unset")
        } else {
            invalid("spec.clusterIPs[0]", Some(now), "may not change once set")
        });
    }
}

/// The spec of a claim is immutable, except for the resources and the attributes class of a bound
/// one.
fn claim_change(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let bound = old["status"]["phase"] == "Bound";
    let rest = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        if bound && let Some(spec) = spec.as_object_mut() {
            spec.remove("volumeAttributesClassName");
            spec.remove("resources");
        }
        // The volume name and the storage class may be set once.
        for (field, before) in [
            ("volumeName", &old["spec"]["volumeName"]),
            ("storageClassName", &old["spec"]["storageClassName"]),
        ] {
            if before.is_null()
                && let Some(spec) = spec.as_object_mut()
            {
                spec.remove(field);
            }
        }
        spec
    };
    if rest(old) != rest(seen.root) {
        let words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                     claims";
        causes.push(forbidden(&seen.at, words));
    }
}

fn volume_change(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let source = |volume: &Value| {
        let spec = volume["spec"].as_object().cloned().unwrap_or_default();
        spec.into_iter()
            .filter(|(name, _)| !crate::kinds::validate::other_kinds::NO_SOURCES.contains(&name.as_str()))
            .collect::<Vec<_>>()
    };
    if source(old) != source(seen.root) {
        causes.push(forbidden(
            "spec.persistentvolumesource",
            "spec.persistentvolumesource is immutable after creation",
        ));
    }
}

/// The mutable fields of a Pod are images, a shorter deadline and additional tolerations.
fn pod_change(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    for list in ["containers", "initContainers"] {
        let count = |pod: &Value| pod["spec"][list].as_array().map_or(0, Vec::len);
        if count(old) != count(seen.root) {
            // The server reports nothing else in this case.
            return causes
                .push(forbidden(&format!("spec.{list}"), "pod updates may not add or remove containers"));
        }
    }
    let rest = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container["image"] = Value::Null;
            }
        }
        if let Some(spec) = spec.as_object_mut() {
            for free in
                ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"]
            {
                spec.remove(free);
            }
            // The scheduler sets the Node of an unbound Pod.
            if old["spec"]["nodeName"].is_null() {
                spec.remove("nodeName");
            }
        }
        spec
    };
    if rest(old) != rest(seen.root) {
        let words = "pod updates may not change fields other than \
            `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
            additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
            previously negative)";
        causes.push(forbidden(&seen.at, words));
    }
}

fn stateful_change(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let free = [
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    ];
    let rest = |set: &Value| {
        let mut spec = set["spec"].as_object().cloned().unwrap_or_default();
        spec.retain(|name, _| !free.contains(&name.as_str()));
        spec
    };
    if rest(old) != rest(seen.root) {
        let words = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
            'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are \
            forbidden";
        causes.push(forbidden(&seen.at, words));
    }
}

/// The scheduling fields of a suspended Job may change before it starts; otherwise its template is
/// immutable.
fn job_template(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let suspended = old["spec"]["suspend"] == true && old["status"].get("startTime").is_none();
    let rest = |job: &Value| {
        let mut template = job["spec"]["template"].clone();
        if suspended {
            if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
                for free in ["affinity", "nodeSelector", "tolerations", "schedulingGates"] {
                    spec.remove(free);
                }
            }
            template["metadata"] = json!({});
        }
        template
    };
    if rest(old) != rest(seen.root) {
        causes.push(invalid(&seen.at, seen.value, "field is immutable"));
    }
}

/// Only an Indexed Job may change its completions, together with its parallelism.
fn job_completions(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let spec = &seen.root["spec"];
    let elastic = spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    if old["spec"].get("completions") != seen.value && !elastic {
        causes.push(invalid(&seen.at, seen.value, "field is immutable"));
    }
}

fn same_role(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let (Some(old), Some(now)) = (seen.old, seen.value) else { return };
    if old["roleRef"] != *now {
        let go =
            format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", now["apiGroup"], now["kind"], now["name"]);
        let message = format!("Invalid value: {go}: cannot change roleRef");
        causes.push(Cause { reason: "FieldValueInvalid", message, field: seen.at.clone() });
    }
}

/// The server misspells one of the fields.
fn driver_change(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    for (field, called) in [
        ("attachRequired", "attachedRequired"),
        ("fsGroupPolicy", "fsGroupPolicy"),
        ("volumeLifecycleModes", "volumeLifecycleModes"),
    ] {
        let now = seen.root["spec"].get(field);
        if old["spec"].get(field) != now {
            causes.push(invalid(&format!("spec.{called}"), now, "field is immutable"));
        }
    }
}

/// Scope, group and names of a definition are immutable once it is established.
fn scope_change(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(old) = seen.old else { return };
    let conditions = old["status"]["conditions"].as_array();
    let established =
        conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True");
    if !established {
        return;
    }
    for path in ["/spec/scope", "/spec/names/kind", "/spec/group", "/spec/names/plural"] {
        let (before, now) = (old.pointer(path), seen.root.pointer(path));
        if before != now {
            let at = path.trim_start_matches('/').replace('/', ".");
            causes.push(invalid(&at, now, "field is immutable"));
        }
    }
}
