//! Objects that go from one Sync to another, and Syncs that go: the objects stay who they are, and nothing is deleted
//! that nobody asked to delete.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::scene::{Scene, config_map, many};

fn claim(name: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    })
    .to_string()
}

fn deployment(name: &str) -> String {
    let labels = json!({"app": name});
    let containers = json!([{"name": "main", "image": "example.com/main:1"}]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}},
    })
    .to_string()
}

/// The uid of a ConfigMap, a claim and a Deployment, and whose they are.
async fn who(scene: &Scene) -> BTreeMap<String, (String, String)> {
    let kinds = [("", "ConfigMap"), ("", "PersistentVolumeClaim"), ("apps", "Deployment")];
    let mut all = BTreeMap::new();
    for (group, kind) in kinds {
        let api: Api<DynamicObject> = scene.dynamic(group, "v1", kind);
        for object in api.list(&Default::default()).await.unwrap().items {
            let identity = object.metadata.annotations.unwrap_or_default().remove("moorline.dev/id");
            let Some(owner) = identity.and_then(|text| Some(text.split_once('|')?.0.to_owned())) else {
                continue;
            };
            let managers = object.metadata.managed_fields.unwrap_or_default();
            let managers: Vec<String> = managers
                .into_iter()
                .filter_map(|entry| entry.manager)
                .filter(|name| name.starts_with("moorline/"))
                .collect();
            assert!(managers.len() <= 2, "{managers:?}");
            all.insert(
                format!("{kind} {}", object.metadata.name.unwrap()),
                (object.metadata.uid.unwrap(), owner.rsplit('/').next().unwrap().to_owned()),
            );
        }
    }
    all
}

async fn until_owned(scene: &Scene, owner: &str, count: usize) -> BTreeMap<String, (String, String)> {
    until(&format!("{owner} owns {count}"), async || {
        let all = who(scene).await;
        (all.values().filter(|(_, by)| by == owner).count() == count).then_some(all)
    })
    .await
}

fn uids(all: &BTreeMap<String, (String, String)>) -> BTreeMap<&str, &str> {
    all.iter().map(|(name, (uid, _))| (name.as_str(), uid.as_str())).collect()
}

async fn deletes(mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).filter(|request| request.verb == "delete");
    requests.as_slice().iter().map(|request| request.uri.clone()).collect()
}

#[tokio::test]
async fn an_object_moves_from_one_sync_to_another() {
    let Some(scene) = Scene::new("moves").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let parts = [("claim", claim("data")), ("web", deployment("web")), ("map", config_map("map", "x"))];
    let file = |folder: &str, name: &str| format!("{folder}/{name}.json");
    scene.push(&[
        (file("one", "stays"), config_map("one", "x")),
        (file("two", "stays"), config_map("two", "x")),
    ]);
    let files: Vec<_> = parts.iter().map(|(name, text)| (file("one", name), text.clone())).collect();
    let commit = scene.push(&files);
    let daemon = scene.daemon();
    for name in ["one", "two"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    let before = until_owned(&scene, "one", 4).await;
    for (name, _) in &parts {
        scene.work.git(&["mv", &file("one", name), &file("two", name)]);
    }
    let commit = scene.push(&[]);
    // The one that loses them hears of it first.
    scene.nudge("one", "moved").await;
    scene.until_ready("one", &commit).await;
    scene.nudge("two", "moved").await;
    scene.until_ready("two", &commit).await;
    let after = until_owned(&scene, "two", 4).await;
    assert_eq!(uids(&after), uids(&before));
    scene.assert_calm("after the move").await;

    // And back, while no daemon is there: the next one has rendered neither when it begins.
    drop(daemon);
    for (name, _) in &parts {
        scene.work.git(&["mv", &file("two", name), &file("one", name)]);
    }
    let commit = scene.push(&[]);
    let _daemon = scene.daemon();
    for name in ["one", "two"] {
        scene.until_ready(name, &commit).await;
    }
    let after = until_owned(&scene, "one", 4).await;
    assert_eq!(uids(&after), uids(&before));
    scene.assert_calm("after the way back").await;
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
    for name in ["one", "two"] {
        scene.delete_sync(name).await;
    }
}

#[tokio::test]
async fn a_sync_is_renamed() {
    let Some(scene) = Scene::new("rename").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let files = [
        ("claim.json", claim("data")),
        ("web.json", deployment("web")),
        ("map.json", config_map("map", "x")),
    ];
    let commit = scene.push(&files.map(|(path, text)| (path.to_owned(), text)));
    let _daemon = scene.daemon();
    scene.sync("old", json!({})).await;
    scene.until_ready("old", &commit).await;
    let before = until_owned(&scene, "old", 3).await;
    scene.sync("new", json!({})).await;
    // Two that claim the same: the first keeps it, and neither fights.
    scene.until_reason("new", "ObjectsHeld").await;
    scene.assert_calm("while both claim it").await;
    assert_eq!(who(&scene).await, before);
    scene.delete_sync("old").await;
    scene.until_ready("new", &commit).await;
    let after = until_owned(&scene, "new", 3).await;
    assert_eq!(uids(&after), uids(&before));
    scene.assert_calm("after the renaming").await;
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
    scene.delete_sync("new").await;
}

#[tokio::test]
async fn a_sync_that_is_restored_without_its_status_knows_what_it_owned() {
    let Some(scene) = Scene::new("restored").await else { return };
    let commit = scene.push(&many(3, "one"));
    let daemon = scene.daemon();
    let sync = scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    drop(daemon);
    let before = scene.versions().await;
    scene.delete_sync("shop").await;
    let again = scene.sync("shop", json!({})).await;
    assert_ne!(again.metadata.uid, sync.metadata.uid);
    // An object that left Git while there was no Sync is still known by its label, and asks: it was another Sync's.
    scene.remove(&["a-2.json"]);
    let _daemon = scene.daemon();
    approve_unproven(&scene).await;
    scene.until_values(&many(2, "one"), "what left Git is gone").await;
    let after = scene.versions().await;
    assert!(after.iter().filter(|(name, _)| name.starts_with("a-")).all(|(name, it)| before[name].0 == it.0));
    scene.delete_sync("shop").await;
}

/// A daemon that ends between the two requests of a move leaves the object in the hands of both.
#[tokio::test]
async fn what_a_sync_has_let_go_of_it_holds_no_longer() {
    let Some(scene) = Scene::new("both-hands").await else { return };
    let file = |path: &str, name: &str| (path.to_owned(), config_map(name, "one"));
    let commit = scene.push(&[file("from/a.json", "a"), file("to/b.json", "b")]);
    let _daemon = scene.daemon();
    for name in ["from", "to"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    let half = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"rest": "of from"}});
    let manager = format!("moorline/{}/from", scene.namespace);
    let apply = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
    scene.maps().patch("b", &apply, &Patch::Apply(&half)).await.unwrap();
    until("nothing of it is left", async || {
        let data = scene.maps().get("b").await.unwrap().data?;
        (!data.contains_key("rest")).then_some(())
    })
    .await;
    scene.settle().await;
    for name in ["from", "to"] {
        scene.delete_sync(name).await;
    }
}

/// A status that was written before anything could be seen does not say that nothing is owned.
#[tokio::test]
async fn a_status_from_before_the_first_pass_hides_nothing() {
    let Some(scene) = Scene::new("hidden").await else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "old"}}).to_string();
    scene.push(&many(2, "one"));
    let commit = scene.push(&[("old.json".to_owned(), secret)]);
    let daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    drop(daemon);
    scene.delete_sync("shop").await;
    scene.sync("shop", json!({})).await;
    let commit = scene.remove(&["old.json"]);
    // The repository is away when the Sync is restored, and its status says so.
    let (here, away) = (scene.root.path().join("repository.git"), scene.root.path().join("away.git"));
    std::fs::rename(&here, &away).unwrap();
    let daemon = scene.daemon();
    until("the status says something", async || {
        (scene.status("shop", "/conditions/0/status").await == "False").then_some(())
    })
    .await;
    drop(daemon);
    std::fs::rename(&away, &here).unwrap();
    let _daemon = scene.daemon();
    approve_unproven(&scene).await;
    scene.until_ready("shop", &commit).await;
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    until("what left Git is gone", async || secrets.get_opt("old").await.unwrap().is_none().then_some(()))
        .await;
    scene.delete_sync("shop").await;
}

/// Approves what a Sync of the same name owned before.
async fn approve_unproven(scene: &Scene) {
    let hash = until("what was another Sync's asks", async || {
        let problems = scene.status("shop", "/problems").await;
        let asks = problems.as_array()?.iter().any(|problem| problem["reason"] == "Unproven");
        let hash = scene.status("shop", "/approval/hash").await;
        hash.as_str().filter(|_| asks).map(str::to_owned)
    })
    .await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}})).await;
}

/// A Sync with everything to be deleted with it, and the commit.
async fn deletable(scene: &Scene, spec: Value) -> String {
    let files = [
        ("claim.json", claim("data")),
        ("web.json", deployment("web")),
        ("map.json", config_map("map", "x")),
        (
            "late.json",
            config_map("late", "x")
                .replace("\"name\"", "\"annotations\":{\"moorline.dev/wave\":\"5\"},\"name\""),
        ),
    ];
    let commit = scene.push(&files.map(|(path, text)| (path.to_owned(), text)));
    let mut whole = json!({"deletionPolicy": "Delete"});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    scene.sync("shop", whole).await;
    commit
}

#[tokio::test]
async fn what_is_to_be_deleted_with_a_sync_goes_in_reverse_and_protected_kinds_stay() {
    let Some(scene) = Scene::new("farewell").await else { return };
    let _daemon = scene.daemon();
    let commit = deletable(&scene, json!({})).await;
    scene.until_ready("shop", &commit).await;
    until_owned(&scene, "shop", 4).await;
    let mark = AuditMark::set(&scene.plane).await;
    scene.delete_sync("shop").await;
    let left: Vec<String> = who(&scene).await.into_keys().collect();
    assert_eq!(left, ["PersistentVolumeClaim data"]);
    let names: Vec<String> =
        deletes(&mark).await.iter().map(|uri| uri.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["late", "web", "map"]);
}

#[tokio::test]
async fn a_suspended_sync_that_is_deleted_keeps_its_objects() {
    let Some(scene) = Scene::new("orphans").await else { return };
    let _daemon = scene.daemon();
    let commit = deletable(&scene, json!({})).await;
    scene.until_ready("shop", &commit).await;
    until_owned(&scene, "shop", 4).await;
    let mark = AuditMark::set(&scene.plane).await;
    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("shop", "Suspended").await;
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "DeletionHeld").await;
    assert_eq!(who(&scene).await.len(), 4);
    let generation = scene.syncs().get("shop").await.unwrap().metadata.generation.unwrap();
    let answer = json!({"moorline.dev/deletion": format!("Orphan@{generation}")});
    scene.patch_sync("shop", json!({"metadata": {"annotations": answer}})).await;
    until("the Sync is gone", async || scene.syncs().get_opt("shop").await.unwrap().is_none().then_some(()))
        .await;
    assert_eq!(who(&scene).await.len(), 4);
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
}

/// The finalizer goes, and the objects too, although everything that is asked fails at first.
#[tokio::test]
async fn a_deletion_survives_a_cluster_that_does_not_answer_and_a_lost_status() {
    let Some(scene) = Scene::new("hard").await else { return };
    let daemon = scene.daemon();
    let commit = deletable(&scene, json!({})).await;
    scene.until_ready("shop", &commit).await;
    until_owned(&scene, "shop", 4).await;
    drop(daemon);
    // Nobody knows where its objects are any more.
    let wiped = json!({"status": null});
    scene.syncs().patch_status("shop", &PatchParams::default(), &Patch::Merge(&wiped)).await.unwrap();
    scene.syncs().delete("shop", &DeleteParams::default()).await.unwrap();
    // Twice whatever is asked: were it every other request, one of two that are always asked together would never pass.
    let mut failed = BTreeMap::<(String, String), usize>::new();
    scene.proxy.rule(move |asked| {
        let times = failed.entry((asked.method.clone(), asked.path.clone())).or_default();
        *times += 1;
        match (*times <= 2, asked.is_watch()) {
            (true, true) => Fate::Answer(503, None),
            (true, false) => Fate::Answer(500, None),
            (false, _) => Fate::Pass,
        }
    });
    let _daemon = scene.daemon();
    until("the Sync is gone", async || scene.syncs().get_opt("shop").await.unwrap().is_none().then_some(()))
        .await;
    let left: Vec<String> = who(&scene).await.into_keys().collect();
    assert_eq!(left, ["PersistentVolumeClaim data"]);
}

#[tokio::test]
async fn a_number_that_moves_to_another_sync_and_to_a_scaler_stays() {
    let Some(scene) = Scene::new("moves-scaled").await else { return };
    let web = deployment("web").replace(r#""replicas":0"#, r#""paused":true,"replicas":3"#);
    let commit = scene.push(&[
        ("one/stays.json".into(), config_map("one", "x")),
        ("two/stays.json".into(), config_map("two", "x")),
        ("one/web.json".into(), web),
    ]);
    let daemon = scene.daemon();
    for name in ["one", "two"] {
        scene.sync(name, json!({"path": name})).await;
        scene.until_ready(name, &commit).await;
    }
    until_owned(&scene, "one", 2).await;
    let deployments =
        moorline_test_support::numbers::api(&scene.admin, &scene.namespace, "apps", "Deployment");
    let numbers = moorline_test_support::numbers::Numbers::of(deployments, "web", "/spec/replicas");
    scene.work.git(&["mv", "one/web.json", "two/web.json"]);
    let scaler = moorline_test_support::numbers::scaler("apps/v1", "Deployment", "web").to_string();
    let commit = scene.push(&[("two/scaler.json".into(), scaler)]);
    for name in ["one", "two"] {
        scene.nudge(name, "moved").await;
        scene.until_ready(name, &commit).await;
    }
    until_owned(&scene, "two", 2).await;
    assert_eq!(numbers.all().await, [3]);
    drop(daemon);
}
