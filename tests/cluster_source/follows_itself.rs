//! Moorline follows its own repository: `config/default` and the chart are Syncs like any other, with the definition of `Sync`
//! and the daemon's own Deployment in them.
//!
//! The tests play the kubelet: they start a new daemon when the Deployment names a new image, and end the old one.

mod chart;

use std::collections::BTreeMap;
use std::path::Path;

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use serde_json::{Value, json};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/moorline/deployments/moorline";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces";

/// The objects whose versions are compared.
const OBJECTS: [&str; 7] = [
    DEFINITION,
    DEPLOYMENT,
    "/api/v1/namespaces/moorline",
    "/api/v1/namespaces/moorline/services/moorline",
    "/api/v1/namespaces/moorline/serviceaccounts/moorline",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/moorline.moorline",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/moorline.moorline",
];

/// The files of a folder of this repository, by their paths in it.
fn files(folder: &str, found: &mut Vec<(String, String)>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(root.join(folder)).unwrap().flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        match entry.file_type().unwrap().is_dir() {
            true => files(&path, found),
            false => found.push((path.clone(), std::fs::read_to_string(root.join(&path)).unwrap())),
        }
    }
}

/// A file of this repository with one text in it replaced.
fn changed(path: &str, from: &str, to: &str) -> (String, String) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    assert!(text.contains(from), "{path} has no {from}");
    (path.to_owned(), text.replacen(from, to, 1))
}

async fn get(scene: &Scene, path: &str) -> Value {
    send_request(&scene.admin, "GET", path, Value::Null)
        .await
        .unwrap_or_else(|error| panic!("{path}: {error:?}"))
}

/// The version of each object. A status written by a controller does not count, so that the entries of our manager are compared.
async fn versions(scene: &Scene) -> BTreeMap<&'static str, (Value, Vec<Value>)> {
    let mut all = BTreeMap::new();
    for path in OBJECTS {
        let live = get(scene, path).await;
        let entries = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let ours = entries
            .into_iter()
            .filter(|entry| entry["manager"].as_str().is_some_and(|manager| manager.starts_with("moorline")));
        all.insert(path, (live["metadata"]["uid"].clone(), ours.collect()));
    }
    all
}

/// Counts the changes of each object since it was like this, as a watch tells it afterwards. A controller's status
/// does not count.
async fn moves(scene: &Scene, since: &[(String, Value)]) -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for (path, before) in since {
        let (collection, name) = path.rsplit_once('/').unwrap();
        let version = before["metadata"]["resourceVersion"].as_str().unwrap();
        let uri = format!(
            "{collection}?watch=true&fieldSelector=metadata.name={name}&resourceVersion={version}&timeoutSeconds=1"
        );
        let told = scene.admin.request_text(http::Request::get(uri).body(Vec::new()).unwrap()).await.unwrap();
        let mark = |object: &Value| match &object["metadata"]["generation"] {
            Value::Null => object["metadata"]["resourceVersion"].clone(),
            generation => generation.clone(),
        };
        let mut marks = vec![mark(before)];
        marks.extend(told.lines().map(|line| mark(&serde_json::from_str::<Value>(line).unwrap()["object"])));
        marks.dedup();
        all.push((path.clone(), marks.len() - 1));
    }
    all
}

/// The objects at these paths, as they are now.
async fn now(scene: &Scene, paths: impl IntoIterator<Item = String>) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for path in paths {
        let live = get(scene, &path).await;
        all.push((path, live));
    }
    all
}

async fn holder(scene: &Scene) -> Option<String> {
    let path = format!("{LEASE}/{}/leases/moorline", scene.namespace);
    let lease = send_request(&scene.admin, "GET", &path, Value::Null).await.ok()?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    (!holder.is_empty()).then(|| holder.to_owned())
}

/// The old daemon ends, and another than the one that held the Lease before serves the Sync, whose newest commit is this.
async fn hands_over(scene: &Scene, mut old: Daemon, before: Option<String>, upgrade: &str) {
    old.terminate();
    until("the new daemon has the Lease", async || {
        holder(scene).await.filter(|it| Some(it) != before.as_ref())
    })
    .await;
    scene.nudge("self", "served by the new one").await;
    until("the new daemon serves it", async || {
        (scene.status("self", "/lastHandledRequest").await == "served by the new one").then_some(())
    })
    .await;
    scene.until_ready("self", upgrade).await;
    scene.settle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_by_commit_hands_over_to_the_new_daemon() {
    let Some(scene) = Scene::new("itself").await else { return };
    let mut all = Vec::new();
    files("config", &mut all);
    let first = scene.push(&all);
    scene.sync("self", json!({"path": "config/default", "interval": "1h"})).await;
    // The rights can be applied although the namespace is not there.
    let rights = moorline(&scene, &["rbac", "--sync", "self"]);
    assert!(
        rights.data.contains("kind: Namespace\nmetadata:\n  name: moorline\n"),
        "{}{}",
        rights.data,
        rights.words
    );
    let old = scene.daemon_at(&scene.proxy, "old", &[]);
    scene.until_ready("self", &first).await;
    let before = holder(&scene).await;
    assert!(before.is_some());
    let image = "/spec/template/spec/containers/0/image";
    let deployed = get(&scene, DEPLOYMENT).await;
    assert_eq!(
        deployed.pointer(image),
        Some(&json!(concat!("image-is-not-set.invalid/moorline:", env!("CARGO_PKG_VERSION"))))
    );

    scene.settle().await;
    let before_upgrade = now(&scene, OBJECTS.map(str::to_owned)).await;
    // The commit brings another image, and a definition that differs from the one that the program was built with.
    let upgrade = scene.push(&[
        changed("config/manager/kustomization.yaml", "newTag: 0.1.0", "newTag: 0.2.0"),
        changed("config/crd/moorline.dev_syncs.yaml", "name: Drift", "name: Drifted"),
    ]);
    scene.nudge("self", "upgrade").await;
    until("the Deployment names the new image", async || {
        (get(&scene, DEPLOYMENT).await.pointer(image)? == "image-is-not-set.invalid/moorline:0.2.0")
            .then_some(())
    })
    .await;
    let new = scene.daemon_at(&scene.proxy, "new", &[]);
    scene.until_ready("self", &upgrade).await;
    let applied = versions(&scene).await;
    hands_over(&scene, old, before, &upgrade).await;
    assert_eq!(versions(&scene).await, applied, "nothing is written twice: {}", new.log());
    let expect = OBJECTS.map(|path| (path.to_owned(), usize::from([DEFINITION, DEPLOYMENT].contains(&path))));
    assert_eq!(
        moves(&scene, &before_upgrade).await,
        expect,
        "each object that the commit changes moves once"
    );
    let columns = columns(&scene).await;
    assert!(columns.contains("\"Drifted\""), "the Sync holds the definition: {columns}");

    assert_pruned_only_by_approval(&scene).await;
    scene.delete_sync("self").await;
    drop(new);
    assert_left_definition_is_brought_up_to_date(&scene).await;
}

async fn columns(scene: &Scene) -> String {
    get(scene, DEFINITION).await["spec"]["versions"][0]["additionalPrinterColumns"].to_string()
}

/// The Sync is gone and has left the definition. Its entry is still there, and holds no daemon off.
async fn assert_left_definition_is_brought_up_to_date(scene: &Scene) {
    let manager = format!("moorline/{}/self", scene.namespace);
    let entries = get(scene, DEFINITION).await["metadata"]["managedFields"].clone();
    assert!(entries.as_array().unwrap().iter().any(|entry| entry["manager"] == *manager), "{entries}");
    let _daemon = scene.daemon();
    until("the definition is the daemon's", async || {
        columns(scene).await.contains("\"Drift\"").then_some(())
    })
    .await;
}

/// Everything but the Namespace leaves Git.
async fn assert_pruned_only_by_approval(scene: &Scene) {
    let kustomization =
        ("config/default/kustomization.yaml".to_owned(), "resources: [namespace.yaml]\n".to_owned());
    scene.push(&[kustomization]);
    until_protected(scene).await;
    get(scene, DEPLOYMENT).await;
    get(scene, DEFINITION).await;
}

/// The daemon's Deployment, its rights and the definition have left Git, and wait for approval.
async fn until_protected(scene: &Scene) {
    scene.nudge("self", "empty").await;
    let kinds =
        ["CustomResourceDefinition", "Deployment", "ClusterRole", "ClusterRoleBinding", "ServiceAccount"];
    until("the objects that the daemon needs wait for approval", async || {
        let problems = scene.status("self", "/problems").await;
        let held = problems.as_array()?.iter().filter(|one| one["reason"] == "Protected");
        let held: Vec<&str> = held.filter_map(|one| one["object"].as_str()).collect();
        let is_held = |kind: &str| held.iter().any(|object| object.split(['.', ' ']).next() == Some(kind));
        kinds.iter().all(|kind| is_held(kind)).then_some(())
    })
    .await;
}
