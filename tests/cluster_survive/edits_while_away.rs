//! A restart costs what changed: edits of every kind, made while no daemon runs, are repaired at once, and nothing is
//! asked about the other objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::until_within;
use moorline_test_support::scene::{QUIET_TIME, Scene, many, text};
use moorline_test_support::under_load::under_load;

/// Objects that nobody edits.
const UNCHANGED: usize = 300;
/// Time for all repairs, from the start of the daemon.
const PATIENCE: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(5);

fn by(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

/// Objects that are edited, beside ConfigMaps: one with atomic and keyed lists each, and one whose values are hidden.
fn others() -> Vec<(String, String)> {
    let labels = json!({"app": "web"});
    let all = [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "containers": [{"name": "main", "image": "example.com/main:1", "env": [{"name": "A", "value": "b"}]}]}}}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"a": "b", "c": "d"}}),
    ];
    all.iter()
        .map(|it| text(&format!("{}.json", it["metadata"]["name"]).replace('"', ""), &it.to_string()))
        .collect()
}

/// Ten edits of different kinds; returns the names of the objects.
async fn edit_ten(scene: &Scene) -> BTreeSet<String> {
    let maps = scene.maps();
    let edit = json!({"data": {"key": "by hand"}});
    let patch = async |manager: &str, name: &str, patch: &Value| {
        maps.patch(name, &by(manager), &Patch::Merge(patch)).await.unwrap();
    };
    patch("kubectl-edit", "a-0", &edit).await;
    // A removal leaves no trace of its remover.
    patch("kubectl-edit", "a-1", &json!({"data": {"key": null}})).await;
    let ours = format!("moorline/{}/shop", scene.namespace);
    patch(&ours, "a-2", &edit).await;
    patch("x", "a-3", &json!({"metadata": {"managedFields": [{}]}, "data": {"key": "by hand"}})).await;
    patch(
        "kubectl-label",
        "a-4",
        &json!({"metadata": {"labels": {"moorline.dev/sync": null}}, "data": {"key": "by hand"}}),
    )
    .await;
    maps.delete("a-5", &DeleteParams::default()).await.unwrap();
    let mut whole = maps.get("a-6").await.unwrap();
    whole.metadata.managed_fields = None;
    whole.data = Some(BTreeMap::from([("key".to_owned(), "by hand".to_owned())]));
    maps.replace("a-6", &PostParams::default(), &whole).await.unwrap();
    let deployments = scene.dynamic("apps", "v1", "Deployment");
    let env = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "x"}]}]}}}});
    deployments.patch("web", &by("kubectl-edit"), &Patch::Strategic(&env)).await.unwrap();
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "delete"]}]});
    let roles = scene.dynamic("rbac.authorization.k8s.io", "v1", "Role");
    roles.patch("reader", &by("kubectl"), &Patch::Merge(&rules)).await.unwrap();
    let secret = json!({"data": {"c": null}});
    scene.dynamic("", "v1", "Secret").patch("login", &by("kubectl"), &Patch::Merge(&secret)).await.unwrap();
    (0..7).map(|at| format!("a-{at}")).chain(["web", "reader", "login"].map(str::to_owned)).collect()
}

/// Values of the edited objects now.
async fn edited_values(scene: &Scene) -> Value {
    let values = scene.values().await;
    let maps: Vec<Option<&String>> = (0..7).map(|at| values.get(&format!("a-{at}"))).collect();
    let web = scene.dynamic("apps", "v1", "Deployment").get("web").await.unwrap().data;
    let role = scene.dynamic("rbac.authorization.k8s.io", "v1", "Role").get("reader").await.unwrap().data;
    let secret = scene.dynamic("", "v1", "Secret").get("login").await.unwrap().data;
    json!([maps, web.pointer("/spec/template/spec/containers/0/env"), role["rules"], secret["data"]])
}

#[tokio::test]
async fn ten_edits_made_while_no_daemon_runs_are_repaired_and_nothing_else_is_asked() {
    let Some(scene) = Scene::beside("away").await else { return };
    let files = [many(UNCHANGED + 7, "one"), others()].concat();
    let (mut daemon, _) = scene.applied(&files, json!({"interval": "1h"})).await;
    scene.settle().await;
    let before = edited_values(&scene).await;
    daemon.terminate();
    let edited = edit_ten(&scene).await;
    assert_ne!(edited_values(&scene).await, before);
    let versions = scene.versions().await;
    scene.proxy.take_requests();

    let begun = Instant::now();
    let daemon = scene.daemon();
    until_within(PATIENCE, "all is repaired", async || (edited_values(&scene).await == before).then_some(()))
        .await;
    let took = begun.elapsed();
    tokio::time::sleep(4 * QUIET_TIME).await;
    let asked = scene.proxy.take_requests();
    let asked: Vec<&str> = asked
        .iter()
        .filter(|it| it.is_on_object() && !it.is_watch())
        .filter_map(|it| it.path.rsplit('/').next())
        .collect();
    let names: BTreeSet<String> = asked.iter().map(|name| (*name).to_owned()).collect();
    let more: Vec<&String> = names.difference(&edited).collect();
    assert!(more.len() * 100 <= UNCHANGED, "asked about unchanged objects: {more:?}\n{}", daemon.log());
    assert!(asked.len() <= 2 * edited.len() + more.len(), "{asked:?}");
    assert!(took < under_load(LIMIT), "{took:?}");
    let now = scene.versions().await;
    let written: Vec<&String> = now
        .iter()
        .filter(|(name, it)| versions.get(*name) != Some(it) && !edited.contains(*name))
        .map(|it| it.0)
        .collect();
    assert_eq!(written, Vec::<&String>::new(), "nothing else is written");
    drop(daemon);
    scene.delete_sync("shop").await;
}
