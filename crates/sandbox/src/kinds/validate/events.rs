//! Validation of Events, which is stricter in `events.k8s.io` than in the core group.
//!
//! In: the value that a line of `rules.txt` selects.
//! Out: the problems found there, with the field names of the core group.

use serde_json::{Value, json};

use super::name_formats;
use super::{Cause, CustomCheck, RuleInput, invalid, is_empty, required};

/// Maximum length of `action`, `reason` and `reportingInstance`; below that of a note.
const MAX_WORD: usize = 128;
const MAX_NOTE: usize = 1024;

/// Immutable fields of `events.k8s.io`: name in the core group and own name.
const FIXED: [(&str, &str); 13] = [
    ("involvedObject", "regarding"),
    ("reason", "reason"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// Returns the check that the table refers to by this name.
pub(super) fn named(name: &str) -> Option<CustomCheck> {
    (name == "event").then_some(event as CustomCheck)
}

fn event(seen: &RuleInput, causes: &mut Vec<Cause>) {
    let is_core = seen.kind.group.is_empty();
    match seen.root["eventTime"].is_null() {
        true => namespaces_agree(seen, is_core, causes),
        false => timed(seen, is_core, causes),
    }
    match seen.old {
        _ if is_core => {}
        None => created(seen.root, causes),
        Some(old) => updated(old, seen.root, causes),
    }
}

/// Returns the object reference, by its field name in the group.
fn about(event: &Value, is_core: bool) -> &Value {
    &event[if is_core { "involvedObject" } else { "regarding" }]
}

fn namespaces_agree(seen: &RuleInput, is_core: bool, causes: &mut Vec<Cause>) {
    let own = seen.root["metadata"]["namespace"].as_str().unwrap_or_default();
    let other = about(seen.root, is_core)["namespace"].as_str().unwrap_or_default();
    let agree = if other.is_empty() { matches!(own, "" | "default") } else { own == other };
    if !agree {
        let words = "does not match event.namespace";
        causes.push(invalid("involvedObject.namespace", Some(&json!(other)), words));
    }
}

/// An Event with `eventTime` must name its reporter.
fn timed(seen: &RuleInput, is_core: bool, causes: &mut Vec<Cause>) {
    let text = |field: &str| seen.root[field].as_str().unwrap_or_default();
    let own = seen.root["metadata"]["namespace"].as_str().unwrap_or_default();
    if is_empty(&about(seen.root, is_core)["namespace"]) && !matches!(own, "default" | "kube-system") {
        let words = "does not match event.namespace";
        causes.push(invalid("involvedObject.namespace", Some(&json!("")), words));
    }
    let reporter = if is_core { "reportingComponent" } else { "reportingController" };
    if text(reporter).is_empty() {
        causes.push(required(reporter, ""));
    }
    let wrong = name_formats::qualified(text(reporter));
    causes.extend(wrong.iter().map(|words| invalid(reporter, Some(&json!(text(reporter))), words)));
    for field in ["reportingInstance", "action", "reason"] {
        match text(field).len() {
            0 => causes.push(required(field, "")),
            1..=MAX_WORD => {}
            _ => {
                let words = format!("can have at most {MAX_WORD} characters");
                causes.push(invalid(field, Some(&json!("")), &words));
            }
        }
    }
    if text(if is_core { "message" } else { "note" }).len() > MAX_NOTE {
        let words = format!("can have at most {MAX_NOTE} characters");
        causes.push(invalid("message", Some(&json!("")), &words));
    }
}

/// A new Event of `events.k8s.io` has all required fields and none of the deprecated ones.
fn created(event: &Value, causes: &mut Vec<Cause>) {
    series(event, causes);
    if event["eventTime"].is_null() {
        causes.push(required("eventTime", ""));
    }
    let kind = event["type"].as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        causes.push(invalid("type", Some(&json!("")), &format!("has invalid value: {kind}")));
    }
    for (core, own) in &FIXED[3..7] {
        let given = &event[*own];
        if !is_empty(given) && *given != 0 {
            causes.push(invalid(core, Some(&json!("")), "needs to be unset"));
        }
    }
}

/// An update in `events.k8s.io` may change only the series.
fn updated(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old["series"] != new["series"] {
        series(new, causes);
    }
    for (core, own) in FIXED {
        if old[own] != new[own] {
            causes.push(invalid(core, Some(&new[own]), "field is immutable"));
        }
    }
}

fn series(event: &Value, causes: &mut Vec<Cause>) {
    let Some(series) = event.get("series").filter(|series| series.is_object()) else { return };
    if series["count"].as_i64().unwrap_or_default() < 2 {
        causes.push(invalid("series.count", Some(&json!("")), "should be at least 2"));
    }
    if series["lastObservedTime"].is_null() {
        causes.push(required("series.lastObservedTime", ""));
    }
}
