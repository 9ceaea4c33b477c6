//! Hooks that are neither Jobs nor Pods: they end, are cleared away and make room as those do.

use kube::api::ListParams;
use serde_json::{Value, json};

use super::{end, in_wave, job, map, pass_a_commit_beside, uid, value};
use moorline_test_support::daemon::until;
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::status::{clear, condition, define, ready, report, until_healthy, waiting};

/// A hook of any kind, as a file.
fn hook(body: Value, annotations: Value) -> (String, String) {
    let mut body = body;
    body["metadata"]["annotations"] = annotations;
    (format!("{}.json", body["metadata"]["name"].as_str().unwrap()), body.to_string())
}

fn widget(name: &str, annotations: Value) -> (String, String) {
    let (_, text) = in_wave("Widget", name, 0, 1);
    hook(serde_json::from_str(&text).unwrap(), annotations)
}

#[tokio::test]
async fn what_it_came_to_is_remembered_when_it_is_cleared_away() {
    let Some(scene) = Scene::new("hook-of-any-kind").await else { return };
    let widgets = define(&scene, "Widget").await;
    let jobs = scene.dynamic("batch", "v1", "Job");
    let next = job("next", "up", json!({"moorline.dev/hook": "before", "moorline.dev/wave": "1"}));
    let run = widget("run", json!({"argocd.argoproj.io/hook": "PreSync"}));
    let commit = scene.push(&[run, next, map("app", "1")]);
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&widgets, "run", "").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert!(jobs.get_opt("next").await.unwrap().is_none(), "it has not ended");
    report(&widgets, "run", ready("True", "")).await;
    uid(&jobs, "next", "").await;
    clear(&widgets, "run").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert!(widgets.get_opt("run").await.unwrap().is_none(), "it has run for this commit");
    drop(daemon);
    let daemon = scene.daemon();
    scene.settle().await;
    assert!(widgets.get_opt("run").await.unwrap().is_none(), "also for who has only just begun");
    end(&jobs, "next", true).await;
    scene.until_ready("shop", &commit).await;
    assert!(widgets.get_opt("run").await.unwrap().is_none());

    // One that fails stops the commit, also when nothing is left of it.
    scene.push(&[map("app", "2")]);
    scene.nudge("shop", "two").await;
    let second = uid(&widgets, "run", &first).await;
    let failed = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "Told"}]});
    report(&widgets, "run", failed).await;
    until_healthy(&scene, "shop", "False", "Degraded").await;
    clear(&widgets, "run").await;
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("1"));
    assert!(widgets.get_opt("run").await.unwrap().is_none(), "nothing is tried again by itself");
    assert_eq!(condition(&scene, "shop", "Ready").await["status"], "False");
    scene.remove(&["run.json"]);
    let mended = widget("other", json!({"argocd.argoproj.io/hook": "PreSync"}));
    let commit = scene.push(&[mended]);
    scene.nudge("shop", "mended").await;
    uid(&widgets, "other", &second).await;
    report(&widgets, "other", ready("True", "")).await;
    until("the Job runs for it", async || {
        let job = jobs.get_opt("next").await.unwrap()?;
        job.data.pointer("/status/completionTime").is_none().then_some(())
    })
    .await;
    end(&jobs, "next", true).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value(&scene, "app").await.as_deref(), Some("2"));
}

/// The hooks of a chart: a ServiceAccount and its settings, with which a Job runs.
fn of_a_chart() -> [(String, String); 3] {
    let helm = |weight: &str| {
        json!({"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": weight,
            "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"})
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "migrate"}});
    let settings: Value = serde_json::from_str(&config_map("settings", "1")).unwrap();
    let (_, account) = hook(account, helm("-5"));
    let settings = hook(settings, helm("-4"));
    [("account.json".to_owned(), account), settings, job("migrate", "up", helm("0"))]
}

#[tokio::test]
async fn what_hooks_need_is_deleted_once_they_have_run() {
    let Some(scene) = Scene::new("hook-needs").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let accounts = scene.dynamic("", "v1", "ServiceAccount");
    let is_there = async || {
        let all = accounts.list(&ListParams::default()).await.unwrap().items;
        all.iter().any(|one| one.metadata.name.as_deref() == Some("migrate"))
    };
    let commit = scene.push(&[&of_a_chart()[..], &[map("app", "1")]].concat());
    let daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = uid(&jobs, "migrate", "").await;
    assert!(is_there().await, "it is there before the Job is");
    tokio::time::sleep(QUIET_TIME * 2).await;
    assert!(is_there().await && value(&scene, "settings").await.is_some(), "the Job still needs them");
    // If it is cleared away while it is needed, it runs again.
    clear(&accounts, "migrate").await;
    until("it is there again", async || is_there().await.then_some(())).await;
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    let are_gone = async || {
        let left = is_there().await
            || value(&scene, "settings").await.is_some()
            || jobs.get_opt("migrate").await.unwrap().is_some();
        (!left).then_some(())
    };
    until("they go with the Job", are_gone).await;
    scene.settle().await;
    scene.assert_calm("once all have run").await;
    assert_eq!(scene.status("shop", "/problems").await, Value::Null);
    assert_eq!(condition(&scene, "shop", "Ready").await["status"], "True");
    let plan = moorline(&scene, &["plan", "--sync", "shop"]);
    assert_eq!(plan.code, 0, "what has run is not planned again: {}{}", plan.data, plan.words);

    // They come back with the next change, and with nothing else.
    drop(daemon);
    let _daemon = scene.daemon();
    pass_a_commit_beside(&scene).await;
    assert!(are_gone().await.is_some());
    let commit = scene.push(&[map("app", "2")]);
    scene.nudge("shop", "two").await;
    uid(&jobs, "migrate", &first).await;
    assert!(is_there().await);
    end(&jobs, "migrate", true).await;
    scene.until_ready("shop", &commit).await;
    until("they go once more", are_gone).await;
}

#[tokio::test]
async fn a_run_under_an_older_name_is_deleted_before_the_next_begins() {
    let Some(scene) = Scene::new("hook-renamed").await else { return };
    let jobs = scene.dynamic("batch", "v1", "Job");
    let schema = |command: &str| {
        let (_, text) = job("x", command, json!({"argocd.argoproj.io/hook": "PreSync"}));
        let mut body: Value = serde_json::from_str(&text).unwrap();
        let metadata = body["metadata"].as_object_mut().unwrap();
        metadata.remove("name");
        metadata.insert("generateName".into(), "schema-".into());
        ("schema.json".to_owned(), body.to_string())
    };
    let names = async || -> Vec<String> {
        let all = jobs.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter_map(|job| job.metadata.name).collect()
    };
    scene.push(&[schema("up"), map("app", "1")]);
    let _daemon = scene.daemon();
    waiting(&scene, "shop", json!({})).await;
    let first = until("the first run", async || names().await.pop()).await;
    let commit = scene.push(&[schema("down")]);
    let plan = moorline(&scene, &["plan", "--sync", "shop"]);
    let expect = format!("after its earlier run is deleted: Job.batch {}/{first}", scene.namespace);
    assert!(plan.data.contains(&expect), "{}{}", plan.data, plan.words);
    scene.nudge("shop", "down").await;
    let all = until("the next run", async || {
        let all = names().await;
        all.iter().any(|name| *name != first).then_some(all)
    })
    .await;
    assert!(!all.contains(&first), "no two are under way: {all:?}");
    assert_eq!(value(&scene, "app").await, None, "not before it has run");
    end(&jobs, &all[0], true).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(names().await, all);
}
