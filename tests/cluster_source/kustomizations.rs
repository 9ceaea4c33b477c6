//! Kustomizations on a real API server: built from the Git objects, with bases elsewhere in the repository, and not
//! built again for a commit that touches nothing that was read.

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};
use serde_json::json;

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

/// An overlay, its base, a component beside both, and a folder that nobody names.
fn tree(value: &str) -> Vec<(String, String)> {
    vec![
        file(
            "prod/kustomization.yaml",
            "namePrefix: prod-\nresources: [../base]\ncomponents: [../parts/labelled]\n",
        ),
        file(
            "base/kustomization.yaml",
            "resources: [map.json]\nconfigMapGenerator:\n- {name: made, files: [words.txt], options: {disableNameSuffixHash: true}}\n",
        ),
        file("base/map.json", &config_map("map", value)),
        file("base/words.txt", "no manifest, and read all the same"),
        file(
            "parts/labelled/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels:\n- pairs: {part: labelled}\n",
        ),
        file("other/map.json", &config_map("other", "one")),
    ]
}

#[tokio::test]
async fn a_kustomization_is_built_from_wherever_its_parts_are() {
    let Some(scene) = Scene::new("kustomized").await else { return };
    let commit = scene.push(&tree("one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"path": "./prod", "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let values = scene.values().await;
    assert_eq!(values.get("prod-map").map(String::as_str), Some("one"));
    let made = scene.maps().get("prod-made").await.unwrap();
    assert_eq!(made.data.unwrap()["words.txt"], "no manifest, and read all the same");
    let labels = made.metadata.labels.unwrap();
    assert_eq!(labels.get("part").map(String::as_str), Some("labelled"), "{labels:?}");
    assert!(!values.contains_key("other"), "nobody names it");
    scene.settle().await;
    scene.assert_calm("once it is built").await;

    // Nothing that was read has changed.
    let before = scene.versions().await;
    scene.proxy.take_requests();
    let commit =
        scene.push(&[file("other/map.json", &config_map("other", "two")), file("prod/notes.txt", "words")]);
    scene.nudge("shop", "beside").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.take_requests();
    assert!(
        asked.iter().all(|one| !one.is_on_object()),
        "{:?}",
        asked.iter().map(|one| &one.path).collect::<Vec<_>>()
    );
    assert_eq!(scene.versions().await, before);

    // A file of the base counts, though it lies beyond the path.
    let commit = scene.push(&[file("base/map.json", &config_map("map", "two"))]);
    scene.nudge("shop", "base").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(scene.values().await.get("prod-map").map(String::as_str), Some("two"));

    // The problem is reported with its place, and what is there stays.
    scene.push(&[file("parts/labelled/kustomization.yaml", "kind: Component\nlabls: []\n")]);
    scene.nudge("shop", "wrong").await;
    until("the problem is told with its place", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        (problems.contains("parts/labelled/kustomization.yaml:2:1")
            && problems.contains("did you mean labels?"))
        .then_some(())
    })
    .await;
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "KustomizeInvalid");
    assert_eq!(scene.values().await.get("prod-map").map(String::as_str), Some("two"));
}
