//! Objects that somebody has touched go from one Sync to another all the same: without their label, and with a port that has
//! another number. And what cannot be compared is left alone for a while.

use std::time::Duration;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::scene::{Scene, config_map};

/// Under another number it keeps the name that Git gives to ours, and both cannot be in one Service: no apply goes through.
#[tokio::test]
async fn a_named_port_is_ours_again_whoever_gave_it_another_number() {
    let Some(scene) = Scene::new("ports").await else { return };
    let service = |port: u16| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "web", "port": port}]},
        })
        .to_string()
    };
    let services: Api<DynamicObject> = scene.dynamic("", "v1", "Service");
    let until_only = async |port: u16| {
        until(&format!("its only port is {port}"), async || {
            let live = services.get("web").await.unwrap();
            let ports = live.data["spec"]["ports"].as_array()?.clone();
            (ports.len() == 1 && ports[0]["port"] == port && ports[0]["name"] == "web").then_some(())
        })
        .await;
    };
    let commit = scene.push(&[
        ("one/web.json".to_owned(), service(80)),
        ("two/map.json".to_owned(), config_map("map", "x")),
    ]);
    let _daemon = scene.daemon();
    for name in ["one", "two"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    let uid = services.get("web").await.unwrap().metadata.uid;
    let edit = json!({"spec": {"ports": [{"name": "web", "port": 81, "protocol": "TCP"}]}});
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    services.patch("web", &by, &Patch::Merge(&edit)).await.unwrap();
    until_only(80).await;
    scene.until_ready("one", &commit).await;

    // A commit that changes the number, and one that gives it to another Sync under a third.
    let commit = scene.push(&[("one/web.json".to_owned(), service(82))]);
    scene.until_ready("one", &commit).await;
    until_only(82).await;
    scene.work.git(&["rm", "-q", "one/web.json"]);
    let commit = scene.push(&[
        ("one/map.json".to_owned(), config_map("one", "x")),
        ("two/web.json".to_owned(), service(83)),
    ]);
    for name in ["one", "two"] {
        scene.until_ready(name, &commit).await;
    }
    until_only(83).await;
    assert_eq!(services.get("web").await.unwrap().metadata.uid, uid);
    scene.assert_calm("after that").await;
    for name in ["one", "two"] {
        scene.delete_sync(name).await;
    }
}

/// The port that the server has chosen on the nodes is known to anyone who is outside: it stays. A foreign Service, which nobody has
/// applied for a Sync, is left as it is.
#[tokio::test]
async fn the_number_on_the_nodes_stays_and_what_is_not_ours_is_left() {
    let Some(scene) = Scene::new("nodes").await else { return };
    let service = |name: &str, port: u16| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"name": "web", "port": port}]},
        })
    };
    let services: Api<DynamicObject> = scene.dynamic("", "v1", "Service");
    let ports = async |name: &str| services.get(name).await.unwrap().data["spec"]["ports"].clone();
    let commit = scene.push(&[("one/web.json".to_owned(), service("web", 80).to_string())]);
    let _daemon = scene.daemon();
    scene.sync("one", json!({"path": "one"})).await;
    scene.until_ready("one", &commit).await;
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    let chosen = ports("web").await[0]["nodePort"].clone();
    let edit = json!({"spec": {"ports": [{"name": "web", "port": 81, "nodePort": chosen}]}});
    services.patch("web", &by, &Patch::Merge(&edit)).await.unwrap();
    until("its port is 80", async || (ports("web").await[0]["port"] == 80).then_some(())).await;
    let port = json!([{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": chosen}]);
    assert_eq!(ports("web").await, port);
    // So it is where somebody has taken the label off as well, and the object is not seen as ours.
    scene.patch_sync("one", json!({"spec": {"suspend": true}})).await;
    scene.settle().await;
    let bare = json!({"metadata": {"labels": {"moorline.dev/sync": null}}, "spec": edit["spec"]});
    services.patch("web", &by, &Patch::Merge(&bare)).await.unwrap();
    scene.patch_sync("one", json!({"spec": {"suspend": false}})).await;
    until("its port is 80 again", async || (ports("web").await == port).then_some(())).await;
    // The kept part of the other's port goes with it.
    let commit = scene.push(&[("one/web.json".to_owned(), service("web", 82).to_string())]);
    scene.until_ready("one", &commit).await;
    let only = ports("web").await;
    assert_eq!((only.as_array().unwrap().len(), &only[0]["port"]), (1, &json!(82)), "{only}");

    let foreign = serde_json::from_value(service("foreign", 81)).unwrap();
    services.create(&kube::api::PostParams::default(), &foreign).await.unwrap();
    let before = services.get("foreign").await.unwrap().metadata.resource_version;
    scene.push(&[("one/foreign.json".to_owned(), service("foreign", 80).to_string())]);
    until("it is refused", async || {
        scene.status("one", "").await.to_string().contains("Duplicate value").then_some(())
    })
    .await;
    assert_eq!(services.get("foreign").await.unwrap().metadata.resource_version, before);
    scene.delete_sync("one").await;
}

/// Without its label the Sync that releases it cannot see it, and would never release it.
#[tokio::test]
async fn an_object_whose_label_somebody_took_off_moves_all_the_same() {
    let Some(scene) = Scene::new("unlabelled").await else { return };
    let file = |path: &str, name: &str, value: &str| (path.to_owned(), config_map(name, value));
    let commit = scene.push(&[
        file("from/a.json", "a", "x"),
        file("from/b.json", "b", "x"),
        file("to/c.json", "c", "x"),
    ]);
    let _daemon = scene.daemon();
    for name in ["from", "to"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    let uid = scene.maps().get("b").await.unwrap().metadata.uid;
    // Nobody puts it on again meanwhile.
    scene.patch_sync("from", json!({"spec": {"suspend": true}})).await;
    scene.settle().await;
    let bare = json!({"metadata": {"labels": {"moorline.dev/sync": null}}});
    scene.maps().patch("b", &PatchParams::default(), &Patch::Merge(&bare)).await.unwrap();
    scene.work.git(&["rm", "-q", "from/b.json"]);
    let commit = scene.push(&[file("to/b.json", "b", "y")]);
    scene.patch_sync("from", json!({"spec": {"suspend": false}})).await;
    for name in ["from", "to"] {
        scene.nudge(name, "moved").await;
        scene.until_ready(name, &commit).await;
    }
    let moved = scene.maps().get("b").await.unwrap();
    assert_eq!(moved.metadata.uid, uid);
    assert_eq!(moved.data.unwrap()["key"], "y");
    for name in ["from", "to"] {
        scene.delete_sync(name).await;
    }
}

/// If drift is reported and not repaired, a dry run shows what an apply would make of the object. A server that refuses to say is
/// asked again after a while, and not at once.
#[tokio::test]
async fn what_cannot_be_compared_is_not_asked_about_all_the_time() {
    let Some(scene) = Scene::new("compared").await else { return };
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "web", "port": 80}]},
    });
    let commit = scene.push(&[("web.json".to_owned(), service.to_string())]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"drift": {"mode": "Report"}})).await;
    scene.until_ready("shop", &commit).await;
    let services: Api<DynamicObject> = scene.dynamic("", "v1", "Service");
    scene.proxy.take_requests();
    let edit = json!({"spec": {"ports": [{"name": "web", "port": 81, "protocol": "TCP"}]}});
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    services.patch("web", &by, &Patch::Merge(&edit)).await.unwrap();
    let mut trials = 0;
    let is_trial = |one: &RecordedRequest| one.path.contains("/services/web") && one.query.contains("dryRun");
    until("it is compared", async || {
        trials += scene.proxy.take_requests().iter().filter(|one| is_trial(one)).count();
        (trials > 0).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    trials += scene.proxy.take_requests().iter().filter(|one| is_trial(one)).count();
    assert!(trials <= 3, "{trials} within five seconds");
    let live = services.get("web").await.unwrap();
    assert_eq!(live.data["spec"]["ports"][0]["port"], 81, "nothing is undone");
}

/// A Sync that reads an object that is gone, before its watch says so, waits for its watch.
#[tokio::test]
async fn what_is_gone_before_its_watch_tells_is_not_asked_about_all_the_time() {
    let Some(scene) = Scene::new("untold").await else { return };
    let commit = scene.push(&[("map.json".to_owned(), config_map("map", "x"))]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"drift": {"mode": "Report"}})).await;
    scene.until_ready("shop", &commit).await;
    let is_look = |one: &RecordedRequest| one.path.ends_with("/configmaps/map");
    let is_trial = move |one: &RecordedRequest| is_look(one) && one.query.contains("dryRun");
    scene.proxy.rule(move |one| if is_trial(one) { Fate::Answer(500, None) } else { Fate::Pass });
    let edit = json!({"data": {"key": "y"}});
    scene.maps().patch("map", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    until("it is compared", async || scene.proxy.take_requests().iter().any(is_trial).then_some(())).await;
    // Until the object is gone no comparison succeeds, or nobody would look at it again.
    let is_told = |one: &RecordedRequest| one.method == "GET" && one.path.ends_with("/configmaps");
    scene
        .proxy
        .rule(move |one| if is_told(one) || is_trial(one) { Fate::Answer(500, None) } else { Fate::Pass });
    scene.proxy.cut_watches();
    scene.maps().delete("map", &DeleteParams::default()).await.unwrap();
    scene.proxy.rule(move |one| if is_told(one) { Fate::Answer(500, None) } else { Fate::Pass });
    scene.proxy.take_requests();
    let mut looks = 0;
    until("somebody looks at it", async || {
        looks += scene.proxy.take_requests().iter().filter(|one| is_look(one)).count();
        (looks > 0).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    looks += scene.proxy.take_requests().iter().filter(|one| is_look(one)).count();
    assert!(looks <= 20, "{looks} looks within five seconds");
    scene.proxy.heal();
    scene.delete_sync("shop").await;
}
