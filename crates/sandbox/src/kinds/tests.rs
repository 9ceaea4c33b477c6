//! Compares stored objects with those that a real API server returned.
//!
//! `tests/sandbox/sandbox_kinds.rs` records the responses, and describes how it makes them
//! reproducible.

use serde_json::Value;

use super::validate::{Cause, refusal};
use super::*;
use crate::schema::Schema;

/// The recorder's placeholders for allocated values.
struct Fixed;

impl Allocator for Fixed {
    fn address(&mut self) -> String {
        "10.0.0.1".to_owned()
    }

    fn node_port(&mut self) -> u16 {
        30000
    }

    fn suffix(&mut self) -> String {
        "xxxxx".to_owned()
    }

    fn now(&self) -> String {
        "2024-01-01T00:00:00Z".to_owned()
    }
}

const UID: &str = "00000000-0000-4000-8000-000000000000";

fn kind_of(object: &Value) -> (&'static Kind, Schema) {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object["kind"].as_str().unwrap();
    (find_kind(group, kind).unwrap(), Schema::builtin(group, version, kind).unwrap())
}

/// Returns the stored object in the format of the recorder.
fn made(sent: &Value) -> Value {
    let mut object = completed(sent, None, "");
    object["metadata"].as_object_mut().unwrap().remove("uid");
    object
}

/// Returns an object after all steps before validation.
fn completed(sent: &Value, old: Option<&Value>, subresource: &str) -> Value {
    let (kind, schema) = kind_of(sent);
    let mut object = sent.clone();
    if object.get("metadata").is_none() {
        object["metadata"] = serde_json::json!({});
    }
    if kind.namespaced {
        object["metadata"]["namespace"] = "recorded".into();
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("creationTimestamp");
    metadata.insert("uid".to_owned(), UID.into());
    normalize(&schema, kind.kind, &mut object);
    set_defaults(kind.group, kind.kind, &mut object);
    prepare(kind, subresource, old, &mut object, &mut Fixed);
    object
}

/// Collects the paths at which two values differ, with both values.
fn differences(wanted: &Value, made: &Value, place: &str, found: &mut Vec<String>) {
    match (wanted, made) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for name in names {
                let at = field_paths::below(place, name);
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => differences(left, right, &at, found),
                    (left, right) => found.push(format!("{at}: server {left:?}, here {right:?}")),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right).enumerate();
            pairs.for_each(|(at, (left, right))| differences(left, right, &format!("{place}[{at}]"), found));
        }
        _ if wanted == made => {}
        _ => found.push(format!("{place}: server {wanted}, here {made}")),
    }
}

/// Fields that the server sets and this module does not.
const LEFT_TO_OTHERS: [(&str, &str); 3] = [
    // The user is known only to the request handler.
    ("CertificateSigningRequest", "spec.groups"),
    ("CertificateSigningRequest", "spec.uid"),
    ("CertificateSigningRequest", "spec.username"),
];

fn assert_no_differences(sent: &Value, wanted: &Value, made: &Value, all: &mut Vec<String>) {
    let kind = sent["kind"].as_str().unwrap();
    let mut found = Vec::new();
    differences(wanted, made, "", &mut found);
    let ours = |it: &String| !LEFT_TO_OTHERS.iter().any(|(of, place)| *of == kind && it.starts_with(place));
    all.extend(found.into_iter().filter(ours).map(|it| format!("{kind} {}: {it}", sent["metadata"]["name"])));
}

#[test]
fn new_objects_become_what_the_server_makes_of_them() {
    let mut all = Vec::new();
    for line in include_str!("../../../../tests/sandbox_kinds/created.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_no_differences(&line["sent"], &line["answer"], &made(&line["sent"]), &mut all);
    }
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}

#[test]
fn what_is_done_twice_changes_nothing() {
    for line in include_str!("../../../../tests/sandbox_kinds/created.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (kind, schema) = kind_of(&line["sent"]);
        let mut again = line["answer"].clone();
        normalize(&schema, kind.kind, &mut again);
        set_defaults(kind.group, kind.kind, &mut again);
        prepare(kind, "", Some(&line["answer"]), &mut again, &mut Fixed);
        let mut found = Vec::new();
        differences(&line["answer"], &again, "", &mut found);
        assert!(found.is_empty(), "{}: {found:?}", line["sent"]);
    }
}

/// Errors that are not implemented, by kind and field prefix: they are rare, and each would need
/// code.
const UNSAID: [(&str, &str); 8] = [
    // Message of Go's JSON parser.
    ("Secret", "data[.dockerconfigjson]"),
    // Names of time zones would need a database.
    ("CronJob", "spec.timeZone"),
    ("LimitRange", "spec.limits[0]"),
    ("ResourceQuota", "spec."),
    ("Endpoints", "subsets"),
    // Only controllers write these fields.
    ("ResourceQuota", "status."),
    ("Namespace", "status."),
    ("Service", "status."),
];

/// Normalizes a cause for comparison. Go prints struct values with its own field names, and further
/// lines are a diff of such values: neither is imitated here.
fn comparable(cause: &Value) -> String {
    let message = cause["message"].as_str().unwrap().lines().next().unwrap();
    let message =
        match message.strip_prefix("Invalid value: {").or_else(|| message.strip_prefix("Invalid value: [")) {
            Some(rest) => format!("Invalid value: ...{}", rest.rsplit_once(": ").unwrap().1),
            None => message.to_owned(),
        };
    format!("{} {} {message}", cause["reason"], cause["field"])
}

fn compare_causes(sent: &Value, wanted: &Value, causes: &[Cause], all: &mut Vec<String>) {
    let kind = sent["kind"].as_str().unwrap();
    let said = |it: &&Value| {
        let field = it["field"].as_str().unwrap();
        !UNSAID.iter().any(|(of, start)| *of == kind && field.starts_with(start))
    };
    let set = |it: &Value| {
        it.as_array()
            .into_iter()
            .flatten()
            .filter(said)
            .map(comparable)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (wanted, made) = (set(&wanted["details"]["causes"]), set(&refusal("", "", "", causes).1));
    let name = &sent["metadata"]["name"];
    all.extend(wanted.difference(&made).map(|it| format!("{kind} {name}: not said here: {it}")));
    all.extend(made.difference(&wanted).map(|it| format!("{kind} {name}: said only here: {it}")));
}

#[test]
fn what_the_server_refuses_is_refused_in_its_words() {
    let mut all = Vec::new();
    for line in include_str!("../../../../tests/sandbox_kinds/refused.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let object = completed(&line["sent"], None, "");
        let causes = validate(kind_of(&line["sent"]).0, "", None, &object);
        compare_causes(&line["sent"], &line["answer"], &causes, &mut all);
    }
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}

#[test]
fn what_the_server_takes_is_taken() {
    for line in include_str!("../../../../tests/sandbox_kinds/created.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let object = completed(&line["sent"], None, "");
        let causes = validate(kind_of(&line["sent"]).0, "", None, &object);
        assert_eq!(causes, [], "{}", line["sent"]);
    }
}

/// Applies a change as the recorder did: RFC 7386.
fn changed(live: &Value, patch: &Value) -> Value {
    let (Some(map), mut object) = (patch.as_object(), live.clone()) else { return patch.clone() };
    if !object.is_object() {
        object = serde_json::json!({});
    }
    for (name, value) in map {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(name);
        } else {
            object[name] = changed(&object[name], value);
        }
    }
    object
}

#[test]
fn changes_come_to_what_the_server_makes_of_them() {
    let mut all = Vec::new();
    for line in include_str!("../../../../tests/sandbox_kinds/changed.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (live, subresource) = (&line["live"], line["subresource"].as_str().unwrap());
        let mut live_with_uid = live.clone();
        live_with_uid["metadata"]["uid"] = UID.into();
        let sent = changed(&live_with_uid, &line["patch"]);
        let mut object = completed(&sent, Some(&live_with_uid), subresource);
        let causes = validate(kind_of(&sent).0, subresource, Some(&live_with_uid), &object);
        let before = all.len();
        compare_causes(&sent, &line["answer"], &causes, &mut all);
        if causes.is_empty() && line["code"] == 200 {
            object["metadata"].as_object_mut().unwrap().remove("uid");
            assert_no_differences(&sent, &line["answer"], &object, &mut all);
        }
        all[before..].iter_mut().for_each(|it| *it = format!("{it} (change {})", line["patch"]));
    }
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}
