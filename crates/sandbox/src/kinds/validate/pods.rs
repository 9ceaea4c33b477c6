//! Validation of Pods and Pod templates where the rule table is not sufficient.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there.

use serde_json::{Value, json};

use super::{Cause, CustomCheck, RuleInput, forbidden, invalid, is_empty, required};
use moorline_cel::quantity;

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    Some(match name {
        "container-port" => container_port,
        "env-source" => env_source,
        "handler" => handler,
        "job-restarts" => job_restarts,
        "known-volume" => known_volume,
        "must-be-one" => must_be_one,
        "no-backsteps" => no_backsteps,
        "only-later" => only_later,
        "resources" => resources,
        "toleration" => toleration,
        "untrimmed" => untrimmed,
        "volume-kind" => volume_kind,
        _ => return None,
    })
}

fn untrimmed(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.and_then(Value::as_str).is_some_and(|it| it.trim() != it) {
        causes.push(invalid(&seen.at, seen.value, "must not have leading or trailing whitespace"));
    }
}

/// Ephemeral containers can only be added to an existing Pod.
fn only_later(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.old.is_none() && seen.value.is_some_and(|it| !is_empty(it)) {
        causes.push(forbidden(&seen.at, "cannot be set on create"));
    }
}

fn container_port(seen: &RuleInput, causes: &mut Vec<Cause>) {
    match seen.value.and_then(Value::as_i64).unwrap_or(0) {
        0 => causes.push(required(&seen.at, "")),
        1..=65535 => {}
        _ => causes.push(invalid(&seen.at, seen.value, "must be between 1 and 65535, inclusive")),
    }
}

/// A variable has either a value or exactly one source.
fn env_source(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(from) = seen.value.and_then(|it| it.get("valueFrom")) else { return };
    let at = format!("{}.valueFrom", seen.at);
    let words = match from.as_object().map_or(0, serde_json::Map::len) {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        1 if seen.value.and_then(|it| it.get("value")).is_none_or(is_empty) => return,
        1 => "may not be specified when `value` is not empty",
        _ => "may not have more than one field specified at a time",
    };
    causes.push(invalid(&at, Some(&json!("")), words));
}

/// A probe or a lifecycle hook has exactly one handler.
fn handler(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    let mut ways =
        ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].into_iter().filter(|way| it.get(way).is_some());
    if ways.next().is_none() {
        causes.push(required(&seen.at, "must specify a handler type"));
    }
    causes.extend(
        ways.map(|way| forbidden(&format!("{}.{way}", seen.at), "may not specify more than 1 handler type")),
    );
}

fn must_be_one(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.and_then(Value::as_i64).is_some_and(|it| it != 1) {
        causes.push(invalid(&seen.at, seen.value, "must be 1"));
    }
}

fn job_restarts(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value == Some(&json!("Always")) {
        causes.push(required(&seen.at, "valid values: \"OnFailure\", \"Never\""));
    }
}

fn known_volume(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let volumes = ["volumes", "volumeClaimTemplates"].map(|list| seen.section[list].as_array());
    let claims = seen.root["spec"]["volumeClaimTemplates"].as_array();
    let claims = claims.into_iter().flatten().map(|it| &it["metadata"]["name"]);
    let mut names = volumes.into_iter().flatten().flatten().map(|it| &it["name"]).chain(claims);
    if let Some(name) = seen.value
        && !names.any(|it| it == name)
    {
        causes.push(Cause {
            reason: "FieldValueNotFound",
            message: format!("Not found: {name}"),
            field: seen.at.clone(),
        });
    }
}

fn volume_kind(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let volume = seen.value.and_then(Value::as_object);
    let kinds = volume.into_iter().flat_map(|it| it.keys()).filter(|it| *it != "name");
    let more = kinds.skip(1).map(|it| format!("{}.{it}", seen.at));
    causes.extend(more.map(|at| forbidden(&at, "may not specify more than 1 volume type")));
}

fn no_backsteps(seen: &RuleInput, causes: &mut Vec<Cause>) {
    if seen.value.and_then(Value::as_str).is_some_and(|it| it.split('/').any(|part| part == "..")) {
        causes.push(invalid(&seen.at, seen.value, "must not contain '..'"));
    }
}

/// A request is neither negative nor greater than its limit.
fn resources(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    let amount = |what: &str, of: &str| it[what][of].as_str().and_then(quantity::millis);
    for what in ["limits", "requests"] {
        for (of, value) in it[what].as_object().into_iter().flatten() {
            let at = format!("{}.{what}", seen.at);
            if amount(what, of).is_some_and(|it| it < 0) {
                causes.push(invalid(
                    &format!("{at}[{of}]"),
                    Some(value),
                    "must be greater than or equal to 0",
                ));
            }
            let limit = amount("limits", of).filter(|_| what == "requests");
            if limit.is_some_and(|limit| amount(what, of).is_some_and(|it| it > limit)) {
                let most = it["limits"][of].as_str().unwrap_or_default();
                let words = format!("must be less than or equal to {of} limit of {most}");
                causes.push(invalid(&at, Some(value), &words));
            }
        }
    }
}

fn toleration(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let Some(it) = seen.value else { return };
    let at = format!("{}.operator", seen.at);
    let blank = |field: &str| it.get(field).is_none_or(is_empty);
    let exists = it["operator"] == "Exists";
    if blank("key") && !exists {
        let words =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        causes.push(invalid(&at, it.get("operator"), words));
    }
    if exists && !blank("value") {
        causes.push(invalid(&at, it.get("value"), "value must be empty when `operator` is 'Exists'"));
    }
}
