//! Fields that others claim, on a real API server: who has them, whose value stands, and what is asked for it.

pub(crate) mod ground;
mod namespaces;
mod other_syncs;
mod recreate;
mod switches;

use ground::{APPLY, Ground, MERGE, config_map, deployment, expect, moment};
use serde_json::{Value, json};

fn managers(live: &Value, field: &str) -> Vec<String> {
    let pointer =
        format!("/fieldsV1/{}", field.split('.').map(|it| format!("f:{it}")).collect::<Vec<_>>().join("/"));
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array).expect("entries");
    let has = |entry: &&Value| entry.pointer(&pointer).is_some();
    let mut names: Vec<String> =
        entries.iter().filter(has).filter_map(|entry| Some(entry["manager"].as_str()?.to_owned())).collect();
    names.sort();
    names
}

fn problem(status: &Value, reason: &str) -> String {
    let problems = status.get("problems").and_then(Value::as_array).cloned().unwrap_or_default();
    let found = problems.iter().find(|it| it["reason"] == reason);
    let found = found.unwrap_or_else(|| panic!("no {reason} in {status}"));
    found["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn with_fail_a_conflict_holds_the_object_and_nothing_else() {
    let Some(ground) = Ground::new("fail").await else { return };
    ground.create("robot", &ground.maps(), config_map("a", json!({"key": "theirs"}))).await;
    let mark = ground.mark().await;
    let first = ground.push(&[config_map("a", json!({"key": "ours"})), config_map("b", json!({}))]);
    ground.sync(json!({"conflicts": "Fail"})).await;
    let status = ground.ready(&first, "ObjectsHeld").await;
    let message = problem(&status, "Conflict");
    assert!(message.contains("data.key") && message.contains("robot"), "{message}");
    assert_eq!(status["objects"]["held"], 1);
    moment(2500).await;
    assert_eq!(ground.tally(&mark).await, expect([("patch configmaps", 2)]), "it is not tried in a loop");
    let live = ground.get(&format!("{}/a", ground.maps())).await.expect("it stays");
    assert_eq!(live["data"]["key"], "theirs");

    let second = ground.push(&[config_map("a", json!({"key": "theirs"}))]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
}

#[tokio::test]
async fn with_yield_only_the_fields_of_others_are_left_to_them() {
    let Some(ground) = Ground::new("yield").await else { return };
    let mut theirs = config_map("a", json!({"key": "theirs", "more": "theirs"}));
    ground.patch("robot", &format!("{}/a", ground.maps()), APPLY, theirs.clone()).await;
    let mut web = deployment(json!({}));
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "web:theirs".into();
    ground.create("robot", &ground.deployment().replace("/web", ""), web).await;
    let mark = ground.mark().await;
    let first = ground.push(&[
        config_map("a", json!({"key": "ours", "own": "ours"})),
        deployment(json!({"minReadySeconds": 7})),
    ]);
    ground.sync(json!({"conflicts": "Yield"})).await;
    let status = ground.ready(&first, "Applied").await;
    assert_eq!(status["revision"]["applied"], status["revision"]["seen"]);
    let message = problem(&status, "FieldYielded");
    assert!(message.contains("data.key") && message.contains("robot"), "{message}");
    moment(1000).await;
    let tally = expect([("patch configmaps", 2), ("patch deployments.apps", 2)]);
    assert_eq!(ground.tally(&mark).await, tally, "a conflict and an apply without it");
    let path = format!("{}/a", ground.maps());
    let live = ground.get(&path).await.expect("the ConfigMap");
    assert_eq!(live["data"], json!({"key": "theirs", "more": "theirs", "own": "ours"}));
    assert_eq!(managers(&live, "data.key"), ["robot"]);
    let web = ground.get(&ground.deployment()).await.expect("the Deployment");
    assert_eq!(web.pointer("/spec/template/spec/containers/0/image").expect("an image"), "web:theirs");
    assert_eq!(web["spec"]["minReadySeconds"], 7);

    theirs["data"] = json!({"more": "theirs"});
    ground.patch("robot", &path, APPLY, theirs).await;
    let is_ours = |live: &Value| live["data"]["key"] == "ours";
    ground.until("what is free is claimed", &path, is_ours).await;
}

#[tokio::test]
async fn an_ignored_field_never_changes_by_our_doing() {
    let Some(ground) = Ground::new("ignore").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let mark = ground.mark().await;
    let ignore = json!([{"target": {"kind": "Deployment"}, "paths": ["/spec/replicas"]}]);
    ground.change_sync(json!({"spec": {"ignoreFields": ignore}})).await;
    let path = ground.deployment();
    let let_go = |live: &Value| managers(live, "spec.replicas") == ["moorline-handover"];
    let live = ground.until("the field is handed over", &path, let_go).await;
    assert_eq!(live["spec"]["replicas"], 3);
    moment(500).await;
    let tally = expect([("get deployments.apps", 1), ("patch deployments.apps", 2)]);
    assert_eq!(ground.tally(&mark).await, tally, "the live value is read, claimed, and then let go");

    ground.patch("kubectl-scale", &format!("{path}/scale"), MERGE, json!({"spec": {"replicas": 5}})).await;
    moment(1000).await;
    let second = ground.push(&[deployment(json!({"replicas": 4, "minReadySeconds": 7}))]);
    ground.nudge("second").await;
    let committed = |live: &Value| live["spec"]["minReadySeconds"] == 7;
    let live = ground.until("the rest is applied", &path, committed).await;
    assert_eq!(live["spec"]["replicas"], 5);
    ground.ready(&second, "Applied").await;

    ground.change_sync(json!({"spec": {"ignoreFields": null}})).await;
    ground.until("it is ours again", &path, |live| live["spec"]["replicas"] == 4).await;
}

#[tokio::test]
async fn fields_ignored_one_after_the_other_all_keep_their_values() {
    let Some(ground) = Ground::new("ignore-more").await else { return };
    let web = |replicas: u32, image: &str| {
        let mut web = deployment(json!({"replicas": replicas, "minReadySeconds": 7}));
        web["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        web
    };
    let map = config_map("a", json!({"a": "1", "b": "2", "own": "3"}));
    let first = ground.push(&[web(5, "web:1"), map]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let (image, ready) = ("/spec/template/spec/containers/0/image", "/spec/minReadySeconds");
    let ignore = async |deployment: &[&str], config_map: &[&str]| {
        let rules = json!([
            {"target": {"kind": "Deployment"}, "paths": deployment},
            {"target": {"kind": "ConfigMap"}, "paths": config_map},
        ]);
        ground.change_sync(json!({"spec": {"ignoreFields": rules}})).await;
    };
    let (path, map) = (ground.deployment(), format!("{}/a", ground.maps()));
    let is_left = |live: &Value, field: &str| managers(live, field) == ["moorline-handover"];

    ignore(&["/spec/replicas", image], &["/data/a"]).await;
    ground.until("the number is handed over", &path, |live| is_left(live, "spec.replicas")).await;
    ground.until("the first key is handed over", &map, |live| is_left(live, "data.a")).await;
    let second = ground.push(&[web(4, "web:2")]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;

    ignore(&["/spec/replicas", image, ready], &["/data/a", "/data/b"]).await;
    let live = ground.until("another field is", &path, |live| is_left(live, "spec.minReadySeconds")).await;
    assert!(is_left(&live, "spec.replicas"), "{:?}", managers(&live, "spec.replicas"));
    ground.until("the second key is", &map, |live| is_left(live, "data.b")).await;
    moment(1000).await;
    let live = ground.get(&path).await.expect("the Deployment");
    assert_eq!((&live["spec"]["replicas"], &live["spec"]["minReadySeconds"]), (&json!(5), &json!(7)));
    assert_eq!(live.pointer(image).expect("an image"), "web:1");
    let live = ground.get(&map).await.expect("the ConfigMap");
    assert_eq!(live["data"], json!({"a": "1", "b": "2", "own": "3"}));

    ignore(&[image, ready], &["/data/a", "/data/b"]).await;
    let live = ground.until("one is ours again", &path, |live| live["spec"]["replicas"] == 4).await;
    assert_eq!(live.pointer(image).expect("an image"), "web:1");
    assert_eq!(live["spec"]["minReadySeconds"], 7);
}

#[tokio::test]
async fn a_field_dropped_from_git_goes_from_under_kubectl_too() {
    let Some(ground) = Ground::new("removed").await else { return };
    let path = format!("{}/a", ground.maps());
    ground
        .create("kubectl-create", &ground.maps(), config_map("a", json!({"a": "1", "b": "1", "c": "1"})))
        .await;
    ground.patch("robot", &path, APPLY, config_map("a", json!({"c": "1"}))).await;
    let first = ground.push(&[config_map("a", json!({"a": "1", "b": "1", "c": "1"}))]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let mark = ground.mark().await;
    let second = ground.push(&[config_map("a", json!({"a": "1"}))]);
    ground.nudge("second").await;
    let live = ground.until("b is gone", &path, |live| live["data"].get("b").is_none()).await;
    assert_eq!(live["data"], json!({"a": "1", "c": "1"}));
    let message = problem(&ground.ready(&second, "Applied").await, "FieldRemains");
    assert!(message.contains("data.c") && message.contains("robot"), "{message}");
    moment(1000).await;
    let tally = expect([("get configmaps", 1), ("patch configmaps", 2)]);
    assert_eq!(ground.tally(&mark).await, tally, "an apply, a look, and a removal");
}

#[tokio::test]
async fn what_the_server_remarks_stands_in_the_status() {
    let Some(ground) = Ground::new("remarks").await else { return };
    let endpoints = |ip: &str| {
        json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "old"},
            "subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": 80}]}],
        })
    };
    let first = ground.push(&[endpoints("192.0.2.1"), config_map("a", json!({}))]);
    ground.sync(json!({})).await;
    let message = problem(&ground.ready(&first, "Applied").await, "Warning");
    assert!(message.contains("Endpoints is deprecated"), "{message}");

    let second = ground.push(&[config_map("a", json!({"more": "1"}))]);
    ground.nudge("second").await;
    let again = problem(&ground.ready(&second, "Applied").await, "Warning");
    assert_eq!(again, message, "it was not applied again, and is what it was");
}
