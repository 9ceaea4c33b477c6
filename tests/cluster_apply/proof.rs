//! Nothing is deleted on forged evidence: the marks of a Sync count only with a proof by the daemon's key.

mod belief;
mod forms;
mod keyed;
mod own_keys;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map, many};

/// The marks of the Sync `shop` on a ConfigMap, as anybody who may patch objects can write them.
fn marks(scene: &Scene, name: &str) -> Value {
    let namespace = &scene.namespace;
    json!({
        "labels": {"moorline.dev/sync": format!("{namespace}.shop")},
        "annotations": {
            "moorline.dev/id": format!("{namespace}/shop|/ConfigMap|{namespace}/{name}"),
            "moorline.dev/spec-hash": format!("v1:{}", "a5".repeat(32)),
        },
    })
}

/// Applies a ConfigMap with these marks under the field manager of the Sync.
async fn forge(scene: &Scene, name: &str, proof: Option<&str>) {
    let mut metadata = marks(scene, name);
    metadata["name"] = name.into();
    if let Some(proof) = proof {
        metadata["annotations"]["moorline.dev/proof"] = proof.into();
    }
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "precious"}});
    let manager = format!("moorline/{}/shop", scene.namespace);
    scene.maps().patch(name, &PatchParams::apply(&manager).force(), &Patch::Apply(&object)).await.unwrap();
}

fn annotation(map: &k8s_openapi::api::core::v1::ConfigMap, key: &str) -> Option<String> {
    map.metadata.annotations.as_ref()?.get(key).cloned()
}

/// The problems of the Sync, as object and reason.
async fn problems(scene: &Scene) -> Vec<(String, String)> {
    let problems = scene.status("shop", "/problems").await;
    let text = |problem: &Value, field: &str| problem[field].as_str().unwrap_or_default().to_owned();
    problems.as_array().into_iter().flatten().map(|it| (text(it, "object"), text(it, "reason"))).collect()
}

async fn until_unproven(scene: &Scene, count: usize) {
    until(&format!("{count} objects are not proven"), async || {
        let found = problems(scene).await;
        (found.iter().filter(|(_, reason)| reason == "Unproven").count() == count).then_some(())
    })
    .await;
}

/// `moorline plan --sync shop`
fn plan(scene: &Scene) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_moorline"))
        .args(["plan", "--sync", "shop", "-n", &scene.namespace])
        .env("KUBECONFIG", scene.plane.kubeconfig_file(moorline_test_support::credentials::ADMIN))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test]
async fn an_object_with_forged_marks_is_pruned_only_by_approval() {
    let Some(scene) = Scene::new("proof-forged").await else { return };
    let (_daemon, commit) = scene.applied(&many(3, "one"), json!({})).await;
    let proof = annotation(&scene.maps().get("a-0").await.unwrap(), "moorline.dev/proof").expect("a proof");
    assert_eq!(proof.len(), 8 + 1 + 64);
    // A proof is worth nothing on another object.
    forge(&scene, "copied", Some(&proof)).await;
    forge(&scene, "forged", None).await;
    until_unproven(&scene, 2).await;
    scene.assert_calm("while two objects are not proven").await;
    // They are not pruned with the next commit either, and what is proven is.
    let next = scene.remove(&["a-2.json"]);
    assert_ne!(next, commit);
    until("the proven object is pruned", async || {
        scene.maps().get_opt("a-2").await.unwrap().is_none().then_some(())
    })
    .await;
    until_unproven(&scene, 2).await;
    let left: Vec<String> = scene.values().await.into_keys().collect();
    assert_eq!(left, ["a-0", "a-1", "copied", "forged"]);
    // The plan has no key: it takes what is not proven from the status, and says who checks the rest.
    let planned = plan(&scene);
    assert!(
        planned.contains("copied: no longer in Git, and it has the annotations of this Sync without a valid"),
        "{planned}"
    );
    // A person may say that they go.
    let hash = scene.status("shop", "/approval/hash").await;
    scene.patch_sync("shop", json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}})).await;
    until("both are pruned", async || (scene.values().await.len() == 2).then_some(())).await;
}

#[tokio::test]
async fn forged_objects_do_not_widen_the_budget() {
    let Some(scene) = Scene::new("proof-budget").await else { return };
    let (_daemon, _) = scene.applied(&many(15, "one"), json!({})).await;
    // With 60 objects more, 12 of 15 would be less than 30 %.
    for at in 0..60 {
        forge(&scene, &format!("forged-{at}"), None).await;
    }
    let names: Vec<String> = (0..12).map(|at| format!("a-{at}.json")).collect();
    scene.remove(&names.iter().map(String::as_str).collect::<Vec<_>>());
    until("the prune is over budget", async || {
        let reasons = scene.status("shop", "/conditions").await.to_string();
        let waits = scene.status("shop", "/approval/objects").await;
        (waits == json!(72) || reasons.contains("12 of 15")).then_some(())
    })
    .await;
    scene.assert_calm("while the prune waits").await;
    assert_eq!(scene.values().await.len(), 75, "nothing was pruned");
}

#[tokio::test]
async fn a_forged_identity_does_not_stop_repairs() {
    let Some(scene) = Scene::new("proof-identity").await else { return };
    let mut files: Vec<_> =
        many(4, "one").into_iter().map(|(path, text)| (format!("main/{path}"), text)).collect();
    files.push(("other/b.json".to_owned(), config_map("b", "one")));
    let (_daemon, _) = scene.applied(&files, json!({"path": "main"})).await;
    let namespace = scene.namespace.clone();
    // A Sync that lives, has rendered and wants nothing of this.
    scene.sync("other", json!({"path": "other"})).await;
    until("the other Sync has applied", async || scene.maps().get_opt("b").await.unwrap().map(drop)).await;
    let editor = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    let named =
        [("a-0", "other", true), ("a-1", "other", false), ("a-2", "nobody", true), ("a-3", "nobody", false)];
    for (name, sync, keeps_proof) in named {
        let identity = format!("{namespace}/{sync}|/ConfigMap|{namespace}/{name}");
        let mut annotations = json!({"moorline.dev/id": identity});
        if !keeps_proof {
            annotations["moorline.dev/proof"] = Value::Null;
        }
        let patch = json!({"metadata": {"annotations": annotations}, "data": {"key": "hacked"}});
        scene.maps().patch(name, &editor, &Patch::Merge(&patch)).await.unwrap();
    }
    until("all four are repaired", async || {
        let maps = scene.maps().list(&ListParams::default()).await.unwrap().items;
        let ours = maps.iter().filter(|map| {
            let identity = annotation(map, "moorline.dev/id").unwrap_or_default();
            let value = map.data.as_ref().and_then(|data| data.get("key"));
            identity.starts_with(&format!("{namespace}/shop|")) && value.is_some_and(|value| value == "one")
        });
        (ours.count() == 4).then_some(())
    })
    .await;
}

/// Returns the versions of the objects.
async fn settled_versions(scene: &Scene) -> BTreeMap<String, (String, String)> {
    scene.settle().await;
    scene.versions().await
}

#[tokio::test]
async fn objects_of_before_the_upgrade_are_proven_by_the_first_start() {
    let Some(scene) = Scene::new("proof-upgrade").await else { return };
    let (daemon, commit) = scene.applied(&many(3, "one"), json!({})).await;
    drop(daemon);
    // As the version before left them, one of them no longer in Git.
    let editor = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    for name in ["a-0", "a-1", "a-2"] {
        let patch = json!({"metadata": {"annotations": {"moorline.dev/proof": null}}});
        scene.maps().patch(name, &editor, &Patch::Merge(&patch)).await.unwrap();
    }
    let next = scene.remove(&["a-2.json"]);
    assert_ne!(next, commit);
    let _daemon = scene.daemon();
    until_unproven(&scene, 1).await;
    until("what is wanted is proven", async || {
        let maps = scene.maps().list(&ListParams::default()).await.unwrap().items;
        (maps.iter().filter(|map| annotation(map, "moorline.dev/proof").is_some()).count() == 2).then_some(())
    })
    .await;
    scene.assert_calm("once all that is wanted is proven").await;
    assert_eq!(scene.values().await.len(), 3);
    let problems = problems(&scene).await;
    assert!(problems.iter().all(|(object, _)| object.ends_with("/a-2")), "{problems:?}");
    let events = scene.status("shop", "/history").await.to_string();
    assert!(!events.contains("Repaired"), "{events}");
}

#[tokio::test]
async fn a_sync_of_a_name_used_again_asks_before_it_prunes_what_the_last_one_left() {
    let Some(scene) = Scene::new("proof-again").await else { return };
    let files = many(6, "one");
    let (_daemon, _) = scene.applied(&files, json!({"deletionPolicy": "Orphan"})).await;
    scene.delete_sync("shop").await;
    let commit = scene.remove(&["a-3.json", "a-4.json", "a-5.json"]);
    scene.sync("shop", json!({})).await;
    until_unproven(&scene, 3).await;
    let applied = scene.status("shop", "/revision/applied").await;
    assert!(applied.as_str().is_some_and(|applied| applied.ends_with(&commit)), "{applied}");
    scene.assert_calm("while three objects of the last Sync are left").await;
    assert_eq!(scene.values().await.len(), 6, "nothing was pruned");
    // A desired object is this Sync's from now on.
    scene.remove(&["a-2.json"]);
    until("an adopted object is pruned", async || {
        scene.maps().get_opt("a-2").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(scene.values().await.len(), 5);
}

fn secrets(scene: &Scene) -> Api<Secret> {
    Api::namespaced(scene.admin.clone(), &scene.namespace)
}

async fn key(scene: &Scene, field: &str) -> Option<Vec<u8>> {
    let secret = secrets(scene).get_opt("moorline-key").await.unwrap()?;
    Some(secret.data?.remove(field)?.0)
}

#[tokio::test]
async fn a_key_that_is_emptied_is_filled_in_again_and_one_that_is_rotated_is_accepted() {
    let Some(scene) = Scene::new("proof-rotation").await else { return };
    let (daemon, _) = scene.applied(&many(3, "one"), json!({})).await;
    let before = key(&scene, "current").await.expect("a key");
    let versions = settled_versions(&scene).await;
    let change = async |data: Value| {
        let patch = Patch::Merge(json!({"data": data}));
        secrets(&scene).patch("moorline-key", &PatchParams::default(), &patch).await.unwrap();
    };
    change(json!({"current": null})).await;
    until("the same key is filled in", async || (key(&scene, "current").await? == before).then_some(()))
        .await;
    // A new key, and the old one beside it.
    let encoded = serde_json::to_value(k8s_openapi::ByteString(before.clone())).unwrap();
    change(json!({"current": null, "previous": encoded})).await;
    until("another key is filled in", async || (key(&scene, "current").await? != before).then_some(())).await;
    scene.settle().await;
    assert_eq!(scene.versions().await, versions, "a change of the key changes no object");
    // Objects that were proven with the old key are pruned without asking.
    scene.remove(&["a-2.json"]);
    until("the object is pruned", async || {
        scene.maps().get_opt("a-2").await.unwrap().is_none().then_some(())
    })
    .await;
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    assert!(problems(&scene).await.is_empty());
}

#[tokio::test]
async fn with_a_lost_key_what_is_wanted_is_proven_anew_and_nothing_else_is_pruned() {
    let Some(scene) = Scene::new("proof-lost").await else { return };
    let (daemon, _) = scene.applied(&many(4, "one"), json!({})).await;
    drop(daemon);
    secrets(&scene).delete("moorline-key", &DeleteParams::default()).await.unwrap();
    scene.remove(&["a-3.json"]);
    let _daemon = scene.daemon();
    until_unproven(&scene, 1).await;
    assert_eq!(scene.values().await.len(), 4);
    scene.remove(&["a-2.json"]);
    until("what was proven anew is pruned", async || {
        scene.maps().get_opt("a-2").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(scene.values().await.len(), 3);
}

#[tokio::test]
async fn a_deletion_with_its_objects_leaves_what_is_not_proven() {
    let Some(scene) = Scene::new("proof-deletion").await else { return };
    let (_daemon, _) = scene.applied(&many(2, "one"), json!({"deletionPolicy": "Delete"})).await;
    forge(&scene, "forged", None).await;
    until_unproven(&scene, 1).await;
    scene.delete_sync("shop").await;
    let left: Vec<String> = scene.values().await.into_keys().collect();
    assert_eq!(left, ["forged"]);
}

/// A daemon without proofs, of before, serves for a while: it applies without a proof, and so takes the proof away.
#[tokio::test]
async fn what_an_older_daemon_wrote_in_between_is_proven_anew_or_asked_for() {
    let Some(scene) = Scene::new("proof-downgrade").await else { return };
    let (daemon, _) = scene.applied(&many(4, "one"), json!({})).await;
    drop(daemon);
    // Two of before that it applied again, and two that it made.
    for name in ["a-2", "a-3"] {
        scene.maps().delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in ["a-0", "a-1", "a-2", "a-3"] {
        forge(&scene, name, None).await;
        let map = scene.maps().get(name).await.unwrap();
        assert_eq!(annotation(&map, "moorline.dev/proof"), None, "{name}");
    }
    let uids = async || -> BTreeMap<String, String> {
        scene.versions().await.into_iter().map(|(name, (uid, _))| (name, uid)).collect()
    };
    let before = uids().await;
    scene.remove(&["a-1.json", "a-3.json"]);
    let _daemon = scene.daemon();
    until_unproven(&scene, 2).await;
    until("what is wanted is as in Git, and proven", async || {
        let maps = scene.maps().list(&ListParams::default()).await.unwrap().items;
        let proven = maps.iter().filter(|map| annotation(map, "moorline.dev/proof").is_some());
        let mut names: Vec<&str> = proven.filter_map(|map| map.metadata.name.as_deref()).collect();
        names.sort_unstable();
        (names == ["a-0", "a-2"]).then_some(())
    })
    .await;
    scene.assert_calm("while two objects of the older daemon are left").await;
    assert_eq!(uids().await, before, "nothing was deleted or made anew");
    let values = scene.values().await;
    assert_eq!((&*values["a-0"], &*values["a-3"]), ("one", "precious"));
}
