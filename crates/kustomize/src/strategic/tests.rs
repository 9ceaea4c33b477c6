//! Tests of merges, against answers of kustomize's own library (`tests/kustomize/record`).

use serde_json::json;

use super::*;

const PLAIN: TargetStyle<'static> =
    TargetStyle { keeps_nulls: true, is_quoted: Some(&|_| Some(false)), quoted_scalars: None };

fn pod(containers: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}})
}

#[test]
fn merges_come_to_what_kustomize_makes_of_them() {
    let cases = include_str!("../../../../tests/kustomize/merges.jsonl");
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let own = case.get("schema").map(|schema| Schemas::from_document(schema).expect("can be followed"));
        let schemas = own.as_ref().unwrap_or(Schemas::builtin());
        let (gives, is) = match merge(case["object"].clone(), &case["patch"], schemas, PLAIN) {
            Ok(Merged::Object(object)) => (object, Value::Null),
            Ok(Merged::Deleted) => (Value::Null, json!("deleted")),
            Err(_) => (Value::Null, json!("failed")),
        };
        if (&gives, &is) != (&case["gives"], &case["is"]) {
            wrong.push(format!("{}\n  {gives} {is}\n  {} {}", case["why"], case["gives"], case["is"]));
        }
    }
    assert!(cases.lines().count() > 70, "{}", cases.lines().count());
    assert!(wrong.is_empty(), "ours, and below it kustomize's:\n{}", wrong.join("\n"));
}

#[test]
fn faults_say_where_and_never_what() {
    let check = |target: Value, patch: Value, expect: &str| {
        let fault = merge(target, &patch, Schemas::builtin(), PLAIN).expect_err("does not merge");
        assert_eq!(fault.to_string(), expect);
    };
    check(
        pod(json!([{"name": "a", "env": [{"name": "b", "value": "secret"}]}])),
        pod(json!([{"name": "a", "env": [{"name": "b", "value": {"secret": 1}}]}])),
        "spec.containers[a].env[b].value: the object has a single value there and the patch has a map",
    );
    check(pod(json!([])), json!([]), "the whole object: the object has a map there and the patch has a list");
    check(
        pod(json!([{"name": "a"}, "secret"])),
        pod(json!([])),
        "spec.containers: the list merges by name, and one of its items is a single value",
    );
    check(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"finalizers": [{"secret": 1}]}}),
        json!({"metadata": {"finalizers": ["b"]}}),
        "metadata.finalizers: the list merges by its values, and one of its items is a map",
    );
    check(
        pod(json!([{"name": "a", "resources": {}}])),
        pod(json!([{"name": "a", "resources": {"$patch": "secret"}}])),
        "spec.containers[a].resources: $patch must be delete, replace or merge",
    );
}

#[test]
fn lists_that_would_take_for_ever_are_given_up() {
    let many = |prefix: &str| (0..1000).map(|at| json!({"name": format!("{prefix}{at}")})).collect::<Value>();
    let fault = within(1_000_000, pod(many("a")), &pod(many("b")), Schemas::builtin(), PLAIN)
        .expect_err("is too much");
    assert!(matches!(fault, StrategicMergeError::TooMuch { .. }), "{fault}");
}

#[test]
fn what_doubles_at_each_level_is_given_up() {
    // An item that lacks the first of two keys is added twice, and so are the lists in it.
    let schemas = Schemas::from_document(&json!({"definitions": {"Gate": {
        "x-kubernetes-group-version-kind": [{"version": "v1", "kind": "Gate"}],
        "properties": {"kids": {
            "type": "array", "items": {"$ref": "#/definitions/Gate"},
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-list-map-keys": ["a", "b"],
        }},
    }}}));
    let schemas = schemas.expect("can be followed");
    let deep = (0..60).fold(json!({"b": 1}), |inner, _| json!({"b": 1, "kids": [{"a": 2}, inner]}));
    let mut gate = json!({"apiVersion": "v1", "kind": "Gate"});
    gate["kids"] = json!([deep]);
    let fault = within(1_000_000, gate.clone(), &gate, &schemas, PLAIN).expect_err("is too much");
    assert!(matches!(fault, StrategicMergeError::TooMuch { .. }), "{fault}");
}

#[test]
fn ten_thousand_patches_on_one_object_take_no_time_to_speak_of() {
    let mut object = pod(json!([{"name": "a", "env": []}]));
    for number in 0..10_000 {
        let name = format!("N{}", number % 10);
        let patch = pod(json!([{"name": "a", "env": [{"name": name, "value": number.to_string()}]}]));
        object = match merge(object, &patch, Schemas::builtin(), PLAIN).expect("merges") {
            Merged::Object(object) => object,
            Merged::Deleted => panic!("nothing is deleted"),
        };
    }
    assert_eq!(object["spec"]["containers"][0]["env"].as_array().map(Vec::len), Some(10));
}
