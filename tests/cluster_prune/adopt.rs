//! `moorline adopt` with the real binary on a real API server: what a scripted Argo CD and a scripted Flux hold is shown, taken
//! over and given back, and no object is deleted or made again on the way.

mod client_side;
mod generated_artifact;
mod guards;
mod helm_release;
mod recorded_release;
mod rolling_out;
mod trouble;
mod variables;

use std::collections::BTreeMap;
use std::process::Command;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::gitops_tools::{Part, Robot, application, install, kustomization, path};
use moorline_test_support::person::CommandOutput;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use serde_json::{Value, json};

/// A ConfigMap with these data.
pub(crate) fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Three ConfigMaps, the first with one key more.
pub(crate) fn three() -> Vec<Value> {
    let one = |at: usize| map(&format!("a-{at}"), json!({"key": "one"}));
    let mut all: Vec<Value> = (0..3).map(one).collect();
    all[0]["data"]["more"] = "one".into();
    all
}

/// Pushes objects, each in a file of its own.
pub(crate) fn push(scene: &Scene, objects: &[Value]) -> String {
    let file = |object: &Value| {
        (format!("{}.json", object["metadata"]["name"].as_str().unwrap()), object.to_string())
    };
    scene.push(&objects.iter().map(file).collect::<Vec<_>>())
}

/// Runs `moorline adopt` for who reaches the API server by this proxy.
pub(crate) fn adopt(scene: &Scene, proxy: &FaultProxy, part: Part, arguments: &[&str]) -> CommandOutput {
    let subject = match part {
        Part::ArgoCd => "application/shop",
        Part::Flux => "kustomizations.kustomize.toolkit.fluxcd.io/shop",
    };
    let place = scene.root.path().join("kubeconfig-of-who-adopts");
    std::fs::write(&place, proxy.kubeconfig(&scene.plane, ADMIN)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
    command.args(["adopt", subject, "-n", &scene.namespace]).args(arguments).env("KUBECONFIG", place);
    if arguments.contains(&"--apply") {
        command.args(["--timeout", "30"]);
    }
    if !arguments.contains(&"--undo") && !arguments.contains(&"--sync-namespace") {
        command.args(["--sync-namespace", &scene.namespace]);
    }
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        data: text(output.stdout),
        words: text(output.stderr),
    }
}

/// The resource `shop` as it is.
pub(crate) async fn resource(scene: &Scene, part: Part) -> Value {
    send_request(&scene.admin, "GET", &path(part, &scene.namespace), Value::Null).await.unwrap()
}

/// The uids of the objects that the tool made.
pub(crate) async fn uids(scene: &Scene) -> BTreeMap<String, String> {
    let all = scene.versions().await.into_iter();
    all.filter(|(name, _)| name.starts_with("a-")).map(|(name, (uid, _))| (name, uid)).collect()
}

/// Waits until the robot has made and recorded so many objects.
pub(crate) async fn until_held(scene: &Scene, part: Part, count: usize) -> BTreeMap<String, String> {
    until("the old tool holds all of it", async || {
        let status = &resource(scene, part).await["status"];
        let entries =
            ["/resources", "/inventory/entries"].iter().find_map(|at| status.pointer(at)?.as_array());
        (entries.map_or(0, Vec::len) == count).then_some(())
    })
    .await;
    uids(scene).await
}

pub(crate) async fn config_map(scene: &Scene, name: &str) -> Value {
    let path = format!("/api/v1/namespaces/{}/configmaps/{name}", scene.namespace);
    send_request(&scene.admin, "GET", &path, Value::Null).await.unwrap()
}

/// Nobody deleted an object.
pub(crate) async fn assert_nothing_deleted(scene: &Scene, mark: &AuditMark) {
    let deleted = mark.requests().await.in_namespace(&scene.namespace);
    let deleted = deleted.filter(|it| it.verb.starts_with("delete") && it.resource == "configmaps");
    assert_eq!(deleted.tally(), BTreeMap::new());
}

/// Deletes the resource `shop`, and waits until it is gone.
async fn delete(scene: &Scene, part: Part) {
    let path = path(part, &scene.namespace);
    send_request(&scene.admin, "DELETE", &path, Value::Null).await.unwrap();
    until("it is gone", async || send_request(&scene.admin, "GET", &path, Value::Null).await.err()).await;
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|it| it["manager"].as_str()).collect()
}

/// Three are adopted, of which one changes, and the fourth is left alone.
fn assert_says_what_becomes_of_each(scene: &Scene, shown: &CommandOutput) {
    let left = format!("ConfigMap {}/a-left: not in Git", scene.namespace);
    for expect in [
        "Owned by Argo CD (4): Git has 3 of them",
        &left,
        &format!("ConfigMap {}/a-2: data.old\n", scene.namespace),
        "Adopt (3)",
        "currently managed by argocd-controller",
        "data.key: \"one\" -> \"two\"",
        "3 to adopt, 0 as in Git.",
    ] {
        assert!(shown.data.contains(expect), "{expect}: {}", shown.data);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_shown_and_taken_over_and_deleted_without_its_objects() {
    let Some(scene) = Scene::new("adopt-argocd").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::ArgoCd, FaultProxy::start(&scene.plane));
    let mut in_git = three();
    let mut held = in_git.clone();
    held[2]["data"]["old"] = "one".into();
    held.push(map("a-left", json!({"key": "one"})));
    let _robot = Robot::start(&scene, part, held);
    application(&scene, json!({"prune": true, "selfHeal": true})).await;
    let before = until_held(&scene, part, 4).await;
    in_git[1]["data"]["key"] = "two".into();
    push(&scene, &in_git);
    let daemon = scene.daemon();

    // Showing a proposal writes nothing.
    proxy.take_requests();
    let shown = adopt(&scene, &proxy, part, &[]);
    assert_eq!(shown.code, 2, "{}{}", shown.data, shown.words);
    let writes: Vec<String> = proxy
        .take_requests()
        .iter()
        .filter(|one| one.writes())
        .map(|one| format!("{} {}", one.method, one.path))
        .collect();
    assert_eq!(writes, Vec::<String>::new());
    assert_says_what_becomes_of_each(&scene, &shown);

    let mark = AuditMark::set(&scene.plane).await;
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);
    assert!(applied.words.contains("3 objects were adopted; none was deleted"), "{}", applied.words);
    assert_eq!(uids(&scene).await, before);
    assert_eq!(config_map(&scene, "a-1").await["data"]["key"], "two");
    let halted = resource(&scene, part).await;
    assert_eq!(halted["metadata"].get("finalizers").filter(|all| **all != json!([])), None);
    assert_eq!(halted["spec"]["syncPolicy"], json!({}));

    // Again there is nothing to do, and nothing is done.
    let again = adopt(&scene, &proxy, part, &[]);
    assert!(
        again.code == 0 && again.data.contains("Nothing to do: 3 objects are as in Git."),
        "{}",
        again.data
    );
    scene.settle().await;
    scene.assert_calm("adopted").await;

    // An object that leaves Git is pruned, although the old tool's entry still has it.
    assert!(managers(&config_map(&scene, "a-0").await).contains(&"argocd-controller"));
    in_git[0]["data"].as_object_mut().unwrap().remove("more");
    let commit = push(&scene, &in_git);
    scene.until_ready("shop", &commit).await;
    assert_eq!(config_map(&scene, "a-0").await["data"], json!({"key": "one"}), "{}", daemon.log());

    delete(&scene, part).await;
    scene.assert_calm("without the Application").await;
    assert_eq!(uids(&scene).await, before);
    assert_nothing_deleted(&scene, &mark).await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kustomization_is_taken_over_and_given_back() {
    let Some(scene) = Scene::new("adopt-flux").await else { return };
    install(&scene).await;
    let (part, proxy) = (Part::Flux, FaultProxy::start(&scene.plane));
    let robot = Robot::start(&scene, part, three());
    let old = kustomization(&scene).await;
    let before = until_held(&scene, part, 3).await;
    push(&scene, &three());
    let _daemon = scene.daemon();
    let mark = AuditMark::set(&scene.plane).await;
    let applied = adopt(&scene, &proxy, part, &["--apply"]);
    assert_eq!(applied.code, 0, "{}{}", applied.data, applied.words);
    assert_eq!(resource(&scene, part).await["spec"]["suspend"], true);

    // An object that only the Sync has made stays as well.
    let mut in_git = three();
    in_git.push(map("b", json!({"key": "one"})));
    let commit = push(&scene, &in_git);
    scene.until_ready("shop", &commit).await;

    scene.patch_sync("shop", json!({"spec": {"deletionPolicy": "Delete"}})).await;
    let refused = adopt(&scene, &proxy, part, &["--undo"]);
    assert!(refused.code == 1 && refused.words.contains("would delete its objects"), "{}", refused.words);
    scene.patch_sync("shop", json!({"spec": {"deletionPolicy": "Orphan"}})).await;

    let versions = scene.values().await;
    let undone = adopt(&scene, &proxy, part, &["--undo"]);
    assert_eq!(undone.code, 0, "{}", undone.words);
    assert!(undone.words.contains("4 objects were released"), "{}", undone.words);
    let new = resource(&scene, part).await;
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(new["metadata"]["finalizers"], old["metadata"]["finalizers"]);
    assert_eq!(new["metadata"].get("annotations").filter(|all| **all != json!({})), None);
    assert_eq!(scene.syncs().get_opt("shop").await.unwrap().map(|sync| sync.metadata), None);
    assert_eq!((uids(&scene).await, scene.values().await), (before.clone(), versions));
    for name in ["a-0", "b"] {
        let object = config_map(&scene, name).await;
        let text = object["metadata"].to_string();
        let ours =
            text.contains("moorline.dev/") || managers(&object).iter().any(|it| it.starts_with("moorline"));
        assert!(!ours, "{object}");
    }

    // Flux goes on as before: what it takes away is gone.
    let mut next = three();
    next[0]["data"].as_object_mut().unwrap().remove("more");
    next[0]["data"]["key"] = "three".into();
    robot.hold(next);
    until("Flux goes on", async || {
        (config_map(&scene, "a-0").await["data"] == json!({"key": "three"})).then_some(())
    })
    .await;
    assert_eq!(uids(&scene).await, before);
    assert_nothing_deleted(&scene, &mark).await;
    let nothing = adopt(&scene, &proxy, part, &["--undo"]);
    assert!(nothing.code == 1 && nothing.words.contains("nothing to undo"), "{}", nothing.words);
}
