//! Schemas of common built-in types and of a definition.

use serde_json::json;

use super::*;

/// Returns the type at a path: fields by name, `*` for items.
fn at<'a>(schema: &'a Schema, path: &str) -> &'a Schema {
    path.split('.').filter(|step| !step.is_empty()).fold(schema, |schema, step| match step {
        "*" => schema.items().expect(path),
        name => schema.field(name).expect(path),
    })
}

fn builtin(api_version: &str, kind: &str) -> Schema {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Schema::builtin(group, version, kind).expect(kind)
}

fn merge(schema: &Schema, path: &str) -> String {
    match at(schema, path).shape() {
        Shape::List(list) => match &list.merge {
            ListType::Atomic => "atomic".to_owned(),
            ListType::Set => "set".to_owned(),
            ListType::Keyed(keys) => keys.join(","),
        },
        Shape::Fields(fields) if fields.atomic => "atomic".to_owned(),
        Shape::Fields(_) => "granular".to_owned(),
        shape @ (Shape::Scalar(_) | Shape::Anything | Shape::Opaque) => format!("{shape:?}"),
    }
}

#[test]
fn how_lists_and_mappings_of_kubernetes_merge() {
    let check = |api_version: &str, kind: &str, path: &str, expect: &str| {
        assert_eq!(merge(&builtin(api_version, kind), path), expect, "{kind} {path}");
    };
    check("apps/v1", "Deployment", "spec.template.spec.containers", "name");
    check("apps/v1", "Deployment", "spec.template.spec.containers.*.ports", "containerPort,protocol");
    check("apps/v1", "Deployment", "spec.template.spec.containers.*.env", "name");
    check("apps/v1", "Deployment", "spec.template.spec.containers.*.args", "atomic");
    check("apps/v1", "Deployment", "spec.template.spec.containers.*.volumeMounts", "mountPath");
    check("apps/v1", "Deployment", "spec.template.spec.volumes", "name");
    check("apps/v1", "Deployment", "spec.template.spec.tolerations", "atomic");
    check("apps/v1", "Deployment", "spec.template.spec.nodeSelector", "atomic");
    check("apps/v1", "Deployment", "spec.selector", "atomic");
    check("apps/v1", "Deployment", "spec.strategy", "granular");
    check("apps/v1", "Deployment", "metadata.labels", "granular");
    check("apps/v1", "Deployment", "metadata.finalizers", "set");
    check("apps/v1", "Deployment", "metadata.ownerReferences", "uid");
    check(
        "apps/v1",
        "Deployment",
        "spec.template.spec.containers.*.resources.limits.cpu",
        "Scalar(Quantity)",
    );
    check("v1", "Service", "spec.ports", "port,protocol");
    check("v1", "Service", "spec.selector", "atomic");
    check("v1", "Service", "spec.ports.*.targetPort", "Scalar(IntOrString)");
    check("v1", "ConfigMap", "data", "granular");
    check("v1", "Secret", "data.any", "Scalar(Bytes)");
    check("rbac.authorization.k8s.io/v1", "Role", "rules", "atomic");
    check("rbac.authorization.k8s.io/v1", "RoleBinding", "subjects", "atomic");
    check("autoscaling/v2", "HorizontalPodAutoscaler", "spec.metrics", "atomic");
    check("apps/v1", "ControllerRevision", "data", "Opaque");
    let definition =
        "spec.versions.*.schema.openAPIV3Schema.properties.a.properties.b.x-kubernetes-validations";
    check("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition, "rule");
    assert!(
        Schema::builtin("apps", "v1", "Nonsense").is_none() && Schema::builtin("", "v2", "Pod").is_none()
    );
    assert_eq!(at(&builtin("apps/v1", "Deployment"), "spec.template.spec").name(), "PodSpec");
    assert_eq!(builtin("events.k8s.io/v1", "Event").name(), "Event");
}

#[test]
fn how_fields_of_kubernetes_are_written_and_patched() {
    let deployment = builtin("apps/v1", "Deployment");
    let field = |path: &str, name: &str| at(&deployment, path).declared(name).expect(name).clone();
    let port = |name: &str| field("spec.template.spec.containers.*.ports.*", name);
    assert_eq!(port("protocol").default, Some(json!("TCP")));
    assert!(port("containerPort").required && port("containerPort").write_policy == WritePolicy::Always);
    assert!(port("hostPort").is_dropped_when_zero() && !field("spec", "replicas").is_dropped_when_zero());
    assert!(!field("", "status").is_dropped_when_zero() && !field("spec", "strategy").is_dropped_when_zero());
    assert_eq!(field("metadata", "creationTimestamp").write_policy, WritePolicy::UnlessZero);
    let patch = |path: &str, name: &str| {
        field(path, name).patch.map(|it| (it.merge, it.retain_keys, it.merge_key.to_string()))
    };
    assert_eq!(patch("spec.template.spec", "containers"), Some((true, false, "name".to_owned())));
    assert_eq!(patch("spec.template.spec", "volumes"), Some((true, true, "name".to_owned())));
    assert_eq!(patch("spec", "strategy"), Some((false, true, String::new())));
    assert_eq!(patch("metadata", "finalizers"), Some((true, false, String::new())));
    assert_eq!(patch("spec.template.spec", "tolerations"), None);
}

#[test]
fn a_definition_says_what_its_objects_are() {
    let schema = Schema::of_definition(&json!({
        "type": "object", "required": ["spec"],
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "default": 1, "maximum": 10},
                "port": {"x-kubernetes-int-or-string": true},
                "plain": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                    "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
                "values": {"type": "object", "additionalProperties": {"type": "number"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "object": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            }},
        },
    }));
    let check = |path: &str, expect: &str| assert_eq!(merge(&schema, path), expect, "{path}");
    check("metadata.labels", "granular");
    check("metadata.ownerReferences", "uid");
    check("spec.size", "Scalar(Int64)");
    check("spec.port", "Scalar(IntOrString)");
    check("spec.plain", "atomic");
    check("spec.set", "set");
    check("spec.keyed", "a,b");
    check("spec.values.any", "Scalar(Number)");
    check("spec.whole", "atomic");
    check("spec.free.any", "Anything");
    check("spec.object.metadata.finalizers", "set");
    check("spec.object.spec", "Anything");
    assert!(at(&schema, "spec").field("nonsense").is_none());
    let size = at(&schema, "spec").declared("size").expect("it is declared");
    assert_eq!((size.required, &size.default), (true, &Some(json!(1))));
    assert_eq!(size.schema().rules()["maximum"], json!(10));
    assert!(!at(&schema, "spec").rules().contains_key("properties"));
}

/// Results that `tests/control-plane/sandbox/objects` recorded for the objects in `objects.json`.
const RECORDED: &str = include_str!("../../../../tests/sandbox/objects.jsonl");
const INPUT: &str = include_str!("../../../../tests/sandbox/objects.json");

fn recorded() -> Vec<Value> {
    RECORDED.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn custom_resources_are_pruned_filled_in_and_checked_as_they_are_by_kubernetes() {
    let input: Value = serde_json::from_str(INPUT).unwrap();
    let mut count = 0;
    for recorded in recorded() {
        let Some(name) = recorded["schema"].as_str() else { continue };
        let schema = Schema::of_definition(&input["schemas"][name]);
        let mut object = recorded["object"].clone();
        let unknown = schema.prune(&mut object);
        assert_eq!(json!(unknown), *recorded.get("unknown").unwrap_or(&json!([])), "{recorded}");
        assert_eq!(object, recorded["pruned"], "{recorded}");
        schema.without_nulls(&mut object);
        schema.with_defaults(&mut object);
        assert_eq!(object, recorded["defaulted"], "{recorded}");
        let mut found: Vec<[String; 3]> = schema
            .validate(recorded.get("old"), &object)
            .into_iter()
            .map(|problem| [problem.reason.to_owned(), problem.message, problem.field])
            .collect();
        found.sort_by_key(|[_, message, field]| field.clone() + message);
        assert_eq!(json!(found), *recorded.get("problems").unwrap_or(&json!([])), "{}", recorded["object"]);
        count += 1;
    }
    assert!(count > 40, "{count} objects");
}

#[test]
fn objects_of_kubernetes_are_decoded_as_it_decodes_them() {
    let mut count = 0;
    for recorded in recorded().iter().filter(|it| it.get("schema").is_none()) {
        let object = &recorded["object"];
        let schema = builtin(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let text = |name: &str| recorded.get(name).and_then(Value::as_str).unwrap_or_default();
        // Named string types are strings here.
        let of_type = |text: &str| text.replace(" of type v1.PullPolicy", " of type string");
        assert_eq!(schema.type_mismatch(object).unwrap_or_default(), of_type(text("decoded")), "{object}");
        if text("decoded").is_empty() {
            let unknown = schema.unknown_fields(object).join(", ");
            assert_eq!(format!("strict decoding error: {unknown}"), text("strict"), "{object}");
        }
        count += 1;
    }
    assert!(count > 25, "{count} objects");
}
