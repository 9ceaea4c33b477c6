//! A real API server's treatment of kinds: the sandbox's facts and its tests beside the code come from here.
//!
//! In: the objects, changes and patches in `tests/sandbox_kinds/*.yaml`. Out: nothing, while the server answers as the files
//! beside them say; with `MOORLINE_RECORD_SANDBOX` set, those files again, for a newer version of Kubernetes or new cases. What is
//! another at every run (uids, times, addresses, ports) is written as the same stand-ins each time.

pub(crate) mod asking;
pub(crate) mod discovery;
pub(crate) mod masks;

use asking::{Ground, Media, cases};
use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox_kinds");

/// Compares lines with those of a file, or writes them.
fn keep(file: &str, lines: &[Value], compared: fn(&Value) -> Value) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    settle(&format!("{ROOT}/{file}"), &text, |text| {
        text.lines().map(|line| compared(&serde_json::from_str(line).expect("a recorded line"))).collect()
    });
}

/// Compares a text with that of a file as it is read, or writes it.
fn settle(path: &str, made: &str, read: impl Fn(&str) -> Vec<Value>) {
    if std::env::var_os("MOORLINE_RECORD_SANDBOX").is_some() {
        std::fs::write(path, made).expect("the record can be written");
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let (made, committed) = (read(made), read(&committed));
    let differs = made.iter().zip(&committed).find(|(made, committed)| made != committed);
    assert_eq!(differs, None, "{path} is not what the server answers: made, committed");
    assert_eq!(made.len(), committed.len(), "{path}: record it anew");
}

#[tokio::test]
async fn the_kinds_are_those_of_the_server() {
    let Some(ground) = Ground::new().await else { return };
    let mut text = String::new();
    for root in ["/api", "/apis"] {
        text += &discovery::table(&ground.ask("GET", root, &Value::Null, Media::Discovery).await.1);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/sandbox/src/kinds/kubernetes.txt");
    settle(path, &text, |text| text.lines().map(Value::from).collect());
}

#[tokio::test]
async fn new_objects_are_recorded() {
    let Some(ground) = Ground::new().await else { return };
    let mut lines = Vec::new();
    for sent in cases("creates", &ground.namespace) {
        let path = ground.collection(&sent);
        let (code, answer) = ground.ask("POST", &format!("{path}?dryRun=All"), &sent, Media::Object).await;
        assert_eq!(code, 201, "{sent}: {answer}");
        lines.push(
            ground.neutral(json!({"code": code, "sent": sent, "answer": masks::masked(&[&sent], answer)})),
        );
    }
    keep("created.jsonl", &lines, Value::clone);
}

#[tokio::test]
async fn refusals_are_recorded() {
    let Some(ground) = Ground::new().await else { return };
    let mut lines = Vec::new();
    for sent in cases("refused", &ground.namespace) {
        let path = ground.collection(&sent);
        let (code, answer) = ground.ask("POST", &format!("{path}?dryRun=All"), &sent, Media::Object).await;
        assert_eq!(code, 422, "{sent}: {answer}");
        lines.push(
            ground.neutral(json!({"code": code, "sent": sent, "answer": masks::masked(&[&sent], answer)})),
        );
    }
    // Go walks labels and the like in no order.
    keep("refused.jsonl", &lines, masks::in_one_order);
}

#[tokio::test]
async fn changes_are_recorded() {
    let Some(ground) = Ground::new().await else { return };
    let mut lines = Vec::new();
    for case in cases("changes", &ground.namespace) {
        let live = ground.made(&case["object"]).await;
        for change in case["changes"].as_array().expect("changes") {
            let mut patch = change.clone();
            let subresource = patch.as_object_mut().and_then(|it| it.remove("$subresource"));
            let subresource = subresource.and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default();
            let slash = if subresource.is_empty() { "" } else { "/" };
            let path = format!("{}{slash}{subresource}?dryRun=All", ground.place(&case["object"]));
            let (code, answer) = ground.ask("PATCH", &path, &patch, Media::MergePatch).await;
            let wished = masks::wished(&case["object"], &patch);
            lines.push(ground.neutral(json!({
                "live": masks::masked(&[&case["object"]], live.clone()), "patch": patch, "subresource": subresource,
                "code": code, "answer": masks::masked(&[&wished, &case["object"]], answer),
            })));
        }
        ground.removed(&case["object"]).await;
    }
    keep("changed.jsonl", &lines, masks::in_one_order);
}

#[tokio::test]
async fn json_patches_are_recorded() {
    let Some(ground) = Ground::new().await else { return };
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "jp", "finalizers": ["a/b", "c/d"], "annotations": {"b/c": "2"}},
        "data": {"a": "1", "c": "2"},
    });
    let live = ground.made(&object).await;
    let mut lines = Vec::new();
    for patch in cases("json_patches", &ground.namespace) {
        let path = format!("{}?dryRun=All", ground.place(&object));
        let (code, answer) = ground.ask("PATCH", &path, &patch, Media::JsonPatch).await;
        lines.push(ground.neutral(json!({
            "live": masks::masked(&[&object], live.clone()), "patch": patch, "code": code, "answer": masks::masked(&[&live], answer),
        })));
    }
    keep("json_patches.jsonl", &lines, Value::clone);
}

#[tokio::test]
async fn rows_are_recorded() {
    let Some(ground) = Ground::new().await else { return };
    let mut lines = Vec::new();
    for case in cases("shown", &ground.namespace) {
        let object = &case["object"];
        ground.made(object).await;
        if case["status"].is_object() {
            let path = format!("{}/status", ground.place(object));
            let (code, answer) =
                ground.ask("PATCH", &path, &json!({"status": case["status"]}), Media::MergePatch).await;
            assert_eq!(code, 200, "{object}: {answer}");
        }
        let path = format!("{}?includeObject=Object", ground.place(object));
        let (code, table) = ground.ask("GET", &path, &Value::Null, Media::Table).await;
        assert_eq!(code, 200, "{object}: {table}");
        lines.push(ground.neutral(masks::row(&table)));
        ground.removed(object).await;
    }
    // When it was recorded is another time.
    keep("shown.jsonl", &lines, |line| {
        let name = &line["object"]["metadata"]["name"];
        let mut cells = line["cells"].clone();
        // Values that the server itself finds out a moment later.
        for (of, at) in [("FlowSchema", 5), ("APIService", 2)] {
            if line["object"]["kind"] == of {
                cells[at] = Value::Null;
            }
        }
        if line["object"]["kind"] == "Job" {
            // Its selector is its uid.
            cells[7] = Value::Null;
        }
        if line["columns"][1]["name"] == "Created At" {
            cells[1] = Value::Null;
        }
        json!({"name": name, "columns": line["columns"], "cells": cells})
    });
}
