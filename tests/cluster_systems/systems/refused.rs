//! Manifests that are refused as tutorials write them: some without a cluster, with file and line, the others by the API
//! server, in its own words.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::conversion::Conversion;
use super::life::{DEFINITIONS, clear, files};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};

/// Returns the output of `moorline check` of a file.
fn checked(folder: &Path, name: &str, text: &str) -> (Option<i32>, String) {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_moorline"));
    let output = check.arg("check").arg(name).current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_has_no_name_is_refused_without_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, text: &str, expect: &str| {
        assert_eq!(checked(folder.path(), name, text), (Some(1), format!("error: {expect}\n")));
    };
    check(
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    app: web\nspec:\n  containers:\n    - name: web\n      image: example.com/web:1.0\n",
        "pod.yaml:3:1: the Pod has no metadata.name; add it",
    );
    check(
        "policy.yaml",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec:\n  podSelector: {}\n",
        "policy.yaml:1:1: the NetworkPolicy has no metadata; add it",
    );
    check(
        "scaler.yaml",
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {}\nspec:\n  maxReplicas: 3\n",
        "scaler.yaml:3:1: the HorizontalPodAutoscaler has no metadata.name; add it",
    );
}

/// A definition with one version, in which these fields are as given.
fn definition(plural: &str, fields: &Value) -> Value {
    let kind = plural.trim_end_matches('s');
    let mut version = json!({"name": "v1"});
    for (field, value) in fields.as_object().unwrap() {
        version[field] = value.clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.refused.example.com")},
        "spec": {"group": "refused.example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": plural, "singular": kind, "kind": format!("{}{}", kind[..1].to_uppercase(), &kind[1..])}},
    })
}

/// Each object as tutorials write it, with a part of what a person reads.
fn tutorials() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    let schema = |spec: Value| json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let container = json!({"name": "web", "image": "example.com/web:1.0"});
    vec![
        (
            "without-storage",
            definition("quays", &json!({"schema": schema(json!({"type": "object"}))})),
            vec!["spec.versions: Invalid value", "must have exactly one version marked as storage version"],
        ),
        (
            "without-items",
            definition(
                "piers",
                &json!({"served": true, "storage": true, "schema": schema(
                    json!({"type": "object", "properties": {"instances": {"type": "array"}}}))}),
            ),
            vec!["properties[spec].properties[instances].items: Required value: must be specified"],
        ),
        (
            "mydb",
            json!({"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "mydb"},
                "spec": {"engine": "postgres", "version": "15"}}),
            vec![
                "spec.engine: Unsupported value: \"postgres\"",
                "supported values: \"postgresql\", \"mysql\", \"mongodb\"",
                "spec.version: Invalid value: \"15\"",
            ],
        ),
        (
            "without-labels",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                    "template": {"spec": {"containers": [container]}}}}),
            vec!["spec.template.metadata.labels", "`selector` does not match template `labels`"],
        ),
        (
            "without-side-effects",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": "images.example.com"}, "webhooks": [{"name": "images.example.com",
                    "clientConfig": {"service": {"name": "images", "namespace": "default", "path": "/validate"}},
                    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                        "resources": ["pods"]}]}]}),
            vec![
                "webhooks[0].sideEffects: Required value",
                "webhooks[0].admissionReviewVersions: Required value",
            ],
        ),
    ]
}

#[tokio::test]
async fn mistakes_of_tutorials_are_reported_in_the_words_of_the_server() {
    let Some(scene) = Scene::new("refused").await else { return };
    let conversion = Conversion::start(&scene);
    let (_, definition) =
        files("database").into_iter().find(|(path, _)| path.ends_with("definition.yaml")).unwrap();
    let mut all = vec![
        ("definition.yaml".to_owned(), conversion.in_place(&definition)),
        ("map.json".to_owned(), config_map("map", "one")),
    ];
    all.extend(tutorials().iter().map(|(name, body, _)| (format!("{name}.json"), body.to_string())));
    scene.push(&all);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    for (name, _, words) in tutorials() {
        let problem = until(&format!("{name} is told of"), async || {
            let problems = scene.status("shop", "/problems").await;
            let file = format!("{name}.json:1");
            problems.as_array()?.iter().find(|it| it["file"] == *file && it["reason"] == "Invalid").cloned()
        })
        .await;
        let message = problem["message"].as_str().unwrap();
        for word in words {
            assert!(message.contains(word), "{name}: {message}");
        }
    }
    scene
        .until_values(&[("map.json".to_owned(), config_map("map", "one"))], "what is sound is applied")
        .await;
    let stalled = until("nothing but another commit helps", async || {
        let conditions = scene.status("shop", "/conditions").await;
        let all = conditions.as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["type"] == "Stalled" && one["status"] == "True")
    })
    .await;
    assert_eq!(stalled["reason"], "ApplyFailed");
    scene.settle().await;
    scene.assert_calm("with what is refused").await;
    scene.delete_sync("shop").await;
    clear(&scene, &[&format!("{DEFINITIONS}/databases.example.com")]).await;
}
