//! Other tools that hold a cluster to a repository, on the same objects as a Sync.

use std::time::Duration;

use serde_json::{Value, json};

use super::ground::{
    AsyncRepeat, IMAGE, Opponent, asked_within, assert_repaired, deployments, file, map, quiet_after,
    until_contested, until_told, web, writes,
};
use moorline_test_support::scene::Scene;

/// The same Deployment out of another repository.
fn theirs(image: &str) -> Value {
    let mut body = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    body["spec"] = web("web", json!({}))["spec"].clone();
    body["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    body
}

const FIELD: &str = "spec.template.spec.containers[name=web].image";

#[tokio::test]
async fn a_tool_that_heals_by_itself_is_contested_by_its_name() {
    let Some(scene) = Scene::new("argo").await else { return };
    let (_daemon, _) = scene.applied(&[file(&web("web", json!({"minReadySeconds": 3})))], json!({})).await;
    scene.proxy.take_requests();
    let other = Opponent::new(&deployments(&scene), "argocd-controller");
    let mut body = theirs("example.com/web:argo");
    body["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/tracking-id": "web:apps/Deployment:argo/web"});
    let going = other.insists("web", body, IMAGE);
    let (contested, message) = until_contested(&scene, "shop").await;
    assert_eq!(contested, [(FIELD.to_owned(), "argocd-controller".to_owned())]);
    assert!(message.contains("argocd-controller reverts every repair"), "{message}");
    until_told(&scene, &["web", FIELD, "changed by argocd-controller"]).await;
    let asked = asked_within(&scene, Duration::from_secs(5)).await;
    assert_eq!(writes(&asked, "web"), 0, "it is left alone while the other goes on");
    drop(going);
    quiet_after(&scene, other.moved(), "the other has stopped").await;
    let live = other.live("web").await;
    assert_eq!(live.pointer(IMAGE), Some(&json!("example.com/web:argo")));
    assert!(live["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].is_string());
    assert_repaired(
        &scene,
        &deployments(&scene),
        "web",
        json!({"spec": {"minReadySeconds": 9}}),
        "spec.minReadySeconds",
    )
    .await;
}

struct Applies(Value);

impl AsyncRepeat for Applies {
    async fn act(&self, who: &Opponent, _: usize) {
        who.applies("web", &self.0).await;
    }
}

#[tokio::test]
async fn a_tool_that_applies_every_so_often_is_contested_by_its_name() {
    let Some(scene) = Scene::new("flux").await else { return };
    let (_daemon, _) = scene.applied(&[file(&web("web", json!({})))], json!({})).await;
    scene.proxy.take_requests();
    let other = Opponent::new(&deployments(&scene), "kustomize-controller");
    let going = other.repeats(Duration::from_millis(700), Applies(theirs("example.com/web:flux")));
    let (contested, _) = until_contested(&scene, "shop").await;
    assert_eq!(contested, [(FIELD.to_owned(), "kustomize-controller".to_owned())]);
    let before: Vec<_> = scene.proxy.take_requests();
    assert_eq!(writes(&before, "web"), 5);
    let asked = asked_within(&scene, Duration::from_secs(5)).await;
    assert_eq!(writes(&asked, "web"), 0, "it is left alone while the other goes on");

    // A third, against which the second goes on: we stand aside.
    let third = Opponent::new(&deployments(&scene), "argocd-controller");
    let also = third.insists("web", theirs("example.com/web:argo"), IMAGE);
    let asked = asked_within(&scene, Duration::from_secs(10)).await;
    assert!(writes(&asked, "web") <= 8, "{} writes within ten seconds", writes(&asked, "web"));
    drop(also);
    drop(going);
    quiet_after(&scene, third.moved().max(other.moved()), "both have stopped").await;
}

#[tokio::test]
async fn marks_of_other_tools_stay_and_their_copies_are_not_pruned() {
    let Some(scene) = Scene::new("marks").await else { return };
    let maps = scene.dynamic("", "v1", "ConfigMap");
    let spec = json!({"drift": {"extraFields": "Remove"}});
    let (_daemon, _) = scene.applied(&[file(&map("ours", json!({"a": "1"})))], spec).await;
    let other = Opponent::new(&maps, "argocd-controller");
    let marks = json!({
        "labels": {"app.kubernetes.io/instance": "shop"},
        "annotations": {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:shop/ours"},
    });
    other.applies("ours", &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": marks})).await;
    // Copies as a tool makes them of what it finds, with our marks and under its own name.
    let live = other.live("ours").await;
    let mut copy = map("copy", json!({"a": "1"}));
    copy["metadata"]["labels"] = live["metadata"]["labels"].clone();
    copy["metadata"]["annotations"] = live["metadata"]["annotations"].clone();
    other.applies("copy", &copy).await;
    quiet_after(&scene, other.moved(), "marked and copied").await;

    let commit = scene.push(&[file(&map("ours", json!({"a": "2"})))]);
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    quiet_after(&scene, std::time::Instant::now(), "after a commit").await;
    let live = other.live("ours").await;
    for (field, marks) in marks.as_object().unwrap() {
        for (key, value) in marks.as_object().unwrap() {
            assert_eq!(&live["metadata"][field][key], value);
        }
    }
    assert_eq!(live["data"]["a"], "2");
    assert_eq!(other.live("copy").await["data"]["a"], "1", "a copy is not ours");
    assert_eq!(scene.status("shop", "/objects/pruned").await.as_i64().unwrap_or_default(), 0);
}
