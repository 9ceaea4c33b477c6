//! Cells that a function computes; those of Pods, workloads and Services have files of their own.
//!
//! In: an object and the current time.
//! Out: the content of a cell.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{at, duration};

/// Computes a cell.
pub(super) type CellFn = fn(&Value, Timestamp) -> Value;

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";

/// Returns the function that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CellFn> {
    Some(match name {
        "accounts" => |it, _| subjects(it, "ServiceAccount"),
        "age" => |it, now| duration::since(&it["metadata"]["creationTimestamp"], now).into(),
        "all-data" => |it, _| json!(count(&it["data"]) + count(&it["binaryData"])),
        "approved" => approved,
        "claim" => claim,
        "claim-capacity" => |it, _| bound(it, &it["status"]["capacity"]["storage"]),
        "claim-modes" => |it, _| bound(it, &modes(&it["status"]["accessModes"])),
        "claim-state" => claim_state,
        "class-name" => class_name,
        "controller" => controller,
        "dangling" => dangling,
        "driver-modes" => |it, _| or(joined(&it["spec"]["volumeLifecycleModes"], ","), NONE),
        "event-count" => event_count,
        "event-message" => |it, _| text(&it["message"]).trim().into(),
        "event-object" => event_object,
        "event-source" => event_source,
        "external-ip" => |it, _| node_address(it, "ExternalIP"),
        "first-seen" => |it, now| first_seen(it, now).into(),
        "groups" => |it, _| subjects(it, "Group"),
        "internal-ip" => |it, _| node_address(it, "InternalIP"),
        "last-seen" => last_seen,
        "limits" => |it, _| quota(it, true),
        "modes" => |it, _| modes(&it["spec"]["accessModes"]),
        "name" => |it, _| it["metadata"]["name"].clone(),
        "node-roles" => node_roles,
        "node-status" => node_status,
        "param-kind" => param_kind,
        "param-ref" => param_ref,
        "phase" => phase,
        "pod-selector" => |it, _| or(selector(&it["spec"]["podSelector"]), NONE),
        "requested" => requested,
        "requests" => |it, _| quota(it, false),
        "role" => |it, _| format!("{}/{}", text(&it["roleRef"]["kind"]), text(&it["roleRef"]["name"])).into(),
        "token-requests" => token_requests,
        "users" => |it, _| subjects(it, "User"),
        _ => return None,
    })
}

pub(super) fn text(it: &Value) -> &str {
    it.as_str().unwrap_or_default()
}

pub(super) fn items(it: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    it.as_array().into_iter().flatten()
}

pub(super) fn or(text: String, otherwise: &str) -> Value {
    if text.is_empty() { otherwise.into() } else { text.into() }
}

pub(super) fn count(it: &Value) -> usize {
    it.as_array().map(Vec::len).or(it.as_object().map(serde_json::Map::len)).unwrap_or(0)
}

pub(super) fn joined(list: &Value, by: &str) -> String {
    items(list).map(text).collect::<Vec<_>>().join(by)
}

/// Formats a map as `a=b,c=d`.
pub(super) fn pairs(map: &Value) -> String {
    let all = map.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value)));
    all.collect::<Vec<_>>().join(",")
}

/// Formats a label selector in the syntax of `-l`.
pub(super) fn selector(it: &Value) -> String {
    let mut all: Vec<(String, String)> = Vec::new();
    for (key, value) in it["matchLabels"].as_object().into_iter().flatten() {
        all.push((key.clone(), format!("{key}={}", text(value))));
    }
    for expression in items(&it["matchExpressions"]) {
        let key = text(&expression["key"]);
        let mut values: Vec<_> = items(&expression["values"]).map(text).collect();
        values.sort_unstable();
        let values = values.join(",");
        let written = match text(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        all.push((key.to_owned(), written));
    }
    all.sort();
    all.into_iter().map(|(_, written)| written).collect::<Vec<_>>().join(",")
}

fn subjects(binding: &Value, kind: &str) -> Value {
    let of_kind = items(&binding["subjects"]).filter(|it| it["kind"] == kind);
    let names = of_kind.map(|it| match kind {
        "ServiceAccount" => format!("{}/{}", text(&it["namespace"]), text(&it["name"])),
        _ => text(&it["name"]).to_owned(),
    });
    names.collect::<Vec<_>>().join(", ").into()
}

fn approved(it: &Value, _: Timestamp) -> Value {
    let has = |kind: &str| items(&it["status"]["conditions"]).any(|it| it["type"] == kind);
    let mut status = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        status += ",Failed";
    }
    if !text(&it["status"]["certificate"]).is_empty() {
        status += ",Issued";
    }
    status.into()
}

fn requested(it: &Value, _: Timestamp) -> Value {
    it["spec"]["expirationSeconds"].as_i64().map_or(NONE.into(), |seconds| duration::human(seconds).into())
}

fn claim(volume: &Value, _: Timestamp) -> Value {
    let claim = &volume["spec"]["claimRef"];
    if claim.is_null() {
        "".into()
    } else {
        format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])).into()
    }
}

/// Returns a value that a claim has only after it is bound.
fn bound(claim: &Value, value: &Value) -> Value {
    if text(&claim["spec"]["volumeName"]).is_empty() || value.is_null() { "".into() } else { value.clone() }
}

fn modes(modes: &Value) -> Value {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &&(&str, &str)| items(modes).any(|it| it == mode.0);
    known.iter().filter(has).map(|(_, short)| *short).collect::<Vec<_>>().join(",").into()
}

fn phase(it: &Value, _: Timestamp) -> Value {
    let ends = !it["metadata"]["deletionTimestamp"].is_null();
    if ends { "Terminating".into() } else { text(&it["status"]["phase"]).into() }
}

fn claim_state(it: &Value, _: Timestamp) -> Value {
    let (mut states, ends) = (Vec::new(), !it["metadata"]["deletionTimestamp"].is_null());
    if ends {
        states.push("deleted");
    }
    if !it["status"]["allocation"].is_null() {
        states.push("allocated");
        if count(&it["status"]["reservedFor"]) > 0 {
            states.push("reserved");
        }
    } else if !ends {
        states.push("pending");
    }
    states.join(",").into()
}

fn class_name(it: &Value, _: Timestamp) -> Value {
    let name = text(&it["metadata"]["name"]);
    let keys =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let default = keys.iter().any(|key| it["metadata"]["annotations"][*key] == "true");
    if default { format!("{name} (default)").into() } else { name.into() }
}

fn controller(it: &Value, _: Timestamp) -> Value {
    let Some(owner) = items(&it["metadata"]["ownerReferences"]).find(|it| it["controller"] == true) else {
        return NONE.into();
    };
    let kind = text(&owner["kind"]).to_lowercase();
    let group =
        text(&owner["apiVersion"]).split_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
    format!("{kind}{group}/{}", text(&owner["name"])).into()
}

fn dangling(it: &Value, _: Timestamp) -> Value {
    let condition = items(&it["status"]["conditions"]).find(|it| it["type"] == "Dangling");
    condition.map_or("?", |it| text(&it["status"])).into()
}

fn event_count(it: &Value, _: Timestamp) -> Value {
    let series = it["series"]["count"].as_i64();
    series.or(it["count"].as_i64().filter(|it| *it != 0)).unwrap_or(1).into()
}

/// Handles Events of both groups; the newer one has other field names.
fn event_object(it: &Value, _: Timestamp) -> Value {
    let object = if it["involvedObject"].is_null() { &it["regarding"] } else { &it["involvedObject"] };
    let kind = text(&object["kind"]).to_lowercase();
    match text(&object["name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn event_source(it: &Value, _: Timestamp) -> Value {
    let source = &it["source"];
    let (mut component, mut instance) = (text(&source["component"]), text(&source["host"]));
    if component.is_empty() {
        (component, instance) = (text(&it["reportingComponent"]), text(&it["reportingInstance"]));
    }
    if instance.is_empty() { component.into() } else { format!("{component}, {instance}").into() }
}

fn first_seen(it: &Value, now: Timestamp) -> String {
    let first = [&it["firstTimestamp"], &it["deprecatedFirstTimestamp"], &it["eventTime"]];
    duration::since(first.into_iter().find(|it| it.is_string()).unwrap_or(&Value::Null), now)
}

fn last_seen(it: &Value, now: Timestamp) -> Value {
    let last = [&it["series"]["lastObservedTime"], &it["lastTimestamp"], &it["deprecatedLastTimestamp"]];
    let last = last.into_iter().find(|it| it.is_string());
    last.map_or_else(|| first_seen(it, now), |it| duration::since(it, now)).into()
}

fn node_address(it: &Value, kind: &str) -> Value {
    let address = items(&it["status"]["addresses"]).find(|it| it["type"] == kind);
    address.map_or(NONE, |it| text(&it["address"])).into()
}

fn node_status(it: &Value, _: Timestamp) -> Value {
    let ready = items(&it["status"]["conditions"]).rfind(|it| it["type"] == "Ready");
    let status = match ready {
        None => "Unknown",
        Some(it) if it["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    if it["spec"]["unschedulable"] == true {
        format!("{status},SchedulingDisabled").into()
    } else {
        status.into()
    }
}

fn node_roles(it: &Value, _: Timestamp) -> Value {
    let mut roles = Vec::new();
    for (label, value) in it["metadata"]["labels"].as_object().into_iter().flatten() {
        match label.strip_prefix("node-role.kubernetes.io/").unwrap_or_default() {
            "" if label == "kubernetes.io/role" => roles.push(text(value)),
            role => roles.push(role),
        }
    }
    roles.retain(|it| !it.is_empty());
    roles.sort_unstable();
    roles.dedup();
    or(roles.join(","), NONE)
}

fn param_kind(it: &Value, _: Timestamp) -> Value {
    let it = &it["spec"]["paramKind"];
    let version = text(&it["apiVersion"]);
    if it.is_null() { UNSET.into() } else { format!("{version}/{}", text(&it["kind"])).into() }
}

fn param_ref(it: &Value, _: Timestamp) -> Value {
    let it = &it["spec"]["paramRef"];
    match (text(&it["namespace"]), text(&it["name"])) {
        _ if it.is_null() => UNSET.into(),
        (_, "") => "*".into(),
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}

fn quota(it: &Value, limits: bool) -> Value {
    let hard = at(it, "status.hard").as_object().into_iter().flatten();
    let shown = hard.filter(|(name, _)| name.starts_with("limits.") == limits).map(|(name, hard)| {
        let used = it["status"]["used"][name].as_str().unwrap_or("0");
        format!("{name}: {used}/{}", text(hard))
    });
    shown.collect::<Vec<_>>().join(", ").into()
}

fn token_requests(it: &Value, _: Timestamp) -> Value {
    let audiences = items(&it["spec"]["tokenRequests"]).map(|it| text(&it["audience"]));
    or(audiences.collect::<Vec<_>>().join(","), UNSET)
}
