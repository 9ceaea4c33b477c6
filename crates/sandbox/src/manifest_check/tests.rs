//! Manifests that a real API server refuses, and some that it accepts.

use serde_json::{Value, json};

use super::*;

fn verdict(object: &Value, schemas: &Schemas) -> Verdict {
    let hides = object["kind"] == "Secret";
    schemas.check(object.as_object().expect("a literal mapping"), hides)
}

fn check_with(schemas: &Schemas, object: &Value, expect: &[&str]) {
    match verdict(object, schemas) {
        Verdict::Valid => assert_eq!(expect, [] as [&str; 0]),
        Verdict::Unchecked(kind) => assert_eq!([format!("unchecked {kind}").as_str()], expect),
        Verdict::Invalid(found) => {
            let told: Vec<String> = found.iter().map(|it| format!("{}: {}", it.field, it.message)).collect();
            assert_eq!(told, expect);
        }
    }
}

fn check(object: &Value, expect: &[&str]) {
    check_with(&Schemas::default(), object, expect);
}

fn deployment(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    });
    change(&mut object);
    object
}

#[test]
fn a_sound_object_is_sound() {
    check(&deployment(|_| {}), &[]);
    check(
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "creationTimestamp": null}}),
        &[],
    );
}

#[test]
fn a_value_of_another_type_is_reported_with_the_expected_one() {
    check(
        &deployment(|it| it["spec"]["replicas"] = "three".into()),
        &["spec.replicas: found a string \"three\"; expected a 32-bit integer"],
    );
    check(
        &deployment(|it| {
            it["spec"]["template"]["spec"]["containers"][0]["ports"] = json!({"containerPort": 80});
            it["metadata"]["labels"] = json!({"a.b/c": 1});
        }),
        &[
            "metadata.labels[\"a.b/c\"]: found a number 1; expected a string",
            "spec.template.spec.containers[0].ports: found a mapping {\"containerPort\":80}; expected a list",
        ],
    );
}

#[test]
fn an_unknown_field_is_reported_at_any_depth_with_the_nearest_one() {
    check(
        &deployment(|it| {
            it["spec"]["replica"] = 3.into();
            it["spec"]["template"]["spec"]["containers"][0]["imagee"] = "nginx".into();
            it["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"zzz": {}});
        }),
        &[
            "spec.replica: unknown field; did you mean replicas?",
            "spec.template.spec.containers[0].imagee: unknown field; did you mean image?",
            "spec.template.spec.containers[0].resources.zzz: unknown field",
        ],
    );
}

#[test]
fn a_missing_field_and_a_selector_that_selects_nothing_are_reported() {
    check(
        &deployment(|it| it["spec"]["template"]["metadata"]["labels"]["app"] = "api".into()),
        &[
            "spec.template.metadata.labels: found a mapping {\"app\":\"api\"}; expected labels that match the selector: {\"matchLabels\":{\"app\":\"web\"}}",
        ],
    );
    let Verdict::Invalid(found) =
        verdict(&deployment(|it| it["spec"]["template"] = json!({})), &Schemas::default())
    else {
        panic!("an empty template is refused")
    };
    let fields: Vec<&str> = found.iter().map(|it| it.field.as_str()).collect();
    assert!(fields.contains(&"spec.template.spec.containers"), "{found:?}");
    check(
        &deployment(|it| it["spec"].as_object_mut().unwrap().retain(|field, _| field != "selector")),
        &["spec.selector: missing: a value is required"],
    );
}

#[test]
fn a_variable_may_become_anything() {
    check(&deployment(|it| it["spec"]["replicas"] = "${REPLICAS}".into()), &[]);
}

#[test]
fn values_of_secrets_are_not_shown() {
    let secret =
        |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data});
    check(
        &secret(json!({"a": "hunter2!", "b": 5})),
        &[
            "data.a: found a string, whose value is hidden; expected base64",
            "data.b: found a number, whose value is hidden; expected base64",
        ],
    );
}

#[test]
fn folded_base64_is_base64_and_a_bad_key_of_a_secret_is_named() {
    let secret = |key: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {key: "aHVu\ndGVyMg==\n"}});
    check(&secret("a"), &[]);
    let Verdict::Invalid(found) = verdict(&secret("a/b"), &Schemas::default()) else {
        panic!("a key with a slash is refused")
    };
    assert_eq!(found.len(), 1);
    assert!(found[0].message.starts_with("invalid key: a valid config key must"), "{found:?}");
}

#[test]
fn a_kind_of_nobody_known_is_never_sound() {
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": "big"}});
    check(&widget, &["unchecked Widget of example.com/v1"]);
    let budget =
        json!({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}});
    check(&budget, &["unchecked PodDisruptionBudget of policy/v1beta1; the known version is policy/v1"]);
}

#[test]
fn objects_of_a_definition_at_hand_are_checked() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "maximum": 10}, "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "low": {"type": "integer"},
        },
        "x-kubernetes-validations": [{"rule": "!has(self.low) || self.low <= self.size", "message": "low is at most size"}],
    }}});
    let versions =
        json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "versions": versions},
    });
    let mut schemas = Schemas::default();
    schemas.add_definition(definition.as_object().unwrap());
    let widget = |version: &str, spec: Value| json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
    let check = |spec: Value, expect: &[&str]| check_with(&schemas, &widget("v1", spec), expect);
    check(json!({"size": 3, "free": {"x": {"y": 1}}, "map": {"a": "b"}}), &[]);
    check(json!({"size": "big"}), &["spec.size: found a string \"big\"; expected the type integer"]);
    check(json!({}), &["spec.size: missing: a value is required"]);
    check(json!({"size": 11}), &["spec.size: found a number 11; should be less than or equal to 10"]);
    check(json!({"size": 1, "siez": 2}), &["spec.siez: unknown field; did you mean size?"]);
    check(
        json!({"size": 1, "mode": "c"}),
        &["spec.mode: found a string \"c\"; expected one of \"a\", \"b\""],
    );
    check(json!({"size": 1, "map": {"a": 1}}), &["spec.map.a: found a number 1; expected the type string"]);
    check(json!({"size": 1, "low": 2}), &["spec: low is at most size"]);
    check_with(
        &schemas,
        &widget("v2", json!({})),
        &["apiVersion: found version v2; the CustomResourceDefinition serves v1"],
    );
}

#[test]
fn a_path_is_followed_as_far_as_the_object_goes() {
    let object =
        json!({"metadata": {"labels": {"a.b/c": "x", "a": {"b": "y"}}}, "spec": {"list": [{"image": "i"}]}});
    let key = |key: &str| PathStep::Key(key.to_owned());
    assert_eq!(
        path_steps(&object, "spec.list[0].image"),
        [key("spec"), key("list"), PathStep::Item(0), key("image")]
    );
    assert_eq!(path_steps(&object, "spec.list[0].missing"), [key("spec"), key("list"), PathStep::Item(0)]);
    assert_eq!(
        path_steps(&object, "metadata.labels[\"a.b/c\"]"),
        [key("metadata"), key("labels"), key("a.b/c")]
    );
    assert_eq!(path_steps(&object, "metadata.labels.a.b/c"), [key("metadata"), key("labels"), key("a.b/c")]);
    assert_eq!(path_steps(&object, ""), []);
}
