//! Hashes with a key: a Secret's cannot be guessed, and neither the first key, nor another one, nor a lost one rolls a Pod or runs
//! a hook or a Job once more.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::DynamicObject;
use moorline::desired::{DesiredSet, Scopes, build_desired_set};
use moorline::render::{RenderOptions, Rendered, render};
use moorline::tree::FileTree;
use serde_json::{Value, json};

use crate::proof::{key, secrets};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::Scene;

fn files(value: &str) -> Vec<(String, String)> {
    let labels = json!({"app": "web"});
    let pod =
        json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/main:1"}]});
    let server = json!({"containers": [{"name": "main", "image": "example.com/main:1"}]});
    let all = [
        (
            "secret.json",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "stringData": {"password": "hunter2"}}),
        ),
        (
            "web.json",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": server}}}),
        ),
        (
            "hook.json",
            json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "up", "annotations": {"helm.sh/hook": "pre-install,pre-upgrade"}},
            "spec": {"parallelism": 0, "template": {"spec": pod}}}),
        ),
        (
            "job.json",
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
            "spec": {"parallelism": 0, "template": {"spec": pod}}}),
        ),
        (
            "map.json",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map"},
            "data": {"key": value}}),
        ),
    ];
    all.map(|(path, body)| (path.to_owned(), body.to_string())).into()
}

fn of_kind(scene: &Scene, kind: &str) -> Api<DynamicObject> {
    match kind {
        "Job" => scene.dynamic("batch", "v1", kind),
        "Deployment" => scene.dynamic("apps", "v1", kind),
        _ => scene.dynamic("", "v1", kind),
    }
}

const OBJECTS: [(&str, &str); 5] =
    [("Secret", "login"), ("Deployment", "web"), ("Job", "up"), ("Job", "once"), ("ConfigMap", "map")];

/// The uid of each object, and of each ReplicaSet: another one would roll the Pods.
async fn runs(scene: &Scene) -> BTreeMap<String, Option<String>> {
    let mut runs = BTreeMap::new();
    for (kind, name) in OBJECTS {
        runs.insert(format!("{kind}/{name}"), of_kind(scene, kind).get(name).await.unwrap().metadata.uid);
    }
    let sets = scene.dynamic("apps", "v1", "ReplicaSet");
    for set in sets.list(&Default::default()).await.unwrap().items {
        runs.insert(format!("ReplicaSet/{}", set.metadata.name.unwrap_or_default()), set.metadata.uid);
    }
    runs
}

async fn hash(scene: &Scene, kind: &str, name: &str) -> String {
    let metadata = of_kind(scene, kind).get(name).await.unwrap().metadata;
    metadata.annotations.unwrap_or_default().remove("moorline.dev/spec-hash").unwrap_or_default()
}

/// A Job ends well, as its controller would say it.
async fn complete(scene: &Scene, name: &str) {
    let jobs = of_kind(scene, "Job");
    // Its controller writes the start; it makes no Pod.
    let begun = until("the Job has begun", async || {
        jobs.get_opt(name).await.unwrap()?.data["status"]["startTime"].as_str().map(str::to_owned)
    })
    .await;
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let is =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now});
    let status = json!({"status": {"startTime": begun, "completionTime": now, "succeeded": 1,
        "conditions": [is("SuccessCriteriaMet"), is("Complete")]}});
    jobs.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Returns the desired set of the files, without keys.
fn plain(files: &[(String, String)], namespace: &str) -> DesiredSet {
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
        panic!("the files are sound")
    };
    build_desired_set(complete, namespace, &Scopes::builtin()).expect("a set")
}

#[tokio::test]
async fn neither_upgrade_nor_rotation_nor_loss_of_the_key_rolls_a_pod_or_runs_a_hook_or_a_job() {
    let Some(scene) = Scene::new("proof-keyed").await else { return };
    let commit = scene.push(&files("one"));
    let daemon = scene.daemon();
    scene.sync("shop", json!({"health": {"wait": true}})).await;
    complete(&scene, "up").await;
    complete(&scene, "once").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    let before = until("the Deployment has a ReplicaSet", async || {
        let runs = runs(&scene).await;
        runs.keys().any(|name| name.starts_with("ReplicaSet/")).then_some(runs)
    })
    .await;

    let set = plain(&files("one"), &scene.namespace);
    nothing_is_guessed(&scene, &set).await;

    // Another key.
    let old = key(&scene, "current").await.expect("a key");
    let encoded = serde_json::to_value(k8s_openapi::ByteString(old.clone())).unwrap();
    let change = Patch::Merge(json!({"data": {"current": null, "previous": encoded}}));
    secrets(&scene).patch("moorline-key", &PatchParams::default(), &change).await.unwrap();
    until("another key is filled in", async || (key(&scene, "current").await? != old).then_some(())).await;
    scene.settle().await;
    assert_eq!(runs(&scene).await, before, "a rotation");
    drop(daemon);
    let daemon = scene.daemon();
    scene.nudge("shop", "after the rotation").await;
    scene.settle().await;
    assert_eq!(runs(&scene).await, before, "a start after the rotation");
    drop(daemon);

    // No key any more.
    secrets(&scene).delete("moorline-key", &DeleteParams::default()).await.unwrap();
    let daemon = scene.daemon();
    scene.nudge("shop", "after the loss").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    assert_eq!(runs(&scene).await, before, "the loss of the key");
    drop(daemon);

    as_of_before(&scene, &set).await;
    let daemon = scene.daemon();
    scene.nudge("shop", "after the upgrade").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    assert_eq!(runs(&scene).await, before, "the upgrade");

    // A change of the set is one still: the hook runs for it.
    let commit = scene.push(&files("two"));
    let up = of_kind(&scene, "Job");
    until("the hook runs for the next commit", async || {
        (up.get_opt("up").await.unwrap()?.metadata.uid != before["Job/up"]).then_some(())
    })
    .await;
    complete(&scene, "up").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(runs(&scene).await["Job/once"], before["Job/once"]);
    drop(daemon);
}

/// Neither metadata nor status tell what can be compared with a guess.
async fn nothing_is_guessed(scene: &Scene, set: &DesiredSet) {
    let status = scene.status("shop", "").await.to_string();
    let digits = |hash: String| hash.rsplit(':').next().unwrap_or_default().to_owned();
    for object in set.objects() {
        let (kind, name) = (object.id.kind(), object.id.name());
        let (recorded, guess) = (hash(scene, kind, name).await, digits(object.hash.to_string()));
        let needs_key = kind == "Secret" || name == "up";
        assert_eq!(recorded.starts_with("k1:"), needs_key, "{kind} {name}: {recorded}");
        assert_eq!(recorded.ends_with(&guess), !needs_key, "{kind} {name}: {recorded}");
        assert!(!needs_key || !status.contains(&guess), "{kind} {name}");
    }
    let digest = digits(set.digest().hash.to_string());
    assert!(status.contains("\"renderDigest\":\"k1:") && !status.contains(&digest), "{status}");
}

/// Objects and status, as a version without proofs and keys left them.
async fn as_of_before(scene: &Scene, set: &DesiredSet) {
    let editor = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    for object in set.objects() {
        let marks = json!({"moorline.dev/proof": null, "moorline.dev/spec-hash": object.hash.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": marks}}));
        of_kind(scene, object.id.kind()).patch(object.id.name(), &editor, &patch).await.unwrap();
    }
    let digest = set.digest().hash.to_string();
    let mut finished = scene.status("shop", "/finished").await;
    for end in finished.as_array_mut().into_iter().flatten() {
        let object =
            set.objects().iter().find(|object| end["object"] == object.id.as_str()).expect("it is wanted");
        end["hash"] = object.hash.to_string().into();
    }
    let status: Value = json!({"status": {
        "renderDigest": digest, "revision": {"appliedDigest": digest}, "finished": finished,
    }});
    scene.syncs().patch_status("shop", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Part that a backup does not restore as it was.
#[derive(Clone, Copy, PartialEq)]
enum Lost {
    /// The uids of the objects.
    Objects,
    /// And that of the Sync.
    Sync,
    /// And the key.
    Key,
}

/// Objects, and perhaps their Sync and the key, are made again from a backup: other uids, the same marks, and no record of who wrote what.
async fn restored(purpose: &str, lost: Lost) {
    let Some(scene) = Scene::new(purpose).await else { return };
    let (daemon, _) = scene.applied(&crate::proof::many(3, "one"), json!({})).await;
    drop(daemon);
    let mut backup: Vec<DynamicObject> = Vec::new();
    for name in ["a-0", "a-1", "a-2"] {
        backup.push(of_kind(&scene, "ConfigMap").get(name).await.unwrap());
        scene.maps().delete(name, &DeleteParams::default()).await.unwrap();
    }
    if lost != Lost::Objects {
        scene.delete_sync("shop").await;
    }
    if lost == Lost::Key {
        secrets(&scene).delete("moorline-key", &DeleteParams::default()).await.unwrap();
    }
    for mut object in backup {
        object.metadata.managed_fields = None;
        object.metadata.resource_version = None;
        object.metadata.uid = None;
        of_kind(&scene, "ConfigMap").create(&Default::default(), &object).await.unwrap();
    }
    let commit = scene.remove(&["a-2.json"]);
    if lost != Lost::Objects {
        scene.sync("shop", json!({})).await;
    }
    let _daemon = scene.daemon();
    until("what is wanted is adopted", async || {
        (scene.status("shop", "/revision/seen").await.as_str()?.ends_with(&commit)
            && scene.status("shop", "/objects/applied").await == 2)
            .then_some(())
    })
    .await;
    scene.assert_calm("once what is wanted is adopted").await;
    assert_eq!(scene.values().await.len(), 3, "nothing was deleted");
    let told = scene.status("shop", "/problems").await.to_string();
    assert!(told.contains("a-2"), "what is left is listed: {told}");
    let secret: Api<Secret> = secrets(&scene);
    assert!(secret.get_opt("moorline-key").await.unwrap().is_some());
}

#[tokio::test]
async fn what_a_backup_brings_back_is_adopted_or_asked_for_and_never_deleted() {
    restored("proof-restored", Lost::Sync).await;
}

#[tokio::test]
async fn objects_that_a_backup_brings_back_under_a_sync_that_lives_are_never_deleted() {
    restored("proof-objects", Lost::Objects).await;
}

#[tokio::test]
async fn a_cluster_that_is_copied_without_the_key_adopts_or_asks_and_never_deletes() {
    restored("proof-copied", Lost::Key).await;
}
