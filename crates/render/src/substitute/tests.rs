//! Tests of substitution: tables of texts and values, and properties that hold for every text.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{RenderOptions, Rendered, render};
use moorline_core::object::Origin;
use moorline_core::tree::{FileTree, MemoryLimit, TreeEntry};

const NAMES: [(&str, &str); 9] = [
    ("v", "abcABC123ABCabc"),
    ("empty", ""),
    ("n", "3"),
    ("yes", "true"),
    ("path", "/srv/ann/ideas.for.today"),
    ("list", "[\"a\", 1]"),
    ("map", "{a: 1}"),
    ("quoted", "\"8080\""),
    ("é", "passed over"),
];

fn variables() -> Variables {
    Variables::default()
        .with_values(NAMES, Visibility::Public)
        .with_values([("hidden", "hunter2")], Visibility::Secret)
}

fn manifest(body: Value) -> Manifest {
    let Value::Object(body) = body else { panic!("a mapping") };
    Manifest { body, origin: Origin { file: "a.yaml".into(), document: 0, line: 1, item: None } }
}

fn made(text: &str) -> Result<Value, String> {
    let body = json!({"apiVersion": "example.com/v1", "kind": "Any", "metadata": {"name": "a"}, "spec": {"of": text}});
    let found = substitute(manifest(body), (b"", &MemoryLimit::default()), &variables());
    let found = found.map_err(|problems| problems.iter().map(ToString::to_string).collect::<String>())?;
    Ok(found.manifest.body["spec"]["of"].clone())
}

fn check(text: &str, expect: Value) {
    assert_eq!(made(text), Ok(expect), "{text}");
}

#[test]
fn operators_do_what_people_know() {
    for (text, expect) in [
        ("a ${v} b", "a abcABC123ABCabc b"),
        ("${v^}", "AbcABC123ABCabc"),
        ("${v^^}", "ABCABC123ABCABC"),
        ("${v,,}", "abcabc123abcabc"),
        ("x${v:0:3}", "xabc"),
        ("${v:12}", "abc"),
        ("${v: -3}", "abc"),
        ("${v: -3:2}", "ab"),
        ("x${v:99}", "x"),
        ("${v:${n}:${n}}", "ABC"),
        ("${none:-d}", "d"),
        ("${none-d}", "d"),
        ("${none:=d}", "d"),
        ("${none=d}", "d"),
        ("${empty:-d}", "d"),
        ("${empty=d}", "d"),
        ("x${empty-d}", "x"),
        ("${v:-d}", "abcABC123ABCabc"),
        ("${none:-${also:-${v:0:1}}/x}", "a/x"),
        ("${none:-a/b:c}", "a/b:c"),
        ("${v/abc/x}", "xABC123ABCabc"),
        ("${v//ABC/x}", "abcx123xabc"),
        ("${v/#abc/x}", "xABC123ABCabc"),
        ("${v/%abc/x}", "abcABC123ABCx"),
        ("${v/#ABC/x}", "abcABC123ABCabc"),
        ("${v//ABC/}", "abc123abc"),
        ("${path//\\//-}", "-srv-ann-ideas.for.today"),
        ("${path#*/}", "srv/ann/ideas.for.today"),
        ("${path##*/}", "ideas.for.today"),
        ("${path%.*}", "/srv/ann/ideas.for"),
        ("${path%%.*}", "/srv/ann/ideas"),
        ("$${v}", "${v}"),
        ("$$", "$"),
        ("$v and $(v) $", "$v and $(v) $"),
        ("$${v${n}", "${v3"),
        ("{{ .v }}", "{{ .v }}"),
    ] {
        check(text, json!(expect));
    }
    check("${#v}", json!(15));
    check("${v,}", json!("abcABC123ABCabc"));
}

#[test]
fn what_comes_out_is_what_a_plain_scalar_would_be() {
    check("${n}", json!(3));
    check("8${n}", json!(83));
    check("${n}.5", json!(3.5));
    check("${yes}", json!(true));
    check("${empty}", Value::Null);
    check("${quoted}", json!("8080"));
    check("${list}", json!(["a", 1]));
    check("${map}", json!({"a": 1}));
    check("x ${list}", json!("x [\"a\", 1]"));
    check("$$3", json!("$3"));
    check("${none:-no}", json!(false));
    check("${none:-a: b # c}", json!("a: b # c"));
    // A value from a Secret is never parsed.
    check("${hidden}", json!("hunter2"));
    assert!(made("${none:-[}").unwrap_err().contains("begins like a list"));
}

#[test]
fn where_text_belongs_everything_stays_text() {
    let texts = |body: Value| {
        let found = substitute(manifest(body), (b"", &MemoryLimit::default()), &variables()).unwrap();
        Value::Object(found.manifest.body)
    };
    let pod = texts(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "${n}", "labels": {"a": "${n}"}, "annotations": {"${v:0:1}${n}": "${yes}", "b": "${list}"}},
        "spec": {"replicas": "${n}", "selector": {"matchLabels": {"a": "${n}"}}, "template": {
            "metadata": {"labels": {"a": "${n}"}},
            "spec": {"hostNetwork": "${yes}", "nodeSelector": {"a": "${yes}"}, "containers": [{
                "name": "${n}", "image": "${n}", "args": ["${n}"], "command": ["${yes}"],
                "env": [{"name": "A", "value": "${n}"}], "ports": [{"containerPort": "808${n}"}],
            }]},
        }},
    }));
    let metadata =
        json!({"name": "3", "labels": {"a": "3"}, "annotations": {"a3": "true", "b": "[\"a\", 1]"}});
    assert_eq!(pod["metadata"], metadata);
    assert_eq!(
        (&pod["spec"]["replicas"], &pod["spec"]["selector"]["matchLabels"]["a"]),
        (&json!(3), &json!("3"))
    );
    let inner = json!({"hostNetwork": true, "nodeSelector": {"a": "true"}, "containers": [{
        "name": "3", "image": "3", "args": ["3"], "command": ["true"],
        "env": [{"name": "A", "value": "3"}], "ports": [{"containerPort": 8083}],
    }]});
    assert_eq!(pod["spec"]["template"]["spec"], inner);
    let map = texts(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "${n}"}}),
    );
    assert_eq!(map["data"]["a"], "3");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"a": "${n}"}, "data": {"b": "aGk="}});
    let secret = texts(secret);
    assert_eq!((&secret["stringData"]["a"], &secret["data"]["b"]), (&json!("3"), &json!("aGk=")));
}

#[test]
fn what_the_grammar_does_not_know_is_refused_with_its_place() {
    let refused = |text: &str, expect: &str| {
        let told = made(text).unwrap_err();
        assert!(told.starts_with("a.yaml:1:1: spec.of of Any a: "), "{told}");
        assert!(told.contains(expect), "{text}: {told}");
    };
    refused("${pth}", "there is no variable pth (did you mean path?)");
    refused("${nothing}", "there is no variable nothing; give it a value");
    refused("${none^^}", "there is no variable none");
    refused("${none:-${also}}", "there is no variable also");
    refused("${v", "no closing brace");
    refused("${v:-a", "no closing brace");
    refused("${}", "there is no variable name");
    refused("${1}", "there is no variable name");
    refused("${é}", "there is no variable name");
    refused("${v:+x}", "unknown operator");
    refused("${v:?x}", "unknown operator");
    refused("${v@Q}", "unknown operator");
    refused("${v[0]}", "unknown operator");
    refused("${v/a}", "the second / is missing");
    refused("${v//}", "the second / is missing");
    refused("${v///b}", "nothing to replace");
    refused("${v:x}", "must be an integer");
    refused("${v:0:-1}", "must not be negative");
    refused(&format!("${{v#{}}}", "x".repeat(65)), "more than 64 characters");
    refused(&("${none:-".repeat(17) + &"}".repeat(17)), "more than 16 levels deep");
    refused(&"${v}".repeat(1 << 20), "bytes");
}

#[test]
fn an_object_may_ask_to_be_left_as_it_is() {
    for (field, key) in ["annotations", "labels"].into_iter().flat_map(|field| {
        ["moorline.dev/substitute", "kustomize.toolkit.fluxcd.io/substitute"].map(|key| (field, key))
    }) {
        let body = json!({"kind": "Any", "metadata": {field: {key: "disabled"}}, "x": "${"});
        let found = substitute(manifest(body.clone()), (b"", &MemoryLimit::default()), &variables()).unwrap();
        assert_eq!(Value::Object(found.manifest.body), body);
    }
}

#[test]
fn where_a_value_of_a_secret_went_is_known_and_never_in_a_name_or_a_key() {
    let of = |body: Value| substitute(manifest(body), (b"", &MemoryLimit::default()), &variables());
    let is_secret_in =
        |metadata: Value| of(json!({"kind": "Any", "metadata": metadata})).unwrap().contains_secret;
    let is_secret = |text: &str| of(json!({"kind": "Any", "spec": text})).unwrap().contains_secret;
    for text in [
        "${hidden}",
        "x ${hidden^^}",
        "${#hidden}",
        "${none:-${hidden:0:2}}",
        "${v/abc/${hidden}}",
        "${v#${hidden}}",
        "${v:${#hidden}}",
    ] {
        assert!(is_secret(text), "{text}");
    }
    for text in ["$${hidden}", "${v:-${hidden}}", "${n}"] {
        assert!(!is_secret(text), "{text}");
    }
    let told = |body: Value| of(body).unwrap_err()[0].to_string();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"},
        "rules": [{"resourceNames": ["${hidden}"]}]});
    let kind = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "a"}, "spec": {"names": {"kind": "${hidden}"}}});
    for body in [
        json!({"kind": "Any", "metadata": {"name": "a-${hidden}"}}),
        json!({"kind": "Any", "metadata": {"name": "a", "namespace": "${hidden}"}}),
        json!({"kind": "Any", "metadata": {"name": "a", "finalizers": ["${hidden}/a"]}}),
        json!({"kind": "${hidden}", "metadata": {"name": "a"}}),
        role,
        kind,
    ] {
        let told = told(body);
        assert!(told.contains("cannot be part of a name") && !told.contains("hunter2"), "{told}");
    }
    assert!(is_secret_in(json!({"annotations": {"a": "${hidden}"}, "labels": {"b": "${hidden}"}})));
    assert!(told(json!({"kind": "Any", "spec": {"${hidden}": 1}})).contains("cannot be part of a key"));
    assert!(told(json!({"kind": "Any", "spec": {"${n}": 1, "3": 2}})).contains("are equal"));
    assert_eq!(
        format!("{:?}", Variables::default().with_values([("a", "hunter2")], Visibility::Secret)),
        "{\"a\"}"
    );
}

#[test]
fn later_values_win_and_line_breaks_are_dropped() {
    let first = Variables::default().with_values([("a", "1"), ("b", "x\r\ny\n")], Visibility::Secret);
    let all = first.with_values([("a", "2"), ("a.b", "no name")], Visibility::Public);
    let all = all.overridden_by(&Variables::default().with_values([("c", "3")], Visibility::Public));
    let text = |name: &str| all.get(name).map(|found| (&*found.text, found.is_secret));
    assert_eq!(
        [text("a"), text("b"), text("c"), text("a.b")],
        [Some(("2", false)), Some(("xy", true)), Some(("3", false)), None]
    );
}

#[test]
fn a_value_never_grows_without_bound() {
    let long = "a".repeat(1 << 20);
    let variables = Variables::default().with_values([("a", long.as_str())], Visibility::Public);
    let body = json!({"kind": "Any", "spec": "${a//a/${a}}"});
    let told =
        substitute(manifest(body), (b"", &MemoryLimit::default()), &variables).unwrap_err()[0].to_string();
    assert!(told.contains("bytes"), "{told}");
}

#[test]
fn it_happens_after_a_kustomization_is_built_and_before_names_are_checked() {
    let files = [
        (
            "kustomization.yaml",
            "namePrefix: pre-\nresources: [web.yaml]\nimages: [{name: web, newTag: '2'}]\n",
        ),
        (
            "web.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: ${APP}\nspec:\n  replicas: ${N}\n  template:\n    spec:\n      containers:\n      - {name: '${APP}', image: web}\n",
        ),
    ];
    let tree: FileTree =
        files.iter().map(|(path, text)| (*path, TreeEntry::File(text.as_bytes().into()))).collect();
    let rendered = |variables: &[(&str, &str)]| {
        let variables = Variables::default().with_values(variables.iter().copied(), Visibility::Public);
        render(&tree, &RenderOptions { variables: Some(Arc::new(variables)), ..RenderOptions::default() })
    };
    let Rendered::Complete(complete) = rendered(&[("APP", "shop"), ("N", "3")]) else { panic!("complete") };
    let object = complete.objects()[0].object();
    assert_eq!(object.id.as_str(), "apps/Deployment|/pre-shop");
    let container = json!({"name": "shop", "image": "web:2"});
    let expect = json!({"replicas": 3, "template": {"spec": {"containers": [container]}}});
    assert_eq!(object.body["spec"], expect);
    let Rendered::Incomplete(incomplete) = rendered(&[("APP", "shop")]) else { panic!("incomplete") };
    let told = incomplete.problems[0].to_string();
    assert!(
        told.starts_with("web.yaml:6:3: spec.replicas of Deployment pre-${APP}: there is no variable N"),
        "{told}"
    );
    assert_eq!(incomplete.problems[0].reason(), "VariableUnknown");
    // Off by default.
    let Rendered::Incomplete(off) = render(&tree, &RenderOptions::default()) else { panic!("a bad name") };
    assert!(off.problems[0].to_string().contains("metadata.name \"pre-${APP}\""), "{}", off.problems[0]);
}

proptest! {
    #[test]
    fn nothing_panics(text in "[a$v{}:/#%^,=\\\\*?\\[\\]!0-9 -]{0,40}") {
        let _ = made(&text);
    }

    #[test]
    fn no_expression_panics(text in "\\$\\{[a-z#]{0,4}[:/#%^,=-]{0,2}[a*?\\[\\]!/: 0-9$-]{0,12}\\}{0,2}") {
        let _ = made(&text.replace("nn", "hidden"));
        let _ = made(&format!("x${{v{text}}}"));
    }

    #[test]
    fn text_without_a_dollar_is_left_as_it_is(text in "[^$]{0,60}") {
        prop_assert_eq!(made(&text), Ok(json!(text)));
    }

    #[test]
    fn what_is_escaped_comes_back(text in "[a$v{}:/#%^,=\\\\ -]{0,40}") {
        let escaped = text.replace('$', "$$");
        prop_assert_eq!(made(&escaped), Ok(json!(text)));
    }

    #[test]
    fn a_value_comes_out_as_it_is_where_text_belongs(value in "[^\"'\r\n]{0,40}") {
        let variables = Variables::default().with_values([("a", value.as_str())], Visibility::Public);
        let body = json!({"kind": "Any", "metadata": {"labels": {"x": "${a}"}}});
        let found = substitute(manifest(body), (b"", &MemoryLimit::default()), &variables).unwrap();
        prop_assert_eq!(&found.manifest.body["metadata"]["labels"]["x"], &json!(value));
    }
}
