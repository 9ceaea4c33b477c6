//! What a real API server made of objects, against what is made of them here.
//!
//! `tests/sandbox_kinds.rs` records the answers, and says there how it makes them the same at every run.

use serde_json::Value;

use super::*;
use crate::sandbox::schema::Schema;

/// The recorder's stand-ins for what the server gives out.
struct Fixed;

impl Allocate for Fixed {
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
    (named(group, kind).unwrap(), Schema::builtin(group, version, kind).unwrap())
}

/// What we make of an object, as the recorder writes answers.
fn made(sent: &Value, old: Option<&Value>, subresource: &str) -> Value {
    let (kind, schema) = kind_of(sent);
    let mut object = sent.clone();
    if kind.namespaced {
        object["metadata"]["namespace"] = "recorded".into();
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("creationTimestamp");
    metadata.insert("uid".to_owned(), UID.into());
    normalize(&schema, kind.kind, &mut object);
    default(kind.group, kind.kind, &mut object);
    prepare(kind, subresource, old, &mut object, &mut Fixed);
    object["metadata"].as_object_mut().unwrap().remove("uid");
    object
}

/// The places where two values differ, with what stands there.
fn differences(wanted: &Value, made: &Value, place: &str, found: &mut Vec<String>) {
    match (wanted, made) {
        (Value::Object(left), Value::Object(right)) => {
            let names: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for name in names {
                let at = paths::below(place, name);
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

/// What the server fills in that is left to others here.
const LEFT_TO_OTHERS: [(&str, &str); 3] = [
    // Who asks is known to the handler of requests.
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
    for line in include_str!("../../../tests/sandbox_kinds/created.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_no_differences(&line["sent"], &line["answer"], &made(&line["sent"], None, ""), &mut all);
    }
    assert!(all.is_empty(), "{} differences:\n{}", all.len(), all.join("\n"));
}

#[test]
fn what_is_done_twice_changes_nothing() {
    for line in include_str!("../../../tests/sandbox_kinds/created.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (kind, schema) = kind_of(&line["sent"]);
        let mut again = line["answer"].clone();
        normalize(&schema, kind.kind, &mut again);
        default(kind.group, kind.kind, &mut again);
        prepare(kind, "", Some(&line["answer"]), &mut again, &mut Fixed);
        let mut found = Vec::new();
        differences(&line["answer"], &again, "", &mut found);
        assert!(found.is_empty(), "{}: {found:?}", line["sent"]);
    }
}
