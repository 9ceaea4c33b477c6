//! The same for a daemon without a Sync: restarts, missing rights, and a watch that is broken.

use std::collections::BTreeMap;

use kube::Client;
use serde_json::{Value, json};

use crate::conflicts::ground::{deployment, expect, moment};
use crate::scale::{GET_SCALER, WATCH_SCALERS, hash, on_web};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::{PlaneGuard, shared};
use moorline_test_support::credentials::{ADMIN, MOORLINE, TENANT};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::numbers::{Numbers, api, scalers};
use moorline_test_support::rest::{grant, rule, send_request, user};
use moorline_test_support::scene::{Scene, config_map};

/// A daemon of its own without a Sync.
struct Alone {
    plane: PlaneGuard,
    admin: Client,
    namespace: String,
    root: tempfile::TempDir,
    work: Work,
    server: GitServer,
}

impl Alone {
    async fn new(purpose: &str) -> Option<Self> {
        let plane = shared()?;
        let namespace = plane.namespace(purpose).await;
        let admin = plane.client(ADMIN).await;
        let root = tempfile::tempdir().expect("a folder");
        let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
        Some(Self { plane, admin, namespace, root, work, server })
    }

    fn start_as(&self, user: &str) -> Daemon {
        let url = self.server.url("repository.git");
        let arguments =
            ["--url", &url, "--namespace", &self.namespace, "--interval", "1", "--leader-election=false"];
        Daemon::start_as(&self.plane, user, self.root.path(), &arguments)
    }

    fn push(&self, web: Value) {
        self.work.push(&[("web.json", &web.to_string())]);
    }

    async fn ask(&self, verb: &str, uri: &str, body: &Value) -> Option<Value> {
        send_request(&self.admin, verb, uri, body).await.ok()
    }

    fn web(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments/web", self.namespace)
    }

    async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || self.ask("GET", &self.web(), &Value::Null).await.filter(|live| is(live))).await
    }

    async fn tally(&self, mark: &AuditMark, user: &str) -> BTreeMap<String, usize> {
        mark.requests().await.by_user(user).in_namespace(&self.namespace).tally()
    }
}

#[tokio::test]
async fn replicas_do_not_fall_with_a_restart() {
    let Some(alone) = Alone::new("restarts").await else { return };
    alone.push(deployment(json!({"replicas": 3})));
    let mut daemon = alone.start_as(MOORLINE);
    let before = hash(&alone.until("it is there", |_| true).await);
    let numbers =
        Numbers::of(api(&alone.admin, &alone.namespace, "apps", "Deployment"), "web", "/spec/replicas");
    alone.ask("POST", &scalers(&alone.namespace), &on_web()).await.expect("a scaler");
    alone.until("it is left to it", |live| hash(live) != before).await;
    let eight = json!({"spec": {"replicas": 8}});
    let path = format!("{}/scale?fieldManager=kube-controller-manager", alone.web());
    alone.ask("PATCH", &path, &eight).await.expect("it is scaled");

    daemon.terminate();
    let mark = AuditMark::set(&alone.plane).await;
    let mut daemon = alone.start_as(MOORLINE);
    until("the daemon has looked", async || {
        alone.tally(&mark, MOORLINE).await.contains_key("patch deployments.apps").then_some(())
    })
    .await;
    moment(1500).await;
    let tally = [(GET_SCALER, 1), (WATCH_SCALERS, 1), ("patch deployments.apps", 1)];
    assert_eq!(alone.tally(&mark, MOORLINE).await, expect(tally), "a restart");

    daemon.terminate();
    alone.push(deployment(json!({"replicas": 4, "minReadySeconds": 7})));
    let _daemon = alone.start_as(MOORLINE);
    alone.until("the commit is live", |live| live["spec"]["minReadySeconds"] == 7).await;
    moment(1000).await;
    assert_eq!(numbers.all().await, [3, 8]);
}

#[tokio::test]
async fn who_may_not_see_scalers_goes_on_and_says_it_once() {
    let Some(alone) = Alone::new("forbidden").await else { return };
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let rules = json!([rule("apps", &["deployments"], &verbs)]);
    grant(&alone.admin, &alone.namespace, &user(TENANT), &rules).await;
    alone.push(deployment(json!({"replicas": 3})));
    let mark = AuditMark::set(&alone.plane).await;
    let daemon = alone.start_as(TENANT);
    alone.until("it is there", |_| true).await;
    alone.push(deployment(json!({"replicas": 4})));
    alone.until("it is changed", |live| live["spec"]["replicas"] == 4).await;
    moment(6000).await;
    let log = daemon.log();
    let said: Vec<&str> =
        log.lines().filter(|line| line.contains("no permission to watch autoscalers")).collect();
    assert_eq!(said.len(), 1, "{log}");
    assert!(said[0].contains(&format!("syncs=\"{}/default\"", alone.namespace)), "{said:?}");
    let asked = alone.tally(&mark, TENANT).await;
    assert_eq!(asked.get(WATCH_SCALERS), Some(&1), "nobody waits for that right: {asked:?}");
}

/// Returns the place where an object is kept, no matter who asks.
fn web_of(scene: &Scene) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace)
}

fn asks_for_scalers(asked: &RecordedRequest) -> bool {
    asked.path.ends_with("/horizontalpodautoscalers")
}

#[tokio::test]
async fn replicas_do_not_fall_while_the_watch_on_scalers_is_broken() {
    let Some(scene) = Scene::new("behind").await else { return };
    let path = web_of(&scene);
    let live = async || send_request(&scene.admin, "GET", &path, Value::Null).await.ok();
    let eight = json!({"spec": {"replicas": 8}});
    let scaled = format!("{path}/scale?fieldManager=kube-controller-manager");
    scene.push(&[("web.json".into(), deployment(json!({"replicas": 3})).to_string())]);
    let url = scene.git.url("repository.git");
    let arguments = ["--leader-election=false", "--url", &url, "--interval", "1"];
    let mut daemon = scene.daemon_with(&arguments);
    let before = hash(&until("it is there", live).await);
    let numbers =
        Numbers::of(api(&scene.admin, &scene.namespace, "apps", "Deployment"), "web", "/spec/replicas");
    scene.assert_calm("at rest").await;

    scene
        .proxy
        .rule(|asked| if asks_for_scalers(asked) && asked.is_watch() { Fate::Drop } else { Fate::Pass });
    scene.proxy.cut_watches();
    moment(1500).await;
    send_request(&scene.admin, "POST", &scalers(&scene.namespace), &on_web()).await.expect("a scaler");
    send_request(&scene.admin, "PATCH", &scaled, &eight).await.expect("it is scaled");
    until("it is left to it", async || live().await.filter(|live| hash(live) != before)).await;
    assert_eq!(numbers.all().await, [3, 8]);

    // Neither the list of them nor one of them is answered: only what may be scaled waits.
    for (seconds, end) in [(7, "/horizontalpodautoscalers"), (8, "/horizontalpodautoscalers/web")] {
        daemon.terminate();
        scene.proxy.rule(move |it| if it.path.ends_with(end) { Fate::Answer(500, None) } else { Fate::Pass });
        let spec = json!({"replicas": 3, "minReadySeconds": seconds});
        let other = config_map("other", &seconds.to_string());
        scene
            .push(&[("web.json".into(), deployment(spec).to_string()), ("other.json".into(), other.clone())]);
        daemon = scene.daemon_with(&arguments);
        scene.until_values(&[("other.json".into(), other)], "the rest does not wait").await;
        moment(1500).await;
        let waits = live().await.expect("it");
        assert_ne!(waits["spec"]["minReadySeconds"], seconds, "who scales it is not known, so it waits");
        scene.proxy.heal();
        let is_live = |live: &Value| live["spec"]["minReadySeconds"] == seconds;
        until("the commit is live", async || live().await.filter(is_live)).await;
    }
    moment(500).await;
    assert_eq!(numbers.all().await, [3, 8]);
}
