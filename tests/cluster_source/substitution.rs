//! Variables in manifests, on a real control plane: where their values come from, when they are read, and that nobody sees those of Secrets.

use std::process::Command;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use moorline_test_support::daemon::until;
use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{define, report};
use serde_json::{Value, json};

/// Value in the Secret, and nowhere else.
const PLANTED: &str = "hunter2-planted";

/// A ConfigMap of this name with the key `key`, on lines that a message can name.
fn lines(name: &str, value: &str) -> (String, String) {
    let text =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: \"{value}\"\n");
    ("a.yaml".to_owned(), text)
}

async fn make(scene: &Scene, plural: &str, name: &str, field: &str, values: Value) {
    let path = format!("/api/v1/namespaces/{}/{plural}", scene.namespace);
    let body = json!({"metadata": {"name": name}, field: values});
    send_request(&scene.admin, "POST", &path, body).await.unwrap();
}

async fn until_value(scene: &Scene, name: &str, expect: &str) {
    until(&format!("{name} is {expect}"), async || {
        (scene.values().await.get(name).map(String::as_str) == Some(expect)).then_some(())
    })
    .await;
}

fn substitute(what: Value) -> Value {
    json!({"render": {"substitute": what}, "interval": "1h"})
}

fn from(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "name": name})
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_from_everywhere_and_a_change_is_rendered_at_once() {
    let Some(scene) = Scene::new("values").await else { return };
    make(&scene, "configmaps", "settings", "data", json!({"A": "map", "B": "map", "C": "map", "N": "2"}))
        .await;
    make(&scene, "secrets", "keys", "stringData", json!({"B": PLANTED, "C": PLANTED})).await;
    let job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "${A}-${N}"}, "spec": {
        "schedule": "0 0 1 1 *", "suspend": "${OFF:-true}", "successfulJobsHistoryLimit": "${N}",
        "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "a", "image": "example.com/a:1", "env": [{"name": "N", "value": "${N}"}]}]}}}}}});
    let other = config_map("other", "plain");
    let commit = scene.push(&[
        lines("all", "${A} ${B} ${C} ${D:-none}"),
        ("job.json".to_owned(), job.to_string()),
        ("sub/other.json".to_owned(), other),
    ]);
    let daemon = scene.daemon();
    let sources = json!([from("ConfigMap", "settings"), from("Secret", "keys")]);
    scene.sync("shop", substitute(json!({"vars": {"C": "spec"}, "from": sources}))).await;
    scene.until_ready("shop", &commit).await;
    until_value(&scene, "all", &format!("map {PLANTED} spec none")).await;
    let jobs = scene.dynamic("batch", "v1", "CronJob");
    let made = jobs.get("map-2").await.unwrap().data;
    assert_eq!(
        (&made["spec"]["suspend"], &made["spec"]["successfulJobsHistoryLimit"]),
        (&json!(true), &json!(2))
    );
    scene.settle().await;
    scene.assert_calm("nothing has changed").await;

    // A change arrives by the watch, costs one look at the object that changed, and one write for each object that does.
    let patch = Patch::Merge(json!({"data": {"A": "new", "N": "3"}}));
    scene.proxy.take_requests();
    scene.maps().patch("settings", &PatchParams::default(), &patch).await.unwrap();
    until_value(&scene, "all", &format!("new {PLANTED} spec none")).await;
    until("the job has another name", async || jobs.get_opt("map-2").await.unwrap().is_none().then_some(()))
        .await;
    assert!(jobs.get("new-3").await.is_ok());
    tokio::time::sleep(QUIET_TIME).await;
    let asked = scene.proxy.take_requests();
    let reads = |name: &str| {
        asked.iter().filter(|one| one.method == "GET" && !one.is_watch() && one.path.contains(name)).count()
    };
    assert_eq!((reads("configmaps/settings"), reads("secrets/keys")), (1, 0));
    assert_eq!(asked.iter().filter(|one| one.path.contains("configmaps/other")).count(), 0);

    // The same of the Secret; and a commit that changes nothing that is rendered asks for no values.
    let keys = format!("/api/v1/namespaces/{}/secrets/keys", scene.namespace);
    send_request(&scene.admin, "PATCH", &keys, json!({"stringData": {"B": "other"}})).await.unwrap();
    until_value(&scene, "all", "new other spec none").await;
    scene.settle().await;
    let commit = scene.push(&[("notes.txt".to_owned(), "text".to_owned())]);
    scene.nudge("shop", "a commit").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.take_requests();
    let of_objects = asked.iter().filter(|one| {
        !one.is_watch()
            && (one.is_on_object() || one.path.contains("/configmaps") || one.path.contains("/secrets"))
    });
    assert_eq!(of_objects.count(), 0);
    drop(daemon);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said_and_takes_nothing_away() {
    let Some(scene) = Scene::new("missing").await else { return };
    let commit = scene.push(&[lines("a", "${A}")]);
    let _daemon = scene.daemon();
    let optional = json!({"kind": "Secret", "name": "perhaps", "optional": true});
    let sources = json!([from("ConfigMap", "settings"), optional]);
    scene.sync("shop", substitute(json!({"from": sources}))).await;
    scene.until_reason("shop", "ValuesMissing").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let expect = format!(
        "there is no ConfigMap settings in the namespace {}, which spec.render.substitute.from references; create it, or set optional: true",
        scene.namespace
    );
    assert_eq!(message, json!(expect));
    assert_eq!(scene.values().await.get("a"), None);
    make(&scene, "configmaps", "settings", "data", json!({"A": "one"})).await;
    scene.until_ready("shop", &commit).await;
    until_value(&scene, "a", "one").await;

    // An optional Secret is seen as well when it comes, and when it goes.
    make(&scene, "secrets", "perhaps", "stringData", json!({"A": "two"})).await;
    until_value(&scene, "a", "two").await;
    let perhaps = format!("/api/v1/namespaces/{}/secrets/perhaps", scene.namespace);
    send_request(&scene.admin, "DELETE", &perhaps, Value::Null).await.unwrap();
    until_value(&scene, "a", "one").await;

    scene.maps().delete("settings", &DeleteParams::default()).await.unwrap();
    scene.until_reason("shop", "ValuesMissing").await;
    let before = scene.versions().await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.versions().await, before, "nothing is deleted or written");

    // A suspension meanwhile has an effect.
    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    until("what is edited by hand stays", async || {
        scene.edit("a", "by hand").await;
        tokio::time::sleep(QUIET_TIME).await;
        (scene.values().await.get("a").map(String::as_str) == Some("by hand")).then_some(())
    })
    .await;
    scene.patch_sync("shop", json!({"spec": {"suspend": false}})).await;
    make(&scene, "configmaps", "settings", "data", json!({"A": "three"})).await;
    scene.until_ready("shop", &commit).await;
    until_value(&scene, "a", "three").await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_without_a_value_is_reported_with_its_place_and_an_object_may_be_left_alone() {
    let Some(scene) = Scene::new("strict").await else { return };
    let left = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "${NAME} ${"},
        "metadata": {"name": "left", "annotations": {"moorline.dev/substitute": "disabled"}}});
    let left = ("left.json".to_owned(), left.to_string());
    scene.push(&[lines("a", "${NAEM}"), left]);
    let _daemon = scene.daemon();
    scene.sync("shop", substitute(json!({"vars": {"NAME": "one"}}))).await;
    scene.until_reason("shop", "VariableUnknown").await;
    let message = scene.status("shop", "/problems/0/message").await;
    let message = message.as_str().unwrap();
    let expect = "a.yaml:6:3: data.key of ConfigMap a: there is no variable NAEM (did you mean NAME?)";
    assert!(message.starts_with(expect), "{message}");
    assert_eq!(scene.values().await.len(), 0, "nothing of the commit is applied");

    let commit = scene.push(&[lines("a", "${NAME} $${NAME}")]);
    scene.nudge("shop", "mended").await;
    scene.until_ready("shop", &commit).await;
    let values = scene.values().await;
    assert_eq!((&*values["a"], &*values["left"]), ("one ${NAME}", "${NAME} ${"));
    scene.delete_sync("shop").await;
}

/// All that a person or a collector gets to see of a Sync.
async fn shown(scene: &Scene) -> String {
    let sync = scene.syncs().get("shop").await.unwrap();
    let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    let events = events.list(&ListParams::default()).await.unwrap();
    let said = ["status", "events"].map(|verb| moorline(scene, &[verb, "shop"]));
    let plans = [&["plan", "--sync", "shop"][..], &["plan", "--sync", "shop", "--output", "json"]];
    let plans = plans.map(|arguments| moorline(scene, arguments));
    let said = said.into_iter().chain(plans).map(|said| said.data + &said.words);
    let (sync, events) =
        (serde_json::to_string(&sync).unwrap(), serde_json::to_string(&events.items).unwrap());
    [sync, events].into_iter().chain(said).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_a_secret_is_shown_nowhere() {
    let Some(scene) = Scene::new("hidden").await else { return };
    make(&scene, "secrets", "keys", "stringData", json!({"TOKEN": PLANTED})).await;
    // A type that the server refuses, and quotes when it does.
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"},
        "spec": {"type": "x${TOKEN}", "ports": [{"port": 80, "name": "${TOKEN:0:7}"}]}});
    scene.push(&[lines("a", "with ${TOKEN}"), ("bad.json".to_owned(), service.to_string())]);
    let daemon = scene.daemon_with(&["--leader-election=false", "--log-level", "trace"]);
    scene.sync("shop", substitute(json!({"from": [from("Secret", "keys")]}))).await;
    scene.until_reason("shop", "ApplyFailed").await;
    until_value(&scene, "a", &format!("with {PLANTED}")).await;
    let message = scene.status("shop", "/problems/0/message").await;
    assert!(message.as_str().unwrap().contains("the message is not shown"), "{message}");
    // An edit by hand is repaired, and reported without values.
    scene.edit("a", "by hand").await;
    until_value(&scene, "a", &format!("with {PLANTED}")).await;
    let repaired = async || {
        let told = shown(&scene).await;
        (told.contains("DriftRepaired") && told.contains("data.key")).then_some(told)
    };
    let first = until("the repair is reported", repaired).await;
    // One that is not repaired is shown by a plan, field by field.
    scene.patch_sync("shop", json!({"spec": {"suspend": true}})).await;
    scene.until_reason("shop", "Suspended").await;
    scene.edit("a", "by hand").await;
    scene.patch_sync("shop", json!({"spec": {"suspend": false, "drift": {"mode": "Report"}}})).await;
    scene.until_reason("shop", "ApplyFailed").await;
    let plan = moorline(&scene, &["plan", "--sync", "shop"]);
    assert!(plan.data.contains("data.key: hidden: may contain Secret values"), "{}{}", plan.data, plan.words);
    // A label that is none of a value that nobody may see, and what such a value cannot be part of.
    let label = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "labels": {"a": "${TOKEN}/"}}});
    let name = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c-${TOKEN}"}});
    scene.push(&[("b.json".to_owned(), label.to_string()), ("c.json".to_owned(), name.to_string())]);
    scene.nudge("shop", "names").await;
    until("both are refused", async || {
        let problems = scene.status("shop", "/problems").await.to_string();
        let told = problems.contains("not shown, it contains a secret value")
            && problems.contains("cannot be part of a name");
        told.then_some(())
    })
    .await;
    let metrics = daemon.get("/metrics").unwrap_or_default();
    let all = [first, shown(&scene).await, metrics, daemon.log()].join("\n");
    let around = |at: usize| all[at.saturating_sub(300)..].chars().take(400).collect::<String>();
    assert_eq!(all.find(PLANTED).map(around), None);
    assert!(!all.contains(&PLANTED[..7]), "not a part of it either");
    assert!(all.len() > 10_000, "there is much to look through: {}", all.len());
    scene.delete_sync("shop").await;
}

/// A CronJob with such a value in what names an item of a list, and in an image.
fn keyed() -> (String, String) {
    let body = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "keyed"}, "spec": {
        "schedule": "0 0 1 1 *", "suspend": true,
        "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "a", "image": "example.com/a:1", "env": [{"name": "X_${TOKEN}", "value": "git"}]}]}}}}}});
    ("keyed.json".to_owned(), body.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_paths_nor_what_controllers_say_show_such_a_value() {
    let Some(scene) = Scene::new("quoted").await else { return };
    make(&scene, "secrets", "keys", "stringData", json!({"TOKEN": PLANTED})).await;
    let widgets = define(&scene, "Widget").await;
    let widget = json!({"apiVersion": "ready.example/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"token": "${TOKEN}"}});
    let commit = scene.push(&[keyed(), ("w.json".to_owned(), widget.to_string())]);
    let daemon = scene.daemon_with(&["--leader-election=false", "--log-level", "trace"]);
    let mut spec = substitute(json!({"from": [from("Secret", "keys")]}));
    spec["health"] = json!({"wait": true});
    scene.sync("shop", spec).await;
    until("the widget is there", async || widgets.get_opt("w").await.unwrap()).await;
    assert_eq!(widgets.get("w").await.unwrap().data["spec"]["token"], PLANTED);
    let is = |status: &str| {
        json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": status, "reason": "Any",
            "message": format!("{PLANTED} is no token"), "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    report(&widgets, "w", is("False")).await;
    until("what it says is told to be left out", async || {
        let conditions = scene.status("shop", "/conditions").await.to_string();
        conditions.contains("the message is hidden").then_some(())
    })
    .await;
    let unwell = shown(&scene).await;
    report(&widgets, "w", is("True")).await;
    scene.until_ready("shop", &commit).await;

    // An edit of an item that such a value names.
    let place = "/spec/jobTemplate/spec/template/spec/containers/0/env/0/value";
    let item = json!([{"name": format!("X_{PLANTED}"), "value": "by hand"}]);
    let edit = json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [
        {"name": "a", "env": item}]}}}}}});
    let jobs = scene.dynamic("batch", "v1", "CronJob");
    let manager = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    jobs.patch("keyed", &manager, &Patch::Strategic(edit)).await.unwrap();
    until("it is repaired", async || {
        let job = jobs.get("keyed").await.unwrap().data;
        (job.pointer(place).unwrap() == "git").then_some(())
    })
    .await;
    let repaired = until("the repair is reported", async || {
        let told = shown(&scene).await;
        told.contains("containers[…] changed by kubectl-edit").then_some(told)
    })
    .await;
    let all = [unwell, repaired, daemon.log()].join("\n");
    let around = |at: usize| all[at.saturating_sub(300)..].chars().take(400).collect::<String>();
    assert_eq!(all.find(PLANTED).map(around), None);
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_read_as_the_sync_acts_and_rbac_prints_the_right_to() {
    let Some(scene) = Scene::new("tenant-values").await else { return };
    let place = scene.namespace.clone();
    make(&scene, "secrets", "keys", "stringData", json!({"A": "one"})).await;
    make(&scene, "configmaps", "settings", "data", json!({"B": "two"})).await;
    let account = json!({"metadata": {"name": "tenant"}});
    send_request(&scene.admin, "POST", &format!("/api/v1/namespaces/{place}/serviceaccounts"), account)
        .await
        .unwrap();
    let commit = scene.push(&[lines("a", "${A} ${B}")]);
    let _daemon = scene.daemon();
    let sources = json!([from("Secret", "keys"), from("ConfigMap", "settings")]);
    let mut spec = substitute(json!({"from": sources}));
    spec["serviceAccountName"] = json!("tenant");
    scene.sync("shop", spec).await;
    scene.until_reason("shop", "RightsMissing").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let told = message.as_str().unwrap();
    assert!(told.contains("names the Secret keys, which may not be read"), "{told}");
    assert!(told.contains(&format!("moorline rbac --sync shop -n {place}")), "{told}");

    // An account that may read them and not watch them would not see a change.
    let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{place}");
    let role = json!({"metadata": {"name": "reads"},
        "rules": [{"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get"]}]});
    send_request(&scene.admin, "POST", &format!("{roles}/roles"), role).await.unwrap();
    let binding = json!({"metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": place}]});
    send_request(&scene.admin, "POST", &format!("{roles}/rolebindings"), binding).await.unwrap();
    until("the right that is missing is named", async || {
        let told = scene.status("shop", "/conditions/0/message").await.to_string();
        told.contains("may not be watched").then_some(())
    })
    .await;

    let printed = moorline(&scene, &["rbac", "--sync", "shop"]);
    assert_eq!(printed.code, 0, "{}", printed.words);
    let documents =
        moorline::yaml::read("printed", printed.data.as_bytes(), moorline::yaml::Dialect::Kubectl);
    let documents: Vec<Value> = documents.unwrap().into_iter().map(|document| document.value).collect();
    let rules: Vec<&Value> = documents.iter().filter_map(|it| it["rules"].as_array()).flatten().collect();
    let of = |resource: &str, name: &str| json!({"apiGroups": [""], "resources": [resource], "resourceNames": [name], "verbs": ["get", "list", "watch"]});
    assert!(rules.contains(&&of("secrets", "keys")), "{rules:?}");
    assert!(
        !rules
            .iter()
            .any(|rule| rule["resources"] == json!(["secrets"]) && rule.get("resourceNames").is_none()),
        "no other Secret: {rules:?}"
    );
    for document in &documents {
        let kind = document["kind"].as_str().unwrap().to_lowercase();
        let namespace = document["metadata"]["namespace"].as_str();
        let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let uri = format!("/apis/rbac.authorization.k8s.io/v1/{place}{kind}s");
        send_request(&scene.admin, "POST", &uri, document).await.unwrap();
    }
    scene.until_ready("shop", &commit).await;
    until_value(&scene, "a", "one two").await;
    // The watch has come by the same right.
    let patch = Patch::Merge(json!({"data": {"B": "three"}}));
    scene.maps().patch("settings", &PatchParams::default(), &patch).await.unwrap();
    until_value(&scene, "a", "one three").await;
    scene.delete_sync("shop").await;
}

#[test]
fn the_command_line_takes_variables() {
    let folder = tempfile::tempdir().unwrap();
    let (file, text) = lines("${APP}", "${APP^^}");
    std::fs::write(folder.path().join(file), text).unwrap();
    let run = |verb: &str, variables: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
        command.arg(verb).arg(folder.path());
        variables.iter().for_each(|variable| {
            command.args(["--var", variable]);
        });
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, data, words) = run("render", &["APP=shop"]);
    assert_eq!((code, words.as_str()), (Some(0), ""));
    assert!(data.contains("  name: shop\n") && data.contains("  key: SHOP\n"), "{data}");
    let (code, data, _) = run("check", &["APP=shop"]);
    assert_eq!(code, Some(0), "{data}");
    let (code, _, words) = run("render", &[]);
    assert!(code == Some(1) && words.contains("metadata.name \"${APP}\""), "{words}");
    let (code, _, words) = run("render", &["APPS=shop"]);
    assert!(code == Some(1) && words.contains("there is no variable APP (did you mean APPS?)"), "{words}");
    let (code, _, words) = run("render", &["A.B=shop"]);
    assert!(code == Some(64) && words.contains("the name of a variable must be"), "{words}");
}
