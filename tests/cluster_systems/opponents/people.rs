//! People beside Git: who restarts by hand, and who applied with kubectl before and goes on with it.

use kube::api::ListParams;
use serde_json::{Value, json};

use super::ground::{IMAGE, Opponent, deployments, file, map, quiet_after, until_told, web, writes};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::Scene;

#[tokio::test]
async fn a_restart_by_hand_is_kept() {
    let Some(scene) = Scene::new("restart").await else { return };
    let rolling = |image: &str| {
        let mut web = web("web", json!({"paused": false}));
        web["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        file(&web)
    };
    let (_daemon, _) =
        scene.applied(&[rolling("example.com/web:1")], json!({"drift": {"extraFields": "Remove"}})).await;
    let sets = scene.dynamic("apps", "v1", "ReplicaSet");
    let until_rolled = async |count: usize| {
        until(&format!("there are {count} roll-outs"), async || {
            let all = sets.list(&ListParams::default()).await.unwrap().items.len();
            (all == count).then_some(())
        })
        .await;
    };
    until_rolled(1).await;
    let person = Opponent::new(&deployments(&scene), "kubectl-rollout");
    let restarted = json!({"kubectl.kubernetes.io/restartedAt": "2026-11-22T10:00:00Z"});
    person.edits("web", json!({"spec": {"template": {"metadata": {"annotations": restarted}}}})).await;
    until_rolled(2).await;
    let asked = quiet_after(&scene, person.moved(), "restarted").await;
    assert!(writes(&asked, "web") <= 2, "a look for each generation: its controller counts the roll-outs");
    let annotations = "/spec/template/metadata/annotations";
    assert_eq!(person.live("web").await.pointer(annotations), Some(&restarted));

    let commit = scene.push(&[rolling("example.com/web:2")]);
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    until_rolled(3).await;
    quiet_after(&scene, std::time::Instant::now(), "rolled out").await;
    let live = person.live("web").await;
    assert_eq!(live.pointer(annotations), Some(&restarted));
    assert_eq!(live.pointer(IMAGE), Some(&json!("example.com/web:2")));
    until_rolled(3).await;
}

/// Annotation that `kubectl apply` adds to its writes.
const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Does as `kubectl apply` does: what was in its last file and is not in this one is removed, the rest is set.
async fn applies_by_kubectl(person: &Opponent, name: &str, data: Value) {
    let body = map(name, data.clone());
    let mut patch = json!({"metadata": {"annotations": {LAST: body.to_string()}}, "data": data});
    match person.objects.get_opt(name).await.unwrap() {
        None => {
            let mut body = body;
            body["metadata"]["annotations"] = patch["metadata"]["annotations"].take();
            person.creates(body).await;
        }
        Some(live) => {
            let last = live.metadata.annotations.unwrap_or_default().remove(LAST).unwrap_or_default();
            let last: Value = serde_json::from_str(&last).unwrap_or_default();
            for key in last["data"].as_object().into_iter().flatten().map(|(key, _)| key) {
                if patch["data"].get(key).is_none() {
                    patch["data"][key] = Value::Null;
                }
            }
            person.merges(name, patch).await;
        }
    }
}

#[tokio::test]
async fn what_kubectl_applied_is_adopted_and_held() {
    let Some(scene) = Scene::new("kubectl").await else { return };
    let person = Opponent::new(&scene.dynamic("", "v1", "ConfigMap"), "kubectl-client-side-apply");
    applies_by_kubectl(&person, "shop", json!({"a": "1", "b": "1", "theirs": "1"})).await;
    let git = |data: Value| [file(&map("shop", data))];
    let (_daemon, _) = scene.applied(&git(json!({"a": "1", "b": "1"})), json!({})).await;
    let data = async || person.live("shop").await["data"].clone();
    assert_eq!(data().await, json!({"a": "1", "b": "1", "theirs": "1"}), "additions are told, not removed");

    let commit = scene.push(&git(json!({"a": "2"})));
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(data().await, json!({"a": "2", "theirs": "1"}), "what left Git is gone");

    scene.proxy.take_requests();
    // From the file that the person still has.
    for _ in 0..2 {
        applies_by_kubectl(&person, "shop", json!({"a": "1", "b": "1", "theirs": "1"})).await;
        person.until("it is repaired", "shop", |live| live["data"]["a"] == "2").await;
    }
    let asked = quiet_after(&scene, person.moved(), "applied again").await;
    assert_eq!(writes(&asked, "shop"), 2, "one repair each");
    until_told(&scene, &["shop", "data.a", "changed by kubectl-client-side-apply"]).await;
    // The person's file has lost what Git says.
    applies_by_kubectl(&person, "shop", json!({"b": "1"})).await;
    person.until("it is set again", "shop", |live| live["data"]["a"] == "2").await;
    let asked = quiet_after(&scene, person.moved(), "applied with less").await;
    assert!(writes(&asked, "shop") <= 2, "{}", asked.len());
    assert_eq!(data().await, json!({"a": "2", "b": "1"}));
    let problems = scene.status("shop", "/problems").await;
    let said = problems[0]["message"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("kubectl-client-side-apply added data.b, which is not in Git"), "{problems}");
}
