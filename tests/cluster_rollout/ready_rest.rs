//! A Sync's report of the health of its objects when they come to their end, when nothing comes further, when statuses
//! cannot be read, and when the Sync itself is suspended, made again or waited for.

use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, PropagationPolicy};
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{
    condition, define, ended, healthy, object, ready, report, until_healthy, waiting,
};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

fn job(command: &str) -> (String, String) {
    let containers = json!([{"name": "main", "image": "example.com/main:1", "command": [command]}]);
    let body = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
        "spec": {"managedBy": "example.com/test",
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
    });
    ("job.json".to_owned(), body.to_string())
}

#[tokio::test]
async fn a_job_that_failed_is_no_better_for_being_cleared_away() {
    let Some(scene) = Scene::new("failed-job").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    scene.push(&[job("one"), ("a.json".into(), config_map("a", "1"))]);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    until("the Job is there", async || jobs.get_opt("migrate").await.unwrap()).await;
    report(&jobs, "migrate", ended(false)).await;
    until_healthy(&scene, "shop", "False", "Degraded").await;
    scene.proxy.take_requests();
    // The one who clears it away does it by its own deadline, or by hand.
    let params =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    jobs.delete("migrate", &params).await.unwrap();
    until("the Job is gone", async || jobs.get_opt("migrate").await.unwrap().is_none().then_some(())).await;
    tokio::time::sleep(QUIET_TIME).await;
    let said = scene.proxy.take_requests().into_iter().filter(|one| one.path.ends_with("/status"));
    assert!(!said.into_iter().any(|one| one.text().contains(r#""reason":"Healthy""#)), "not for a moment");
    let still = async |when: &str| {
        scene.settle().await;
        let told = condition(&scene, "shop", "Healthy").await;
        assert_eq!(
            (&told["status"], &told["reason"]),
            (&json!("False"), &json!("Degraded")),
            "{when}: {told}"
        );
        assert!(told["message"].as_str().unwrap().contains("migrate"), "{when}: {told}");
        assert_eq!(condition(&scene, "shop", "Ready").await["status"], "False", "{when}");
    };
    still("gone").await;
    assert_eq!(scene.status("shop", "/finished/0/failed").await, true);
    drop(daemon);
    let _daemon = scene.daemon();
    let commit = scene.push(&[("a.json".into(), config_map("a", "2"))]);
    scene.nudge("shop", "others change").await;
    until("others change", async || {
        scene.status("shop", "/revision/applied").await.as_str()?.ends_with(&commit).then_some(())
    })
    .await;
    still("after a restart").await;
    assert!(jobs.get_opt("migrate").await.unwrap().is_none(), "it has run, and runs once");

    let commit = scene.push(&[job("two")]);
    scene.nudge("shop", "the Job changes").await;
    until("the Job is there", async || jobs.get_opt("migrate").await.unwrap()).await;
    report(&jobs, "migrate", ended(true)).await;
    scene.until_ready("shop", &commit).await;
    until_healthy(&scene, "shop", "True", "Healthy").await;
    scene.assert_calm("once it is done").await;
}

#[tokio::test]
async fn alternating_health_is_reported_a_few_times_a_minute() {
    let Some(scene) = Scene::new("toggles").await else { return };
    let (lamps, _daemon, _) = healthy(&scene, "Lamp").await;
    scene.settle().await;
    for at in 0..20 {
        let mut failed = ready("False", "");
        failed["conditions"][0]["type"] = "Failed".into();
        failed["conditions"][0]["status"] = "True".into();
        report(&lamps, "one", if at % 2 == 0 { failed } else { ready("True", "") }).await;
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    }
    let asked = scene.proxy.take_requests();
    let statuses =
        asked.iter().filter(|one| one.writes() && one.path.ends_with("/syncs/shop/status")).count();
    let events = asked.iter().filter(|one| one.writes() && one.path.ends_with("/events")).count();
    println!("20 changes to and fro: {statuses} statuses, {events} Events");
    assert!((4..=12).contains(&statuses), "{statuses} statuses");
    assert!(events <= 12, "{events} Events");
}

#[tokio::test]
async fn what_comes_no_further_is_degraded_after_its_time() {
    let Some(scene) = Scene::new("stalls").await else { return };
    let pumps = define(&scene, "Pump").await;
    let commit = scene.push(&[object("Pump", "one")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({"health": {"timeout": "5s"}})).await;
    until("it is there", async || pumps.get_opt("one").await.unwrap()).await;
    let begun = Instant::now();
    report(&pumps, "one", ready("False", "it fills")).await;
    let message = until_healthy(&scene, "shop", "False", "Degraded").await;
    let took = begun.elapsed();
    assert!(message.contains("it fills"), "{message}");
    assert!(took > Duration::from_secs(4) && took < under_load(Duration::from_secs(20)), "{took:?}");
    scene.assert_calm("nobody asks again what nobody has changed").await;
    report(&pumps, "one", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
}

#[tokio::test]
async fn a_status_that_cannot_be_read_is_unknown_and_not_healthy() {
    let Some(scene) = Scene::new("unread").await else { return };
    let (wheels, _daemon, commit) = healthy(&scene, "Wheel").await;
    scene.settle().await;
    scene.proxy.rule(|one| match one.method == "GET" && one.path.ends_with("/wheels/one") {
        true => Fate::Answer(500, None),
        false => Fate::Pass,
    });
    report(&wheels, "one", ready("True", "still")).await;
    let message = until_healthy(&scene, "shop", "Unknown", "HealthUnknown").await;
    assert!(message.contains("its status cannot be read"), "{message}");
    let told = condition(&scene, "shop", "Ready").await;
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("HealthUnknown")), "{told}");
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
}

#[tokio::test]
async fn what_happened_while_a_sync_was_suspended_counts_when_it_goes_on() {
    let Some(scene) = Scene::new("resumed").await else { return };
    let (doors, _daemon, commit) = healthy(&scene, "Door").await;
    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("shop", "Suspended").await;
    scene.settle().await;
    report(&doors, "one", ready("False", "it jams")).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert!(
        !scene.proxy.take_requests().iter().any(|one| one.path.ends_with("/doors/one")),
        "nothing is read meanwhile"
    );
    scene.patch_sync("shop", json!({"spec": {"suspend": false}})).await;
    until("what happened is reported", async || {
        let told = condition(&scene, "shop", "Ready").await;
        // Never ready on the way, by what was known before.
        assert_eq!(told["status"], "False", "{told}");
        told["message"].as_str()?.contains("it jams").then_some(())
    })
    .await;
    report(&doors, "one", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
}

/// The Sync of a name, once it is another one than before and says something.
async fn made_anew(scene: &Scene, before: &DynamicObject) -> Value {
    until("the new one is served", async || {
        let sync = scene.syncs().get("shop").await.unwrap();
        assert_ne!(sync.metadata.uid, before.metadata.uid);
        sync.data.pointer("/status/revision/healthy").cloned()
    })
    .await
}

#[tokio::test]
async fn a_sync_made_anew_while_nobody_looked_is_another_sync() {
    let Some(scene) = Scene::new("anew").await else { return };
    let (_, _daemon, commit) = healthy(&scene, "Bell").await;
    let before = scene.syncs().get("shop").await.unwrap();
    scene.settle().await;
    scene.proxy.rule(|one| match one.method == "GET" && one.path.ends_with("/syncs") {
        true => Fate::Answer(503, None),
        false => Fate::Pass,
    });
    scene.proxy.cut_watches();
    scene.delete_sync("shop").await;
    waiting(&scene, "shop", json!({})).await;
    tokio::time::sleep(QUIET_TIME).await;
    // The server has forgotten what happened meanwhile, and lists what is there.
    let goes_on = |one: &RecordedRequest| one.is_watch() && one.path.ends_with("/syncs");
    scene.proxy.first(1, goes_on, Fate::Answer(410, None));
    let healthy = made_anew(&scene, &before).await;
    assert!(healthy.as_str().unwrap().ends_with(&commit), "{healthy}");
    scene.until_ready("shop", &commit).await;
    until_healthy(&scene, "shop", "True", "Healthy").await;
    assert_eq!(scene.proxy.take_requests().iter().filter(|one| one.method == "DELETE").count(), 0);
}

/// Waits until a Sync has applied a commit.
async fn until_applied(scene: &Scene, sync: &str, commit: &str) {
    until(&format!("{sync} has applied it"), async || {
        scene.status(sync, "/revision/applied").await.as_str()?.ends_with(commit).then_some(())
    })
    .await;
}

async fn value(scene: &Scene) -> Option<String> {
    scene.values().await.remove("a")
}

#[tokio::test]
async fn who_depends_on_a_sync_that_falls_ill_waits_with_the_next_commit() {
    let Some(scene) = Scene::new("falls-ill").await else { return };
    let wells = define(&scene, "Well").await;
    let second = |value: &str| ("second/a.json".to_owned(), config_map("a", value));
    let (file, text) = object("Well", "one");
    let commit = scene.push(&[(format!("first/{file}"), text), second("one")]);
    let _daemon = scene.daemon();
    waiting(&scene, "first", json!({"path": "first"})).await;
    waiting(&scene, "second", json!({"path": "second", "dependsOn": [{"name": "first"}]})).await;
    until("it is there", async || wells.get_opt("one").await.unwrap()).await;
    report(&wells, "one", ready("True", "")).await;
    scene.until_ready("second", &commit).await;
    report(&wells, "one", ready("False", "it is dry")).await;
    scene.until_reason("first", "Progressing").await;
    // The applied objects stay, and is held.
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(condition(&scene, "second", "Ready").await["status"], "True");
    let next = scene.push(&[second("two")]);
    scene.nudge("first", "next").await;
    scene.nudge("second", "next").await;
    until_applied(&scene, "first", &next).await;
    scene.until_reason("second", "DependencyNotReady").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("one"));
    scene.edit("a", "by hand").await;
    until("the edit is repaired", async || (value(&scene).await? == "one").then_some(())).await;
    // A suspended Sync does not get there either.
    scene.patch_sync("first", json!({"spec": {"suspend": true}})).await;
    report(&wells, "one", ready("True", "")).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value(&scene).await.as_deref(), Some("one"));
    scene.patch_sync("first", json!({"spec": {"suspend": false}})).await;
    scene.until_ready("second", &next).await;
    assert_eq!(value(&scene).await.as_deref(), Some("two"));
}
