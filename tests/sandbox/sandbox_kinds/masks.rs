//! The same answer for the same request: stand-ins for what the server makes up again each time.
//!
//! In: what was sent, and the answer. Out: the answer with the stand-ins that `crates/sandbox/src/kinds/tests.rs` knows.

use jiff::Timestamp;
use serde_json::{Value, json};

const UID: &str = "00000000-0000-4000-8000-000000000000";
const TIME: &str = "2024-01-01T00:00:00Z";
const ADDRESS: &str = "10.0.0.1";
const NODE_PORT: u32 = 30000;
/// Members of `metadata` that tell nothing about a kind.
const OWN: [&str; 4] = ["uid", "creationTimestamp", "managedFields", "resourceVersion"];

/// An answer with stand-ins for what is in nothing that was sent.
pub(crate) fn masked(sent: &[&Value], mut answer: Value) -> Value {
    if is_refusal(&answer) {
        answer.as_object_mut().expect("a mapping").remove("metadata");
    } else if let Some(metadata) = answer["metadata"].as_object_mut() {
        OWN.iter().for_each(|field| drop(metadata.remove(*field)));
    }
    mask("", sent, &mut answer);
    answer
}

/// Returns the wish of somebody who changes an object by a merge patch.
pub(crate) fn wished(object: &Value, patch: &Value) -> Value {
    let Some(changes) = patch.as_object() else { return patch.clone() };
    let mut wished = object.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        let before = wished.get(name).cloned().unwrap_or_default();
        wished.insert(name.clone(), self::wished(&before, change));
    }
    Value::Object(wished)
}

fn is_refusal(answer: &Value) -> bool {
    answer["kind"] == "Status" && answer["apiVersion"] == "v1"
}

fn mask(name: &str, sent: &[&Value], it: &mut Value) {
    if sent.iter().any(|sent| **sent == *it) {
        return;
    }
    match it {
        Value::Object(map) => {
            for (name, it) in map {
                let below: Vec<_> = sent.iter().map(|sent| &sent[name.as_str()]).collect();
                mask(name, &below, it);
            }
        }
        Value::Array(items) => {
            let name = if name == "clusterIPs" { "clusterIP" } else { name };
            for (at, it) in items.iter_mut().enumerate() {
                let below: Vec<_> = sent.iter().map(|sent| &sent[at]).collect();
                mask(name, &below, it);
            }
        }
        Value::Number(_) if matches!(name, "nodePort" | "healthCheckNodePort") => *it = NODE_PORT.into(),
        Value::String(text) if name == "clusterIP" && text != "None" => ADDRESS.clone_into(text),
        Value::String(text) if text.starts_with("kube-api-access-") => {
            "kube-api-access-xxxxx".clone_into(text)
        }
        Value::String(text) if is_recent(text) => TIME.clone_into(text),
        Value::String(text) => *text = without_uids(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A time of this run.
fn is_recent(text: &str) -> bool {
    let day = 24 * 3600;
    text.parse::<Timestamp>().is_ok_and(|it| Timestamp::now().as_second() - it.as_second() < day)
}

/// A text in which all uids are the stand-in.
fn without_uids(text: &str) -> String {
    let (mut made, mut rest) = (String::new(), text);
    while let Some(char) = rest.chars().next() {
        let candidate = rest.get(..UID.len()).filter(|it| is_uid(it));
        let (added, taken) =
            candidate.map_or((&rest[..char.len_utf8()], char.len_utf8()), |it| (UID, it.len()));
        made.push_str(added);
        rest = &rest[taken..];
    }
    made
}

fn is_uid(text: &str) -> bool {
    let shaped = |(at, char): (usize, char)| match at {
        8 | 13 | 18 | 23 => char == '-',
        _ => char.is_ascii_hexdigit(),
    };
    text.chars().enumerate().all(shaped)
}

/// A refusal with its causes sorted, because Go walks mappings in no order; its message tells the same again.
pub(crate) fn in_one_order(line: &Value) -> Value {
    let mut line = line.clone();
    if is_refusal(&line["answer"]) {
        line["answer"]["message"] = Value::Null;
        if let Some(causes) = line["answer"]["details"]["causes"].as_array_mut() {
            causes.sort_by_key(Value::to_string);
            causes.dedup();
        }
    }
    line
}

/// The one row of a table, with the object that it shows and the time at which it does.
pub(crate) fn row(table: &Value) -> Value {
    let mut object = table["rows"][0]["object"].clone();
    let now = object["metadata"]["creationTimestamp"].clone();
    let metadata = object["metadata"].as_object_mut().expect("an object");
    OWN.iter().filter(|it| **it != "creationTimestamp").for_each(|field| drop(metadata.remove(*field)));
    let mut cells = table["rows"][0]["cells"].clone();
    let mut columns = Vec::new();
    for (at, column) in table["columnDefinitions"].as_array().expect("columns").iter().enumerate() {
        // A second may pass in between.
        match column["name"].as_str() {
            Some("Age") => cells[at] = "0s".into(),
            Some("Created At") => cells[at] = now.clone(),
            _ => {}
        }
        let kept =
            ["name", "type", "format", "priority"].map(|field| (field.to_owned(), column[field].clone()));
        columns.push(Value::Object(kept.into_iter().collect()));
    }
    json!({"now": now, "object": object, "columns": columns, "cells": cells})
}
