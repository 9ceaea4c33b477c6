//! Things that a Sync never does unasked, and those that it does in order, on a real API server.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams};
use moorline_test_support::audit::{AuditMark, Request};
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::rest::{send_request, tenant};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};
use serde_json::json;

async fn deletes(mark: &AuditMark) -> usize {
    mark.requests().await.by_user(MOORLINE).filter(|request| request.verb == "delete").as_slice().len()
}

#[tokio::test]
async fn more_than_the_budget_waits_for_an_approval() {
    let Some(scene) = Scene::new("budget").await else { return };
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    let commit = scene.push(&many(16, "one"));
    scene.nudge("shop", "all").await;
    scene.until_ready("shop", &commit).await;
    let mark = AuditMark::set(&scene.plane).await;
    let files: Vec<String> = (4..16).map(|at| format!("a-{at}.json")).collect();
    scene.remove(&files.iter().map(String::as_str).collect::<Vec<_>>());
    scene.nudge("shop", "less").await;
    scene.until_reason("shop", "PruneHeld").await;
    scene.assert_calm("while it waits").await;
    assert_eq!((deletes(&mark).await, scene.values().await.len()), (0, 16));

    let word = scene.status("shop", "/approval/hash").await;
    let word = word.as_str().expect("what would approve it").to_owned();
    let approve = |word: &str| json!({"metadata": {"annotations": {"moorline.dev/approve": word}}});
    scene.patch_sync("shop", approve("anything else")).await;
    let answer = format!("\"anything else\", which does not match the pending approval {word}");
    until("that it approves nothing is said", async || {
        let message = scene.status("shop", "/conditions/0/message").await;
        message.as_str().is_some_and(|it| it.contains(&answer)).then_some(())
    })
    .await;
    scene.assert_calm("after an approval of something else").await;
    assert_eq!(deletes(&mark).await, 0);
    scene.patch_sync("shop", approve(&word)).await;
    scene.until_values(&many(4, "one"), "what was approved is gone").await;
    assert_eq!(deletes(&mark).await, 12);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_commit_without_any_manifest_prunes_nothing() {
    let Some(scene) = Scene::new("empty").await else { return };
    let commit = scene.push(&many(3, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let (mark, before) = (AuditMark::set(&scene.plane).await, scene.versions().await);
    scene.push(&[("README.md".to_owned(), "nothing".to_owned())]);
    scene.remove(&["a-0.json", "a-1.json", "a-2.json"]);
    scene.nudge("shop", "nothing").await;
    until("it is said", async || {
        (scene.status("shop", "/conditions/0/status").await == "False").then_some(())
    })
    .await;
    scene.assert_calm("with nothing").await;
    assert_eq!((deletes(&mark).await, scene.versions().await), (0, before));
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_sync_may_contain_syncs() {
    let Some(scene) = Scene::new("syncs").await else { return };
    let child = |path: &str| {
        let source = json!({"git": {"url": scene.git.url("repository.git")}});
        json!({"apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": path},
            "spec": {"source": source, "path": path, "interval": "5s"}})
        .to_string()
    };
    let commit = scene.push(&[
        ("all/one.json".to_owned(), child("one")),
        ("all/two.json".to_owned(), child("two")),
        ("one/a-0.json".to_owned(), config_map("a-0", "one")),
        ("two/a-1.json".to_owned(), config_map("a-1", "one")),
    ]);
    let _daemon = scene.daemon();
    scene.sync("all", json!({"path": "all"})).await;
    for name in ["all", "one", "two"] {
        scene.until_ready(name, &commit).await;
    }
    assert_eq!(scene.values().await.len(), 2);
    // The Sync reads the health of its children when they have reported it.
    scene.settle().await;
    scene.assert_calm("with Syncs in a Sync").await;

    // A child leaves Git: its Sync goes, and what that applied stays, as its policy says.
    let commit = scene.remove(&["all/two.json"]);
    scene.nudge("all", "less").await;
    scene.until_ready("all", &commit).await;
    until("the child is gone", async || scene.syncs().get_opt("two").await.unwrap().is_none().then_some(()))
        .await;
    assert_eq!(scene.values().await.len(), 2, "a Sync that is gone leaves its objects");
    scene.settle().await;
    scene.assert_calm("without the child").await;
    for name in ["all", "one"] {
        scene.delete_sync(name).await;
    }
}

#[tokio::test]
async fn a_definition_its_namespace_and_its_resources_come_in_one_commit() {
    let Some(scene) = Scene::new("order").await else { return };
    let kind = json!({"plural": "boats", "singular": "boat", "kind": "Boat"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.harbour.example.com"},
        "spec": {"group": "harbour.example.com", "scope": "Namespaced", "names": kind,
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    });
    let harbour = format!("{}-harbour", scene.namespace);
    let boat = json!({"apiVersion": "harbour.example.com/v1", "kind": "Boat",
        "metadata": {"name": "a", "namespace": harbour}, "spec": {"sails": 2}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": harbour}});
    let files =
        [("a-boat.json", boat), ("b-definition.json", definition.clone()), ("c-namespace.json", namespace)];
    let commit = scene.push(&files.map(|(path, body)| (path.to_owned(), body.to_string())));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let uri = format!("/apis/harbour.example.com/v1/namespaces/{harbour}/boats/a");
    assert_eq!(send_request(&scene.admin, "GET", &uri, json!({})).await.unwrap()["spec"]["sails"], 2);
    scene.assert_calm("with a kind of its own").await;

    // A new part of the definition may be about fields of the resource, which is therefore looked at once more.
    let mark = AuditMark::set(&scene.plane).await;
    let before = send_request(&scene.admin, "GET", &uri, json!({})).await.unwrap();
    let mut changed = definition.clone();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "A boat.".into();
    let commit = scene.push(&[("b-definition.json".to_owned(), changed.to_string())]);
    scene.nudge("shop", "changed").await;
    scene.until_ready("shop", &commit).await;
    scene.assert_calm("with a changed definition").await;
    let patches =
        mark.requests().await.by_user(MOORLINE).filter(|it| it.verb == "patch" && it.resource == "boats");
    assert_eq!(patches.as_slice().len(), 1);
    assert_eq!(send_request(&scene.admin, "GET", &uri, json!({})).await.unwrap(), before);

    let mark = AuditMark::set(&scene.plane).await;
    // The resource goes; its definition and its namespace are of kinds that need an approval.
    scene.push(&[("d.json".to_owned(), config_map("a-0", "one"))]);
    scene.remove(&["a-boat.json", "b-definition.json", "c-namespace.json"]);
    scene.nudge("shop", "less").await;
    until("both are held", async || (scene.status("shop", "/approval/objects").await == 2).then_some(()))
        .await;
    assert_eq!(deletes(&mark).await, 1, "the resource alone");
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.harbour.example.com";
    assert!(send_request(&scene.admin, "GET", definition, json!({})).await.is_ok());
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", definition, json!({})).await.unwrap();
}

/// A Sync that releases an object does so with its own rights, and the one that takes it, too.
#[tokio::test]
async fn a_claim_gives_nobody_the_rights_of_another() {
    let Some(scene) = Scene::new("claims").await else { return };
    tenant(&scene.admin, &scene.namespace, &["get", "list", "watch", "create", "patch", "delete"]).await;
    let role = |verb: &str| {
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": [verb]}]);
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "power"}, "rules": rules})
            .to_string()
    };
    let file = |path: &str, text: String| (path.to_owned(), text);
    let map = |name: &str| config_map(name, "one");
    let commit = scene.push(&[file("admin/role.json", role("get")), file("admin/a.json", map("a"))]);
    let _daemon = scene.daemon();
    scene.sync("admin", json!({"path": "admin"})).await;
    scene.until_ready("admin", &commit).await;
    // The tenant wants the same Role, with more in it, and may not even see it.
    scene.push(&[file("tenant/role.json", role("*")), file("tenant/b.json", map("b"))]);
    scene.sync("tenant", json!({"path": "tenant", "serviceAccountName": "tenant"})).await;
    scene.until_reason("tenant", "RightsMissing").await;

    let mark = AuditMark::set(&scene.plane).await;
    scene.remove(&["admin/role.json"]);
    scene.nudge("admin", "less").await;
    until("a person is asked about the claim", async || {
        (scene.status("admin", "/problems/0/reason").await == "ClaimedWithoutRights").then_some(())
    })
    .await;
    tokio::time::sleep(QUIET_TIME).await;
    let uri = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles/power", scene.namespace);
    let live = send_request(&scene.admin, "GET", &uri, json!({})).await.unwrap();
    assert_eq!(live["rules"][0]["verbs"], json!(["get"]));
    let as_itself = |it: &Request| it.resource == "roles" && it.verb == "patch" && it.impersonated.is_empty();
    assert!(mark.requests().await.by_user(MOORLINE).filter(as_itself).as_slice().is_empty());
    for name in ["admin", "tenant"] {
        scene.delete_sync(name).await;
    }
}

/// A Sync that may not act at all deletes nothing when it goes.
#[tokio::test]
async fn a_sync_without_a_service_account_deletes_nothing() {
    let Some(scene) = Scene::new("nobody").await else { return };
    let commit = scene.push(&many(2, "one"));
    let elsewhere = scene.plane.namespace("elsewhere").await;
    let trusting = ["--namespace", &elsewhere, "--daemon-identity-namespaces", &scene.namespace];
    let trusting = [&trusting[..], &["--leader-election=false"]].concat();
    let daemon = scene.daemon_in(&scene.proxy, "daemon", &trusting, &[]);
    scene.sync("shop", json!({"deletionPolicy": "Delete"})).await;
    scene.until_ready("shop", &commit).await;
    drop(daemon);
    let arguments = ["--namespace", &elsewhere, "--leader-election=false"];
    let _daemon = scene.daemon_in(&scene.proxy, "daemon", &arguments, &[]);
    scene.until_reason("shop", "ServiceAccountRequired").await;
    assert_eq!(scene.status("shop", "/conditions/1/type").await, "Stalled");
    let mark = AuditMark::set(&scene.plane).await;
    scene.delete_sync("shop").await;
    assert_eq!((deletes(&mark).await, scene.values().await.len()), (0, 2));
}

#[tokio::test]
async fn a_sync_acts_as_its_service_account_and_no_more() {
    let Some(scene) = Scene::new("account").await else { return };
    let namespace = &scene.namespace;
    tenant(&scene.admin, &scene.namespace, &["get", "list", "watch", "create", "patch", "delete"]).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "beyond"}}).to_string();
    let commit = scene.push(&many(2, "one"));
    let begin = AuditMark::set(&scene.plane).await;
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"serviceAccountName": "tenant"})).await;
    scene.until_ready("shop", &commit).await;
    // It may not list most kinds, so that where it owns objects could not be found out later: that is written down
    // before the first of them is there.
    let requests = begin.requests().await.by_user(MOORLINE);
    let first = |is: &dyn Fn(&Request) -> bool| requests.as_slice().iter().position(is).unwrap();
    let of_status = |it: &Request| it.resource == "syncs" && ["patch", "update"].contains(&&*it.verb);
    assert!(first(&of_status) < first(&|it| it.resource == "configmaps" && it.verb == "patch"));

    let mark = AuditMark::set(&scene.plane).await;
    let edit = json!({"data": {"key": "by hand"}});
    scene.maps().patch("a-0", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    scene.until_values(&many(2, "one"), "an edit by hand is repaired").await;
    let as_tenant = format!("system:serviceaccount:{namespace}:tenant");
    let is_write = |verb: &str, resource: &str| verb == "patch" && resource == "configmaps";
    let writes = mark.requests().await.by_user(MOORLINE).filter(|it| is_write(&it.verb, &it.resource));
    let writes = writes.as_slice();
    assert!(!writes.is_empty() && writes.iter().all(|it| it.impersonated == as_tenant));

    // And whatever else is asked about objects, from the first list to the last deletion.
    scene.remove(&["a-1.json"]);
    scene.nudge("shop", "less").await;
    scene.until_values(&many(1, "one"), "what left Git is gone").await;
    let asked = begin.requests().await.by_user(MOORLINE).filter(|it| it.resource == "configmaps");
    let as_itself: Vec<_> = asked.as_slice().iter().filter(|it| it.impersonated != as_tenant).collect();
    assert!(as_itself.is_empty(), "{as_itself:?}");
    for verb in ["get", "list", "watch", "patch", "delete"] {
        assert!(asked.as_slice().iter().any(|it| it.verb == verb), "{verb}: {:?}", asked.tally());
    }

    scene.push(&[("secret.json".to_owned(), secret)]);
    scene.nudge("shop", "beyond").await;
    scene.until_reason("shop", "RightsMissing").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let secrets =
        send_request(&scene.admin, "GET", &format!("/api/v1/namespaces/{namespace}/secrets"), json!({}))
            .await
            .unwrap();
    let names: Vec<_> =
        secrets["items"].as_array().unwrap().iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["moorline-key"], "the daemon's own");
    assert_eq!(scene.values().await.len(), 1);
    assert_eq!(scene.syncs().list(&ListParams::default()).await.unwrap().items.len(), 1);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn a_pass_that_is_under_way_leaves_the_number_to_a_scaler_that_appears() {
    let Some(scene) = Scene::new("scaler").await else { return };
    let web = |seconds: u8| {
        let web = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "annotations": {"moorline.dev/wave": "1"}},
            "spec": {"replicas": 3, "minReadySeconds": seconds, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]}}},
        });
        ("web.json".to_owned(), web.to_string())
    };
    let config = |value: &str| ("a-0.json".to_owned(), config_map("a-0", value));
    let commit = scene.push(&[config("one"), web(0)]);
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;

    let is_first = |asked: &RecordedRequest| asked.writes_object() && asked.path.ends_with("/a-0");
    scene.proxy.take_requests();
    let delay = Duration::from_secs(3);
    scene.proxy.rule(move |asked| if is_first(asked) { Fate::Delay(delay) } else { Fate::Pass });
    let commit = scene.push(&[config("two"), web(4)]);
    scene.nudge("shop", "slow").await;
    until("the first wave is under way", async || {
        scene.proxy.take_requests().iter().any(is_first).then_some(())
    })
    .await;
    let scaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"minReplicas": 1, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let namespace = &scene.namespace;
    let scalers = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers");
    send_request(&scene.admin, "POST", &scalers, scaler).await.unwrap();
    let deployments = scene.dynamic("apps", "v1", "Deployment");
    let scaled = Patch::Merge(json!({"spec": {"replicas": 5}}));
    deployments.patch_scale("web", &PatchParams::default(), &scaled).await.unwrap();
    scene.until_ready("shop", &commit).await;
    let spec = deployments.get("web").await.unwrap().data["spec"].take();
    assert_eq!((&spec["minReadySeconds"], &spec["replicas"]), (&json!(4), &json!(5)));
    scene.proxy.heal();
    scene.delete_sync("shop").await;
}

/// The notes of all Events with this reason.
async fn notes(scene: &Scene, reason: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
    events.filter(|event| event.reason.as_deref() == Some(reason)).filter_map(|event| event.note).collect()
}

#[tokio::test]
async fn a_force_push_is_reported_once_and_only_where_it_is_proven() {
    let Some(scene) = Scene::new("force").await else { return };
    scene.push(&many(2, "one"));
    let mut daemon = scene.daemon();
    let second = scene.push(&many(2, "two"));
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &second).await;
    let third = scene.push(&many(2, "three"));
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &third).await;

    // The last commit is replaced by another.
    scene.work.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let other = scene.push(&many(2, "other"));
    scene.nudge("shop", "other").await;
    scene.until_ready("shop", &other).await;
    let told = |news: &str, old: &str| format!("force push: main@{news} does not have {old} in its history");
    let once = [told(&other, &third)];
    until("the force push is reported", async || (notes(&scene, "ForcePush").await == once).then_some(()))
        .await;

    // And another, while nobody looks.
    daemon.terminate();
    scene.work.git(&["reset", "-q", "--hard", &second]);
    let last = scene.push(&many(2, "last"));
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    scene.until_ready("shop", &last).await;
    until("that is told, too", async || {
        let all = notes(&scene, "ForcePush").await;
        (all.len() == 2 && all.contains(&told(&last, &other))).then_some(())
    })
    .await;

    // So long a way that nobody has seen all of it.
    scene.work.import("long", Some(&last), 300);
    scene.work.git(&["reset", "-q", "--hard", "long"]);
    let far = scene.push(&[]);
    scene.nudge("shop", "far").await;
    scene.until_ready("shop", &far).await;
    until("that is told, too", async || (notes(&scene, "HistoryUnknown").await.len() == 1).then_some(()))
        .await;
    assert_eq!(notes(&scene, "ForcePush").await.len(), 2);
    scene.assert_calm("after it").await;
}
