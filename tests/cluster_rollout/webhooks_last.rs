//! Webhooks come after the objects that they guard, and a guarded object waits for the webhook's backend.
//!
//! In: sets as operators release them, with definitions, custom resources and a webhook that fails closed. Out: no request
//! about an object is refused because the webhook has no backend yet, and the Sync never says `ApplyFailed`.

mod backend;
mod others;
mod shapes;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use backend::{Backend, WEBHOOKS, files, pods_are_ready, reasons, refused, until_waits};
use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

const RUNS: usize = 20;
const KINDS: [&str; 3] = ["Boat", "Crate", "Dock"];
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// An operator with a webhook, in a namespace and with kinds of its own.
struct Operator {
    namespace: String,
    group: String,
}

impl Operator {
    fn new(scene: &Scene, name: &str) -> Self {
        let namespace = format!("{}-{name}", scene.namespace);
        Self { group: format!("{namespace}.example.com"), namespace }
    }

    fn definition(&self, kind: &str) -> Value {
        let plural = format!("{}s", kind.to_lowercase());
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{}", self.group)},
            "spec": {"group": self.group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
        })
    }

    fn resource(&self, kind: &str, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}, "spec": {"value": value},
        })
    }

    fn namespace(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
    }

    fn service(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "webhook", "namespace": self.namespace},
            "spec": {"selector": {"app": "webhook"}, "ports": [{"port": 443, "targetPort": 9443}]},
        })
    }

    /// The webhook of all kinds of the operator. Others may change it, so that a test can say where its backend is.
    fn webhook(&self) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.namespace, "annotations": {"moorline.dev/apply": "once"}},
            "webhooks": [{
                "name": format!("validate.{}", self.group), "failurePolicy": "Fail", "timeoutSeconds": 1,
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{"apiGroups": [self.group], "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["*"]}],
                "clientConfig": {"service": {"name": "webhook", "namespace": self.namespace}},
            }],
        })
    }

    fn deployment(&self) -> Value {
        let labels = json!({"app": "webhook"});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "operator-webhook", "namespace": self.namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "webhook", "image": "example.com/webhook:1"}]},
            }},
        })
    }

    /// Takes away all that is not in a namespace, and the namespace.
    async fn leaves(&self, scene: &Scene) {
        let none = json!({});
        let _ = send_request(&scene.admin, "DELETE", &format!("{WEBHOOKS}/{}", self.namespace), &none).await;
        for kind in KINDS {
            let name = format!("{}s.{}", kind.to_lowercase(), self.group);
            let _ = send_request(&scene.admin, "DELETE", &format!("{DEFINITIONS}/{name}"), &none).await;
        }
        let _ =
            send_request(&scene.admin, "DELETE", &format!("/api/v1/namespaces/{}", self.namespace), &none)
                .await;
    }
}

#[tokio::test]
async fn a_webhook_is_sent_after_the_resources_whose_kinds_come_with_it() {
    let Some(scene) = Scene::new("order").await else { return };
    let operators: Vec<Operator> = (0..RUNS).map(|run| Operator::new(&scene, &run.to_string())).collect();
    let mut all = Vec::new();
    for (run, operator) in operators.iter().enumerate() {
        let mut objects = vec![operator.namespace(), operator.service(), operator.webhook()];
        objects.extend(KINDS.map(|kind| operator.definition(kind)));
        objects.extend(KINDS.map(|kind| operator.resource(kind, "one", "a")));
        all.extend(files(&format!("run-{run}"), &objects));
    }
    let commit = scene.push(&all);
    let _daemon = scene.daemon();
    let mut wrong = Vec::new();
    for (run, operator) in operators.iter().enumerate() {
        let (name, mark) = (format!("run-{run}"), AuditMark::set(&scene.plane).await);
        scene.sync(&name, json!({"path": name})).await;
        let told = reasons(&scene, &name, &commit).await;
        let refused = refused(&mark).await;
        if !refused.is_empty() || told.contains("ApplyFailed") {
            wrong.push(format!("run {run}: {told:?}, {refused:?}"));
        }
        let writes = mark.requests().await.by_user(MOORLINE).filter(|it| it.verb == "patch" && it.code < 300);
        let last = writes.as_slice().iter().rfind(|it| it.resource != "syncs" && it.resource != "leases");
        assert_eq!(last.unwrap().resource, "validatingwebhookconfigurations", "run {run}");
        scene.delete_sync(&name).await;
        operator.leaves(&scene).await;
    }
    assert!(wrong.is_empty(), "{} of {RUNS} runs: {wrong:#?}", wrong.len());
}

/// The set of an operator as a commit has it: the resources, and what else changes.
fn released(operator: &Operator, resources: &[(&str, &str)], value: &str) -> Vec<(String, String)> {
    let mut objects = vec![
        operator.namespace(),
        operator.service(),
        operator.deployment(),
        operator.webhook(),
        operator.definition("Boat"),
        serde_json::from_str(&config_map("other", value)).unwrap(),
    ];
    objects.extend(resources.iter().map(|(name, value)| operator.resource("Boat", name, value)));
    files("operator", &objects)
}

#[tokio::test]
async fn a_guarded_resource_waits_for_the_backend_of_its_webhook() {
    let Some(scene) = Scene::new("guarded").await else { return };
    let (operator, backend) = (Operator::new(&scene, "a"), Backend::start(&scene));
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.push(&released(&operator, &[("one", "a")], "a"));
    let daemon = scene.daemon();
    scene.sync("operator", json!({"path": "operator"})).await;
    let told = reasons(&scene, "operator", &commit).await;
    assert!(!told.contains("ApplyFailed"), "{told:?}");
    assert!(refused(&mark).await.is_empty());

    let waits = async |count: usize| until_waits(&scene, "operator", count).await;
    // The webhook is in the cluster now, and has no backend yet. A daemon that starts meanwhile believes what it finds, and
    // sends nothing that is guarded.
    drop(daemon);
    let daemon = scene.daemon_at(&scene.proxy, "second", &["--leader-election=false"]);
    until("it has looked at all", async || {
        daemon.log().contains("judged the objects by their managedFields").then_some(())
    })
    .await;
    scene.settle().await;
    assert!(refused(&mark).await.is_empty());

    let commit = scene.push(&released(&operator, &[("one", "b"), ("two", "b")], "b"));
    scene.nudge("operator", "second").await;
    scene.until_values(&[("".to_owned(), config_map("other", "b"))], "the others do not wait").await;
    let problems = waits(2).await;
    let expect = format!(
        "it waits for Deployment.apps {ns}/operator-webhook, which serves the webhook validate.{}",
        operator.group,
        ns = operator.namespace
    );
    assert_eq!(problems[0]["message"], expect);
    assert_eq!(scene.status("operator", "/conditions/0/reason").await, "Progressing");
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(refused(&mark).await, Vec::<String>::new());

    backend.answers.store(true, Ordering::Relaxed);
    backend.stands_for(&scene, &operator.webhook()).await;
    pods_are_ready(&scene, &operator.namespace, "app=webhook").await;
    let told = reasons(&scene, "operator", &commit).await;
    assert!(!told.contains("ApplyFailed"), "{told:?}");
    assert_eq!(refused(&mark).await, Vec::<String>::new());
    let boats = format!("/apis/{}/v1/namespaces/{}/boats", operator.group, operator.namespace);
    for name in ["one", "two"] {
        let boat = send_request(&scene.admin, "GET", &format!("{boats}/{name}"), Value::Null).await.unwrap();
        assert_eq!(boat["spec"]["value"], "b", "{name}");
    }
    scene.assert_calm("once all of it is applied").await;

    // The address of a ready Pod may reach the API server later: that is no failure yet.
    backend.answers.store(false, Ordering::Relaxed);
    let commit = scene.push(&released(&operator, &[("one", "c"), ("two", "b")], "b"));
    scene.nudge("operator", "third").await;
    let problems = waits(1).await;
    assert_eq!(problems[0]["message"], format!("{expect}, and which the API server cannot reach yet"));
    assert_eq!(scene.status("operator", "/conditions/0/reason").await, "Progressing");
    backend.answers.store(true, Ordering::Relaxed);
    let told = reasons(&scene, "operator", &commit).await;
    assert!(!told.contains("ApplyFailed"), "{told:?}");
    scene.delete_sync("operator").await;
    operator.leaves(&scene).await;
}

/// A kind that is never served, because another has its name, keeps a webhook back for a minute.
#[tokio::test]
async fn a_kind_that_never_comes_keeps_a_webhook_back_for_a_minute() {
    let Some(scene) = Scene::new("never").await else { return };
    let operator = Operator::new(&scene, "a");
    let (first, mut second) = (operator.definition("Boat"), operator.definition("Dock"));
    second["spec"]["names"]["shortNames"] = json!(["boats"]);
    let names_first = files("first", &[first]);
    let objects = [
        operator.namespace(),
        operator.service(),
        operator.webhook(),
        second,
        operator.resource("Dock", "one", "a"),
    ];
    let commit = scene.push(&[names_first, files("second", &objects)].concat());
    let _daemon = scene.daemon();
    scene.sync("first", json!({"path": "first"})).await;
    scene.until_ready("first", &commit).await;
    let begun = Instant::now();
    scene.sync("second", json!({"path": "second"})).await;
    let uri = format!("{WEBHOOKS}/{}", operator.namespace);
    let is_there = async || send_request(&scene.admin, "GET", &uri, Value::Null).await.is_ok();
    while begun.elapsed() < Duration::from_secs(50) {
        assert!(!is_there().await, "after {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    until("the webhook is sent", async || is_there().await.then_some(())).await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(70)), "{:?}", begun.elapsed());
    scene.until_reason("second", "ObjectsHeld").await;
    for name in ["first", "second"] {
        scene.delete_sync(name).await;
    }
    operator.leaves(&scene).await;
}
