//! Tests of schemas: Kubernetes' own kinds, and those of a document.

use serde_json::json;

use super::*;

/// Returns the keys of the list at a path; `[]` steps into items, `*` into any field of a map.
fn keys<'a>(schemas: &'a Schemas, api_version: &str, kind: &str, path: &str) -> Option<&'a [String]> {
    let start = schemas.schema_of(api_version, kind);
    let end = path.split('.').try_fold(start?, |schema, step| match step {
        "[]" => schema.items(),
        field => schema.field(field),
    })?;
    end.is_keyed_list().then(|| end.merge_keys())
}

#[test]
fn lists_of_kubernetes_have_their_keys() {
    let check = |api_version: &str, kind: &str, path: &str, expect: Option<&[&str]>| {
        let found = keys(Schemas::builtin(), api_version, kind, path);
        let found = found.map(|keys| keys.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expect, "{kind} {path}");
    };
    let pod = "spec.template.spec";
    check("apps/v1", "Deployment", "metadata.finalizers", Some(&[]));
    check("apps/v1", "Deployment", &format!("{pod}.containers"), Some(&["name"]));
    check("apps/v1", "Deployment", &format!("{pod}.containers.[].env"), Some(&["name"]));
    check("apps/v1", "Deployment", &format!("{pod}.containers.[].envFrom"), None);
    check("apps/v1", "Deployment", &format!("{pod}.containers.[].args"), None);
    check(
        "apps/v1",
        "Deployment",
        &format!("{pod}.containers.[].ports"),
        Some(&["containerPort", "protocol"]),
    );
    check("apps/v1", "Deployment", &format!("{pod}.containers.[].volumeMounts"), Some(&["mountPath"]));
    check("apps/v1", "Deployment", &format!("{pod}.tolerations"), None);
    let spread = format!("{pod}.topologySpreadConstraints");
    check("apps/v1", "Deployment", &spread, Some(&["topologyKey", "whenUnsatisfiable"]));
    check("batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec.volumes", Some(&["name"]));
    check("v1", "Service", "spec.ports", Some(&["port", "protocol"]));
    check("networking.k8s.io/v1", "Ingress", "spec.rules", None);
    check("apps/v1", "StatefulSet", "spec.volumeClaimTemplates", None);
    check("example.com/v1", "Deployment", "metadata.finalizers", None);
}

#[test]
fn a_reference_to_an_object_is_not_that_object() {
    let schemas = Schemas::builtin();
    let scaler = schemas.schema_of("autoscaling/v1", "HorizontalPodAutoscaler").expect("is known");
    let target = scaler.field("spec").and_then(|spec| spec.field("scaleTargetRef"));
    assert!(target.is_some_and(|target| target.field("spec").is_none()));
}

#[test]
fn scopes_are_those_of_kubernetes() {
    let check = |api_version: &str, kind: &str, expect: Option<Scope>| {
        assert_eq!(Schemas::builtin().scope_of(api_version, kind), expect, "{api_version} {kind}");
    };
    check("v1", "Namespace", Some(Scope::Cluster));
    check("v1", "ConfigMap", Some(Scope::Namespaced));
    check("rbac.authorization.k8s.io/v1", "ClusterRole", Some(Scope::Cluster));
    check("rbac.authorization.k8s.io/v1alpha1", "ClusterRole", None);
    check("example.com/v1", "Anything", None);
    let count = |scope| Schemas::builtin().scopes.values().filter(|found| **found == scope).count();
    assert_eq!((count(Scope::Cluster), count(Scope::Namespaced)), (36, 46));
}

#[test]
fn the_table_has_as_much_as_it_should() {
    fn lists(shape: &Shape) -> usize {
        match shape {
            Shape::List { items, .. } => 1 + items.as_deref().map_or(0, lists),
            Shape::Map { fields, others } => fields.values().chain(others.as_deref()).map(lists).sum(),
            Shape::Unknown | Shape::Leaf | Shape::Defined(_) => 0,
        }
    }
    let schemas = Schemas::builtin();
    let lists: usize = schemas.definitions.iter().map(lists).sum();
    assert_eq!((schemas.kinds.len(), schemas.definitions.len(), lists), (89, 235, 43));
}

#[test]
fn a_document_takes_the_place_of_kubernetes_own() {
    let schemas = Schemas::from_document(&json!({
        "definitions": {
            "Gate": {
                "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Gate"}],
                "properties": {"spec": {"$ref": "#/definitions/a~1b"}, "gone": {"$ref": "#/definitions/c"}},
            },
            "a/b": {"properties": {
                "bars": {
                    "type": "array", "items": {"$ref": "#/definitions/Bar"},
                    "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "id",
                },
                "more": {"additionalProperties": {
                    "type": ["array"], "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge",
                }},
                "ports": {
                    "type": "array", "items": {"type": "object"}, "x-kubernetes-patch-strategy": "merge",
                    "x-kubernetes-list-map-keys": ["a", "b"], "x-kubernetes-patch-merge-key": "a",
                },
                "whole": {"type": "array", "x-kubernetes-list-map-keys": ["a"]},
            }},
            "Bar": {"$ref": "#/definitions/Loop"},
            "Loop": {"$ref": "#/definitions/Bar"},
        },
        "paths": {
            "/gates": {"get": {"x-kubernetes-group-version-kind": {"group": "example.com", "version": "v1", "kind": "Gate"}}},
            "/roles": {"get": {"x-kubernetes-group-version-kind": {"version": "v1", "kind": "ConfigMap"}}},
        },
    }))
    .expect("can be followed");
    let keys = |path| keys(&schemas, "example.com/v1", "Gate", path);
    assert_eq!(keys("spec.bars"), Some(&["id".to_owned()][..]));
    assert_eq!(keys("spec.more.any"), Some(&[][..]));
    assert_eq!(keys("spec.ports"), Some(&["a".to_owned(), "b".to_owned()][..]));
    assert_eq!(keys("spec.whole"), None);
    assert_eq!(keys("spec.bars.[]"), None, "names of names come to nothing");
    assert_eq!(keys("gone"), None);
    assert!(schemas.schema_of("apps/v1", "Deployment").is_none());
    assert_eq!(schemas.scope_of("example.com/v1", "Gate"), Some(Scope::Cluster));
    assert_eq!(schemas.scope_of("v1", "ConfigMap"), Some(Scope::Namespaced));
}

#[test]
fn a_document_that_cannot_be_followed_is_refused() {
    let check = |document: Value, expect: &str| {
        let fault = Schemas::from_document(&document).expect_err("is refused");
        assert_eq!(fault.to_string(), format!("in the OpenAPI document, {expect}"));
    };
    check(json!([]), "the document must be a map");
    check(json!({"definitions": []}), "definitions must be a map");
    check(json!({"definitions": {"A": 1}}), "definitions.A must be a map");
    check(
        json!({"definitions": {"A": {"properties": {"b": {"x-kubernetes-patch-strategy": 1}}}}}),
        "definitions.A.properties.b.x-kubernetes-patch-strategy must be a string",
    );
    check(
        json!({"definitions": {"A": {"x-kubernetes-group-version-kind": [{"kind": "A"}]}}}),
        "definitions.A.x-kubernetes-group-version-kind.version must be a string",
    );
    check(
        json!({"definitions": {"A": {"$ref": "other.json#/A"}}}),
        "definitions.A.$ref refers to \"other.json#/A\"; only references to #/definitions/NAME are supported",
    );
}
