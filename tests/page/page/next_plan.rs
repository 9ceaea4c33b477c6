//! The plan of the newest commit of a Sync that does not take it up, made for who looks.
//!
//! In: a suspended Sync, and one that is held. Out: the plan, also after a restart; nothing is
//! written, and viewers of one moment share one plan.

use serde_json::json;

use super::{get, page_of, told};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};

/// The objects of a Sync: one that stays, one that changes, and a third of this name.
fn files(sync: &str, value: &str, third: &str) -> Vec<(String, String)> {
    let file = |name: &str, value: &str| {
        let name = format!("{sync}-{name}");
        (format!("{sync}/{name}.json"), config_map(&name, value))
    };
    vec![file("a", "one"), file("b", value), file(third, "one")]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_suspended_or_held_sync_is_made_for_who_looks() {
    let scene = Scene::on_sandbox("next-plan").await;
    let arguments = ["--leader-election=false", "--page", "127.0.0.1:0"];
    let daemon = scene.daemon_with(&arguments);
    let address = page_of(&daemon).await;
    let syncs = ["shop", "bank"];
    let first = scene.push(&syncs.map(|sync| files(sync, "one", "old")).concat());
    for sync in syncs {
        scene.sync(sync, json!({"path": sync, "interval": "1h"})).await;
        scene.until_ready(sync, &first).await;
    }
    let path = |sync: &str| format!("/api/v1/syncs/{}/{sync}/plan/next", scene.namespace);
    let answer = get(&address, &path("shop"));
    assert!(answer.status == 503 && answer.body.contains("neither suspended nor held"), "{}", answer.body);

    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("shop", "Suspended").await;
    let hold = json!({"metadata": {"annotations": {"moorline.dev/hold-revision": format!("main@{first}")}}});
    scene.patch_sync("bank", hold).await;
    let removed = syncs.map(|sync| format!("{sync}/{sync}-old.json"));
    scene.remove(&removed.each_ref().map(String::as_str));
    let second = scene.push(&syncs.map(|sync| files(sync, "two", "new")).concat());
    let before = scene.versions().await;
    let expect = |sync: &str| {
        let id = |name: &str| format!("ConfigMap {}/{sync}-{name}", scene.namespace);
        let lines = [("update", "b"), ("create", "new"), ("prune", "old")];
        json!({
            "revision": format!("main@{second}"), "created": 1, "changed": 1, "pruned": 1, "held": {}, "unobserved": [],
            "plan": lines.map(|(verb, name)| format!("{verb} {}", id(name))),
        })
    };
    let plan = async |address: &str, sync: &str| {
        let mut found = told(address, &path(sync), "the plan is made", |it| it["revision"].is_string()).await;
        assert!(found.as_object_mut().unwrap().remove("readAt").is_some_and(|time| time.is_string()));
        found
    };
    for sync in syncs {
        assert_eq!(plan(&address, sync).await, expect(sync));
    }
    let tab = get(&address, &format!("/syncs/{}/shop/plan", scene.namespace)).body;
    assert!(tab.contains("Show the plan of the newest commit"), "{tab}");

    // Viewers of one moment share one plan.
    scene.git.requests();
    for _ in 0..20 {
        assert_eq!(plan(&address, "shop").await, expect("shop"));
    }
    assert_eq!(scene.git.requests().len(), 0);

    // The next daemon has observed nothing of a suspended Sync.
    drop(daemon);
    let daemon = scene.daemon_with(&arguments);
    // Both daemons write into one log.
    let is_new = |next: &String| *next != address;
    let address = until("the next page is there", async || daemon.page().filter(is_new)).await;
    for sync in syncs {
        assert_eq!(plan(&address, sync).await, expect(sync));
    }
    assert_eq!(scene.versions().await, before, "nothing was written");
    for sync in syncs {
        assert_eq!(scene.status(sync, "/revision/applied").await, format!("main@{first}"));
    }
    scene.patch_sync("shop", json!({"spec": {"suspend": false}})).await;
    scene.until_ready("shop", &second).await;
    let answer = get(&address, &path("shop"));
    assert!(answer.status == 503 && answer.body.contains("neither suspended nor held"), "{}", answer.body);
}
