//! The Secret with the daemon's keys: no Sync reads it, fills it in, adopts it or deletes it.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PostParams};
use serde_json::{Value, json};

use crate::proof::{key, problems, secrets};
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::scene::{Scene, config_map};

const KEYS: &str = "moorline-key";
const LABEL: &str = "moorline.dev/keys";

/// A Secret in Git, with more beside its name.
fn secret(name: &str, metadata: Value, more: Value) -> (String, String) {
    let mut object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque"});
    for (field, value) in metadata.as_object().into_iter().flatten() {
        object["metadata"][field] = value.clone();
    }
    for (field, value) in more.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    ("keys.json".to_owned(), object.to_string())
}

/// A map that tells which commit was applied.
fn map(value: &str) -> (String, String) {
    ("map.json".to_owned(), config_map("map", value))
}

async fn until_map(scene: &Scene, value: &str) {
    until(&format!("the map says {value}"), async || {
        (scene.values().await.get("map").map(String::as_str) == Some(value)).then_some(())
    })
    .await;
}

async fn until_held(scene: &Scene, what: &str) {
    let keys = (format!("Secret {}/{KEYS}", scene.namespace), "DaemonKeys".to_owned());
    until(what, async || problems(scene).await.contains(&keys).then_some(())).await;
}

/// The Secret as it has to stay, whatever Git says.
async fn live(scene: &Scene, name: &str) -> Secret {
    secrets(scene).get(name).await.unwrap()
}

/// No Sync of the scene may name this Secret.
async fn assert_unread(scene: &Scene, secret: &str) {
    let url = scene.git.url("repository.git");
    let named = json!({"name": secret});
    for (name, spec) in [
        ("login", json!({"source": {"git": {"url": "https://127.0.0.1:1/a.git", "secretRef": named}}})),
        ("verify", json!({"source": {"git": {"url": url, "verify": {"mode": "HEAD", "secretRef": named}}}})),
        ("values", json!({"render": {"substitute": {"from": [{"kind": "Secret", "name": secret}]}}})),
        (
            "optional",
            json!({"render": {"substitute": {"from": [{"kind": "Secret", "name": secret, "optional": true}]}}}),
        ),
    ] {
        scene.sync(name, spec).await;
        scene.until_reason(name, "SpecInvalid").await;
        let message = scene.status(name, "/conditions/0/message").await;
        let message = message.as_str().unwrap_or_default();
        assert!(
            message.contains(&format!("the Secret {secret} holds the keys of the daemon")),
            "{name}: {message}"
        );
        scene.delete_sync(name).await;
    }
}

#[tokio::test]
async fn no_sync_reads_the_keys() {
    let Some(scene) = Scene::new("keys-read").await else { return };
    let (_daemon, commit) = scene.applied(&[map("one")], json!({})).await;
    assert!(key(&scene, "current").await.is_some());
    assert_unread(&scene, KEYS).await;
    scene.until_ready("shop", &commit).await;
}

/// The mark tells the keys of one daemon to all others.
#[tokio::test]
async fn the_keys_of_a_daemon_of_before_are_marked() {
    let Some(scene) = Scene::new("keys-marked").await else { return };
    let (_daemon, _) = scene.applied(&[map("one")], json!({})).await;
    let is_marked = async || {
        let labels = live(&scene, KEYS).await.metadata.labels;
        labels.is_some_and(|all| all.contains_key(LABEL)).then_some(())
    };
    until("the keys are marked", is_marked).await;
    let before = live(&scene, KEYS).await.data;
    let bare = json!({"metadata": {"labels": {LABEL: null}}});
    secrets(&scene).patch(KEYS, &Default::default(), &Patch::Merge(&bare)).await.unwrap();
    until("the keys are marked again", is_marked).await;
    assert_eq!(live(&scene, KEYS).await.data, before);
}

/// Managers of the fields of an object, sorted.
fn managers(metadata: ObjectMeta) -> Vec<String> {
    let entries = metadata.managed_fields.unwrap_or_default();
    let mut managers: Vec<String> = entries.into_iter().filter_map(|entry| entry.manager).collect();
    managers.sort();
    managers
}

/// An earlier version gave no name with its writes. What it wrote stays as it is.
#[tokio::test]
async fn the_daemon_names_itself_with_its_keys_and_its_lease() {
    let Some(scene) = Scene::new("keys-manager").await else { return };
    scene.push(&[map("one")]);
    let daemon = scene.daemon_with(&[]);
    let first = until("there is a key", async || secrets(&scene).get_opt(KEYS).await.unwrap()).await;
    assert_eq!(managers(first.metadata), ["moorline-daemon"]);
    let leases: Api<Lease> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let lease = until("there is a Lease", async || leases.get_opt("moorline").await.unwrap()).await;
    assert_eq!(managers(lease.metadata), ["moorline-daemon"]);
    drop(daemon);

    secrets(&scene).delete(KEYS, &Default::default()).await.unwrap();
    let mut older = Secret { data: first.data.clone(), ..Secret::default() };
    older.metadata.name = Some(KEYS.to_owned());
    older.metadata.labels = Some([(LABEL.to_owned(), "true".to_owned())].into());
    let unnamed = PostParams { field_manager: Some("unknown".to_owned()), ..PostParams::default() };
    let older = secrets(&scene).create(&unnamed, &older).await.unwrap();
    let _daemon = scene.daemon();
    scene.sync("shop", json!({})).await;
    until_map(&scene, "one").await;
    assert_eq!(live(&scene, KEYS).await.metadata.resource_version, older.metadata.resource_version);
    let empty = Patch::Merge(json!({"data": {"current": null}}));
    secrets(&scene).patch(KEYS, &Default::default(), &empty).await.unwrap();
    let filled = async || Some(live(&scene, KEYS).await).filter(|secret| secret.data == first.data);
    let filled = until("the same key is filled in", filled).await;
    assert!(managers(filled.metadata).contains(&"moorline-daemon".to_owned()));
}

#[tokio::test]
async fn the_keys_of_another_daemon_are_as_safe() {
    let Some(scene) = Scene::new("keys-others").await else { return };
    let others = "blue-key";
    let (_daemon, _) = scene.applied(&[map("one")], json!({"deletionPolicy": "Delete"})).await;
    let made = json!({"metadata": {"name": others, "labels": {LABEL: "true"}}});
    secrets(&scene).create(&Default::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    assert_unread(&scene, others).await;
    let before = live(&scene, others).await;
    let held = (format!("Secret {}/{others}", scene.namespace), "DaemonKeys".to_owned());
    let until_held =
        async |what: &str| until(what, async || problems(&scene).await.contains(&held).then_some(())).await;
    let assert_same = async |when: &str| {
        let now = live(&scene, others).await;
        assert_eq!(
            (now.metadata.uid, now.data),
            (before.metadata.uid.clone(), before.data.clone()),
            "{when}"
        );
    };
    // A key of before that its daemon would accept.
    let data = json!({"stringData": {"previous": "0123456789abcdef0123456789abcdef"}});
    scene.push(&[secret(others, json!({}), data.clone()), map("filled")]);
    until_held("it is not filled in").await;
    assert_same("filled in").await;
    // Nor is one made that another daemon would find.
    let marked = json!({"labels": {LABEL: "true"}});
    scene.push(&[secret("green-key", marked, data), map("made")]);
    until_map(&scene, "made").await;
    assert!(secrets(&scene).get_opt("green-key").await.unwrap().is_none());
    scene.push(&[secret(others, json!({"labels": {"a": "b"}}), json!({})), map("bare")]);
    until_map(&scene, "bare").await;
    until("it has the label of Git", async || {
        live(&scene, others).await.metadata.labels.filter(|all| all.contains_key("a")).map(drop)
    })
    .await;
    scene.remove(&["keys.json"]);
    until_held("it is gone from Git").await;
    assert_same("gone from Git").await;
    scene.delete_sync("shop").await;
    assert_same("the Sync is deleted with its objects").await;
    // Any other Secret that is there is adopted as ever.
    let there = json!({"metadata": {"name": "plain"}, "stringData": {"a": "b"}});
    secrets(&scene).create(&Default::default(), &serde_json::from_value(there).unwrap()).await.unwrap();
    let commit = scene.push(&[secret("plain", json!({}), json!({"stringData": {"a": "c"}}))]);
    scene.sync("plain", json!({})).await;
    scene.until_ready("plain", &commit).await;
    assert_eq!(live(&scene, "plain").await.data.unwrap()["a"].0, b"c");
}

#[tokio::test]
async fn no_commit_fills_the_keys_in_or_deletes_them() {
    let Some(scene) = Scene::new("keys-written").await else { return };
    let (_daemon, _) = scene.applied(&[map("one")], json!({"deletionPolicy": "Delete"})).await;
    let before = live(&scene, KEYS).await;
    let assert_same = async |when: &str| {
        let now = live(&scene, KEYS).await;
        assert_eq!(
            (now.metadata.uid, now.data),
            (before.metadata.uid.clone(), before.data.clone()),
            "{when}"
        );
    };
    let data = json!({"stringData": {"current": "0123456789abcdef0123456789abcdef"}});
    let again = json!({"annotations": {"moorline.dev/recreate": "enabled"}});
    let hook = json!({"annotations": {"moorline.dev/hook": "before",
        "moorline.dev/hook-delete": "before-creation"}});
    let cases = [
        ("data", json!({}), data),
        ("never to be filled in", json!({}), json!({"immutable": true})),
        ("a hook", hook, json!({})),
    ];
    for (at, (what, metadata, more)) in cases.into_iter().enumerate() {
        // A hook that is held holds back what comes after it.
        let commit = scene.push(&[secret(KEYS, metadata, more), map(&format!("held {at}"))]);
        until(&format!("{what} was tried"), async || {
            let attempted = scene.status("shop", "/revision/attempted").await;
            attempted.as_str().is_some_and(|it| it.ends_with(&commit)).then_some(())
        })
        .await;
        until_held(&scene, what).await;
        assert_same(what).await;
        let labels = live(&scene, KEYS).await.metadata.labels;
        assert!(labels.is_none_or(|all| !all.contains_key("moorline.dev/sync")), "{what}");
    }
    // As the chart has it: that it is there.
    scene.push(&[secret(KEYS, json!({"labels": {"a": "b"}}), json!({})), map("bare")]);
    until_map(&scene, "bare").await;
    until("it has the label of Git", async || {
        live(&scene, KEYS).await.metadata.labels.filter(|all| all.contains_key("a")).map(drop)
    })
    .await;
    assert_same("its labels are from Git").await;
    // Another type wants another Secret.
    scene.push(&[secret(KEYS, again, json!({"type": "example.com/other"})), map("other")]);
    until_held(&scene, "it is not made anew").await;
    assert_same("another type").await;
    scene.push(&[secret(KEYS, json!({"labels": {"a": "b"}}), json!({})), map("again")]);
    until_map(&scene, "again").await;
    scene.remove(&["keys.json"]);
    until_held(&scene, "it is gone from Git").await;
    assert_same("gone from Git").await;
    scene.delete_sync("shop").await;
    assert!(scene.values().await.is_empty(), "the rest is deleted with the Sync");
    assert_same("the Sync is deleted with its objects").await;
}

#[tokio::test]
async fn a_run_without_a_sync_keeps_the_keys_beside_its_lease() {
    let Some(scene) = Scene::new("keys-run").await else { return };
    let keys = "moorline-alone-key";
    let data = json!({"stringData": {"current": "0123456789abcdef0123456789abcdef", "id": "stolen"}});
    scene.push(&[secret(keys, json!({}), data), map("one")]);
    let (proxy, url) = (FaultProxy::start(&scene.plane), scene.git.url("repository.git"));
    let _run = scene.daemon_at(&proxy, "run", &["--url", &url, "--name", "alone"]);
    until_map(&scene, "one").await;
    let before = live(&scene, keys).await;
    let data = before.data.clone().unwrap_or_default();
    assert!(data.contains_key("current") && data.get("id").is_some_and(|id| id.0 != b"stolen"), "{before:?}");
    let labels = before.metadata.labels.clone().unwrap_or_default();
    assert_eq!(labels.keys().collect::<Vec<_>>(), [LABEL], "it is marked, and not adopted");
    let bare = secret(keys, json!({"labels": {"a": "b"}}), json!({}));
    scene.push(&[bare, map("two")]);
    until_map(&scene, "two").await;
    until("it has the label of Git", async || {
        live(&scene, keys).await.metadata.labels.filter(|all| all.contains_key("a")).map(drop)
    })
    .await;
    scene.remove(&["keys.json"]);
    scene.push(&[map("three")]);
    until_map(&scene, "three").await;
    let now = live(&scene, keys).await;
    assert_eq!((now.metadata.uid, now.data), (before.metadata.uid, before.data));
}
