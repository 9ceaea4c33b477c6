//! Revisions that a person approves first: nothing of another one is written.

use kube::api::{Patch, PatchParams};
use moorline_test_support::daemon::until;
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{QUIET_TIME, Scene, file};
use moorline_test_support::status::condition;
use serde_json::{Value, json};

/// Waits until the Sync asks for an approval of this subject, of a revision with this commit.
async fn until_asked(scene: &Scene, of: &str, commit: &str) -> Value {
    until(&format!("approval of a {of} at {commit}"), async || {
        let approvals = scene.status("shop", "/approvals").await;
        let is_it =
            |it: &&Value| it["of"] == of && it["revision"].as_str().unwrap_or_default().ends_with(commit);
        approvals.as_array()?.iter().find(is_it).cloned()
    })
    .await
}

async fn approve(scene: &Scene, hash: &Value) {
    let annotations = json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}});
    scene.patch_sync("shop", annotations).await;
}

#[tokio::test]
async fn a_revision_is_applied_after_its_approval_and_no_other_one_is() {
    let Some(scene) = Scene::new("ask-first").await else { return };
    let first = scene.push(&[file("a", "1")]);
    let daemon = scene.daemon();
    scene
        .sync("shop", json!({"approval": {"revisions": "Required"}, "prune": {"budget": {"count": 0}}}))
        .await;
    let asked = until_asked(&scene, "Revision", &first).await;
    assert_eq!(
        (&asked["created"], &asked["plan"][0]),
        (&json!(1), &json!(format!("create ConfigMap {}/a", scene.namespace))),
        "{asked}"
    );
    assert!(scene.values().await.is_empty(), "the first one waits as well");
    let told = moorline(&scene, &["status", "shop"]);
    assert!(told.data.contains("1 to create") && told.data.contains("? create ConfigMap"), "{}", told.data);
    assert_eq!(moorline(&scene, &["approve", "shop"]).code, 0);
    scene.until_ready("shop", &first).await;

    // The next one waits, and the approved one is repaired; the approval of before covers nothing else.
    let second = scene.push(&[file("a", "2"), file("b", "2")]);
    scene.nudge("shop", "second").await;
    let of_second = until_asked(&scene, "Revision", &second).await;
    let ready = condition(&scene, "shop", "Ready").await;
    let message = ready["message"].as_str().unwrap_or_default();
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("ApprovalRequired")),
        "{message}"
    );
    assert!(
        message.contains("1 to create, 1 to change")
            && message.ends_with(&format!("main@{first} stays applied")),
        "{message}"
    );
    scene.edit("a", "9").await;
    scene.until_values(&[file("a", "1")], "drift is repaired meanwhile").await;

    // A newer one replaces the question, and a restart changes nothing.
    let third = scene.push(&[file("a", "3"), file("c", "3")]);
    scene.nudge("shop", "third").await;
    let of_third = until_asked(&scene, "Revision", &third).await;
    approve(&scene, &of_second["hash"]).await;
    drop(daemon);
    scene.edit("a", "9").await;
    let daemon = scene.daemon();
    scene.until_values(&[file("a", "1")], "the approved one is held").await;
    assert_eq!(until_asked(&scene, "Revision", &third).await["hash"], of_third["hash"]);
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(
        scene.values().await,
        [("a".to_owned(), "1".to_owned())].into(),
        "the approval was of another"
    );
    approve(&scene, &of_third["hash"]).await;
    scene.until_ready("shop", &third).await;
    scene.until_values(&[file("a", "3"), file("b", "2"), file("c", "3")], "the approved one").await;
    assert_eq!(scene.status("shop", "/approvals").await, Value::Null);

    let fourth = prune_and_go_back(&scene, &first).await;
    drop(daemon);
    lose_status(&scene, &fourth).await;
}

/// A prune asks for itself, with another hash; the way back to an approved revision asks nobody.
async fn prune_and_go_back(scene: &Scene, first: &str) -> String {
    let fourth = scene.remove(&["c.json"]);
    scene.nudge("shop", "fourth").await;
    let asked = until_asked(scene, "Revision", &fourth).await;
    assert_eq!(asked["pruned"], 1, "{asked}");
    approve(scene, &asked["hash"]).await;
    let of_prune = until_asked(scene, "Prune", "").await;
    assert_eq!(scene.values().await.len(), 3);
    approve(scene, &of_prune["hash"]).await;
    scene.until_values(&[file("a", "3"), file("b", "2")], "the prune was approved").await;
    scene.until_ready("shop", &fourth).await;

    // The way back to an approved one, and from there again, asks nobody.
    let back = moorline(scene, &["rollback", "shop", "--to", first, "--reason", "slow"]);
    assert_eq!(back.code, 0, "{}", back.words);
    until("the first one is applied again", async || {
        (scene.values().await.get("a").map(String::as_str) == Some("1")).then_some(())
    })
    .await;
    moorline(scene, &["release", "shop"]);
    scene.until_ready("shop", &fourth).await;

    fourth
}

/// A lost status asks again, and leaves what is in the cluster, until nobody has to be asked.
async fn lose_status(scene: &Scene, fourth: &str) {
    let lost = Patch::Merge(json!({"status": null}));
    scene.syncs().patch_status("shop", &PatchParams::default(), &lost).await.unwrap();
    let _daemon = scene.daemon();
    until_asked(scene, "Revision", fourth).await;
    scene.edit("a", "9").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.values().await.get("a").map(String::as_str), Some("9"), "nothing is approved");
    scene.patch_sync("shop", json!({"spec": {"approval": {"revisions": "Automatic"}}})).await;
    scene.until_values(&[file("a", "3"), file("b", "2")], "nobody is asked any more").await;

    // The revision that was applied until then counts as approved.
    scene.patch_sync("shop", json!({"spec": {"approval": {"revisions": "Required"}}})).await;
    scene.until_ready("shop", fourth).await;
    scene.edit("a", "9").await;
    scene.until_values(&[file("a", "3"), file("b", "2")], "drift is repaired").await;
}
