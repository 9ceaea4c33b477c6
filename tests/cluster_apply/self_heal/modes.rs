//! Syncs that report, ignore or take away what others do, and what their statuses say, also after a restart.

use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::ground::{Maps, QUIET, asked, config_map, end, job, tally};
use moorline_test_support::audit::{AuditMark, Request};
use moorline_test_support::control_plane::shared_beside;
use moorline_test_support::credentials::{ADMIN, MOORLINE};
use moorline_test_support::daemon::{Daemon, install, until};
use moorline_test_support::git_server::{GitServer, Work};

fn sync(name: &str, namespace: &str, url: &str, drift: Value) -> DynamicObject {
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": {"git": {"url": url}}, "path": format!("./{name}"), "drift": drift,
            "health": {"wait": false}},
    });
    serde_json::from_value(sync).unwrap()
}

fn syncs() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("moorline.dev", "v1alpha1", "Sync"))
}

/// Something in a status, once it is as it should be.
async fn status<T>(
    api: &Api<DynamicObject>,
    name: &str,
    what: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> T {
    let last = std::cell::RefCell::new(Value::Null);
    until(&format!("the status of {name} says {what}"), async || {
        let sync = api.get(name).await.unwrap();
        *last.borrow_mut() = sync.data.clone();
        read(sync.data.get("status")?)
    })
    .await
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status.get("conditions")?.as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn is_applied(status: &Value) -> Option<()> {
    status.pointer("/revision/applied").map(drop)
}

// All Syncs of one daemon in one test: a daemon speaks about every Sync that it sees.
#[tokio::test]
async fn a_sync_may_report_ignore_or_take_away_what_others_do() {
    let Some(plane) = shared_beside() else { return };
    install(&plane).await;
    let namespace = plane.namespace("modes").await;
    let admin = plane.client(ADMIN).await;
    let maps = Maps::new(admin.clone(), &namespace).await;
    let jobs: Api<Job> = Api::namespaced(admin.clone(), &namespace);
    let api: Api<DynamicObject> = Api::namespaced_with(admin, &namespace, &syncs());
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let modes = [
        ("report", json!({"mode": "Report"})),
        ("ignore", json!({"mode": "Ignore"})),
        ("remove", json!({"extraFields": "Remove"})),
        ("told", json!({})),
        ("fought", json!({})),
    ];
    for (name, _) in &modes {
        work.push(&[(&format!("{name}/a.json"), &config_map(name, "one"))]);
    }
    work.push(&[("told/job.json", &job("migrate", "one"))]);
    let url = server.url("repository.git");
    let arguments = ["--namespace", &namespace, "--leader-election=false"];
    let mut daemon = Daemon::start(&plane, root.path(), &arguments);
    for (name, drift) in &modes {
        api.create(&PostParams::default(), &sync(name, &namespace, &url, drift.clone())).await.unwrap();
    }
    for (name, _) in &modes {
        status(&api, name, "applied", is_applied).await;
    }

    reports(&plane, &namespace, &maps, &api).await;
    ignores(&plane, &namespace, &maps, &api).await;
    removes(&plane, &namespace, &maps, &api).await;
    contests(&maps, &api).await;

    end(&jobs, "migrate", "SuccessCriteriaMet", "Complete").await;
    status(&api, "told", "finished", |status| {
        (status.pointer("/finished/0/object")? == &format!("batch/Job|{namespace}/migrate")).then_some(())
    })
    .await;
    maps.edit("report", "kubectl-edit", json!({"data": {"key": "by hand"}})).await;
    status(&api, "report", "drifted", |status| condition(status, "Drifted").map(drop)).await;
    tokio::time::sleep(QUIET).await;
    daemon.terminate();
    jobs.delete("migrate", &DeleteParams::background()).await.unwrap();
    let mark = AuditMark::set(&plane).await;
    let restarted = Daemon::start(&plane, root.path(), &arguments);
    until("the daemon has looked", async || {
        asked(&mark, &namespace, "report").await.contains_key("patch configmaps").then_some(())
    })
    .await;
    tokio::time::sleep(2 * QUIET).await;
    assert!(jobs.get_opt("migrate").await.unwrap().is_none(), "what has finished is read back");
    assert_eq!(asked(&mark, &namespace, "migrate").await, tally([]));
    let compared = tally([("get configmaps", 1), ("patch configmaps", 1)]);
    assert_eq!(asked(&mark, &namespace, "report").await, compared, "one comparison, nothing written");
    assert_eq!(maps.value("report").await.as_deref(), Some("by hand"));
    assert_eq!(asked(&mark, &namespace, "ignore").await, tally([]));
    let about_status = |it: &Request| it.subresource == "status" && it.name != "fought";
    let statuses = mark.requests().await.by_user(MOORLINE).in_namespace(&namespace).filter(about_status);
    assert_eq!(statuses.tally(), tally([]), "a restart finds nothing new to say");
    for (name, _) in &modes {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }
    tokio::time::sleep(QUIET / 2).await;
    drop(restarted);
}

async fn reports(
    plane: &moorline_test_support::control_plane::ControlPlane,
    namespace: &str,
    maps: &Maps,
    api: &Api<DynamicObject>,
) {
    let mark = AuditMark::set(plane).await;
    maps.edit("report", "kubectl-edit", json!({"data": {"key": "by hand"}})).await;
    let message = status(api, "report", "drifted", |status| {
        let drifted = condition(status, "Drifted")?.get("message")?.as_str()?.to_owned();
        (status.pointer("/objects/drifted")? == 1).then_some(drifted)
    })
    .await;
    assert!(message.contains("kubectl-edit"), "{message}");
    tokio::time::sleep(QUIET).await;
    let compared = tally([("get configmaps", 1), ("patch configmaps", 1)]);
    assert_eq!(asked(&mark, namespace, "report").await, compared, "it was compared once");
    assert_eq!(maps.value("report").await.as_deref(), Some("by hand"));
    maps.edit("report", "kubectl-edit", json!({"data": {"key": "one"}})).await;
    status(api, "report", "as in Git", |status| {
        condition(status, "Drifted").is_none_or(|it| it["status"] == "False").then_some(())
    })
    .await;
}

async fn ignores(
    plane: &moorline_test_support::control_plane::ControlPlane,
    namespace: &str,
    maps: &Maps,
    api: &Api<DynamicObject>,
) {
    let mark = AuditMark::set(plane).await;
    maps.edit("ignore", "kubectl-edit", json!({"data": {"key": "by hand"}})).await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(maps.value("ignore").await.as_deref(), Some("by hand"));
    let ignored = api.get("ignore").await.unwrap();
    assert_eq!(ignored.data.pointer("/status/problems"), None, "a field of Git is no addition");
    assert_eq!(asked(&mark, namespace, "ignore").await, tally([]));
}

async fn contests(maps: &Maps, api: &Api<DynamicObject>) {
    let theirs = json!({"data": {"key": "theirs"}});
    for _ in 0..5 {
        maps.edit("fought", "operator", theirs.clone()).await;
        maps.is("fought", "one").await;
    }
    maps.edit("fought", "operator", theirs).await;
    let told = status(api, "fought", "contested", |status| {
        condition(status, "Ready").filter(|ready| ready["reason"] == "Contested")?;
        Some(status.clone())
    })
    .await;
    let contested = &told["contested"][0];
    assert_eq!((&contested["manager"], &contested["path"]), (&json!("operator"), &json!("data.key")));
    let ready = condition(&told, "Ready").unwrap();
    assert_eq!(ready["status"], "False");
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("operator reverts every repair of data.key"), "{message}");
    // A restart forgets the fight, and what follows is not what this test is about.
    maps.edit("fought", "operator", json!({"data": {"key": "one"}})).await;
}

async fn removes(
    plane: &moorline_test_support::control_plane::ControlPlane,
    namespace: &str,
    maps: &Maps,
    api: &Api<DynamicObject>,
) {
    // Not at one time with the other edit: what is removed is read before, and read again if it has changed since.
    maps.edit("remove", "controller", json!({"data": {"theirs": "by a controller"}})).await;
    tokio::time::sleep(QUIET).await;
    let mark = AuditMark::set(plane).await;
    maps.edit("remove", "kubectl-edit", json!({"data": {"more": "by hand"}})).await;
    maps.edit("told", "kubectl-edit", json!({"data": {"more": "by hand"}})).await;
    until("what was added by hand is gone", async || {
        let data = maps.data("remove").await?;
        (!data.contains_key("more") && data.contains_key("theirs")).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET).await;
    let removed = asked(&mark, namespace, "remove").await;
    // Any write to a kind without a generation is verified by an apply, and then comes the removal.
    let (reads, writes) = (removed["get configmaps"], removed["patch configmaps"]);
    assert!(reads == 1 && (2..=3).contains(&writes), "{removed:?}");
    let problem =
        status(api, "told", "what was added", |status| status.pointer("/problems/0/message").cloned()).await;
    assert_eq!(problem, "kubectl-edit added data.more, which is not in Git");
    let ready = status(api, "told", "ready", |status| condition(status, "Ready").cloned()).await;
    assert_eq!(ready["status"], "True", "an addition is no drift");
    assert!(maps.data("told").await.unwrap().contains_key("more"));
}
