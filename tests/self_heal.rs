//! What follows when others touch objects of a Sync, on a real API server: who may pause repairs, who fights with them,
//! what has finished, and what each costs in requests.

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use support::audit::{AuditMark, Request};
use support::control_plane::shared;
use support::credentials::{ADMIN, MOORLINE};
use support::daemon::{Daemon, install, until};
use support::git_server::{GitServer, Work};

/// Longer than the daemon takes for anything that it does at once.
const QUIET: Duration = Duration::from_millis(1000);

fn config_map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

fn job(name: &str, container: &str) -> String {
    // The Job controller leaves Jobs alone that somebody else manages, so that a test writes their status.
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"managedBy": "example.com/tests", "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": container, "image": "example.com/x:1"}],
        }}},
    })
    .to_string()
}

fn by(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

fn tally<const N: usize>(expect: [(&str, usize); N]) -> BTreeMap<String, usize> {
    expect.into_iter().map(|(what, count)| (what.to_owned(), count)).collect()
}

/// What the daemon asked of the objects of a namespace whose names begin with this.
async fn asked(mark: &AuditMark, namespace: &str, name: &str) -> BTreeMap<String, usize> {
    let about = |request: &Request| request.resource != "syncs" && request.name.starts_with(name);
    mark.requests().await.of(MOORLINE).within(namespace).only(about).tally()
}

struct Maps(Api<ConfigMap>);

impl Maps {
    async fn new(client: Client, namespace: &str) -> Self {
        Self(Api::namespaced(client, namespace))
    }

    async fn data(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.0.get_opt(name).await.unwrap()?.data
    }

    async fn value(&self, name: &str) -> Option<String> {
        self.data(name).await?.remove("key")
    }

    async fn is(&self, name: &str, value: &str) {
        until(&format!("{name} is {value}"), async || self.value(name).await.filter(|it| it == value)).await;
    }

    async fn edit(&self, name: &str, manager: &str, edit: Value) {
        self.0.patch(name, &by(manager), &Patch::Merge(&edit)).await.unwrap();
    }
}

#[tokio::test]
async fn a_deployment_costs_one_request_and_its_edits_are_repaired() {
    let Some(plane) = shared() else { return };
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
    let Some(plane) = shared() else { return };
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
    assert!(jiff::Timestamp::now() < until_time + jiff::SignedDuration::from_secs(4), "at the time");
    let after = asked(&mark, &namespace, "a").await;
    assert_eq!(after, tally([("get configmaps", 1), ("patch configmaps", 2)]), "and the repair");
    drop(daemon);
}

#[tokio::test]
async fn whoever_undoes_every_repair_is_left_alone_until_a_commit() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("fight").await;
    let maps = Maps::new(plane.client(ADMIN).await, &namespace).await;
    let root = tempfile::tempdir().unwrap();
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    work.push(&[("a.json", &config_map("a", "one")), ("b.json", &config_map("b", "one"))]);
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

/// Sets the status of a Job as its controller would when it ends.
async fn end(jobs: &Api<Job>, name: &str, before: &str, how: &str) {
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap().to_string();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let mut status = json!({"startTime": now, "conditions": [condition(before), condition(how)]});
    if how == "Complete" {
        status["completionTime"] = now.clone().into();
    }
    let patch = json!({"status": status});
    jobs.patch_status(name, &by("example.com/tests"), &Patch::Merge(&patch)).await.unwrap();
}

#[tokio::test]
async fn a_job_that_finished_and_was_cleared_away_does_not_run_again() {
    let Some(plane) = shared() else { return };
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

fn sync(name: &str, namespace: &str, url: &str, drift: Value) -> DynamicObject {
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": {"git": {"url": url}}, "path": format!("./{name}"), "drift": drift},
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
    let Some(plane) = shared() else { return };
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
    let statuses =
        mark.requests().await.of(MOORLINE).within(&namespace).only(|it| it.subresource == "status");
    assert_eq!(statuses.tally(), tally([]), "a restart finds nothing new to say");
    for (name, _) in &modes {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }
    tokio::time::sleep(QUIET / 2).await;
    drop(restarted);
}

async fn reports(
    plane: &support::control_plane::ControlPlane,
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
    plane: &support::control_plane::ControlPlane,
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
    assert!(message.contains("operator undoes every repair of data.key"), "{message}");
    // A restart forgets the fight, and what follows is not what this test is about.
    maps.edit("fought", "operator", json!({"data": {"key": "one"}})).await;
}

async fn removes(
    plane: &support::control_plane::ControlPlane,
    namespace: &str,
    maps: &Maps,
    api: &Api<DynamicObject>,
) {
    let mark = AuditMark::set(plane).await;
    maps.edit("remove", "kubectl-edit", json!({"data": {"more": "by hand"}})).await;
    maps.edit("remove", "controller", json!({"data": {"theirs": "by a controller"}})).await;
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
