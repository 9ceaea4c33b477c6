//! Tests of JSON patches, against answers of kustomize's own library (`tests/kustomize/record`).

use serde_json::json;

use super::*;

fn patched(mut object: Value, patch: &Value) -> Result<Value, JsonPatchError> {
    apply(&mut object, &parse(patch)?)?;
    Ok(object)
}

#[test]
fn patches_come_to_what_kustomize_makes_of_them() {
    let cases = include_str!("../../../../tests/kustomize/json_patches.jsonl");
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let (gives, is) = match patched(case["object"].clone(), &case["patch"]) {
            Ok(object) => (object, Value::Null),
            Err(_) => (Value::Null, json!("failed")),
        };
        if (&gives, &is) != (&case["gives"], &case["is"]) {
            wrong.push(format!("{}\n  {gives} {is}\n  {} {}", case["why"], case["gives"], case["is"]));
        }
    }
    assert!(cases.lines().count() > 50, "{}", cases.lines().count());
    assert!(wrong.is_empty(), "ours, and below it kustomize's:\n{}", wrong.join("\n"));
}

#[test]
fn a_patch_that_would_take_for_ever_is_given_up() {
    let items: Vec<usize> = (0..10_000).collect();
    let object = || json!({"a": items, "b": {"c": items}});
    for operation in [
        json!([{"op": "add", "path": "/a/0", "value": 1}]),
        json!([{"op": "add", "path": "/a/0", "value": 1}, {"op": "remove", "path": "/a/0"}]),
        json!([{"op": "move", "from": "/b", "path": "/d"}, {"op": "move", "from": "/d", "path": "/b"}]),
    ] {
        let once = operation.as_array().unwrap();
        let many: Value = once.iter().cycle().take(1000).cloned().collect();
        let fault = within(1_000_000, &mut object(), &parse(&many).unwrap()).expect_err("takes too long");
        assert!(fault.to_string().contains("takes more than"), "{fault}");
    }
    let at_end: Value = (0..1000).map(|at| json!({"op": "add", "path": "/a/-", "value": at})).collect();
    assert_eq!(within(10_000, &mut object(), &parse(&at_end).unwrap()), Ok(()));
}

#[test]
fn faults_say_which_operation_and_why_and_never_what() {
    let check = |operation: Value, expect: &str| {
        let object = json!({"data": {"a": "secret", "list": [1, 2]}});
        let patch = json!([{"op": "test", "path": "/data/a", "value": "secret"}, operation]);
        let fault = patched(object, &patch).expect_err("does not apply");
        assert_eq!(fault.to_string(), format!("operation 2 of the JSON patch {expect}"));
    };
    let remove = |path: &str| json!({"op": "remove", "path": path});
    check(remove("/data/b"), "(remove /data/b) does not apply: there is no field b");
    check(remove("/data/a/b"), "(remove /data/a/b) does not apply: there is no map or list at /data/a");
    check(remove("/spec/x/y"), "(remove /spec/x/y) does not apply: there is no map or list at /spec");
    check(remove("/data/list/2"), "(remove /data/list/2) does not apply: there is no item 2; the list has 2");
    check(remove("/data/list/x"), "(remove /data/list/x) does not apply: \"x\" is not a list index");
    check(
        remove(""),
        "(remove ) does not apply: the path names the whole object; it must name a field, such as /spec",
    );
    check(
        json!({"op": "copy", "from": "/x/y", "path": "/z"}),
        "(copy /z) does not apply: from /x/y: there is no map or list at /x",
    );
    check(
        json!({"op": "test", "path": "/data/a", "value": "other"}),
        "(test /data/a) does not apply: the value differs",
    );
    check(
        json!({"op": "replace", "path": "", "value": "secret"}),
        "(replace ) does not apply: the whole object can only be replaced by a map or a list",
    );
    check(json!("secret"), "must be a map with op and path");
    check(json!({"op": "secret", "path": "/a"}), "needs an op: add, remove, replace, move, copy or test");
    check(json!({"op": "add"}), "needs a path, a string such as /spec/replicas");
    check(json!({"op": "move", "path": "/a"}), "needs a from, a string such as /spec/replicas");
    assert_eq!(
        parse(&json!({})).expect_err("is no list").to_string(),
        "a JSON patch must be a list of operations"
    );
}

#[test]
fn copies_of_copies_are_given_up() {
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let patch: Value = vec![double; 60].into();
    let fault = patched(json!({"a": [1]}), &patch).expect_err("is too much");
    assert!(fault.to_string().ends_with("nests them deeper than 512"), "{fault}");
    let deeper = json!({"op": "copy", "from": "/a", "path": "/b"});
    let within = json!({"op": "move", "from": "/b", "path": "/a/x"});
    let patch: Value = [deeper, within].into_iter().cycle().take(2000).collect();
    let fault = patched(json!({"a": {"x": {}}}), &patch);
    assert!(fault.is_err() || fault.is_ok_and(|object| depth(&object) <= MAX_DEPTH));
}

#[test]
fn ten_thousand_operations_take_no_time_to_speak_of() {
    let add = json!({"op": "add", "path": "/list/0", "value": "x"});
    let object = patched(json!({"list": []}), &vec![add; 10_000].into()).expect("applies");
    assert_eq!(object["list"].as_array().map(Vec::len), Some(10_000));
}
