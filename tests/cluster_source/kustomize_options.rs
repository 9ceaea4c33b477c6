//! Options over a kustomization on a real API server: applied, rendered again when the spec changes, and a wrong one is
//! reported by its field while the objects stay.

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};
use serde_json::{Value, json};

fn tree() -> Vec<(String, String)> {
    let component =
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {part: tls}}]\n";
    vec![
        ("app/map.json".to_owned(), config_map("map", "one")),
        ("app/deep/map.json".to_owned(), config_map("deep", "one")),
        ("app/built/kustomization.yaml".to_owned(), "nameSuffix: -built\nresources: [map.json]\n".to_owned()),
        ("app/built/map.json".to_owned(), config_map("other", "one")),
        ("parts/tls/kustomization.yaml".to_owned(), component.to_owned()),
    ]
}

fn spec(kustomize: Value) -> Value {
    json!({"path": "./app", "interval": "1h", "render": {"kustomize": kustomize}})
}

#[tokio::test]
async fn options_are_applied_and_a_change_of_them_renders_the_same_commit_again() {
    let Some(scene) = Scene::new("options").await else { return };
    let commit = scene.push(&tree());
    let _daemon = scene.daemon();
    let value = |value: &str| json!([{"op": "replace", "path": "/data/key", "value": value}]).to_string();
    let patch = |value: String| json!([{"patch": value, "target": {"kind": "ConfigMap", "name": "map"}}]);
    let options = json!({
        "namePrefix": "a-", "patches": patch(value("two")), "components": ["../parts/tls"],
        "labels": {"team": "shop"}, "annotations": {"example.com/note": "any text"},
    });
    scene.sync("shop", spec(options)).await;
    scene.until_ready("shop", &commit).await;
    let of = |values: &std::collections::BTreeMap<String, String>, name: &str| values.get(name).cloned();
    let values = scene.values().await;
    for (name, expect) in [("a-map", "two"), ("a-deep", "one"), ("a-other-built", "one")] {
        assert_eq!(of(&values, name).as_deref(), Some(expect), "{values:?}");
    }
    let metadata = scene.maps().get("a-other-built").await.unwrap().metadata;
    let (labels, annotations) = (metadata.labels.unwrap(), metadata.annotations.unwrap());
    assert_eq!((labels["team"].as_str(), labels["part"].as_str()), ("shop", "tls"));
    assert_eq!(annotations["example.com/note"], "any text");
    scene.settle().await;
    scene.assert_calm("once it is built").await;

    // The same commit with other options is other objects; those of before are pruned.
    scene.patch_sync("shop", json!({"spec": {"render": {"kustomize": {"namePrefix": "b-", "patches": patch(value("three"))}}}})).await;
    until("the objects have the new names", async || {
        let values = scene.values().await;
        (of(&values, "b-map").as_deref() == Some("three") && !values.contains_key("a-map")).then_some(())
    })
    .await;
    scene.until_ready("shop", &commit).await;

    // A new file is a new resource, and one of Git LFS is refused by name.
    let commit = scene.push(&[("app/new.json".to_owned(), config_map("new", "one"))]);
    scene.nudge("shop", "new").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(of(&scene.values().await, "b-new").as_deref(), Some("one"));
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    scene.push(&[("app/big.yaml".to_owned(), pointer.to_owned())]);
    scene.nudge("shop", "pointer").await;
    until("the status names the pointer", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        problems.contains("app/big.yaml is a Git LFS pointer").then_some(())
    })
    .await;
    assert_eq!(of(&scene.values().await, "b-new").as_deref(), Some("one"));

    // A wrong option is reported by its field, and the objects stay.
    scene.push(&[("app/big.yaml".to_owned(), String::new())]);
    let broken = patch("- {op: remove, path: /absent}".to_owned());
    scene.patch_sync("shop", json!({"spec": {"render": {"kustomize": {"patches": broken}}}})).await;
    until("the status names the field", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        problems.contains("spec.render.kustomize.patches[0]: ").then_some(())
    })
    .await;
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "KustomizeInvalid");
    assert_eq!(of(&scene.values().await, "b-map").as_deref(), Some("three"));
}
