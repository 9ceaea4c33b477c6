//! Syncs that are deleted with their objects, and stopped: what is left waits for a person.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::Fate;
use moorline_test_support::person::{RunningCommand, moorline};
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};
use moorline_test_support::under_load::under_load;

fn deletes(spec: Value) -> Value {
    let mut all = json!({"deletionPolicy": "Delete"});
    for (field, value) in spec.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    all
}

/// Begins the deletion of a Sync, and does not wait for its end.
async fn delete(scene: &Scene, name: &str) {
    scene.syncs().delete(name, &DeleteParams::default()).await.unwrap();
}

async fn suspend(scene: &Scene, name: &str, suspend: bool) {
    scene.patch_sync(name, json!({"spec": {"suspend": suspend}})).await;
}

async fn until_gone(scene: &Scene, name: &str) {
    until(&format!("{name} is gone"), async || {
        scene.syncs().get_opt(name).await.unwrap().is_none().then_some(())
    })
    .await;
}

/// The text of the condition Ready.
async fn message(scene: &Scene, name: &str) -> String {
    scene.status(name, "/conditions/0/message").await.as_str().unwrap_or_default().to_owned()
}

/// The objects of the scene as the daemon left them.
async fn owned(scene: &Scene) -> BTreeMap<String, (String, String)> {
    scene.versions().await.into_iter().filter(|(name, _)| name.starts_with("a-") || name == "stuck").collect()
}

/// The notes of the Events about objects that stay.
async fn orphaned(scene: &Scene, namespace: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), namespace);
    let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
    let told = events.filter(|event| event.reason.as_deref() == Some("ObjectsOrphaned"));
    told.filter_map(|event| event.note).collect()
}

/// A Sync that is suspended and then deleted, and says so.
async fn held(scene: &Scene, count: usize) -> Daemon {
    let (daemon, _) = scene.applied(&many(count, "one"), deletes(json!({}))).await;
    suspend(scene, "shop", true).await;
    scene.until_reason("shop", "Suspended").await;
    delete(scene, "shop").await;
    scene.until_reason("shop", "DeletionHeld").await;
    daemon
}

/// A Sync in the middle of its deletion: one object waits for a finalizer, and the others for that one.
async fn in_the_middle(scene: &Scene) -> Daemon {
    let stuck = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "one"}, "metadata": {
        "name": "stuck", "finalizers": ["example.com/hold"], "annotations": {"moorline.dev/wave": "1"}}});
    let mut files = many(3, "one");
    files.push(("stuck.json".to_owned(), stuck.to_string()));
    let (daemon, _) = scene.applied(&files, deletes(json!({}))).await;
    delete(scene, "shop").await;
    until("its first object is on its way out", async || {
        scene.maps().get("stuck").await.unwrap().metadata.deletion_timestamp.map(drop)
    })
    .await;
    daemon
}

async fn free(scene: &Scene) {
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    scene.maps().patch("stuck", &PatchParams::default(), &free).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_sync_that_is_deleted_waits_for_a_person() {
    let Some(scene) = Scene::beside("suspended-deleted").await else { return };
    let mut daemon = held(&scene, 3).await;
    let before = owned(&scene).await;
    assert_eq!(before.len(), 3);
    let place = &scene.namespace;
    let told = message(&scene, "shop").await;
    for part in [
        "3 objects are left",
        &format!("`moorline resume shop -n {place}`"),
        &format!("`moorline delete shop -n {place} --orphan`"),
        "`--delete`",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(scene.status("shop", "/conditions/1/type").await, "Stalled");
    let named = scene.status("shop", "/problems").await.to_string();
    assert!(named.contains(&format!("ConfigMap {place}/a-0 is left")), "{named}");
    let status = moorline(&scene, &["status"]);
    let cells: Vec<&str> = status.data.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!((status.code, &cells[2..4]), (1, &["False", "DeletionHeld"][..]), "{}", status.data);
    let status = moorline(&scene, &["status", "shop"]);
    assert!(status.code == 1 && status.data.contains("3 objects are left"), "{}", status.data);
    scene.assert_calm("while the deletion waits").await;
    // An object that somebody deletes by hand is not counted any more.
    scene.maps().delete("a-2", &DeleteParams::default()).await.unwrap();
    until("two are left", async || {
        message(&scene, "shop").await.contains("2 objects are left").then_some(())
    })
    .await;
    daemon.terminate();
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    scene.settle().await;
    scene.assert_calm("after a restart").await;
    let now = owned(&scene).await;
    assert!(now.len() == 2 && now.iter().all(|(name, version)| before[name] == *version), "{now:?}");
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "DeletionHeld");
    let resumed = moorline(&scene, &["resume", "shop"]);
    assert!(resumed.words.contains("its deletion continues"), "{}", resumed.words);
    until_gone(&scene, "shop").await;
    assert_eq!(owned(&scene).await, BTreeMap::new());
    assert_eq!(orphaned(&scene, place).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_that_the_objects_stay() {
    let Some(scene) = Scene::beside("answer-orphan").await else { return };
    let mut daemon = held(&scene, 3).await;
    let before = owned(&scene).await;
    // Nobody serves the Sync when the answer is given: it stands there for the next daemon.
    daemon.terminate();
    let answered = moorline(&scene, &["delete", "shop", "--orphan", "--no-wait"]);
    assert_eq!(answered.code, 0, "{}", answered.words);
    let _daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    until_gone(&scene, "shop").await;
    assert_eq!(owned(&scene).await, before);
    let told = orphaned(&scene, &scene.namespace).await;
    assert!(told.len() == 1 && told[0].starts_with("3 objects were not deleted: "), "{told:?}");
    assert!(told[0].contains("a-0 (Answered)"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_answers_that_the_objects_go() {
    let Some(scene) = Scene::beside("answer-delete").await else { return };
    let _daemon = held(&scene, 3).await;
    // Without an answer the verb says what is waited for.
    let asked = moorline(&scene, &["delete", "shop"]);
    assert!(asked.code == 1 && asked.words.contains("3 objects are left"), "{}", asked.words);
    assert_eq!(owned(&scene).await.len(), 3);
    // An answer that was given to another state of the Sync counts for nothing.
    let old = json!({"metadata": {"annotations": {"moorline.dev/deletion": "Delete@1"}}});
    scene.patch_sync("shop", old).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(owned(&scene).await.len(), 3);
    let answered = moorline(&scene, &["delete", "shop", "--delete"]);
    assert_eq!(answered.code, 0, "{}", answered.words);
    assert!(answered.words.contains(&format!("{}/shop is gone", scene.namespace)), "{}", answered.words);
    assert_eq!(owned(&scene).await, BTreeMap::new());
    assert!(scene.syncs().get_opt("shop").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verb_deletes_a_sync_that_lives() {
    let Some(scene) = Scene::beside("verb-deletes").await else { return };
    let (_daemon, commit) = scene.applied(&many(2, "one"), json!({})).await;
    let before = owned(&scene).await;
    let place = &scene.namespace;
    let left = moorline(&scene, &["delete", "shop"]);
    assert_eq!(left.code, 0, "{}", left.words);
    assert!(left.words.contains(&format!("{place}/shop is deleted; its 2 objects stay")), "{}", left.words);
    let asked = scene.proxy.take_requests();
    let writes = asked.iter().filter(|asked| asked.writes() && asked.is_on_object());
    let writes: Vec<String> =
        writes.map(|one| format!("{} {} {}", one.method, one.path, one.text())).collect();
    assert_eq!(owned(&scene).await, before, "{writes:#?}");
    // It is taken up by a new one, which is deleted with its objects although its spec says otherwise.
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let went = moorline(&scene, &["delete", "shop", "--delete"]);
    assert_eq!(went.code, 0, "{}", went.words);
    assert!(went.words.contains(&format!("{place}/shop is deleted with its 2 objects")), "{}", went.words);
    assert_eq!(owned(&scene).await, BTreeMap::new());
    let missing = moorline(&scene, &["delete", "shop"]);
    assert!(missing.code == 1 && missing.words.contains("there is no Sync shop"), "{}", missing.words);
    // And the other way round.
    scene.sync("shop", deletes(json!({"suspend": false}))).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(moorline(&scene, &["delete", "shop", "--orphan"]).code, 0);
    assert_eq!(owned(&scene).await.len(), 2);
    let both = moorline(&scene, &["delete", "shop", "--orphan", "--delete"]);
    assert_eq!(both.code, 64, "{}", both.words);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_becomes_orphan_in_the_middle_stops() {
    let Some(scene) = Scene::beside("middle-orphan").await else { return };
    let _daemon = in_the_middle(&scene).await;
    scene.until_reason("shop", "Deleting").await;
    let told = message(&scene, "shop").await;
    assert!(told.contains("4 objects are left") && told.contains("example.com/hold"), "{told}");
    let before = owned(&scene).await;
    scene.patch_sync("shop", json!({"spec": {"deletionPolicy": "Orphan"}})).await;
    free(&scene).await;
    scene.until_reason("shop", "DeletionHeld").await;
    until("three are left", async || {
        message(&scene, "shop").await.contains("3 objects are left").then_some(())
    })
    .await;
    scene.assert_calm("while the deletion waits").await;
    let left = owned(&scene).await;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["a-0", "a-1", "a-2"]);
    assert!(left.iter().all(|(name, version)| before[name] == *version), "{left:?}");
    let answered = moorline(&scene, &["delete", "shop", "--orphan"]);
    assert_eq!(answered.code, 0, "{}", answered.words);
    assert_eq!(owned(&scene).await, left);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_is_suspended_in_the_middle_stops_and_goes_on() {
    let Some(scene) = Scene::beside("middle-suspend").await else { return };
    let _daemon = in_the_middle(&scene).await;
    let suspended = moorline(&scene, &["suspend", "shop"]);
    assert!(suspended.words.contains("nothing more of it is deleted"), "{}", suspended.words);
    scene.until_reason("shop", "DeletionHeld").await;
    // An answer goes on, and another suspension withdraws it although the spec says the same as before.
    assert_eq!(moorline(&scene, &["delete", "shop", "--delete", "--no-wait"]).code, 0);
    scene.until_reason("shop", "Deleting").await;
    moorline(&scene, &["suspend", "shop"]);
    scene.until_reason("shop", "DeletionHeld").await;
    free(&scene).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(owned(&scene).await.keys().collect::<Vec<_>>(), ["a-0", "a-1", "a-2"]);
    // A verb that waits ends with the Sync.
    let mut waits = RunningCommand::start(&scene, &["delete", "shop", "--delete"]);
    assert_eq!(waits.ended().await, Some(0));
    assert_eq!(owned(&scene).await, BTreeMap::new());
}

/// The watch of Syncs tells nothing: the deletion reads the Sync itself before it deletes.
#[tokio::test]
async fn a_suspension_counts_before_the_watch_shows_it() {
    let Some(scene) = Scene::beside("late-watch").await else { return };
    let _daemon = in_the_middle(&scene).await;
    scene.proxy.rule(|asked| match asked.path.ends_with("/v1alpha1/syncs") {
        true => Fate::Drop,
        false => Fate::Pass,
    });
    scene.proxy.cut_watches();
    suspend(&scene, "shop", true).await;
    free(&scene).await;
    tokio::time::sleep(QUIET_TIME * 3).await;
    assert_eq!(owned(&scene).await.len(), 3);
    scene.proxy.heal();
    scene.until_reason("shop", "DeletionHeld").await;
    suspend(&scene, "shop", false).await;
    until_gone(&scene, "shop").await;
    assert_eq!(owned(&scene).await, BTreeMap::new());
}

#[tokio::test]
async fn the_end_of_the_namespace_ends_a_deletion_that_waits() {
    let Some(scene) = Scene::beside("waits-terminating").await else { return };
    let elsewhere = scene.plane.namespace("kept").await;
    let map = |name: &str| config_map(name, "x");
    scene.push(&[
        ("held/a-0.json".to_owned(), map("a-0")),
        ("held/a-1.json".to_owned(), map("a-1")),
        ("suspended/b.json".to_owned(), map("b")),
    ]);
    let _daemon = scene.daemon();
    for name in ["held", "suspended"] {
        let spec = json!({"deletionPolicy": "Delete", "targetNamespace": elsewhere, "path": name});
        scene.sync(name, spec).await;
    }
    for name in ["held", "suspended"] {
        scene.until_reason(name, "Applied").await;
        suspend(&scene, name, true).await;
        scene.until_reason(name, "Suspended").await;
    }
    delete(&scene, "held").await;
    scene.until_reason("held", "DeletionHeld").await;
    let maps: Api<ConfigMap> = Api::namespaced(scene.admin.clone(), &elsewhere);
    let versions = async || {
        let maps = maps.list(&ListParams::default().labels("moorline.dev/sync")).await.unwrap().items;
        maps.into_iter().map(|map| map.metadata.resource_version).collect::<Vec<_>>()
    };
    let before = versions().await;
    assert_eq!(before.len(), 3);
    let begun = Instant::now();
    let namespaces: Api<Namespace> = Api::all(scene.admin.clone());
    namespaces.delete(&scene.namespace, &DeleteParams::default()).await.unwrap();
    until_gone(&scene, "held").await;
    until_gone(&scene, "suspended").await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(15)), "{:?}", begun.elapsed());
    assert_eq!(versions().await, before);
    // In the namespace no Event can be written any more, so that the Events are about the namespace.
    let told = until("what stays is reported", async || {
        let told = orphaned(&scene, "default").await;
        let ours: Vec<String> = told.into_iter().filter(|note| note.contains(&elsewhere)).collect();
        (ours.len() == 2).then_some(ours)
    })
    .await;
    let is_told = |words: &str| told.iter().any(|note| note.contains(words));
    assert!(is_told("a-0 (NamespaceTerminating)") && is_told("b (NamespaceTerminating)"), "{told:?}");
}

#[tokio::test]
async fn a_sync_that_waits_for_a_person_delays_none_that_it_depends_on() {
    let Some(scene) = Scene::beside("waits-depends").await else { return };
    let map = |name: &str| config_map(name, "x");
    let commit =
        scene.push(&[("base/a.json".to_owned(), map("a-base")), ("top/b.json".to_owned(), map("a-top"))]);
    let _daemon = scene.daemon();
    scene.sync("base", deletes(json!({"path": "base"}))).await;
    scene.until_ready("base", &commit).await;
    scene.sync("top", deletes(json!({"path": "top", "dependsOn": [{"name": "base"}]}))).await;
    scene.until_ready("top", &commit).await;
    suspend(&scene, "top", true).await;
    scene.until_reason("top", "Suspended").await;
    delete(&scene, "top").await;
    scene.until_reason("top", "DeletionHeld").await;
    let begun = Instant::now();
    scene.delete_sync("base").await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(20)), "{:?}", begun.elapsed());
    assert_eq!(owned(&scene).await.keys().collect::<Vec<_>>(), ["a-top"]);
    suspend(&scene, "top", false).await;
    until_gone(&scene, "top").await;
}

/// Nothing is left of it, so that nobody has to decide anything.
#[tokio::test]
async fn a_suspended_sync_without_objects_is_deleted_at_once() {
    let Some(scene) = Scene::beside("suspended-empty").await else { return };
    let _daemon = scene.daemon();
    scene.push(&many(1, "one"));
    scene.sync("shop", deletes(json!({"suspend": true}))).await;
    scene.until_reason("shop", "Suspended").await;
    scene.delete_sync("shop").await;
    assert_eq!(owned(&scene).await, BTreeMap::new());
}
