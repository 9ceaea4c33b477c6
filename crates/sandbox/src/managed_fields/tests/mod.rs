//! Replays writes that were recorded from Kubernetes, and compares the results.
//!
//! The cases are recorded by `tests/control-plane/sandbox/ownership`. A file with more of them,
//! copied over the recorded one, is replayed as well.

mod rows;
mod scene;

use std::fmt::Write as _;

use serde_json::json;

use super::super::schema::{Field, Scalar, Shape, WritePolicy};
use super::*;

const RECORDED: &str = include_str!("../../../../../tests/sandbox/ownership.jsonl");
const DEFINITION: &str = include_str!("../../../../../tests/sandbox/widgets.json");

fn schema_of(kind: &str) -> Schema {
    let builtin = |group: &str| Schema::builtin(group, "v1", kind).expect(kind);
    match kind {
        "Widget" => {
            let definition: Value = serde_json::from_str(DEFINITION).unwrap();
            Schema::of_definition(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        }
        "Deployment" => builtin("apps"),
        "Role" => builtin("rbac.authorization.k8s.io"),
        _ => builtin(""),
    }
}

/// Imitates decoding into a Go type, as far as the recorded objects need it.
fn normal(schema: &Schema, value: &mut Value) {
    match schema.shape() {
        Shape::Scalar(Scalar::Quantity) => {
            let canonical = match value.as_str() {
                Some("0.5") => "500m",
                Some("1024Mi") => "1Gi",
                _ => return,
            };
            *value = canonical.into();
        }
        Shape::List(list) => {
            for item in value.as_array_mut().into_iter().flatten() {
                normal(list.items(), item);
            }
        }
        Shape::Fields(fields) => {
            let Some(map) = value.as_object_mut() else { return };
            for (name, value) in map.iter_mut() {
                if let Some(schema) = fields.of(name) {
                    normal(schema, value);
                }
            }
            for field in fields.known() {
                settle(field, map);
            }
        }
        Shape::Scalar(_) | Shape::Anything | Shape::Opaque => {}
    }
}

fn settle(field: &Field, map: &mut Map<String, Value>) {
    let name = &*field.name;
    let is_zero = map.get(name).is_none_or(|value| match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    });
    let is_null = map.get(name).is_none_or(Value::is_null);
    if field.pointer {
        if is_null {
            map.remove(name);
        }
    } else if is_zero && field.is_dropped_when_zero() {
        map.remove(name);
    }
    if is_null
        && (field.write_policy == WritePolicy::Always || (!field.pointer && !field.is_dropped_when_zero()))
    {
        map.insert(name.to_owned(), field.zero_value());
    }
}

/// Performs a recorded write; returns the difference, if there is one.
fn replay(schema: &Schema, live: Option<&Value>, write: &Value, at: usize) -> Result<(), String> {
    let text = |name: &str| write.get(name).and_then(Value::as_str).unwrap_or_default();
    let object = &write["object"];
    let normal = |value: &mut Value| {
        if !schema.is_of_definition() {
            normal(schema, value);
        }
    };
    let subresource = text("subresource");
    let reset: &[&[&str]] = if subresource.is_empty() { &[&["status"]] } else { &[&["spec"]] };
    let now = format!("2020-01-01T00:00:{:02}Z", at + 1);
    let writer = Writer {
        manager: text("manager"),
        api_version: object["apiVersion"].as_str().unwrap(),
        subresource,
        now: &now,
        reset,
        in_version: &|_, _| InVersion::Same,
    };
    let mut result = if text("operation") == "update" {
        let mut new = object.clone();
        update(schema, live, &mut new, &writer);
        new
    } else {
        let force = write.get("force").is_some();
        match apply(schema, live, object, &writer, force) {
            Ok(merged) => merged,
            Err(fault) => return compare_fault(fault, write),
        }
    };
    normal(&mut result);
    result["metadata"]["uid"] = "1".into();
    match write.get("result") {
        Some(expect) if *expect == result => Ok(()),
        Some(expect) => Err(format!("expected {}\n   found {}", shown(expect), shown(&result))),
        None => Err(format!("expected {}\n   found {}", text("error"), shown(&result))),
    }
}

fn shown(object: &Value) -> String {
    let mut object = object.clone();
    let mut text = String::new();
    let entries = object["metadata"].as_object_mut().and_then(|it| it.remove("managedFields"));
    let _ = writeln!(text, "{object}");
    for entry in entries.iter().filter_map(Value::as_array).flatten() {
        let _ = writeln!(text, "     {entry}");
    }
    text
}

fn compare_fault(fault: ApplyError, write: &Value) -> Result<(), String> {
    let (found, causes) = match fault {
        ApplyError::Conflicts(conflicts) => conflict_message(&conflicts),
        ApplyError::Typed(words) | ApplyError::Refused(words) => (words, json!([])),
    };
    let expect = write.get("error").and_then(Value::as_str).unwrap_or_default();
    let mut pairs: Vec<Value> = causes
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| json!([cause["message"], cause["field"]]))
        .collect();
    let mut expected: Vec<Value> = write.get("causes").and_then(Value::as_array).cloned().unwrap_or_default();
    // Go iterates over managers in random order.
    pairs.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.split("\n").map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // Also over the invalid fields of an object, and it stops at the first unknown one.
    let is_same = lines(&found) == lines(expect)
        || [&*found, expect].iter().all(|text| text.contains(": field not declared in schema"));
    if is_same && pairs == expected {
        return Ok(());
    }
    Err(format!("expected {expect} {expected:?}\n   found {found} {pairs:?}"))
}

#[test]
fn every_recorded_write_comes_to_the_same() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (line, sequence) in RECORDED.lines().enumerate() {
        let sequence: Value = serde_json::from_str(sequence).unwrap();
        let schema = schema_of(sequence["kind"].as_str().unwrap());
        let mut live = None;
        for (at, write) in sequence["writes"].as_array().unwrap().iter().enumerate() {
            count += 1;
            if let Err(difference) = replay(&schema, live, write, at) {
                wrong.push(format!(
                    "line {} write {at}: {} by {} of {}\n    live {}\n{difference}",
                    line + 1,
                    write["operation"],
                    write["manager"],
                    write["object"],
                    live.map(shown).unwrap_or_default(),
                ));
            }
            live = write.get("result").or(live);
        }
    }
    let first: Vec<&String> = wrong.iter().take(2).collect();
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        first.into_iter().cloned().collect::<String>()
    );
    assert!(count > 100, "{count} writes");
}
