//! The evidence by which a broken Sync holds an object of another one: what its kustomization or chart read last, and a right that
//! is asked for once a minute.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::programs::find;
use moorline_test_support::scene::{QUIET_TIME, Scene, file, text};
use moorline_test_support::under_load::under_load;

/// The most that a prune takes that no broken Sync holds: less than one is waited for that has not tried the commit.
const SOON: Duration = Duration::from_secs(5);

async fn is_there(scene: &Scene, name: &str) -> bool {
    scene.values().await.contains_key(name)
}

async fn until_gone(scene: &Scene, name: &str) {
    until(&format!("{name} is pruned"), async || (!is_there(scene, name).await).then_some(())).await;
}

/// An object of the Sync `good` waits for the Sync `bad`, and a while later for a person.
async fn until_held(scene: &Scene, name: &str, reason: &str) {
    until(&format!("{name} is held: {reason}"), async || {
        let problems = scene.status("good", "/problems").await;
        let all = problems.as_array()?.iter();
        let mut told = all.filter(|one| one["object"].to_string().contains(name) && one["reason"] == reason);
        told.next()?["message"].as_str()?.contains(&format!("{}/bad", scene.namespace)).then_some(())
    })
    .await;
    assert!(is_there(scene, name).await);
}

/// The Syncs `good`, of plain files, and `bad`, with this in its spec; both have applied a commit.
async fn both(scene: &Scene, mut files: Vec<(String, String)>, bad: Value) -> String {
    files.extend(["stays", "one", "two"].map(|name| file(&format!("good/{name}"), "one")));
    let commit = scene.push(&files);
    scene.sync("good", json!({"path": "good"})).await;
    scene.sync("bad", bad).await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    commit
}

fn daemon(scene: &Scene) -> Daemon {
    scene.daemon_with(&["--leader-election=false", "--claim-timeout", "3s"])
}

/// A kustomization that reads the folder beside its own.
fn overlay(base: &str) -> Vec<(String, String)> {
    vec![
        text("bad/kustomization.yaml", "resources: [../base]\n"),
        text("base/kustomization.yaml", &format!("resources: [{base}]\n")),
        file("base/own", "one"),
    ]
}

#[tokio::test]
async fn a_kustomization_counts_by_what_it_read_outside_of_its_path() {
    let Some(scene) = Scene::new("evidence-outside").await else { return };
    let _daemon = daemon(&scene);
    both(&scene, overlay("own.json"), json!({"path": "bad"})).await;
    // Only the folder beside its own changes.
    scene.work.git(&["mv", "good/one.json", "base/one.json"]);
    scene.push(&overlay("own.json, one.json, missing.json"));
    scene.nudge("good", "moved").await;
    until_held(&scene, "one", "PossiblyClaimed").await;
    until_held(&scene, "one", "ClaimOverdue").await;
    let uid = async || scene.maps().get("one").await.unwrap().metadata.uid;
    let before = uid().await;
    let commit = scene.push(&overlay("own.json, one.json"));
    scene.nudge("bad", "mended").await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    assert_eq!(uid().await, before, "it was taken over as it is");
}

#[tokio::test]
async fn a_chart_counts_by_what_it_read_outside_of_its_path() {
    let Some(scene) = Scene::new("evidence-chart").await else { return };
    let Some(helm) = find("helm") else { return };
    let helm = std::path::absolute(helm).unwrap();
    let arguments = ["--leader-election=false", "--claim-timeout", "3s", "--helm", helm.to_str().unwrap()];
    let _daemon = scene.daemon_with(&arguments);
    let map = "{{ range .Values.names }}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ . }}}, data: {key: one}}\n{{ end }}\n";
    let chart = vec![
        text("bad/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
        text("bad/templates/maps.yaml", map),
        text("values/prod.yaml", "names: [own]\n"),
    ];
    let spec = json!({"path": "bad", "render": {"helm": {"valuesFiles": ["../values/prod.yaml"]}}});
    both(&scene, chart, spec).await;
    scene.work.git(&["rm", "-q", "good/one.json"]);
    scene.push(&[text("values/prod.yaml", "names: [own, one, [not a name]]\n")]);
    scene.nudge("good", "moved").await;
    scene.until_reason("bad", "HelmFailed").await;
    until_held(&scene, "one", "ClaimOverdue").await;
    let commit = scene.push(&[text("values/prod.yaml", "names: [own, one]\n")]);
    scene.nudge("bad", "mended").await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    assert!(is_there(&scene, "one").await);
}

#[tokio::test]
async fn a_kustomization_of_which_nothing_has_changed_holds_nothing() {
    let Some(scene) = Scene::new("evidence-same").await else { return };
    let _daemon = daemon(&scene);
    let vars = async || {
        let map = json!({"metadata": {"name": "vars"}, "data": {"A": "a"}});
        scene.maps().create(&Default::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    };
    vars().await;
    let from = json!({"substitute": {"from": [{"kind": "ConfigMap", "name": "vars"}]}});
    both(&scene, overlay("own.json"), json!({"path": "bad", "render": from})).await;
    scene.maps().delete("vars", &Default::default()).await.unwrap();
    scene.until_reason("bad", "ValuesMissing").await;
    let begun = Instant::now();
    scene.remove(&["good/one.json"]);
    scene.nudge("good", "removed").await;
    until_gone(&scene, "one").await;
    assert!(begun.elapsed() < under_load(SOON), "{:?}", begun.elapsed());
    // Another file of what it read makes it count.
    scene.work.git(&["mv", "good/two.json", "base/two.json"]);
    let commit = scene.push(&overlay("own.json, two.json"));
    scene.nudge("good", "moved").await;
    until_held(&scene, "two", "ClaimOverdue").await;
    vars().await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    assert!(is_there(&scene, "two").await);
}

#[tokio::test]
async fn a_kustomization_that_was_never_rendered_may_hold_anything() {
    let Some(scene) = Scene::new("evidence-never").await else { return };
    let _daemon = daemon(&scene);
    let mut files = overlay("own.json, missing.json");
    files.extend(["stays", "one"].map(|name| file(&format!("good/{name}"), "one")));
    let commit = scene.push(&files);
    scene.sync("good", json!({"path": "good"})).await;
    scene.sync("bad", json!({"path": "bad"})).await;
    scene.until_ready("good", &commit).await;
    scene.until_reason("bad", "KustomizeInvalid").await;
    // Nothing of it changes, and nothing of it has this name.
    scene.remove(&["good/one.json"]);
    scene.nudge("good", "removed").await;
    until_held(&scene, "one", "PossiblyClaimed").await;
    until_held(&scene, "one", "ClaimOverdue").await;
    // The end of the claim lets the prune go.
    scene.delete_sync("bad").await;
    until_gone(&scene, "one").await;
}

#[tokio::test]
async fn a_right_is_asked_for_once_a_minute() {
    let Some(scene) = Scene::new("evidence-rights").await else { return };
    let _daemon = scene.daemon_with(&["--leader-election=false", "--claim-timeout", "60s"]);
    both(&scene, vec![file("bad/own", "one")], json!({"path": "bad"})).await;
    let asked = || {
        let asked = scene.proxy.take_requests();
        asked.iter().filter(|one| one.path.ends_with("/selfsubjectaccessreviews")).count()
    };
    asked();
    let broken = |names: &str| text("bad/broken.yaml", &format!("kind: [\n# {names}\n"));
    scene.work.git(&["rm", "-q", "good/one.json"]);
    scene.push(&[broken("one two")]);
    scene.nudge("good", "first").await;
    until_held(&scene, "one", "PossiblyClaimed").await;
    scene.until_reason("bad", "YamlInvalid").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(asked(), 1, "the right to patch ConfigMaps of the namespace");
    assert!(is_there(&scene, "one").await);
    let begun = Instant::now();
    scene.remove(&["good/two.json"]);
    scene.nudge("good", "second").await;
    until_held(&scene, "two", "PossiblyClaimed").await;
    scene.nudge("bad", "again").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(40)), "{:?}", begun.elapsed());
    assert_eq!(asked(), 0, "the answer counts for another object and another commit");
}
