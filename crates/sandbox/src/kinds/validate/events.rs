//! Rules of Events, which are stricter in their own group than in the core group.
//!
//! In: the place that a line of `rules.txt` names. Out: what is wrong there, by the names that the core group has for the
//! parts of an Event.

use serde_json::{Value, json};

use super::{Cause, Own, Seen, invalid, is_empty, names, required};

/// The most characters of an action, a reason and an instance, and of a note.
const MAX_WORD: usize = 128;
const MAX_NOTE: usize = 1024;

/// What nobody changes by way of the group of Events: its name in the core group and in its own.
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

/// What the table calls by this name.
pub(super) fn named(name: &str) -> Option<Own> {
    (name == "event").then_some(event as Own)
}

fn event(seen: &Seen, causes: &mut Vec<Cause>) {
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

/// What an Event is about, by the name of its group.
fn about(event: &Value, is_core: bool) -> &Value {
    &event[if is_core { "involvedObject" } else { "regarding" }]
}

fn namespaces_agree(seen: &Seen, is_core: bool, causes: &mut Vec<Cause>) {
    let own = seen.root["metadata"]["namespace"].as_str().unwrap_or_default();
    let other = about(seen.root, is_core)["namespace"].as_str().unwrap_or_default();
    let agree = if other.is_empty() { matches!(own, "" | "default") } else { own == other };
    if !agree {
        let words = "does not match event.namespace";
        causes.push(invalid("involvedObject.namespace", Some(&json!(other)), words));
    }
}

/// An Event that says when it was says who saw it.
fn timed(seen: &Seen, is_core: bool, causes: &mut Vec<Cause>) {
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
    let wrong = names::qualified(text(reporter));
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

/// A new Event in its own group says all that it must, and nothing of the old form.
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

/// Of an Event in its own group, the series goes on.
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
