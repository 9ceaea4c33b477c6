//! Objects that a HorizontalPodAutoscaler scales, on a real API server: their numbers never fall by our doing, and
//! everything else is held to Git.

#[path = "conflicts/ground.rs"]
#[expect(dead_code, reason = "it is shared with the tests of conflicts, which use other parts of it")]
mod ground;
#[path = "scale/ground.rs"]
mod numbers;
mod support;

use std::collections::BTreeMap;

use ground::{APPLY, Ground, MERGE, deployment, expect, moment};
use kube::Client;
use numbers::{Numbers, api, scaler, scalers};
use serde_json::{Value, json};
use support::audit::AuditMark;
use support::control_plane::{Shared, shared};
use support::credentials::{ADMIN, MOORLINE, TENANT};
use support::daemon::{Daemon, until};
use support::fault_proxy::{Asked, Fate};
use support::git_server::{GitServer, Work};
use support::scene::Scene;

const GET_SCALER: &str = "get horizontalpodautoscalers.autoscaling";
const WATCH_SCALERS: &str = "watch horizontalpodautoscalers.autoscaling";

fn replicas_of(ground: &Ground) -> Numbers {
    Numbers::of(api(&ground.admin, &ground.target, "apps", "Deployment"), "web", "/spec/replicas")
}

fn on_web() -> Value {
    scaler("apps/v1", "Deployment", "web")
}

async fn scale(ground: &Ground, manager: &str, replicas: u8) {
    let path = format!("{}/scale", ground.deployment());
    ground.patch(manager, &path, MERGE, json!({"spec": {"replicas": replicas}})).await;
}

fn is_ours(live: &Value) -> bool {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array).expect("entries");
    entries.iter().any(|entry| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        manager.starts_with("moorline/") && entry.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    })
}

fn hash(live: &Value) -> String {
    live["metadata"]["annotations"]["moorline.dev/spec-hash"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn replicas_never_fall_when_a_scaler_appears() {
    let Some(ground) = Ground::new("appears").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    ground.sync(json!({"drift": {"extraFields": "Remove"}})).await;
    ground.ready(&first, "Applied").await;
    let path = ground.deployment();
    let before = hash(&ground.get(&path).await.expect("the Deployment"));
    let numbers = replicas_of(&ground);
    let mark = ground.mark().await;
    ground.create("kubectl-create", &scalers(&ground.target), on_web()).await;
    scale(&ground, "kube-controller-manager", 7).await;
    ground.until("the replicas are left to it", &path, |live| hash(live) != before).await;
    scale(&ground, "kubectl-scale", 9).await;

    for (word, replicas) in [("second", 4), ("third", 5)] {
        let commit = ground.push(&[deployment(json!({"replicas": replicas, "minReadySeconds": replicas}))]);
        ground.nudge(word).await;
        let committed = |live: &Value| live["spec"]["minReadySeconds"] == replicas;
        ground.until("the rest is applied", &path, committed).await;
        ground.ready(&commit, "Applied").await;
    }
    ground.patch("kubectl-edit", &path, MERGE, json!({"spec": {"minReadySeconds": 1}})).await;
    ground.until("the rest is healed", &path, |live| live["spec"]["minReadySeconds"] == 5).await;
    for count in 1..4 {
        let status = json!({"status": {"currentReplicas": count, "desiredReplicas": 9}});
        let status_path = format!("{}/web/status", scalers(&ground.target));
        ground.patch("kube-controller-manager", &status_path, MERGE, status).await;
        moment(1100).await;
    }
    assert_eq!(numbers.all().await, [3, 7, 9]);
    let reads = ground.tally(&mark).await.get(GET_SCALER).copied();
    assert_eq!(reads, Some(1), "a status is not read");

    ground.delete(&format!("{}/web", scalers(&ground.target))).await;
    ground.until("Git's number comes back", &path, |live| live["spec"]["replicas"] == 5).await;
    assert_eq!(numbers.all().await, [3, 7, 9, 5]);
}

#[tokio::test]
async fn the_number_is_handed_over_as_it_is_and_then_nothing_is_asked() {
    let Some(ground) = Ground::new("hands-over").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    moment(500).await;
    assert_eq!(ground.tally(&mark).await, expect([("patch deployments.apps", 1), (WATCH_SCALERS, 1)]));

    let numbers = replicas_of(&ground);
    let mark = ground.mark().await;
    ground.create("kubectl-create", &scalers(&ground.target), on_web()).await;
    let live = ground.until("it is handed over", &ground.deployment(), |live| !is_ours(live)).await;
    assert_eq!(live["spec"]["replicas"], 3);
    moment(1500).await;
    let tally = [(GET_SCALER, 1), ("get deployments.apps", 1), ("patch deployments.apps", 2)];
    assert_eq!(ground.tally(&mark).await, expect(tally));
    let mark = ground.mark().await;
    scale(&ground, "kube-controller-manager", 8).await;
    moment(1500).await;
    let asked = ground.tally(&mark).await;
    assert!(asked.values().sum::<usize>() <= 1, "others scale it, and one look is enough: {asked:?}");
    let mark = ground.mark().await;
    moment(1500).await;
    assert_eq!(ground.tally(&mark).await, expect([]), "at rest");

    let other = json!({"spec": {"scaleTargetRef": {"name": "other"}}});
    let path = format!("{}/web", scalers(&ground.target));
    ground.patch("kubectl-edit", &path, MERGE, other).await;
    ground.until("it scales another now", &ground.deployment(), |live| live["spec"]["replicas"] == 3).await;
    assert_eq!(numbers.all().await, [3, 8, 3]);
}

#[tokio::test]
async fn what_git_scales_gets_its_number_when_it_is_created_and_never_again() {
    let Some(ground) = Ground::new("in-git").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3})), on_web()]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let numbers = replicas_of(&ground);
    let path = ground.deployment();
    moment(1000).await;
    let tally = [
        (GET_SCALER, 1),
        (WATCH_SCALERS, 1),
        ("get deployments.apps", 1),
        ("patch deployments.apps", 3),
        ("patch horizontalpodautoscalers.autoscaling", 1),
    ];
    assert_eq!(ground.tally(&mark).await, expect(tally));
    assert!(!is_ours(&ground.get(&path).await.expect("the Deployment")));

    scale(&ground, "kube-controller-manager", 6).await;
    let second = ground.push(&[deployment(json!({"replicas": 5, "minReadySeconds": 7})), on_web()]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    assert_eq!(numbers.all().await, [3, 6]);

    let uid = ground.get(&path).await.expect("it")["metadata"]["uid"].clone();
    ground.delete(&path).await;
    let anew = |live: &Value| live["metadata"]["uid"] != uid && !is_ours(live);
    let live = ground.until("it is created anew", &path, anew).await;
    assert_eq!(live["spec"]["replicas"], 5);
    scale(&ground, "kube-controller-manager", 9).await;

    ground.work.git(&["rm", "-q", "HorizontalPodAutoscaler-web.json"]);
    ground.push(&[]);
    ground.nudge("third").await;
    ground.until("Git's number comes back", &path, |live| live["spec"]["replicas"] == 5).await;
    assert_eq!(numbers.all().await, [3, 6, 5, 9, 5]);
}

#[tokio::test]
async fn a_number_that_moves_from_the_manifest_to_a_scaler_stays() {
    let Some(ground) = Ground::new("moves").await else { return };
    let first = ground.push(&[deployment(json!({"replicas": 3}))]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let numbers = replicas_of(&ground);
    let second = ground.push(&[deployment(json!({"minReadySeconds": 7})), on_web()]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    let live = ground.get(&ground.deployment()).await.expect("the Deployment");
    assert_eq!((&live["spec"]["minReadySeconds"], is_ours(&live)), (&json!(7), false));
    assert_eq!(numbers.all().await, [3]);
}

#[tokio::test]
async fn one_that_is_there_already_keeps_its_number() {
    let Some(ground) = Ground::new("adopts").await else { return };
    let path = ground.deployment();
    ground.create("kubectl-create", &path.replace("/web", ""), deployment(json!({"replicas": 8}))).await;
    let numbers = replicas_of(&ground);
    let first = ground.push(&[deployment(json!({"replicas": 3, "minReadySeconds": 7})), on_web()]);
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    // It was ours all the time, and now it is not seen.
    let off = json!({"metadata": {"labels": {"moorline.dev/sync": null}}});
    ground.patch("kubectl-edit", &path, MERGE, off).await;
    let marked = |live: &Value| live["metadata"]["labels"].get("moorline.dev/sync").is_some();
    ground.until("it is adopted anew", &path, marked).await;
    assert_eq!(numbers.all().await, [8]);
}

#[tokio::test]
async fn a_custom_resource_keeps_its_number_where_its_definition_says() {
    let Some(ground) = Ground::new("custom").await else { return };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pools.scale.example.com"},
        "spec": {
            "group": "scale.example.com", "scope": "Namespaced",
            "names": {"kind": "Pool", "plural": "pools", "singular": "pool"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"spec": {
                        "type": "object",
                        "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}},
                    }},
                }},
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }],
        },
    });
    let place = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pools.scale.example.com";
    ground.patch("tests", place, APPLY, definition).await;
    let collection = format!("/apis/scale.example.com/v1/namespaces/{}/pools", ground.target);
    until("pools are served", async || ground.get(&collection).await).await;
    let path = format!("{collection}/web");
    let pool = |size: u8, colour: &str| {
        json!({
            "apiVersion": "scale.example.com/v1", "kind": "Pool", "metadata": {"name": "web"},
            "spec": {"size": size, "colour": colour},
        })
    };
    let first = ground.push(&[pool(3, "red")]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    let numbers =
        Numbers::of(api(&ground.admin, &ground.target, "scale.example.com", "Pool"), "web", "/spec/size");
    let before = hash(&ground.get(&path).await.expect("the Pool"));
    ground
        .create("kubectl-create", &scalers(&ground.target), scaler("scale.example.com/v1", "Pool", "web"))
        .await;
    ground.until("the size is left to it", &path, |live| hash(live) != before).await;
    let seven = json!({"spec": {"replicas": 7}});
    ground.patch("kube-controller-manager", &format!("{path}/scale"), MERGE, seven).await;
    let second = ground.push(&[pool(4, "blue")]);
    ground.nudge("second").await;
    ground.ready(&second, "Applied").await;
    ground.patch("kubectl-edit", &path, MERGE, json!({"spec": {"colour": "green"}})).await;
    ground.until("the rest is healed", &path, |live| live["spec"]["colour"] == "blue").await;
    assert_eq!(numbers.all().await, [3, 7]);
    let definitions =
        mark.requests().await.of(MOORLINE).only(|it| it.name == "pools.scale.example.com").tally();
    assert_eq!(definitions, expect([("get customresourcedefinitions.apiextensions.k8s.io", 1)]));
    ground.delete(&format!("{}/web", scalers(&ground.target))).await;
    ground.until("Git's size comes back", &path, |live| live["spec"]["size"] == 4).await;
}

#[tokio::test]
async fn without_a_number_in_git_nothing_is_asked() {
    let Some(ground) = Ground::new("no-number").await else { return };
    let first = ground.push(&[deployment(json!({"minReadySeconds": 7}))]);
    let mark = ground.mark().await;
    ground.sync(json!({})).await;
    ground.ready(&first, "Applied").await;
    moment(500).await;
    assert_eq!(ground.tally(&mark).await, expect([("patch deployments.apps", 1)]));
}

/// A daemon of its own without a Sync.
struct Alone {
    plane: Shared,
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
        ask(&self.admin, verb, uri, body).await
    }

    fn web(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments/web", self.namespace)
    }

    async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || self.ask("GET", &self.web(), &Value::Null).await.filter(|live| is(live))).await
    }

    async fn tally(&self, mark: &AuditMark, user: &str) -> BTreeMap<String, usize> {
        mark.requests().await.of(user).within(&self.namespace).tally()
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
    let root = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", alone.namespace);
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "tenant"},
        "rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}],
    });
    alone.ask("POST", &format!("{root}/roles"), &role).await.expect("a Role");
    alone.ask("POST", &format!("{root}/rolebindings"), &binding).await.expect("a RoleBinding");
    alone.push(deployment(json!({"replicas": 3})));
    let mark = AuditMark::set(&alone.plane).await;
    let daemon = alone.start_as(TENANT);
    alone.until("it is there", |_| true).await;
    alone.push(deployment(json!({"replicas": 4})));
    alone.until("it is changed", |live| live["spec"]["replicas"] == 4).await;
    moment(6000).await;
    let said = daemon.log().matches("HorizontalPodAutoscalers may not be seen").count();
    assert_eq!(said, 1, "{}", daemon.log());
    let asked = alone.tally(&mark, TENANT).await;
    assert_eq!(asked.get(WATCH_SCALERS), Some(&1), "nobody waits for that right: {asked:?}");
}

/// Where an object is kept, whoever asks.
fn web_of(scene: &Scene) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/web", scene.namespace)
}

async fn ask(admin: &Client, verb: &str, uri: &str, body: &Value) -> Option<Value> {
    let content = if verb == "PATCH" { MERGE } else { "application/json" };
    let request = http::Request::builder().method(verb).uri(uri).header("Content-Type", content);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    admin.request(request.body(body).expect("a request")).await.ok()
}

fn asks_for_scalers(asked: &Asked) -> bool {
    asked.path.ends_with("/horizontalpodautoscalers")
}

#[tokio::test]
async fn replicas_do_not_fall_while_the_watch_on_scalers_is_broken() {
    let Some(scene) = Scene::new("behind").await else { return };
    let path = web_of(&scene);
    let live = async || ask(&scene.admin, "GET", &path, &Value::Null).await;
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
    ask(&scene.admin, "POST", &scalers(&scene.namespace), &on_web()).await.expect("a scaler");
    ask(&scene.admin, "PATCH", &scaled, &eight).await.expect("it is scaled");
    until("it is left to it", async || live().await.filter(|live| hash(live) != before)).await;
    assert_eq!(numbers.all().await, [3, 8]);

    daemon.terminate();
    scene.proxy.rule(|asked| if asks_for_scalers(asked) { Fate::Answer(500, None) } else { Fate::Pass });
    scene.push(&[("web.json".into(), deployment(json!({"replicas": 3, "minReadySeconds": 7})).to_string())]);
    let _daemon = scene.daemon_with(&arguments);
    moment(3000).await;
    let waits = live().await.expect("it");
    assert_eq!(waits["spec"].get("minReadySeconds"), None, "who scales it is not known, so it waits");
    scene.proxy.heal();
    until("the commit is live", async || live().await.filter(|live| live["spec"]["minReadySeconds"] == 7))
        .await;
    moment(500).await;
    assert_eq!(numbers.all().await, [3, 8]);
}
