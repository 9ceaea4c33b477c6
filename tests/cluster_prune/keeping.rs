//! Rules of a Sync while it holds the cluster to Git, on a real API server: the order of waves, what people ask
//! for, what is written down first, and what is reported.

mod running;
mod trouble;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{Scene, config_map, many};

/// A ConfigMap in a wave.
fn in_wave(name: &str, value: &str, wave: &str) -> (String, String) {
    let annotation = format!("\"annotations\":{{\"moorline.dev/wave\":\"{wave}\"}},\"name\"");
    (format!("{name}.json"), config_map(name, value).replace("\"name\"", &annotation))
}

fn file(name: &str, value: &str) -> (String, String) {
    (format!("{name}.json"), config_map(name, value))
}

/// Returns the problem of each object, as its name and the reason.
async fn said(scene: &Scene) -> Vec<String> {
    let problems = scene.status("shop", "/problems").await;
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let name = |one: &Value| text(one, "object").rsplit('/').next().unwrap_or_default().to_owned();
    let problems = problems.as_array().cloned().unwrap_or_default();
    let mut said: Vec<String> =
        problems.iter().map(|one| format!("{} {}", name(one), text(one, "reason"))).collect();
    said.sort();
    said
}

/// The writes about objects since this was asked last, as method and name.
fn writes(scene: &Scene) -> Vec<String> {
    let asked = scene.proxy.take_requests();
    let name = |one: &RecordedRequest| one.path.rsplit('/').next().unwrap_or_default().to_owned();
    asked
        .iter()
        .filter(|one| one.writes_object())
        .map(|one| format!("{} {}", one.method, name(one)))
        .collect()
}

#[tokio::test]
async fn what_fails_holds_later_waves_and_prunes_and_no_peer() {
    let Some(scene) = Scene::new("waves").await else { return };
    // A peer that is applied after ConfigMaps.
    let service = |port: u16| {
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peer"},
            "spec": {"ports": [{"port": port}]}});
        ("peer.json".to_owned(), body.to_string())
    };
    let commit =
        scene.push(&[file("a-0", "one"), in_wave("late", "one", "1"), file("gone", "one"), service(1)]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let is = async |name: &str, value: Option<&str>| {
        assert_eq!(scene.values().await.get(name).map(String::as_str), value, "{name}");
    };
    scene.proxy.take_requests();
    // No API server takes a key with a blank in it.
    let invalid = config_map("bad", "two").replace("\"key\"", "\"no key\"");
    scene.work.git(&["rm", "-q", "gone.json"]);
    let two = [file("a-0", "two"), in_wave("late", "two", "1"), service(2)];
    scene.push(&[&two[..], &[("bad.json".to_owned(), invalid)]].concat());
    scene.nudge("shop", "invalid").await;
    scene.until_reason("shop", "ApplyFailed").await;
    assert_eq!(said(&scene).await, ["bad Invalid", "gone WaitingForObject", "late WaitingForObject"]);
    is("a-0", Some("two")).await;
    let mut written = writes(&scene);
    written.sort();
    assert_eq!(written, ["PATCH a-0", "PATCH bad", "PATCH peer"], "peers, and what fails, each once");
    // Longer than the longest pause between two attempts.
    scene.assert_calm("while the manifest is wrong").await;

    // Now it is the cluster that does not take it, and is asked again and again.
    let is_bad = |asked: &RecordedRequest| asked.writes() && asked.path.ends_with("/bad");
    scene.proxy.rule(move |asked| if is_bad(asked) { Fate::Answer(500, None) } else { Fate::Pass });
    let commit = scene.push(&[file("bad", "two")]);
    scene.nudge("shop", "refused").await;
    let mut attempts = Vec::new();
    until("it is tried again and again", async || {
        attempts.extend(writes(&scene));
        (attempts.len() > 6).then_some(())
    })
    .await;
    assert!(attempts.iter().all(|it| it == "PATCH bad"), "{attempts:?}");
    assert_eq!(said(&scene).await, ["bad ServerError", "gone WaitingForObject", "late WaitingForObject"]);
    is("late", Some("one")).await;
    is("gone", Some("one")).await;

    writes(&scene);
    scene.proxy.heal();
    scene.until_ready("shop", &commit).await;
    let expect = [file("a-0", "two"), file("bad", "two"), file("late", "two")];
    scene.until_values(&expect, "all goes on").await;
    let written = writes(&scene);
    let order: Vec<&str> = written.iter().map(String::as_str).skip_while(|it| *it == "PATCH bad").collect();
    assert_eq!(order, ["PATCH late", "DELETE gone"], "{written:?}");
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn what_people_ask_to_leave_alone_is_left_alone_by_the_next_daemon() {
    let Some(scene) = Scene::new("left-alone").await else { return };
    let commit = scene.push(&["paused", "off", "kept", "other"].map(|name| file(name, "one")));
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    drop(daemon);
    let change = async |name: &str, key: &str, switch: Value, value: &str| {
        let annotations = json!({format!("moorline.dev/{key}"): switch});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}, "data": {"key": value}}));
        let by = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
        scene.maps().patch(name, &by, &patch).await.unwrap();
    };
    let asked_for = [
        ("paused", "pause-until", "2099-01-01T00:00:00Z"),
        ("off", "reconcile", "disabled"),
        ("kept", "prune", "disabled"),
    ];
    for (name, key, value) in asked_for {
        change(name, key, json!(value), "by hand").await;
    }
    let before = scene.versions().await;
    scene.work.git(&["rm", "-q", "kept.json"]);
    let commit = scene.push(&["paused", "off", "other"].map(|name| file(name, "two")));

    scene.proxy.take_requests();
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    let expect = [("kept", "by hand"), ("off", "by hand"), ("other", "two"), ("paused", "by hand")];
    let expect = expect.map(|(name, value)| file(name, value));
    scene.until_values(&expect, "the other one is applied").await;
    until("it is said of each", async || {
        (said(&scene).await == ["kept PruneDisabled", "off ReconcileDisabled", "paused Paused"]).then_some(())
    })
    .await;
    assert_eq!(writes(&scene), ["PATCH other"]);
    scene.assert_calm("while people ask for it").await;
    let now = scene.versions().await;
    for (name, _, _) in asked_for {
        assert_eq!(now[name], before[name], "{name}");
    }

    for (name, key, _) in asked_for {
        change(name, key, Value::Null, "by hand again").await;
    }
    let expect = ["off", "other", "paused"].map(|name| file(name, "two"));
    scene.until_values(&expect, "nobody asks for it any more").await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("after it").await;
    scene.delete_sync("shop").await;
}

/// The successor of a daemon that died in the middle knows from the status where to look.
#[tokio::test]
async fn where_objects_may_be_is_written_down_before_the_first_of_them_is_there() {
    let Some(scene) = Scene::new("written-first").await else { return };
    let commit = scene.push(&many(2, "one"));
    let mut daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    assert!(!scene.status("shop", "/scope").await.to_string().contains("Secret"));
    let is_secret =
        |asked: &RecordedRequest| asked.method == "PATCH" && asked.path.ends_with("/secrets/late");
    let names_it = |one: &RecordedRequest| {
        one.writes() && one.path.ends_with("/syncs/shop/status") && one.text().contains("Secret")
    };
    scene.proxy.take_requests();
    let takes = Duration::from_secs(1);
    scene.proxy.rule(move |asked| match (names_it(asked), is_secret(asked)) {
        (true, _) => Fate::Delay(takes),
        (_, true) => Fate::KillAfter,
        (false, false) => Fate::Pass,
    });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}}).to_string();
    scene.push(&[("late.json".to_owned(), secret)]);
    scene.nudge("shop", "more").await;
    until("it is killed", async || scene.proxy.has_struck().then_some(())).await;
    daemon.running.child.wait().unwrap();
    let asked = scene.proxy.take_requests();
    let at = |fits: fn(&RecordedRequest) -> bool| asked.iter().find(|one| fits(one)).map(|one| one.at);
    let (written, applied) = (at(names_it).expect("it is written"), at(is_secret).expect("it is applied"));
    assert!(applied - written >= takes, "it is applied when that stands: {:?}", applied - written);
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    assert!(secrets.get_opt("late").await.unwrap().is_some(), "it was applied");

    let commit = scene.remove(&["late.json"]);
    scene.proxy.heal();
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    scene.until_ready("shop", &commit).await;
    until("what left Git is gone", async || secrets.get_opt("late").await.unwrap().is_none().then_some(()))
        .await;
    scene.until_values(&many(2, "one"), "all others stay").await;
    assert_eq!(writes(&scene).iter().filter(|it| it.starts_with("DELETE")).count(), 1);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn an_object_of_others_is_adopted_and_its_manager_named() {
    let Some(scene) = Scene::new("adopted").await else { return };
    let theirs: ConfigMap = serde_json::from_str(&config_map("a-0", "theirs")).unwrap();
    let by = PostParams { field_manager: Some("kubectl-create".to_owned()), ..PostParams::default() };
    let before = scene.maps().create(&by, &theirs).await.unwrap().metadata.uid;
    let commit = scene.push(&many(1, "ours"));
    let mark = AuditMark::set(&scene.plane).await;
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(1, "ours"), "Git's value stands").await;
    scene.assert_calm("once it is ours").await;
    let tally = mark.requests().await.by_user(MOORLINE).in_namespace(&scene.namespace);
    let tally =
        tally.filter(|it| it.resource == "configmaps" && it.verb != "watch" && it.verb != "list").tally();
    assert_eq!(tally.into_iter().collect::<Vec<_>>(), [("patch configmaps".to_owned(), 2)]);
    assert_eq!(scene.maps().get("a-0").await.unwrap().metadata.uid, before);
    let log = daemon.log();
    let told = log.lines().find(|line| line.contains(": adopted ")).expect("it is told");
    assert!(told.contains("a-0") && told.contains("kubectl-create"), "{told}");
    scene.delete_sync("shop").await;
}
