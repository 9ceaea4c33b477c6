//! Tests against the results of Kustomize 5.8.1.

use serde_json::Value;

use super::super::node::Node;
use super::super::resource::Resource;
use super::{Replacement, Replacements, WriteBudget, apply, replacements};
use crate::error::{ErrorClass, FieldLocation};
use crate::scalar_style::Spelling;
use moorline_core::object::Origin;
use moorline_yaml::{self as yaml, Dialect};

const OBJECTS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}, annotations: {url: "a.b:80/c"}}
spec:
  replicas: 3
  ratio: 1.5
  paused: false
  none: null
  list: []
  containers:
  - {name: web, image: "example.com/web:1", args: [--a=1, --b=2], ports: [{port: 80}]}
  - {name: side, image: "side:1", env: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: shop, labels: {app: web}}
data: {HOST: db, PORT: "5432", json: '{"port": 80, "a": "<b>"}', flat: hello, yaml: "k: v", a.b: dotted, pretty: "{\n  \"a\": [1.50]\n}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {HOST: h}
"#;

/// A replacement, and the fields that it changes.
type Case = (&'static str, Result<&'static [(&'static str, &'static str)], ErrorClass>);

#[rustfmt::skip]
const CASES: &[Case] = &[
    (r#"source: {kind: ConfigMap, name: conf, fieldPath: data.PORT}, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.replicas']}]}"#, Ok(&[("/0/spec/replicas", r#"5432"#)])),
    (r#"source: {kind: ConfigMap, name: conf, fieldPath: data.HOST}, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.replicas']}]}"#, Err(ErrorClass::Replacement)),
    (r#"source: {kind: Deployment, fieldPath: spec.replicas}, targets: [{select: {name: conf}, fieldPaths: ['data.PORT']}]}"#, Ok(&[("/1/data/PORT", r#""3""#)])),
    (r#"sourceValue: '2.5', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.ratio']}]}"#, Ok(&[("/0/spec/ratio", r#"2.5"#)])),
    (r#"sourceValue: 'true', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.paused']}]}"#, Ok(&[("/0/spec/paused", r#"true"#)])),
    (r#"sourceValue: 'yes', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.paused']}]}"#, Err(ErrorClass::Replacement)),
    (r#"sourceValue: '7', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.new.x', 'metadata.annotations.n'], options: {create: true}}]}"#, Ok(&[("/0/metadata/annotations/n", r#""7""#), ("/0/spec/new/x", r#"7"#)])),
    (r#"sourceValue: '7', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.new']}]}"#, Err(ErrorClass::Replacement)),
    (r#"sourceValue: '7', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.list']}]}"#, Ok(&[("/0/spec/list", r#"7"#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.none']}]}"#, Err(ErrorClass::Replacement)),
    (r#"source: {kind: Deployment, fieldPath: spec.containers.0.ports}, targets: [{select: {name: conf}, fieldPaths: ['data.HOST', 'data.new'], options: {create: true}}]}"#, Ok(&[("/1/data/HOST", r#""""#), ("/1/data/new", r#"[{"port":80}]"#)])),
    (r#"source: {kind: Deployment}, targets: [{select: {kind: ConfigMap}, reject: [name: c.*], fieldPaths: ['data.HOST']}]}"#, Ok(&[("/2/data/HOST", r#""web""#)])),
    (r#"source: {kind: Deployment}, targets: [{select: {kind: Config}, fieldPaths: ['data.HOST']}]}"#, Ok(&[])),
    (r#"source: {kind: Deployment}, targets: [{select: {namespace: shop}, fieldPaths: ['data.HOST']}]}"#, Ok(&[("/1/data/HOST", r#""web""#)])),
    (r#"source: {kind: Deployment}, targets: [{select: {kind: ConfigMap}, reject: [labelSelector: app=web], fieldPaths: ['data.HOST']}]}"#, Ok(&[("/2/data/HOST", r#""web""#)])),
    (r#"source: {kind: ConfigMap, namespace: default}, targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.labels.app']}]}"#, Ok(&[("/0/metadata/labels/app", r#""other""#)])),
    (r#"source: {kind: ConfigMap}, targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.labels.app']}]}"#, Err(ErrorClass::Target)),
    (r#"source: {kind: Secret}, targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.labels.app']}]}"#, Err(ErrorClass::Target)),
    (r#"source: {kind: Deployment, fieldPath: metadata.annotations.url, options: {delimiter: ':', index: 1}}, targets: [{select: {name: conf}, fieldPaths: ['data.PORT']}]}"#, Ok(&[("/1/data/PORT", r#""80/c""#)])),
    (r#"source: {kind: Deployment, fieldPath: metadata.annotations.url, options: {delimiter: ':', index: 2}}, targets: [{select: {name: conf}, fieldPaths: ['data.PORT']}]}"#, Err(ErrorClass::Replacement)),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.annotations.url'], options: {delimiter: ., index: -1}}]}"#, Ok(&[("/0/metadata/annotations/url", r#""x.a.b:80/c""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.annotations.url'], options: {delimiter: /, index: 1}}]}"#, Ok(&[("/0/metadata/annotations/url", r#""a.b:80/x""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['metadata.annotations.url'], options: {delimiter: /, index: 9}}]}"#, Ok(&[("/0/metadata/annotations/url", r#""a.b:80/c/x""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.[name=web].image', 'spec.containers.*.name']}]}"#, Ok(&[("/0/spec/containers/0/image", r#""x""#), ("/0/spec/containers/0/name", r#""x""#), ("/0/spec/containers/1/name", r#""x""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.[name=e].image']}]}"#, Ok(&[("/0/spec/containers/0/image", r#""x""#), ("/0/spec/containers/1/image", r#""x""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.5.image']}]}"#, Err(ErrorClass::Replacement)),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.2.image'], options: {create: true}}]}"#, Ok(&[("/0/spec/containers/2/image", r#""x""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.[name=side].env.[name=NEW].value'], options: {create: true}}]}"#, Ok(&[("/0/spec/containers/1/env/0/name", r#""NEW""#), ("/0/spec/containers/1/env/0/value", r#""x""#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.0.args.[=--b]']}]}"#, Ok(&[("/0/spec/containers/0/args/1", r#""x""#)])),
    (r#"sourceValue: '9', targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.0.ports.[port=8].port']}]}"#, Ok(&[("/0/spec/containers/0/ports/0/port", r#"9"#)])),
    (r#"sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.containers.-.image']}]}"#, Err(ErrorClass::Replacement)),
    (r#"source: {kind: Deployment, fieldPath: spec.containers.-.image}, targets: [{select: {name: conf}, fieldPaths: ['data.[a.b]', 'data.a\.b']}]}"#, Ok(&[("/1/data/a.b", r#""side:1""#)])),
    (r#"sourceValue: '7', targets: [{select: {name: conf}, fieldPaths: ['data.json.port']}]}"#, Ok(&[("/1/data/json", r#""{\"a\":\"\\u003cb\\u003e\",\"port\":7}""#)])),
    (r#"sourceValue: x, targets: [{select: {name: conf}, fieldPaths: ['data.json.port']}]}"#, Ok(&[])),
    (r#"sourceValue: '7', targets: [{select: {name: conf}, fieldPaths: ['data.json.n'], options: {create: true}}]}"#, Ok(&[("/1/data/json", r#""{\"a\":\"\\u003cb\\u003e\",\"n\":7,\"port\":80}""#)])),
    (r#"sourceValue: x, targets: [{select: {name: conf}, fieldPaths: ['data.json.none']}]}"#, Err(ErrorClass::Replacement)),
    (r#"sourceValue: '2', targets: [{select: {name: conf}, fieldPaths: ['data.pretty.a.0']}]}"#, Ok(&[("/1/data/pretty", r#""{\n  \"a\": [\n    2\n  ]\n}""#)])),
    (r#"sourceValue: x, targets: [{select: {name: conf}, fieldPaths: ['data.flat.x']}]}"#, Err(ErrorClass::Replacement)),
    (r#"source: {kind: ConfigMap, name: conf, fieldPath: data.missing}, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.replicas']}]}"#, Err(ErrorClass::Replacement)),
    (r#"source: {kind: Deployment, fieldPath: spec.list}, targets: [{select: {name: conf}, fieldPaths: ['data.HOST']}]}"#, Err(ErrorClass::Replacement)),
];

fn objects(text: &str) -> Vec<Resource> {
    let documents = yaml::read("objects.yaml", text.as_bytes(), Dialect::Kustomize).unwrap();
    let resource = |document: yaml::Document| {
        let origin =
            Origin { file: "objects.yaml".into(), document: document.index, line: document.line, item: None };
        let mut resource = Resource::new(document.value, origin);
        resource.spelling = Spelling::new(document.rewritten_values, document.nulls);
        resource
    };
    documents.into_iter().map(resource).collect()
}

fn replaced(objects: &mut [Resource], text: &str, budget: &mut WriteBudget) -> Result<(), ErrorClass> {
    let document = yaml::read("k.yaml", format!("- {text}").as_bytes(), Dialect::Kubectl).unwrap().remove(0);
    let entries = Node::new(&document.value, FieldLocation::file("k.yaml")).list().unwrap();
    let entry = replacements(&entries[0]).map_err(|refusal| refusal.class())?;
    let Replacements::Inline(one) = entry else { panic!("a file is named: {text}") };
    let one: [Replacement; 1] = [*one];
    apply(objects, &one, budget, &|_, _, _| Ok(())).map_err(|refusal| refusal.class())
}

/// Sets a field on the expected side, so that both sides must be equal.
fn set(bodies: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent_is_there = bodies.pointer(parent).is_some();
    if !parent_is_there {
        let is_list = key.parse::<usize>().is_ok();
        set(
            bodies,
            parent,
            if is_list { Value::Array(Vec::new()) } else { Value::Object(serde_json::Map::new()) },
        );
    }
    match bodies.pointer_mut(parent).unwrap() {
        Value::Array(items) if key.parse::<usize>().unwrap() == items.len() => items.push(value),
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        other => panic!("{pointer} leads into {other}"),
    }
}

fn bodies(objects: &[Resource]) -> Value {
    Value::Array(objects.iter().map(|object| object.body.clone()).collect())
}

#[test]
fn replacements_are_made_as_the_tool_makes_them() {
    for (text, expected) in CASES {
        let mut found = objects(OBJECTS);
        let done = replaced(&mut found, &format!("{{{text}"), &mut WriteBudget::default());
        assert_eq!(done, expected.map(|_| ()), "{text}");
        let mut wanted = bodies(&objects(OBJECTS));
        for (pointer, value) in expected.unwrap_or_default() {
            set(&mut wanted, pointer, serde_json::from_str(value).unwrap());
        }
        if expected.is_ok() {
            assert_eq!(bodies(&found), wanted, "{text}");
        }
    }
}

#[test]
fn what_cannot_be_known_is_refused() {
    let objects_text = "{kind: A, apiVersion: v1, metadata: {name: x}, spec: {text: t, odd: 1.50, date: 2020-01-01, none: null,\
                        names: [{name: web}], yaml: 'k: v', one: 1}}";
    for text in [
        "source: {fieldPath: spec.odd}, targets: [{select: {}, fieldPaths: [spec.text]}]",
        "source: {fieldPath: spec.date}, targets: [{select: {}, fieldPaths: [spec.text]}]",
        "sourceValue: x, targets: [{select: {}, fieldPaths: [spec.date]}]",
        "sourceValue: '1.5', targets: [{select: {}, fieldPaths: [spec.one]}]",
        "sourceValue: x, targets: [{select: {}, fieldPaths: [spec.none.x], options: {create: true}}]",
        "sourceValue: '', targets: [{select: {}, fieldPaths: [spec.new], options: {create: true}}]",
        "sourceValue: x, targets: [{select: {}, fieldPaths: [spec.yaml.k]}]",
        "sourceValue: x, targets: [{select: {}, fieldPaths: ['spec.names.[name=^web$].name']}]",
        "sourceValue: x, targets: [{select: {}, fieldPaths: ['spec.names.[name=[a--b]].name']}]",
    ] {
        let done = replaced(&mut objects(objects_text), &format!("{{{text}}}"), &mut WriteBudget::default());
        assert_eq!(done, Err(ErrorClass::Unsupported), "{text}");
    }
}

#[test]
fn a_field_that_was_made_has_no_type_until_the_end() {
    let mut found = objects("{kind: A, apiVersion: v1, metadata: {name: x}, spec: {}}");
    let write = |value: &str| {
        format!(
            "{{sourceValue: '{value}', targets: [{{select: {{}}, fieldPaths: [spec.new], options: {{create: true}}}}]}}"
        )
    };
    for (value, expected) in
        [("abc", "abc".into()), ("7", 7.into()), ("0x10", 16.into()), ("yes", "yes".into())]
    {
        replaced(&mut found, &write(value), &mut WriteBudget::default()).unwrap();
        assert_eq!(found[0].body["spec"]["new"], Value::clone(&expected), "{value}");
    }
}

#[test]
fn what_replacements_write_is_bounded() {
    let mut found = objects("{kind: A, apiVersion: v1, metadata: {name: x}, spec: {a: {b: x}, t: xxxxxxxx}}");
    let mut budget = WriteBudget::of(1 << 16);
    let nests = "{source: {fieldPath: spec.a}, targets: [{select: {}, fieldPaths: [spec.a.b]}]}";
    let doubles = "{source: {fieldPath: spec.t}, targets: [{select: {}, fieldPaths: [spec.t], options: {delimiter: ',', index: 99}}]}";
    let text = "{source: {fieldPath: spec}, targets: [{select: {}, fieldPaths: [spec.new], options: {create: true}}]}";
    assert_eq!(replaced(&mut found, nests, &mut budget), Ok(()));
    let refused = |text: &str, budget: &mut WriteBudget| {
        let mut found = found.clone();
        (0..600).find_map(|_| replaced(&mut found, text, budget).err())
    };
    assert_eq!(refused(doubles, &mut budget), Some(ErrorClass::Bound));
    assert_eq!(refused(text, &mut WriteBudget::of(1 << 16)), Some(ErrorClass::Bound));
    let deep = format!(
        "{{sourceValue: x, targets: [{{select: {{}}, fieldPaths: [{}a], options: {{create: true}}}}]}}",
        "a.".repeat(300)
    );
    assert_eq!(replaced(&mut found, &deep, &mut WriteBudget::default()), Err(ErrorClass::Bound));
}
