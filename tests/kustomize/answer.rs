//! Answers of the tool and of the renderer, and the result of their comparison.

use std::collections::BTreeMap;

use moorline::kustomize::build;
use moorline::tree::FileTree;
use serde_json::Value;

use crate::numbers::normal;

use super::refusals;

/// Answer of one of the two about a tree.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The objects, in order.
    Objects(Vec<Value>),
    /// A refusal: its class where it is known, and the text for the person who reads the test.
    Refused { class: Option<&'static str>, text: String },
    /// A feature that is not built yet: no statement about the tree.
    NotYet { text: String },
}

/// Result of a comparison.
#[derive(Debug)]
pub(crate) enum Verdict {
    Equal,
    /// Not rendered, though the tool has objects; why.
    Refused(String),
    /// A wrong answer; in what.
    Different(String),
}

/// The renderer's answer for a folder of a tree.
pub(crate) fn rendered(tree: &FileTree, path: &str) -> Answer {
    match build(tree, path) {
        Ok(built) => {
            Answer::Objects(built.objects.into_iter().map(|object| Value::Object(object.body)).collect())
        }
        Err(fault) => Answer::Refused {
            class: refusals::of_fault(&fault),
            text: format!("{}: {fault}", fault.class.name()),
        },
    }
}

/// Compares the answer of the renderer with that of the tool.
pub(crate) fn compare(ours: &Answer, expected: &Answer) -> Verdict {
    match (ours, expected) {
        (Answer::NotYet { text }, _) => Verdict::Refused(text.clone()),
        (Answer::Objects(ours), Answer::Objects(expected)) => match difference(ours, expected) {
            None => Verdict::Equal,
            Some(difference) => Verdict::Different(difference),
        },
        (Answer::Refused { text, .. }, Answer::Objects(_)) => Verdict::Refused(text.clone()),
        (Answer::Objects(ours), Answer::Refused { .. } | Answer::NotYet { .. }) => {
            Verdict::Different(format!("{} objects, where the tool refuses: {expected:?}", ours.len()))
        }
        (Answer::Refused { class: Some(ours), text }, Answer::Refused { class: Some(expected), .. })
            if ours != expected =>
        {
            Verdict::Different(format!("refused as {ours} ({text}), where the tool refuses as {expected}"))
        }
        (Answer::Refused { .. }, Answer::Refused { .. } | Answer::NotYet { .. }) => Verdict::Equal,
    }
}

/// The first difference of two lists of objects.
fn difference(ours: &[Value], expected: &[Value]) -> Option<String> {
    let (ours, expected) = (by_id(ours), by_id(expected));
    let ids = |objects: &[(String, Value)]| objects.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    let (found, wanted) = (ids(&ours), ids(&expected));
    if let Some(id) = wanted.iter().find(|id| !found.contains(id)) {
        return Some(format!("{id} is missing; there are {found:?}"));
    }
    if let Some(id) = found.iter().find(|id| !wanted.contains(id)) {
        return Some(format!("{id} is not in the tool's output"));
    }
    let values: BTreeMap<_, _> = ours.into_iter().collect();
    for (id, wanted) in &expected {
        if let Some(text) = first_difference("", &values[id], wanted) {
            return Some(format!("{id}{text}"));
        }
    }
    (found != wanted).then(|| format!("the order is {found:?} and should be {wanted:?}"))
}

/// The objects with their ids; a second object of one id gets a number.
fn by_id(objects: &[Value]) -> Vec<(String, Value)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let with_id = |object: &Value| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let id = format!("{}/{} {namespace}/{name}", text("/apiVersion"), text("/kind"));
        let times = seen.entry(id.clone()).or_default();
        *times += 1;
        let id = if *times > 1 { format!("{id} #{times}") } else { id };
        (id, normal(object.clone()))
    };
    objects.iter().map(with_id).collect()
}

/// The path at which two values part, and what stands there.
fn first_difference(path: &str, ours: &Value, expected: &Value) -> Option<String> {
    match (ours, expected) {
        _ if ours == expected => None,
        (Value::Object(ours), Value::Object(expected)) => {
            let mut keys: Vec<_> = ours.keys().chain(expected.keys()).collect();
            keys.sort();
            keys.into_iter().find_map(|key| {
                let path = format!("{path}.{key}");
                match (ours.get(key), expected.get(key)) {
                    (Some(ours), Some(expected)) => first_difference(&path, ours, expected),
                    (Some(ours), None) => Some(format!("{path}: {ours}, is not in the tool's output")),
                    (None, Some(expected)) => Some(format!("{path}: missing, should be {expected}")),
                    (None, None) => None,
                }
            })
        }
        (Value::Array(ours), Value::Array(expected)) if ours.len() == expected.len() => {
            let mut items = ours.iter().zip(expected).enumerate();
            items
                .find_map(|(at, (ours, expected))| first_difference(&format!("{path}[{at}]"), ours, expected))
        }
        (ours, expected) => Some(format!("{path}: {ours}, should be {expected}")),
    }
}

#[test]
fn every_difference_is_found() {
    use serde_json::json;

    let map = |name: &str, value: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}});
    let objects = |objects: &[Value]| Answer::Objects(objects.to_vec());
    let refused = |class| Answer::Refused { class, text: "words".to_owned() };
    let (a, b) = (map("a", json!([1, "x"])), map("b", json!(2)));
    let both = objects(&[a.clone(), b.clone()]);
    let check = |ours: &Answer, expected: &Answer, verdict: &str| {
        assert_eq!(format!("{:?}", compare(ours, expected)), verdict);
    };
    check(&both, &both.clone(), "Equal");
    check(
        &objects(&[b.clone(), a.clone()]),
        &both,
        r#"Different("the order is [\"v1/ConfigMap /b\", \"v1/ConfigMap /a\"] and should be [\"v1/ConfigMap /a\", \"v1/ConfigMap /b\"]")"#,
    );
    let alone = objects(std::slice::from_ref(&a));
    check(&alone, &both, r#"Different("v1/ConfigMap /b is missing; there are [\"v1/ConfigMap /a\"]")"#);
    check(&both, &alone, r#"Different("v1/ConfigMap /b is not in the tool's output")"#);
    let other = objects(&[map("a", json!([1.0, "x"])), b.clone()]);
    check(&other, &both, r#"Different("v1/ConfigMap /a.data.a[0]: 1.0, should be 1")"#);
    let nothing = objects(&[map("a", json!(null)), b]);
    check(&nothing, &both, r#"Different("v1/ConfigMap /a.data.a: null, should be [1,\"x\"]")"#);
    check(
        &objects(&[a.clone(), a]),
        &alone,
        r#"Different("v1/ConfigMap /a #2 is not in the tool's output")"#,
    );

    check(&refused(None), &both, r#"Refused("words")"#);
    check(&Answer::NotYet { text: "later".to_owned() }, &refused(Some("yaml")), r#"Refused("later")"#);
    check(&refused(None), &refused(Some("yaml")), "Equal");
    check(&refused(Some("yaml")), &refused(Some("yaml")), "Equal");
    check(
        &refused(Some("cycle")),
        &refused(Some("yaml")),
        r#"Different("refused as cycle (words), where the tool refuses as yaml")"#,
    );
    assert!(matches!(compare(&both, &refused(Some("yaml"))), Verdict::Different(_)));
}
