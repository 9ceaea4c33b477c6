//! Syncs that are deleted together with their objects: only what nobody else wants is deleted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::tenant;
use moorline_test_support::scene::{Scene, config_map, many};

/// The uid of each ConfigMap that bears an identity, and whose it is.
async fn who(scene: &Scene) -> BTreeMap<String, (String, String)> {
    let maps = scene.maps().list(&ListParams::default()).await.unwrap();
    let one = |map: ConfigMap| {
        let identity = map.metadata.annotations?.remove("moorline.dev/id")?;
        let owner = identity.split_once('|')?.0.rsplit('/').next()?.to_owned();
        Some((map.metadata.name?, (map.metadata.uid?, owner)))
    };
    maps.items.into_iter().filter_map(one).collect()
}

fn uids(all: &BTreeMap<String, (String, String)>) -> BTreeMap<String, String> {
    all.iter().map(|(name, (uid, _))| (name.clone(), uid.clone())).collect()
}

async fn until_owned(scene: &Scene, owner: &str, count: usize) -> BTreeMap<String, (String, String)> {
    until(&format!("{owner} owns {count}"), async || {
        let all = who(scene).await;
        (all.values().filter(|(_, by)| by == owner).count() == count).then_some(all)
    })
    .await
}

/// Returns the daemon's deletions since the mark.
async fn deletes(mark: &AuditMark) -> Vec<String> {
    let requests = mark.requests().await.by_user(MOORLINE).filter(|request| request.verb == "delete");
    requests.as_slice().iter().map(|request| request.uri.clone()).collect()
}

/// Waits for the Events of objects that stay.
async fn until_told(scene: &Scene) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    until("it is told what stays", async || {
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let orphaned = events.into_iter().filter(|event| event.reason.as_deref() == Some("ObjectsOrphaned"));
        let notes: Vec<String> = orphaned.filter_map(|event| event.note).collect();
        (!notes.is_empty()).then_some(notes)
    })
    .await
}

fn deletable() -> Value {
    json!({"deletionPolicy": "Delete"})
}

#[tokio::test]
async fn a_sync_that_deletes_is_renamed() {
    let Some(scene) = Scene::new("rename-delete").await else { return };
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&many(3, "x"));
    let _daemon = scene.daemon();
    scene.sync("first", deletable()).await;
    scene.until_ready("first", &commit).await;
    let before = until_owned(&scene, "first", 3).await;
    // The new one is there before the old one goes.
    scene.sync("second", deletable()).await;
    scene.until_reason("second", "ObjectsHeld").await;
    scene.delete_sync("first").await;
    scene.until_ready("second", &commit).await;
    assert_eq!(uids(&until_owned(&scene, "second", 3).await), uids(&before));
    // Both at once: nobody knows yet what the new one wants.
    scene.sync("third", deletable()).await;
    scene.delete_sync("second").await;
    scene.until_ready("third", &commit).await;
    assert_eq!(uids(&until_owned(&scene, "third", 3).await), uids(&before));
    scene.assert_calm("after the renaming").await;
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
    // A Sync that claims something and is deleted as well keeps nothing from being deleted.
    scene.sync("fourth", deletable()).await;
    scene.until_reason("fourth", "ObjectsHeld").await;
    for name in ["fourth", "third"] {
        scene.syncs().delete(name, &DeleteParams::default()).await.unwrap();
    }
    until("all is gone", async || {
        let left = scene.syncs().list(&ListParams::default()).await.unwrap().items.len();
        (left == 0 && who(&scene).await.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_a_suspended_sync_claims_stays() {
    let Some(scene) = Scene::new("claim-suspended").await else { return };
    let commit = scene.push(&[
        ("one/a.json".into(), config_map("a", "x")),
        ("one/b.json".into(), config_map("b", "x")),
        ("two/a.json".into(), config_map("a", "x")),
    ]);
    let _daemon = scene.daemon();
    scene.sync("one", json!({"path": "one", "deletionPolicy": "Delete"})).await;
    scene.until_ready("one", &commit).await;
    let before = until_owned(&scene, "one", 2).await;
    scene.sync("two", json!({"path": "two"})).await;
    scene.until_reason("two", "ObjectsHeld").await;
    scene.patch_sync("two", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("two", "Suspended").await;
    scene.delete_sync("one").await;
    let after = who(&scene).await;
    assert_eq!(after.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(after["a"].0, before["a"].0);
    let note = format!("1 object was not deleted: ConfigMap {}/a (ClaimedBy)", scene.namespace);
    assert_eq!(until_told(&scene).await, [note]);
}

#[tokio::test]
async fn the_end_of_its_namespace_is_not_the_end_of_what_a_sync_made_elsewhere() {
    let Some(scene) = Scene::new("namespace-ends").await else { return };
    let elsewhere = scene.plane.namespace("elsewhere").await;
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&many(2, "x"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"deletionPolicy": "Delete", "targetNamespace": elsewhere})).await;
    scene.until_ready("shop", &commit).await;
    let maps: Api<ConfigMap> = Api::namespaced(scene.admin.clone(), &elsewhere);
    let versions = async || {
        let maps = maps.list(&ListParams::default().labels("moorline.dev/sync")).await.unwrap().items;
        maps.into_iter().map(|map| map.metadata.resource_version).collect::<Vec<_>>()
    };
    let before = versions().await;
    assert_eq!(before.len(), 2);
    let namespaces: Api<Namespace> = Api::all(scene.admin.clone());
    namespaces.delete(&scene.namespace, &DeleteParams::default()).await.unwrap();
    until("the Sync is gone with its namespace", async || {
        scene.syncs().get_opt("shop").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(versions().await, before);
    assert_eq!(deletes(&mark).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_namespace_in_which_others_live_is_not_pruned() {
    let Some(scene) = Scene::new("occupied").await else { return };
    let mine = format!("{}-mine", scene.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": mine}}).to_string();
    let inside = config_map("inside", "x").replace("\"name\"", &format!("\"namespace\":\"{mine}\",\"name\""));
    let files = [("namespace", namespace), ("inside", inside), ("stays", config_map("stays", "x"))];
    let commit = scene.push(&files.map(|(name, text)| (format!("{name}.json"), text)));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let maps: Api<ConfigMap> = Api::namespaced(scene.admin.clone(), &mine);
    let foreign: ConfigMap = serde_json::from_str(&config_map("foreign", "x")).unwrap();
    maps.create(&PostParams::default(), &foreign).await.unwrap();
    // The namespace waits for a person, who approves, and does not know of the other object.
    scene.remove(&["namespace.json", "inside.json"]);
    let approval = until("an approval is asked for", async || {
        scene.status("shop", "/approval/hash").await.as_str().map(str::to_owned)
    })
    .await;
    let approve = json!({"metadata": {"annotations": {"moorline.dev/approve": approval}}});
    scene.patch_sync("shop", approve).await;
    let named = format!("ConfigMap {mine}/foreign");
    until("the namespace is held", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        (problems.contains("NotEmpty") && problems.contains(&named)).then_some(())
    })
    .await;
    let namespaces: Api<Namespace> = Api::all(scene.admin.clone());
    assert!(namespaces.get(&mine).await.unwrap().metadata.deletion_timestamp.is_none());
    assert!(maps.get_opt("inside").await.unwrap().is_none(), "what is this Sync's alone is gone");
    maps.delete("foreign", &DeleteParams::default()).await.unwrap();
    scene.push(&[("stays.json".into(), config_map("stays", "y"))]);
    until("the namespace is gone", async || namespaces.get_opt(&mine).await.unwrap().is_none().then_some(()))
        .await;
}

/// A user who may patch an object can mark it as the Sync's: it would go with its namespace, and nobody was asked about it.
#[tokio::test]
async fn what_only_bears_the_marks_of_the_sync_keeps_its_namespace() {
    let Some(scene) = Scene::new("marked").await else { return };
    let mine = format!("{}-mine", scene.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": mine}}).to_string();
    let files = [("namespace", namespace), ("stays", config_map("stays", "x"))];
    let commit = scene.push(&files.map(|(name, text)| (format!("{name}.json"), text)));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    // Of a kind that the Sync does not watch there.
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &mine);
    let own = &scene.namespace;
    let forged = json!({
        "metadata": {
            "name": "precious", "labels": {"moorline.dev/sync": format!("{own}.shop")},
            "annotations": {"moorline.dev/id": format!("{own}/shop|/Secret|{mine}/precious")},
        },
        "stringData": {"key": "precious"},
    });
    secrets.create(&PostParams::default(), &serde_json::from_value(forged).unwrap()).await.unwrap();
    scene.remove(&["namespace.json"]);
    let approval = until("an approval is asked for", async || {
        scene.status("shop", "/approval/hash").await.as_str().map(str::to_owned)
    })
    .await;
    let approve = json!({"metadata": {"annotations": {"moorline.dev/approve": approval}}});
    scene.patch_sync("shop", approve).await;
    let named = format!("Secret {mine}/precious");
    until("the namespace is held", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        (problems.contains("NotEmpty") && problems.contains(&named)).then_some(())
    })
    .await;
    let namespaces: Api<Namespace> = Api::all(scene.admin.clone());
    assert!(namespaces.get(&mine).await.unwrap().metadata.deletion_timestamp.is_none());
    assert!(secrets.get_opt("precious").await.unwrap().is_some());
}

/// An object that cannot be deleted in time, or may not be, stays and is named, and the Sync goes.
#[tokio::test]
async fn a_sync_does_not_wait_for_what_never_ends_nor_for_rights() {
    let Some(scene) = Scene::new("never").await else { return };
    let stuck = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "stuck", "finalizers": ["example.com/never"]}, "data": {"key": "one"}});
    let commit = scene.push(&[
        ("late/a.json".to_owned(), stuck.to_string()),
        ("denied/b.json".to_owned(), config_map("b", "one")),
    ]);
    tenant(&scene.admin, &scene.namespace, &["get", "list", "watch", "create", "patch"]).await;
    let _daemon = scene.daemon();
    scene.sync("late", json!({"path": "late", "deletionPolicy": "Delete", "timeout": "5s"})).await;
    let denied = json!({"path": "denied", "deletionPolicy": "Delete", "serviceAccountName": "tenant"});
    scene.sync("denied", denied).await;
    for name in ["late", "denied"] {
        scene.until_ready(name, &commit).await;
        scene.delete_sync(name).await;
    }
    let told = until("both are reported", async || {
        let told = until_told(&scene).await;
        (told.len() == 2).then_some(told)
    })
    .await;
    let is_told = |words: &str| told.iter().any(|note| note.contains(words));
    assert!(is_told("ConfigMap") && is_told("stuck (Timeout)") && is_told("b (Forbidden)"), "{told:?}");
    assert_eq!(scene.values().await.into_keys().collect::<Vec<_>>(), ["b", "stuck"]);
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    scene.maps().patch("stuck", &PatchParams::default(), &free).await.unwrap();
}
