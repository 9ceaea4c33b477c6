//! The rollout of a commit whose objects have an order: a wave begins when the one before it is well, and hooks run
//! before, after and when it fails. The controllers of what is waited for are the test.

mod asked_for;
mod at_the_end;
mod of_any_kind;

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::status::{condition, define, ended, ready, report, waiting};
use serde_json::{Value, json};

/// A Job that only the test brings to its end.
fn job(name: &str, command: &str, annotations: Value) -> (String, String) {
    let containers = json!([{"name": "main", "image": "example.com/main:1", "command": [command]}]);
    let body = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations},
        "spec": {"managedBy": "example.com/test",
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}}},
    });
    (format!("{name}.json"), body.to_string())
}

fn hook(name: &str, command: &str, moment: &str) -> (String, String) {
    job(name, command, json!({"moorline.dev/hook": moment}))
}

fn map(name: &str, value: &str) -> (String, String) {
    (format!("{name}.json"), config_map(name, value))
}

/// An object of a kind of the test, in a wave.
fn in_wave(kind: &str, name: &str, wave: i32, size: u8) -> (String, String) {
    let body = json!({
        "apiVersion": "ready.example/v1", "kind": kind, "spec": {"size": size},
        "metadata": {"name": name, "annotations": {"moorline.dev/wave": wave.to_string()}},
    });
    (format!("{name}.json"), body.to_string())
}

/// Brings a Job to its end.
async fn end(jobs: &Api<DynamicObject>, name: &str, well: bool) {
    report(jobs, name, ended(well)).await;
}

/// The uid of an object, once it is another one than `before`.
async fn uid(objects: &Api<DynamicObject>, name: &str, before: &str) -> String {
    until(&format!("{name} is there anew"), async || {
        let uid = objects.get_opt(name).await.unwrap()?.metadata.uid?;
        (uid != before).then_some(uid)
    })
    .await
}

async fn value(scene: &Scene, name: &str) -> Option<String> {
    scene.values().await.remove(name)
}

/// Waits until the Sync says that this object waits for that one.
async fn until_waits(scene: &Scene, waiting: &str, blocker: &str) {
    let expect = format!("it waits for {blocker}");
    until(&format!("{waiting} waits for {blocker}"), async || {
        let problems = scene.status("shop", "/problems").await;
        let found = problems.as_array()?.iter().any(|one| {
            one["object"].as_str().is_some_and(|it| it.ends_with(waiting)) && one["message"] == *expect
        });
        found.then_some(())
    })
    .await;
}

/// A commit comes that changes nothing of what is applied.
async fn pass_a_commit_beside(scene: &Scene) {
    let commit = scene.push(&[("README.md".into(), "More words.".into())]);
    scene.nudge("shop", "words").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
}

#[tokio::test]
async fn a_wave_begins_when_the_one_before_it_is_well() {
    let Some(scene) = Scene::new("waves-of-health").await else { return };
    let widgets = define(&scene, "Widget").await;
    let later = |value: &str| {
        let mut body: Value = serde_json::from_str(&config_map("later", value)).unwrap();
        body["metadata"]["annotations"] = json!({"moorline.dev/wave": "1"});
        ("later.json".to_owned(), body.to_string())
    };
    let commit = scene.push(&[in_wave("Widget", "first", 0, 1), later("1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    until("the first wave is there", async || widgets.get_opt("first").await.unwrap()).await;
    until_waits(&scene, "/later", &format!("Widget.ready.example {}/first", scene.namespace)).await;
    assert_eq!(condition(&scene, "shop", "Ready").await["status"], "False");
    scene.settle().await;
    scene.assert_calm_but_for_looks("while a wave is waited for").await;
    assert_eq!(value(&scene, "later").await, None);
    report(&widgets, "first", ready("True", "")).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "later").await.as_deref(), Some("1"));
    scene.settle().await;
    scene.assert_calm("once it is rolled out").await;

    // An object that is rolled out is repaired, whatever else is not well now.
    report(&widgets, "first", ready("False", "it hurts")).await;
    until("the Sync says so", async || {
        (condition(&scene, "shop", "Healthy").await["status"] != "True").then_some(())
    })
    .await;
    scene.edit("later", "by hand").await;
    until("it is repaired", async || (value(&scene, "later").await? == "1").then_some(())).await;

    // A commit that changes both waits for the first of them again.
    report(&widgets, "first", ready("True", "")).await;
    let commit = scene.push(&[in_wave("Widget", "first", 0, 2), later("2")]);
    scene.nudge("shop", "both").await;
    until("the first is changed", async || {
        (widgets.get("first").await.unwrap().data["spec"]["size"] == 2).then_some(())
    })
    .await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "later").await.as_deref(), Some("2"));
}

#[tokio::test]
async fn hooks_run_before_and_after_and_once_for_each_change() {
    let Some(scene) = Scene::new("hooks-around").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let hooks = [hook("migrate", "up", "before"), hook("smoke", "test", "after")];
    let commit = scene.push(&[&hooks[..], &[map("app", "1")]].concat());
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let migrated = uid(&jobs, "migrate", "").await;
    until_waits(&scene, "/app", &format!("Job.batch {}/migrate", scene.namespace)).await;
    assert_eq!(value(&scene, "app").await, None);
    end(&jobs, "migrate", true).await;
    until("the object comes after it", async || value(&scene, "app").await).await;
    let tested = uid(&jobs, "smoke", "").await;
    assert_eq!(condition(&scene, "shop", "Ready").await["status"], "False");
    end(&jobs, "smoke", true).await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    scene.assert_calm("once all have run").await;

    // Nothing that they run for has changed, and who clears a run away does not bring another about.
    let commit = scene.push(&[("README.md".into(), "More words.".into())]);
    scene.nudge("shop", "words").await;
    scene.until_ready("shop", &commit).await;
    moorline_test_support::status::clear(&jobs, "smoke").await;
    drop(daemon);
    let _daemon = scene.daemon();
    let commit = scene.push(&[("README.md".into(), "Even more words.".into())]);
    scene.nudge("shop", "even more").await;
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    assert!(jobs.get_opt("smoke").await.unwrap().is_none());
    assert_eq!(uid(&jobs, "migrate", "").await, migrated);

    // Another value, and both run for it.
    let commit = scene.push(&[map("app", "2")]);
    scene.nudge("shop", "two").await;
    uid(&jobs, "migrate", &migrated).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"), "not before it has run");
    end(&jobs, "migrate", true).await;
    until("the object is changed", async || (value(&scene, "app").await? == "2").then_some(())).await;
    uid(&jobs, "smoke", &tested).await;
    end(&jobs, "smoke", true).await;
    scene.until_ready("shop", &commit).await;
}

#[tokio::test]
async fn a_hook_that_fails_stops_the_commit_and_the_next_one_goes_on() {
    let Some(scene) = Scene::new("hook-fails").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let files = [hook("migrate", "up", "before"), hook("tell", "page", "failure"), map("app", "1")];
    let commit = scene.push(&files);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&jobs, "migrate", "").await;
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    assert!(jobs.get_opt("tell").await.unwrap().is_none(), "nothing has failed");

    scene.push(&[hook("migrate", "break", "before"), map("app", "2")]);
    scene.nudge("shop", "break").await;
    let broken = uid(&jobs, "migrate", &first).await;
    end(&jobs, "migrate", false).await;
    let told = uid(&jobs, "tell", "").await;
    end(&jobs, "tell", true).await;
    moorline_test_support::status::until_healthy(&scene, "shop", "False", "Degraded").await;
    scene.settle().await;
    scene.assert_calm_but_for_looks("after a failure").await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"), "the commit is not applied");
    assert_eq!(uid(&jobs, "migrate", "").await, broken, "nothing is tried again by itself");
    scene.nudge("shop", "try again").await;
    let broken = uid(&jobs, "migrate", &broken).await;
    end(&jobs, "migrate", false).await;
    moorline_test_support::status::until_healthy(&scene, "shop", "False", "Degraded").await;
    scene.settle().await;
    assert_eq!(uid(&jobs, "migrate", "").await, broken, "a person who asks once has it tried once");

    let commit = scene.push(&[hook("migrate", "mended", "before"), map("app", "3")]);
    scene.nudge("shop", "mended").await;
    uid(&jobs, "migrate", &broken).await;
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("3"));
    assert_eq!(uid(&jobs, "tell", "").await, told, "what told of the failure has nothing new to tell");
}

#[tokio::test]
async fn a_run_goes_on_for_the_next_commit_unless_that_changes_it() {
    let Some(scene) = Scene::new("hook-goes-on").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    scene.push(&[hook("migrate", "up", "before"), map("app", "1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&jobs, "migrate", "").await;
    scene.push(&[map("app", "2")]);
    scene.nudge("shop", "meanwhile").await;
    until("its run is waited for", async || {
        let problems = scene.status("shop", "/problems").await;
        problems.as_array()?.iter().any(|one| one["reason"] == "HookRunning").then_some(())
    })
    .await;
    assert_eq!(uid(&jobs, "migrate", "").await, first);
    // One that hangs is mended by a commit, whatever it does now.
    let commit = scene.push(&[hook("migrate", "faster", "before")]);
    scene.nudge("shop", "mended").await;
    let second = uid(&jobs, "migrate", &first).await;
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    // And one that reaches its end runs again for what came meanwhile.
    scene.push(&[map("app", "3")]);
    scene.nudge("shop", "three").await;
    let third = uid(&jobs, "migrate", &second).await;
    let commit = scene.push(&[map("app", "4")]);
    scene.nudge("shop", "four").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(uid(&jobs, "migrate", "").await, third);
    end(&jobs, "migrate", true).await;
    uid(&jobs, "migrate", &third).await;
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("4"));
}

#[tokio::test]
async fn hooks_of_argo_cd_and_helm_are_understood() {
    let Some(scene) = Scene::new("hooks-of-others").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let argo = json!({"argocd.argoproj.io/hook": "PreSync",
        "argocd.argoproj.io/hook-delete-policy": "HookSucceeded"});
    let (_, text) = job("x", "up", argo);
    let mut named_by_content: Value = serde_json::from_str(&text).unwrap();
    let metadata = named_by_content["metadata"].as_object_mut().unwrap();
    metadata.remove("name");
    metadata.insert("generateName".into(), "schema-".into());
    let install = json!({"helm.sh/hook": "post-install", "helm.sh/hook-weight": "3"});
    let upgrade = json!({"helm.sh/hook": "post-upgrade", "helm.sh/hook-weight": "-1"});
    let files = [
        ("schema.json".to_owned(), named_by_content.to_string()),
        job("install", "seed", install),
        job("upgrade", "reindex", upgrade),
        job("tests", "curl", json!({"helm.sh/hook": "test"})),
        map("app", "1"),
    ];
    let commit = scene.push(&files);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let names = async || -> Vec<String> {
        let all = jobs.list(&kube::api::ListParams::default()).await.unwrap();
        all.items.into_iter().filter_map(|job| job.metadata.name).collect()
    };
    let schema = until("the hook without a name", async || names().await.into_iter().next()).await;
    assert!(schema.starts_with("schema-") && schema.len() == "schema-".len() + 10, "{schema}");
    end(&jobs, &schema, true).await;
    uid(&jobs, "install", "").await;
    end(&jobs, "install", true).await;
    scene.until_ready("shop", &commit).await;
    until("the hook that succeeded is deleted", async || (names().await == ["install"]).then_some(())).await;
    scene.settle().await;
    scene.assert_calm("once all have run").await;
    let plan = moorline_test_support::person::moorline(&scene, &["plan", "--sync", "shop"]);
    assert_eq!(plan.code, 0, "what has run is not planned again: {}{}", plan.data, plan.words);
    drop(daemon);
    let _daemon = scene.daemon();
    pass_a_commit_beside(&scene).await;
    assert_eq!(names().await, ["install"], "what has run does not run again after a restart");
    let commit = scene.push(&[map("app", "2")]);
    let plan = moorline_test_support::person::moorline(&scene, &["plan", "--sync", "shop"]);
    assert!(plan.data.contains("/upgrade") && !plan.data.contains("/install"), "{}", plan.data);
    scene.nudge("shop", "two").await;
    uid(&jobs, &schema, "").await;
    end(&jobs, &schema, true).await;
    uid(&jobs, "upgrade", "").await;
    end(&jobs, "upgrade", true).await;
    scene.until_ready("shop", &commit).await;
    assert!(jobs.get_opt("tests").await.unwrap().is_none());
}

#[tokio::test]
async fn an_installation_ends_with_what_reports_nothing_and_what_follows_is_an_upgrade() {
    let Some(scene) = Scene::new("install-then-upgrade").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let files = [
        job("install", "seed", json!({"helm.sh/hook": "pre-install"})),
        job("upgrade", "migrate", json!({"helm.sh/hook": "pre-upgrade"})),
        map("app", "1"),
    ];
    let commit = scene.push(&files);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let installed = uid(&jobs, "install", "").await;
    end(&jobs, "install", true).await;
    // The last thing written is one of which nothing is heard again.
    scene.until_ready("shop", &commit).await;
    assert!(jobs.get_opt("upgrade").await.unwrap().is_none());

    let commit = scene.push(&[map("app", "2")]);
    scene.nudge("shop", "two").await;
    uid(&jobs, "upgrade", "").await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"), "not before it has run");
    end(&jobs, "upgrade", true).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("2"));
    assert_eq!(uid(&jobs, "install", "").await, installed, "there is nothing to install any more");
}

#[tokio::test]
async fn a_restart_in_the_middle_of_a_roll_out_goes_on_with_it() {
    let Some(scene) = Scene::new("hook-restart").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let commit = scene.push(&[hook("migrate", "up", "before"), map("app", "1"), map("old", "1")]);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&jobs, "migrate", "").await;
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    scene.push(&[map("app", "2")]);
    let commit = scene.remove(&["old.json"]);
    scene.nudge("shop", "two").await;
    let second = uid(&jobs, "migrate", &first).await;
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"), "its hook still runs");
    assert_eq!(value(&scene, "old").await.as_deref(), Some("1"), "what leaves Git waits for it, too");
    assert_eq!(uid(&jobs, "migrate", "").await, second);
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("2"));
    until("what left Git is gone", async || value(&scene, "old").await.is_none().then_some(())).await;
}

#[tokio::test]
async fn what_holds_data_is_no_hook_to_be_run_again() {
    let Some(scene) = Scene::new("hook-with-data").await else { return };
    let claims = scene.dynamic("", "v1", "PersistentVolumeClaim");
    let widgets = define(&scene, "Widget").await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"moorline.dev/hook": "before"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}}},
    });
    let (_, widget) = in_wave("Widget", "one", 0, 1);
    let mut widget: Value = serde_json::from_str(&widget).unwrap();
    widget["metadata"]["annotations"] = json!({"argocd.argoproj.io/hook": "PreSync"});
    let files =
        [("data.json".into(), claim.to_string()), ("one.json".into(), widget.to_string()), map("app", "1")];
    scene.push(&files);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({"prune": {"protect": ["Widget.ready.example"]}})).await;
    let (claim, widget) = (uid(&claims, "data", "").await, uid(&widgets, "one", "").await);
    report(&claims, "data", json!({"phase": "Bound"})).await;
    report(&widgets, "one", ready("True", "")).await;
    until("the first commit is applied", async || value(&scene, "app").await).await;
    scene.push(&[map("app", "2")]);
    scene.nudge("shop", "two").await;
    until("the second commit is applied", async || (value(&scene, "app").await? == "2").then_some(())).await;
    assert_eq!(uid(&claims, "data", "").await, claim);
    assert_eq!(uid(&widgets, "one", "").await, widget);
}
