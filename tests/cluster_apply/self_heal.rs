//! The daemon's reaction when others touch objects of a Sync, on a real API server: who may pause repairs, who fights with them,
//! what has finished, and what each costs in requests.

pub(crate) mod ground;
mod modes;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, Patch};
use serde_json::json;

use ground::{Maps, QUIET, asked, by, config_map, end, job, tally};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::shared_beside;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::under_load::under_load;

#[tokio::test]
async fn a_deployment_costs_one_request_and_its_edits_are_repaired() {
    let Some(plane) = shared_beside() else { return };
    let namespace = plane.namespace("deployment").await;
    let deployments: Api<Deployment> = Api::namespaced(plane.client(ADMIN).await, &namespace);
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let manifest = |name: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
            }},
        })
    };
    let names = ["web", "web-1", "web-2", "web-3", "web-4", "web-5"];
    let files = names.map(|name| (format!("{name}.json"), manifest(name).to_string()));
    work.push(&files.each_ref().map(|(name, text)| (name.as_str(), text.as_str())));
    let url = server.url("repository.git");
    let mark = AuditMark::set(&plane).await;
    let daemon = Daemon::start(
        &plane,
        root.path(),
        &["--url", &url, "--namespace", &namespace, "--interval", "60", "--leader-election=false"],
    );
    for name in names {
        until("the controller has kept its books", async || {
            let annotations = deployments.get_opt(name).await.unwrap()?.metadata.annotations?;
            annotations.contains_key("deployment.kubernetes.io/revision").then_some(())
        })
        .await;
    }
    tokio::time::sleep(3 * QUIET).await;
    let created = tally([("patch deployments.apps", names.len())]);
    assert_eq!(asked(&mark, &namespace, "web").await, created);

    let mark = AuditMark::set(&plane).await;
    let edit = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "example.com/web:2"}]}}}});
    deployments.patch("web", &by("kubectl-edit"), &Patch::Strategic(&edit)).await.unwrap();
    let image = |web: &Deployment| {
        let spec = web.spec.as_ref()?.template.spec.as_ref()?;
        spec.containers.first()?.image.clone()
    };
    until("the edit is repaired", async || {
        let web = deployments.get("web").await.unwrap();
        image(&web).filter(|image| image == "example.com/web:1")
    })
    .await;
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(asked(&mark, &namespace, "web").await, tally([("patch deployments.apps", 1)]));
    drop(daemon);
}

#[tokio::test]
async fn until_a_time_edits_stay_and_are_repaired_when_it_has_come() {
    let Some(plane) = shared_beside() else { return };
    let namespace = plane.namespace("pause").await;
    let maps = Maps::new(plane.client(ADMIN).await, &namespace).await;
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    work.push(&[("a.json", &config_map("a", "one")), ("b.json", &config_map("b", "one"))]);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "60", "--leader-election=false"];
    let daemon = Daemon::start(&plane, root.path(), &arguments);
    maps.is("a", "one").await;
    maps.is("b", "one").await;

    let mark = AuditMark::set(&plane).await;
    let until_time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(5);
    let pause = |time: String| json!({"metadata": {"annotations": {"moorline.dev/pause-until": time}}, "data": {"key": "by hand"}});
    maps.edit("a", "kubectl-edit", pause(until_time.to_string())).await;
    maps.edit("b", "kubectl-edit", pause("2020-01-01T00:00:00Z".to_owned())).await;
    maps.is("b", "one").await;
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(maps.value("a").await.as_deref(), Some("by hand"), "before the time");
    let before = asked(&mark, &namespace, "a").await;
    assert_eq!(before, tally([("get configmaps", 1), ("patch configmaps", 1)]), "a comparison");
    maps.is("a", "one").await;
    assert!(jiff::Timestamp::now() >= until_time, "not before the time");
    tokio::time::sleep(QUIET).await;
    assert!(jiff::Timestamp::now() < until_time + under_load(Duration::from_secs(4)), "at the time");
    let after = asked(&mark, &namespace, "a").await;
    assert_eq!(after, tally([("get configmaps", 1), ("patch configmaps", 2)]), "and the repair");
    drop(daemon);
}

#[tokio::test]
async fn whoever_undoes_every_repair_is_left_alone_until_a_commit() {
    let Some(plane) = shared_beside() else { return };
    let namespace = plane.namespace("fight").await;
    let maps = Maps::new(plane.client(ADMIN).await, &namespace).await;
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let two = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
        "data": {"key": "one", "list": "a"},
    });
    work.push(&[("a.json", &two.to_string()), ("b.json", &config_map("b", "one"))]);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1", "--leader-election=false"];
    let daemon = Daemon::start(&plane, root.path(), &arguments);
    maps.is("a", "one").await;
    maps.is("b", "one").await;

    let mark = AuditMark::set(&plane).await;
    let theirs = json!({"data": {"key": "theirs"}});
    for _ in 0..5 {
        maps.edit("a", "operator", theirs.clone()).await;
        maps.is("a", "one").await;
    }
    maps.edit("a", "operator", theirs).await;
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(maps.value("a").await.as_deref(), Some("theirs"), "it is contested");
    assert_eq!(asked(&mark, &namespace, "a").await, tally([("patch configmaps", 5)]));

    // Only that field is left to them.
    let mark = AuditMark::set(&plane).await;
    maps.edit("a", "kubectl-edit", json!({"data": {"list": "b"}})).await;
    let repaired = until("what is not contested is repaired", async || {
        maps.data("a").await.filter(|data| data["list"] == "a")
    });
    assert_eq!(repaired.await["key"], "theirs", "the repair leaves theirs alone");
    maps.edit("a", "operator", json!({"data": {"key": "still theirs"}})).await;
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(maps.value("a").await.as_deref(), Some("still theirs"), "and theirs is not touched");
    assert_eq!(asked(&mark, &namespace, "a").await, tally([("patch configmaps", 1)]));

    let mark = AuditMark::set(&plane).await;
    for _ in 0..3 {
        maps.0.delete("b", &DeleteParams::default()).await.unwrap();
        maps.is("b", "one").await;
    }
    maps.0.delete("b", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!(maps.value("b").await, None, "it is contested as well");
    assert_eq!(asked(&mark, &namespace, "b").await, tally([("patch configmaps", 3)]));

    work.push(&[("a.json", &config_map("a", "two")), ("b.json", &config_map("b", "two"))]);
    maps.is("a", "two").await;
    maps.is("b", "two").await;
    drop(daemon);
}

#[tokio::test]
async fn a_job_that_finished_and_was_cleared_away_does_not_run_again() {
    let Some(plane) = shared_beside() else { return };
    let namespace = plane.namespace("jobs").await;
    let client = plane.client(ADMIN).await;
    let jobs: Api<Job> = Api::namespaced(client, &namespace);
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let names = ["completes", "fails", "goes-on"];
    let files: Vec<(String, String)> =
        names.iter().map(|name| (format!("{name}.json"), job(name, "one"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    work.push(&files);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1", "--leader-election=false"];
    let mark = AuditMark::set(&plane).await;
    let daemon = Daemon::start(&plane, root.path(), &arguments);
    let uid = async |name: &str| jobs.get_opt(name).await.unwrap()?.metadata.uid;
    for name in names {
        until("the Job is there", async || uid(name).await).await;
    }
    let first = uid("goes-on").await;
    end(&jobs, "completes", "SuccessCriteriaMet", "Complete").await;
    end(&jobs, "fails", "FailureTarget", "Failed").await;
    tokio::time::sleep(QUIET / 2).await;
    for name in names {
        jobs.delete(name, &DeleteParams::background()).await.unwrap();
    }
    until("a Job that had not finished is there again", async || {
        uid("goes-on").await.filter(|uid| Some(uid) != first.as_ref())
    })
    .await;
    tokio::time::sleep(2 * QUIET).await;
    assert_eq!((uid("completes").await, uid("fails").await), (None, None), "one run only");
    let asked_about = async |name: &str| asked(&mark, &namespace, name).await;
    assert_eq!(asked_about("completes").await, tally([("patch jobs.batch", 1)]));
    assert_eq!(asked_about("fails").await, tally([("get jobs.batch", 1), ("patch jobs.batch", 1)]));
    assert_eq!(asked_about("goes-on").await, tally([("patch jobs.batch", 2)]));

    work.push(&[("completes.json", &job("completes", "two"))]);
    until("the Job that changed in Git runs", async || uid("completes").await).await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(uid("fails").await, None);
    drop(daemon);
}
