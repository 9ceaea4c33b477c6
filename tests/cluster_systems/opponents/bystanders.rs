//! Controllers that write beside what Git sets: finalizers, owners, labels, and heartbeats.

use std::time::Duration;

use serde_json::json;

use super::ground::{
    AsyncRepeat, Opponent, asked_within, assert_repaired, define, deployments, file, map, quiet_after, web,
};
use moorline_test_support::scene::Scene;
use moorline_test_support::under_load::under_load;

/// A sign of life in a label or an annotation.
struct Beats(&'static str);

impl AsyncRepeat for Beats {
    async fn act(&self, who: &Opponent, nth: usize) {
        let beat = json!({"metadata": {self.0: {"example.com/beat": nth.to_string()}}});
        who.merges("beats", beat).await;
    }
}

/// Between two of them.
const EVERY: Duration = Duration::from_millis(500);

#[tokio::test]
async fn finalizers_and_owners_cost_nothing() {
    let Some(scene) = Scene::new("owners").await else { return };
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let widgets = define(&scene, "data.example.com", "v1", "Widget", anything).await;
    let widget = json!({
        "apiVersion": "data.example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1},
    });
    let files = [file(&widget), file(&web("web", json!({}))), file(&map("owner", json!({})))];
    let (_daemon, _) = scene.applied(&files, json!({})).await;
    let maps = scene.dynamic("", "v1", "ConfigMap");
    let uid = maps.get("owner").await.unwrap().metadata.uid.unwrap();
    quiet_after(&scene, std::time::Instant::now(), "applied").await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    let writers = [
        (Opponent::new(&widgets, "protector"), "one"),
        (Opponent::new(&deployments(&scene), "protector"), "web"),
    ];
    for (writer, name) in &writers {
        writer.merges(name, json!({"metadata": {"finalizers": ["example.com/protects"]}})).await;
        writer.merges(name, json!({"metadata": {"ownerReferences": [owner]}})).await;
        writer.merges(name, json!({"metadata": {"labels": {"example.com/seen": "yes"}}})).await;
    }
    let asked = quiet_after(&scene, writers[1].0.moved(), "protected").await;
    assert_eq!(asked.len(), 0, "{asked:?}");
    for (writer, name) in &writers {
        let live = writer.live(name).await;
        assert_eq!(live["metadata"]["finalizers"][0], "example.com/protects");
        assert_eq!(live["metadata"]["ownerReferences"][0]["name"], "owner");
    }
    assert_repaired(&scene, &widgets, "one", json!({"spec": {"size": 2}}), "spec.size").await;
    // Else the namespace never ends.
    for (writer, name) in &writers {
        writer.merges(name, json!({"metadata": {"finalizers": null}})).await;
    }
}

#[tokio::test]
async fn heartbeats_cost_little_or_nothing() {
    let Some(scene) = Scene::new("beats").await else { return };
    let files = [file(&web("beats", json!({}))), file(&map("beats", json!({"a": "1"})))];
    let (_daemon, _) = scene.applied(&files, json!({})).await;
    quiet_after(&scene, std::time::Instant::now(), "applied").await;
    let heart = Opponent::new(&deployments(&scene), "heart");
    let beats = heart.repeats(EVERY, Beats("labels"));
    let asked = asked_within(&scene, Duration::from_secs(6)).await;
    assert_eq!(asked.len(), 0, "the generation stands still: {asked:?}");
    drop(beats);

    // Without a generation, or with one that moves, each write may have changed what Git sets.
    let maps = Opponent::new(&scene.dynamic("", "v1", "ConfigMap"), "heart");
    let beats = [heart.repeats(EVERY, Beats("annotations")), maps.repeats(EVERY, Beats("labels"))];
    let asked = asked_within(&scene, Duration::from_secs(10)).await;
    for kind in ["/deployments/", "/configmaps/"] {
        let looks = asked.iter().filter(|one| one.writes() && one.path.contains(kind)).count();
        assert!(looks <= 10, "{looks} looks at 20 beats of {kind}");
    }
    assert_repaired_at_once(&scene).await;
    drop(beats);
    quiet_after(&scene, maps.moved(), "they have stopped").await;
}

/// The visible part of an edit is repaired at once, however many beats there are.
async fn assert_repaired_at_once(scene: &Scene) {
    let person = Opponent::new(&scene.dynamic("", "v1", "ConfigMap"), "kubectl-edit");
    person.merges("beats", json!({"data": {"a": "2"}})).await;
    person.until("it is repaired", "beats", |live| live["data"]["a"] == "1").await;
    assert!(
        person.moved().elapsed() < under_load(Duration::from_secs(1)),
        "it took {:?}",
        person.moved().elapsed()
    );
}
