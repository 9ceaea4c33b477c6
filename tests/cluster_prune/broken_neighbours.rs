//! A broken Sync never stops the Syncs beside it, and an object that moves to a broken one is not lost.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::scene::{Scene, config_map, file, text};
use moorline_test_support::under_load::under_load;

/// The most that a prune takes after the claim that held it has ended.
const SLACK: Duration = Duration::from_secs(2);

/// A daemon for which a claim is overdue after this time.
fn daemon(scene: &Scene, claim_timeout: &str) -> Daemon {
    scene.daemon_with(&["--leader-election=false", "--claim-timeout", claim_timeout])
}

/// The uid of a ConfigMap, if it is there.
async fn uid(scene: &Scene, name: &str) -> Option<String> {
    scene.maps().get_opt(name).await.unwrap().and_then(|map| map.metadata.uid)
}

async fn until_gone(scene: &Scene, name: &str) {
    until(&format!("{name} is pruned"), async || uid(scene, name).await.is_none().then_some(())).await;
}

/// The reason why an object is not pruned, once the Sync tells one of these.
async fn until_held(scene: &Scene, sync: &str, name: &str, reason: &str) -> String {
    until(&format!("{name} of {sync} is held: {reason}"), async || {
        let problems = scene.status(sync, "/problems").await;
        let all = problems.as_array().cloned().unwrap_or_default();
        let told = all
            .into_iter()
            .find(|one| one["object"].to_string().contains(name) && one["reason"].as_str() == Some(reason))?;
        Some(told["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

async fn approve(scene: &Scene, sync: &str) {
    let hash = until("an approval is asked for", async || {
        scene.status(sync, "/approval/hash").await.as_str().map(ToOwned::to_owned)
    })
    .await;
    let patch = json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}});
    scene.patch_sync(sync, patch).await;
}

/// Breaks a Sync that was sound, and moves `moved` into its folder in the same commit.
async fn moves_to_a_broken(purpose: &str, broken: &[(String, String)], spec: Value) {
    let Some(scene) = Scene::new(purpose).await else { return };
    let _daemon = daemon(&scene, "3s");
    let whole = [file("good/stays", "one"), file("good/moved", "one"), file("bad/own", "one")];
    let commit = scene.push(&whole);
    scene.sync("good", json!({"path": "good"})).await;
    let mut bad = json!({"path": "bad"});
    spec.as_object().unwrap().iter().for_each(|(key, value)| bad[key] = value.clone());
    scene.sync("bad", bad).await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    let before = uid(&scene, "moved").await;
    scene.work.git(&["mv", "good/moved.json", "bad/moved.json"]);
    scene.push(broken);
    scene.nudge("good", "moved").await;
    let message = until_held(&scene, "good", "moved", "PossiblyClaimed").await;
    assert!(message.contains(&format!("{}/bad", scene.namespace)), "{message}");
    // A person is asked after a while, and the object is still there.
    let message = until_held(&scene, "good", "moved", "ClaimOverdue").await;
    assert!(message.contains(&format!("{}/bad", scene.namespace)), "{message}");
    assert_eq!(uid(&scene, "moved").await, before);
    assert_eq!(scene.status("good", "/approval/objects").await, 1);
    scene.assert_calm("a claim that stands costs nothing").await;

    // The broken Sync is mended and takes the object over, as it is.
    let broken: Vec<&str> = broken.iter().map(|(path, _)| path.as_str()).collect();
    scene.work.git(&[&["rm", "-q", "-f", "--"], &broken[..]].concat());
    let commit = scene.push(&[file("bad/moved", "one"), file("bad/own", "one")]);
    scene.nudge("bad", "mended").await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    assert_eq!(uid(&scene, "moved").await, before);
    scene.assert_calm("after the move").await;
}

#[tokio::test]
async fn an_object_in_a_folder_that_cannot_be_read_is_kept() {
    moves_to_a_broken("neighbour-file", &[text("bad/broken.yaml", "kind: [\n")], json!({})).await;
}

#[tokio::test]
async fn an_object_in_a_file_that_cannot_be_read_is_kept() {
    let moved = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: moved\n";
    moves_to_a_broken("neighbour-text", &[text("bad/moved.json", moved)], json!({})).await;
}

#[tokio::test]
async fn an_object_in_a_kustomization_that_was_changed_is_kept() {
    let bad = "resources: [own.json, moved.json, missing.json]\n";
    moves_to_a_broken("neighbour-build", &[text("bad/kustomization.yaml", bad)], json!({})).await;
}

#[tokio::test]
async fn an_object_that_moves_to_a_sync_whose_variables_are_missing_is_kept() {
    let Some(scene) = Scene::new("neighbour-values").await else { return };
    let _daemon = daemon(&scene, "30s");
    let vars = || serde_json::from_value(json!({"metadata": {"name": "vars"}, "data": {"A": "a"}})).unwrap();
    scene.maps().create(&PostParams::default(), &vars()).await.unwrap();
    let commit = scene.push(&[file("good/stays", "one"), file("good/moved", "one"), file("bad/own", "one")]);
    scene.sync("good", json!({"path": "good"})).await;
    let from = json!({"substitute": {"from": [{"kind": "ConfigMap", "name": "vars"}]}});
    scene.sync("bad", json!({"path": "bad", "render": from})).await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    let before = uid(&scene, "moved").await;
    scene.maps().delete("vars", &DeleteParams::default()).await.unwrap();
    scene.until_reason("bad", "ValuesMissing").await;
    scene.work.git(&["mv", "good/moved.json", "bad/moved.json"]);
    let commit = scene.push(&[]);
    scene.nudge("good", "moved").await;
    let message = until_held(&scene, "good", "moved", "PossiblyClaimed").await;
    assert!(message.contains(&format!("{}/bad", scene.namespace)), "{message}");
    // Longer than a Sync is waited for that has not tried the commit.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(uid(&scene, "moved").await, before);
    scene.maps().create(&PostParams::default(), &vars()).await.unwrap();
    scene.until_ready("bad", &commit).await;
    assert_eq!(uid(&scene, "moved").await, before, "it was taken over as it is");
    scene.until_ready("good", &commit).await;
}

#[tokio::test]
async fn what_a_refused_sync_wanted_by_another_identity_holds_nothing() {
    let Some(scene) = Scene::new("neighbour-refused").await else { return };
    let _daemon = daemon(&scene, "30s");
    let commit = scene.push(&[file("good/stays", "one"), file("good/shared", "one"), file("bad/own", "one")]);
    scene.sync("good", json!({"path": "good"})).await;
    scene.sync("bad", json!({"path": "bad"})).await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    scene.push(&[file("bad/shared", "two")]);
    scene.nudge("bad", "shared").await;
    until_held(&scene, "bad", "shared", "OwnedBy").await;
    let rules = json!([{"group": "apps", "kind": "Deployment", "healthy": "object.status.replicas >"}]);
    let spec = json!({"serviceAccountName": "nobody", "health": {"rules": rules, "wait": false}});
    scene.patch_sync("bad", json!({"spec": spec})).await;
    scene.until_reason("bad", "SpecInvalid").await;
    scene.remove(&["good/shared.json"]);
    scene.nudge("good", "shared").await;
    until_gone(&scene, "shared").await;
}

#[tokio::test]
async fn an_object_that_a_suspended_sync_claims_waits_and_goes_with_the_claim() {
    let Some(scene) = Scene::new("neighbour-claim").await else { return };
    let _daemon = daemon(&scene, "60s");
    let commit = scene.push(&[file("good/stays", "one"), file("good/moved", "one"), file("bad/own", "one")]);
    scene.sync("good", json!({"path": "good"})).await;
    scene.sync("bad", json!({"path": "bad", "suspend": true})).await;
    scene.until_ready("good", &commit).await;
    scene.work.git(&["mv", "good/moved.json", "bad/moved.json"]);
    scene.push(&[]);
    scene.nudge("good", "moved").await;
    until_held(&scene, "good", "moved", "ClaimedBy").await;
    scene.assert_calm("a claim that stands costs nothing").await;
    // Nobody tells the first Sync of it but the daemon itself.
    scene.delete_sync("bad").await;
    let begun = Instant::now();
    until_gone(&scene, "moved").await;
    assert!(
        begun.elapsed() < under_load(SLACK),
        "the end of a claim wakes whom it held: {:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_claim_without_the_right_to_patch_asks_at_home_and_is_nothing_elsewhere() {
    let Some(scene) = Scene::new("neighbour-rights").await else { return };
    let elsewhere = scene.plane.namespace("neighbour-elsewhere").await;
    let place = scene.namespace.clone();
    for namespace in [&place, &elsewhere] {
        let accounts: Api<ServiceAccount> = Api::namespaced(scene.admin.clone(), namespace);
        let account = serde_json::from_value(json!({"metadata": {"name": "tenant"}})).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
    }
    let _daemon = daemon(&scene, "60s");
    let in_place = |name: &str| {
        let mut map: Value = serde_json::from_str(&config_map(name, "one")).unwrap();
        map["metadata"]["namespace"] = json!(place);
        map.to_string()
    };
    let good = |name: &str| (format!("good/{name}.json"), in_place(name));
    let commit = scene.push(&[
        good("stays"),
        good("near"),
        good("far"),
        (text("home/near.json", &in_place("near"))),
        (text("away/far.json", &in_place("far"))),
    ]);
    scene.sync("good", json!({"path": "good"})).await;
    scene.until_ready("good", &commit).await;
    scene.sync("home", json!({"path": "home", "serviceAccountName": "tenant"})).await;
    let away = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": "away", "namespace": elsewhere},
        "spec": {"source": {"git": {"url": scene.git.url("repository.git")}}, "interval": "5s",
            "path": "away", "serviceAccountName": "tenant", "health": {"wait": false}},
    });
    let syncs = Api::namespaced_with(
        scene.admin.clone(),
        &elsewhere,
        &kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "moorline.dev",
            "v1alpha1",
            "Sync",
        )),
    );
    let away: kube::api::DynamicObject = serde_json::from_value(away).unwrap();
    syncs.create(&PostParams::default(), &away).await.unwrap();
    until("both have tried", async || {
        let told = syncs.get("away").await.unwrap();
        let away = told.data.pointer("/status/conditions/0/reason").cloned().unwrap_or_default();
        let home = scene.status("home", "/conditions/0/reason").await;
        (away.is_string() && home.is_string()).then_some(())
    })
    .await;
    let commit = scene.remove(&["good/near.json", "good/far.json"]);
    scene.nudge("good", "left").await;
    until_gone(&scene, "far").await;
    until_held(&scene, "good", "near", "ClaimedWithoutRights").await;
    assert!(uid(&scene, "near").await.is_some());
    approve(&scene, "good").await;
    until_gone(&scene, "near").await;
    scene.until_ready("good", &commit).await;
    syncs.delete("away", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_deletion_leaves_what_a_broken_sync_may_want_and_deletes_the_rest() {
    let Some(scene) = Scene::new("neighbour-farewell").await else { return };
    let _daemon = daemon(&scene, "2s");
    let commit = scene.push(&[file("good/stays", "one"), file("good/moved", "one"), file("bad/own", "one")]);
    scene.sync("good", json!({"path": "good", "deletionPolicy": "Delete"})).await;
    scene.sync("bad", json!({"path": "bad"})).await;
    for name in ["good", "bad"] {
        scene.until_ready(name, &commit).await;
    }
    scene.push(&[text("bad/broken.yaml", "kind: [\nmetadata: {name: moved}\n")]);
    scene.nudge("good", "newer").await;
    scene.until_reason("bad", "YamlInvalid").await;
    let begun = Instant::now();
    scene.delete_sync("good").await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(10)), "{:?}", begun.elapsed());
    assert!(uid(&scene, "moved").await.is_some() && uid(&scene, "stays").await.is_none());
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let all = events.list(&ListParams::default()).await.unwrap();
    let notes: Vec<String> = all.into_iter().filter_map(|event| event.message).collect();
    assert!(notes.iter().any(|note| note.contains("moved") && note.contains("ClaimOverdue")), "{notes:?}");
}
