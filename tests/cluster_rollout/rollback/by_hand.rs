//! A person rolls a Sync back to a revision of its history, and releases it.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use moorline_test_support::daemon::until;
use moorline_test_support::git_server::Reply;
use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, file};
use moorline_test_support::signers::{key, sign, spec, trust};
use moorline_test_support::status::condition;
use serde_json::{Value, json};

const HOLD: &str = "moorline.dev/hold-revision";

/// Waits until the Sync is held at a commit while a newer one is known; its sentence.
async fn until_held(scene: &Scene, commit: &str) -> String {
    until("the Sync is held", async || {
        let ready = condition(scene, "shop", "Ready").await;
        let applied = scene.status("shop", "/revision/applied").await;
        let is_there = applied.as_str().is_some_and(|it| it.ends_with(commit));
        let is_held = ready["reason"] == "RevisionHeld" && ready["status"] == "False";
        (is_there && is_held).then(|| ready["message"].as_str().unwrap().to_owned())
    })
    .await
}

async fn annotate(scene: &Scene, annotations: Value) {
    scene.patch_sync("shop", json!({"metadata": {"annotations": annotations}})).await;
}

#[tokio::test]
async fn a_sync_is_held_at_a_revision_until_it_is_released() {
    let Some(scene) = Scene::beside("hold").await else { return };
    let (daemon, good) = scene.applied(&[file("a", "1")], json!({})).await;
    scene.until_ready("shop", &good).await;
    let bad = scene.push(&[file("a", "2"), file("b", "2")]);
    scene.nudge("shop", "bad").await;
    scene.until_ready("shop", &bad).await;

    let told = moorline(&scene, &["rollback", "shop", "--reason", "it is slow"]);
    assert_eq!(told.code, 0, "{}", told.words);
    assert!(told.words.contains(&good[..8]) && told.words.contains("moorline release"), "{}", told.words);
    let message = until_held(&scene, &good).await;
    let newest = format!("main@{bad} is not applied until the hold is released");
    assert!(message.contains(": it is slow") && message.contains(&newest), "{message}");
    scene.until_values(&[file("a", "1")], "what came with the commit is gone").await;
    let chosen = scene.status("shop", "/revision/chosen").await;
    assert_eq!(chosen["reason"], "it is slow", "{chosen}");
    assert!(chosen["by"].is_string(), "{chosen}");
    let shown = moorline(&scene, &["status", "shop"]);
    assert!(shown.data.contains("Held at") && shown.data.contains("it is slow"), "{}", shown.data);

    // Drift is repaired, and a newer commit is not applied.
    scene.edit("a", "9").await;
    scene.until_values(&[file("a", "1")], "drift from the held revision is repaired").await;
    let newer = scene.push(&[file("a", "3")]);
    scene.nudge("shop", "newer").await;
    until("the newer commit is seen", async || {
        let seen = scene.status("shop", "/revision/seen").await;
        seen.as_str().is_some_and(|seen| seen.ends_with(&newer)).then_some(())
    })
    .await;
    scene.settle().await;
    until_held(&scene, &good).await;
    scene.assert_calm("while it is held").await;

    // Another daemon, and a status that is lost.
    drop(daemon);
    let lost = Patch::Merge(json!({"status": null}));
    scene.syncs().patch_status("shop", &PatchParams::default(), &lost).await.unwrap();
    let _daemon = scene.daemon();
    until_held(&scene, &good).await;
    assert_eq!(scene.values().await, [("a".to_owned(), "1".to_owned())].into());

    let told = moorline(&scene, &["release", "shop"]);
    assert_eq!(told.code, 0, "{}", told.words);
    scene.until_ready("shop", &newer).await;
    scene.until_values(&[file("a", "3"), file("b", "2")], "the newest is applied").await;
    assert_eq!(scene.status("shop", "/revision/chosen").await, Value::Null);
    assert!(moorline(&scene, &["release", "shop"]).words.contains("is not held"));
}

/// A daemon that starts while the repository is away does not know the newest revision, and still asks.
#[tokio::test]
async fn a_prune_of_a_held_sync_waits_also_while_the_repository_is_away() {
    let Some(scene) = Scene::beside("hold-away").await else { return };
    let theirs = json!({"metadata": {"name": "b"}, "data": {"key": "theirs"}});
    let path = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    send_request(&scene.admin, "POST", &path, theirs).await.unwrap();
    let (daemon, first) = scene.applied(&[file("a", "1")], json!({})).await;
    scene.until_ready("shop", &first).await;
    // An object that is created within two seconds of its apply counts as created by it.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let second = scene.push(&[file("a", "2"), file("b", "2")]);
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;
    // The first daemon ends before it can prune anything for the hold.
    drop(daemon);
    annotate(&scene, json!({HOLD: format!("main@{first}")})).await;
    scene.git.rule(|_| Reply::Raw(503, "", Vec::new()));
    let _daemon = scene.daemon();
    until("the first revision is applied again", async || {
        (scene.values().await.get("a").map(String::as_str) == Some("1")).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.values().await.get("b").map(String::as_str), Some("2"), "it was there before the Sync");
}

#[tokio::test]
async fn what_cannot_be_held_leaves_the_revision_in_place() {
    let Some(scene) = Scene::beside("hold-refused").await else { return };
    let (_daemon, first) = scene.applied(&[file("a", "1")], json!({})).await;
    scene.until_ready("shop", &first).await;
    for (value, part) in [("f".repeat(40), "cannot be applied"), ("latest".to_owned(), "neither a revision")]
    {
        annotate(&scene, json!({HOLD: value})).await;
        let message = until("it is refused", async || {
            let ready = condition(&scene, "shop", "Ready").await;
            let message = ready["message"].as_str().unwrap_or_default().to_owned();
            (ready["status"] == "False" && message.contains(part)).then_some(message)
        })
        .await;
        assert!(message.contains(&format!("main@{first} stays applied")), "{message}");
        assert!(message.contains(&format!("{HOLD} is {value}")), "{message}");
        scene.edit("a", "9").await;
        scene.until_values(&[file("a", "1")], "drift is repaired meanwhile").await;
    }
    // Nor is anything newer applied, before somebody decides.
    let newer = scene.push(&[file("a", "2")]);
    scene.nudge("shop", "newer").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.values().await, [("a".to_owned(), "1".to_owned())].into());
    annotate(&scene, json!({HOLD: null})).await;
    scene.until_ready("shop", &newer).await;
}

#[tokio::test]
async fn the_keys_of_today_decide_and_a_rewritten_history_does_not() {
    let Some(scene) = Scene::beside("hold-signed").await else { return };
    let (Some(ann), Some(bob)) = (key(&scene, "ann"), key(&scene, "bob")) else { return };
    scene.work.git(&["config", "user.name", "Ann"]);
    scene.work.git(&["config", "user.email", "ann@example.com"]);
    trust(&scene, &[&ann, &bob]).await;
    sign(&scene, Some(&bob));
    let by_bob = scene.push(&[file("a", "1")]);
    let _daemon = scene.daemon();
    scene.sync("shop", spec(&scene, "HEAD", json!({"branch": "main"}))).await;
    scene.until_ready("shop", &by_bob).await;
    sign(&scene, Some(&ann));
    let by_ann = scene.push(&[file("a", "2")]);
    scene.nudge("shop", "ann").await;
    scene.until_ready("shop", &by_ann).await;

    // A history without the commit of Ann is refused as a branch, and no obstacle for a hold.
    scene.work.git(&["reset", "-q", "--hard", &by_bob]);
    scene.work.git(&["push", "-qf", "origin", "main"]);
    scene.push(&[file("a", "3")]);
    scene.nudge("shop", "rewritten").await;
    scene.until_reason("shop", "HistoryRewritten").await;
    annotate(&scene, json!({HOLD: by_bob})).await;
    scene.until_values(&[file("a", "1")], "the revision of Bob is held").await;
    annotate(&scene, json!({HOLD: by_ann})).await;
    scene.until_values(&[file("a", "2")], "the revision of Ann is held").await;

    // Bob is trusted no longer: his revision is refused, and hers stays.
    trust(&scene, &[&ann]).await;
    tokio::time::sleep(QUIET_TIME).await;
    annotate(&scene, json!({HOLD: by_bob})).await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.edit("a", "9").await;
    scene.until_values(&[file("a", "2")], "the revision of Ann is repaired").await;
}

#[tokio::test]
async fn a_parent_that_manages_the_sync_leaves_the_hold_in_place() {
    let Some(scene) = Scene::new("hold-parent").await else { return };
    let first = scene.push(&[file("apps/a", "1")]);
    let child = |interval: &str| {
        let body = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop"},
            "spec": {"source": {"git": {"url": scene.git.url("repository.git")}}, "path": "apps", "interval": interval, "health": {"wait": false}},
        });
        ("syncs/shop.json".to_owned(), body.to_string())
    };
    scene.push(&[child("30s")]);
    let _daemon = scene.daemon();
    let strict = json!({"path": "syncs", "drift": {"extraFields": "Remove"}});
    scene.sync("parent", strict).await;
    until("the child is there", async || scene.syncs().get_opt("shop").await.unwrap()).await;
    scene.until_values(&[file("a", "1")], "the child is applied").await;
    let second = scene.push(&[file("apps/a", "2")]);
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;
    let told = moorline(&scene, &["rollback", "shop", "--to", &first, "--reason", "parent"]);
    assert_eq!(told.code, 0, "{}", told.words);
    until_held(&scene, &first).await;
    // The parent applies another form of the child, which is held at the same revision.
    let third = scene.push(&[child("45s")]);
    scene.nudge("parent", "third").await;
    scene.until_ready("parent", &third).await;
    scene.settle().await;
    let sync = scene.syncs().get("shop").await.unwrap();
    assert_eq!(sync.data["spec"]["interval"], "45s");
    assert!(sync.metadata.annotations.unwrap().contains_key(HOLD));
    until_held(&scene, &first).await;
    assert_eq!(scene.values().await, [("a".to_owned(), "1".to_owned())].into());
}

#[tokio::test]
async fn an_object_that_moves_to_a_held_sync_waits_for_it() {
    let Some(scene) = Scene::beside("hold-moves").await else { return };
    let first = scene.push(&[file("left/a", "1"), file("left/b", "1"), file("shop/c", "1")]);
    let _daemon = scene.daemon();
    for name in ["left", "shop"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &first).await;
    }
    annotate(&scene, json!({HOLD: format!("main@{first}")})).await;
    until("the hold is reported", async || {
        scene.status("shop", "/revision/chosen/revision").await.as_str().map(str::to_owned)
    })
    .await;
    let before = scene.versions().await;
    scene.work.git(&["mv", "left/a.json", "shop/a.json"]);
    let moved = scene.push(&[file("left/b", "2")]);
    for name in ["left", "shop"] {
        scene.nudge(name, "moved").await;
    }
    let rest = [file("a", "1"), file("b", "2"), file("c", "1")];
    scene.until_values(&rest, "the other Sync applies the commit").await;
    scene.settle().await;
    tokio::time::sleep(QUIET_TIME).await;
    until_held(&scene, &first).await;
    assert_eq!(scene.versions().await["a"].0, before["a"].0, "it is not deleted");
    annotate(&scene, json!({HOLD: null})).await;
    scene.until_ready("shop", &moved).await;
    scene.until_ready("left", &moved).await;
    scene.until_values(&rest, "it is handed over").await;
    assert_eq!(scene.versions().await["a"].0, before["a"].0, "it is handed over");
}
