//! Validation of all remaining kinds where the rule table is not sufficient.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there.

use serde_json::{Value, json};

use super::{
    Cause, CustomCheck, RuleInput, forbidden, invalid, is_empty, items, metadata, required, text, unsupported,
};
use moorline_cel::quantity;

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    Some(match name {
        "access-modes" => access_modes,
        "annotations" => |seen, causes| metadata::annotations(&seen.at, seen.value, causes),
        "claim-size" => claim_size,
        "cluster-role-rule" => |seen, causes| role_rule(seen, false, causes),
        "label-pairs" | "labels" => |seen, causes| metadata::labels(&seen.at, seen.value, causes),
        "more-than-none" => more_than_none,
        "no-empty-key" => no_empty_key,
        "not-in-binary" => not_in_binary,
        "one-bound" => one_bound,
        "percentage" => percentage,
        "role-rule" => |seen, causes| role_rule(seen, true, causes),
        "subject" => subject,
        "system-class" => system_class,
        "typed-secret" => typed_secret,
        "volume-source" => volume_source,
        _ => return None,
    })
}

fn not_in_binary(seen: &RuleInput, causes: &mut Vec<Cause>) {
    for key in seen.value.and_then(Value::as_object).into_iter().flat_map(|it| it.keys()) {
        if seen.section["binaryData"].get(key).is_some() {
            let at = format!("{}[{key}]", seen.at);
            causes.push(invalid(&at, Some(&json!(key)), "duplicate of key present in binaryData"));
        }
    }
}

/// Checks the keys that a Secret type requires. The causes contain no values.
fn typed_secret(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let (data, annotations) = (&seen.root["data"], &seen.root["metadata"]["annotations"]);
    let mut needs = |keys: &[&str]| {
        let missing = keys.iter().filter(|key| data.get(**key).is_none());
        causes.extend(missing.map(|key| required(&format!("data[{key}]"), "")));
    };
    match seen.root["type"].as_str().unwrap_or_default() {
        "kubernetes.io/tls" => needs(&["tls.crt", "tls.key"]),
        "kubernetes.io/dockerconfigjson" => needs(&[".dockerconfigjson"]),
        "kubernetes.io/dockercfg" => needs(&[".dockercfg"]),
        "kubernetes.io/ssh-auth" => needs(&["ssh-privatekey"]),
        "kubernetes.io/basic-auth" if data.get("username").is_none() && data.get("password").is_none() => {
            needs(&["username", "password"]);
        }
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if annotations.get(key).is_none_or(is_empty) {
                causes.push(required(&format!("metadata.annotations[{key}]"), ""));
            }
        }
        _ => {}
    }
}

fn access_modes(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let all = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let wrong = items(seen.value).filter_map(Value::as_str).filter(|it| !all.contains(it));
    causes.extend(wrong.map(|it| unsupported(&seen.at, it, &all)));
}

fn claim_size(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let at = format!("{}[storage]", seen.at);
    match seen.section["resources"]["requests"].get("storage") {
        None => causes.push(required(&at, "")),
        Some(size) if size.as_str().and_then(quantity::millis).is_some_and(|it| it <= 0) => {
            causes.push(invalid(&at, Some(size), "must be greater than zero"));
        }
        Some(_) => {}
    }
}

/// Fields of a PersistentVolume's spec that are not volume sources.
pub(super) const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

fn volume_source(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.section["spec"].get("capacity").is_none_or(is_empty) {
        causes.push(Cause {
            reason: "FieldValueNotSupported",
            message: "Unsupported value: null: supported values: \"storage\"".to_owned(),
            field: "spec.capacity".to_owned(),
        });
    }
    let spec = seen.value.and_then(Value::as_object);
    let mut sources =
        spec.into_iter().flat_map(|it| it.keys()).filter(|it| !NO_SOURCES.contains(&it.as_str()));
    if sources.next().is_none() {
        causes.push(required(&seen.at, "must specify a volume type"));
    }
    for more in sources {
        causes.push(forbidden(&format!("{}.{more}", seen.at), "may not specify more than 1 volume type"));
    }
}

fn one_bound(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.is_some_and(|it| it.get("minAvailable").is_some() && it.get("maxUnavailable").is_some()) {
        causes.push(invalid(&seen.at, seen.value, "minAvailable and maxUnavailable cannot be both set"));
    }
}

fn percentage(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let share = text(seen).and_then(|it| it.strip_suffix('%')).and_then(|it| it.parse::<u32>().ok());
    if share.is_some_and(|it| it > 100) {
        causes.push(invalid(&seen.at, seen.value, "must not be greater than 100%"));
    } else if text(seen).is_some() && share.is_none() {
        let words = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
        causes.push(invalid(&seen.at, seen.value, words));
    }
}

fn role_rule(seen: &RuleInput, namespaced: bool, causes: &mut Vec<Cause>) {
    let Some(rule) = seen.value else { return };
    let has = |field: &str| rule.get(field).is_some_and(|it| !is_empty(it));
    let at = |field: &str| format!("{}.{field}", seen.at);
    if !has("verbs") {
        causes.push(required(&at("verbs"), "verbs must contain at least one value"));
    }
    if has("nonResourceURLs") {
        let words = if namespaced {
            "namespaced rules cannot apply to non-resource URLs"
        } else if has("apiGroups") || has("resources") || has("resourceNames") {
            "rules cannot apply to both regular resources and non-resource URLs"
        } else {
            return;
        };
        return causes.push(invalid(&at("nonResourceURLs"), rule.get("nonResourceURLs"), words));
    }
    if !has("apiGroups") {
        causes.push(required(&at("apiGroups"), "resource rules must supply at least one api group"));
    }
    if !has("resources") {
        causes.push(required(&at("resources"), "resource rules must supply at least one resource"));
    }
}

fn subject(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    let group = it["apiGroup"].as_str().unwrap_or_default();
    let wanted = match it["kind"].as_str().unwrap_or_default() {
        "ServiceAccount" => "",
        "User" | "Group" => "rbac.authorization.k8s.io",
        _ => return,
    };
    if group != wanted {
        causes.push(unsupported(&format!("{}.apiGroup", seen.at), group, &[wanted]));
    }
    if wanted.is_empty() && seen.kind.kind == "ClusterRoleBinding" && it.get("namespace").is_none_or(is_empty)
    {
        causes.push(required(&format!("{}.namespace", seen.at), ""));
    }
}

fn no_empty_key(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.is_some_and(|it| it.get("").is_some()) {
        causes.push(invalid(&seen.at, Some(&json!("")), "field can not be empty."));
    }
}

fn system_class(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let name = seen.root["metadata"]["name"].as_str().unwrap_or_default();
    if name.starts_with("system-") && !matches!(name, "system-cluster-critical" | "system-node-critical") {
        let words = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known \
             system priority class"
        );
        causes.push(forbidden("metadata.name", &words));
    } else if seen.root["value"].as_i64().is_some_and(|it| it > 1_000_000_000) && !name.starts_with("system-")
    {
        let words = "maximum allowed value of a user defined priority is 1000000000";
        causes.push(forbidden("value", words));
    }
}

fn more_than_none(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.and_then(Value::as_i64).is_some_and(|it| it <= 0) {
        causes.push(invalid(&seen.at, seen.value, "must be greater than 0"));
    }
}
