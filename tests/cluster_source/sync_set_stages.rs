//! Stages of a SyncSet: new specs go out step by step, and a degraded Sync stops them.

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use super::sync_sets::SetUnderTest;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene};
use moorline_test_support::status::{define, report};

const MEMBERS: [(&str, &str); 6] =
    [("c1", "canary"), ("c2", "canary"), ("e1", "eu"), ("e2", "eu"), ("e3", "eu"), ("e4", "eu")];

/// The time for which the first stage has to be healthy, in seconds.
const SOAK: u64 = 5;

fn resource(scene: &Scene) -> Value {
    let elements = MEMBERS.map(|(name, stage)| json!({"name": name, "stage": stage}));
    let source = json!({"git": {"url": scene.git.url("repository.git")}});
    json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "apps"},
        "spec": {
            "serviceAccountName": "setter",
            "generators": [{"list": {"elements": elements}}],
            "name": "params.name",
            "template": {"spec": {"source": source, "interval": "1h", "render": {"substitute": {"vars": {"size": "one"}}}}},
            "set": [
                {"field": "/spec/path", "value": "'apps/' + params.name"},
                {"field": "/metadata/labels/stage", "value": "params.stage"},
            ],
            "rollout": {"stages": [
                {"matchLabels": {"stage": "canary"}, "maxUnavailable": 1, "healthyFor": format!("{SOAK}s")},
                {"matchExpressions": [{"key": "stage", "operator": "In", "values": ["eu"]}], "maxUnavailable": "50%"},
            ]},
        },
    })
}

fn step(name: &str) -> (String, String) {
    let body = json!({
        "apiVersion": "ready.example/v1", "kind": "Step", "metadata": {"name": name}, "spec": {"size": "${size}"},
    });
    (format!("apps/{name}/step.json"), body.to_string())
}

/// Objects of which each belongs to one Sync of the set.
struct Steps<'a>(&'a Api<DynamicObject>);

impl Steps<'_> {
    /// Reports as the controller of these objects, for their newest generation.
    async fn report(&self, names: &str, type_: &str) {
        for name in names.split_whitespace() {
            let generation = self.0.get(name).await.unwrap().metadata.generation;
            let condition =
                json!({"type": type_, "status": "True", "reason": "Told", "message": "as the test says"});
            report(self.0, name, json!({"observedGeneration": generation, "conditions": [condition]})).await;
        }
    }

    /// The objects that have this size.
    async fn of_size(&self, size: &str) -> String {
        let mut found = Vec::new();
        for (name, _) in MEMBERS {
            let object = self.0.get_opt(name).await.unwrap();
            found.extend(object.filter(|it| it.data["spec"]["size"] == size).map(|_| name));
        }
        found.join(" ")
    }

    /// Waits until exactly these objects have this size, and checks that no other gets it.
    async fn until_size(&self, size: &str, names: &str) {
        until(&format!("{names} are {size}"), async || (self.of_size(size).await == names).then_some(()))
            .await;
        tokio::time::sleep(QUIET_TIME).await;
        assert_eq!(self.of_size(size).await, names);
    }
}

/// The server refuses roll-outs that nobody could read.
async fn refuses_what_it_cannot_read(scene: &Scene, set: &SetUnderTest<'_>) {
    for (what, rollout) in [
        ("none at a time", json!({"stages": [{"matchLabels": {}, "maxUnavailable": 0}]})),
        ("a share of none", json!({"stages": [{"matchLabels": {}, "maxUnavailable": "0%"}]})),
        ("more than all", json!({"stages": [{"matchLabels": {}, "maxUnavailable": "101%"}]})),
        ("a text", json!({"stages": [{"matchLabels": {}, "maxUnavailable": "half"}]})),
        ("a boolean", json!({"stages": [{"matchLabels": {}, "maxUnavailable": true}]})),
        ("no selector", json!({"stages": [{"maxUnavailable": 1}]})),
        ("no stage", json!({"stages": []})),
        ("no values", json!({"stages": [{"matchExpressions": [{"key": "a", "operator": "NotIn"}]}]})),
        ("a return", json!({"stages": [{"matchLabels": {}}], "onFailure": "Revert"})),
    ] {
        let mut body = resource(scene);
        body["spec"]["rollout"] = rollout;
        let refused = send_request(&scene.admin, "POST", &set.path(), body).await;
        let code = refused.err().map(|error| error.to_string());
        assert!(code.as_ref().is_some_and(|error| error.contains("spec.rollout")), "{what}: {code:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_template_goes_out_in_stages_and_a_degraded_sync_stops_it() {
    let Some(scene) = Scene::new("sync-set-stages").await else { return };
    let set = SetUnderTest(&scene);
    set.define().await;
    set.grant().await;
    let objects = define(&scene, "Step").await;
    let steps = Steps(&objects);
    refuses_what_it_cannot_read(&scene, &set).await;
    scene.push(&MEMBERS.map(|(name, _)| step(name)));
    send_request(&scene.admin, "POST", &set.path(), resource(&scene)).await.unwrap();
    let stages = set.get().await.unwrap()["spec"]["rollout"]["stages"].clone();
    assert_eq!((&stages[0]["maxUnavailable"], &stages[1]["maxUnavailable"]), (&json!(1), &json!("50%")));

    // New Syncs belong to their stages as well.
    let daemon = scene.daemon();
    steps.until_size("one", "c1").await;
    steps.report("c1", "Ready").await;
    steps.until_size("one", "c1 c2").await;
    let healthy = std::time::Instant::now();
    steps.report("c2", "Ready").await;
    until("half of the next stage is there", async || {
        (steps.of_size("one").await == "c1 c2 e1 e2").then_some(())
    })
    .await;
    assert!(healthy.elapsed().as_secs() >= SOAK, "{:?}", healthy.elapsed());
    steps.report("e1", "Ready").await;
    steps.until_size("one", "c1 c2 e1 e2 e3").await;
    steps.report("e2 e3", "Ready").await;
    steps.until_size("one", "c1 c2 e1 e2 e3 e4").await;
    steps.report("e4", "Ready").await;
    let status = set.until_reason("Applied").await;
    assert_eq!((&status["rollout"], &status["children"]["ready"]), (&Value::Null, &json!(6)));
    scene.assert_calm("a set at rest").await;

    // The first stage is degraded: nothing further is written, also after a restart.
    set.patch(json!({"spec": {"template": {"spec": {"render": {"substitute": {"vars": {"size": "two"}}}}}}}))
        .await;
    steps.until_size("two", "c1").await;
    steps.report("c1", "Failed").await;
    let status = set.until_reason("Degraded").await;
    assert_eq!(status["rollout"], json!({"stage": 1, "waitingFor": ["apps-c1"]}));
    let message = status["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains("the Sync apps-c1 is degraded") && message.contains("5 Syncs wait"),
        "{message}"
    );
    drop(daemon);
    let _daemon = scene.daemon();
    scene.settle().await;
    set.until_reason("Degraded").await;
    steps.until_size("two", "c1").await;

    // It goes on when the Sync is healthy, and stops again in the middle of the second stage.
    steps.report("c1", "Ready").await;
    steps.until_size("two", "c1 c2").await;
    steps.report("c2", "Ready").await;
    let until_end = until("the stage has to stay healthy", async || {
        set.get().await?["status"]["rollout"]["until"].as_str().map(str::to_owned)
    });
    assert!(until_end.await.ends_with('Z'));
    steps.until_size("two", "c1 c2 e1 e2").await;
    steps.report("e2", "Failed").await;
    set.until_reason("Degraded").await;
    steps.report("e1", "Ready").await;
    steps.until_size("two", "c1 c2 e1 e2").await;
    // An edit by hand of what has its newest form is undone in spite of that.
    scene.patch_sync("apps-c1", json!({"spec": {"path": "elsewhere"}})).await;
    until("the path is back", async || {
        (scene.syncs().get("apps-c1").await.unwrap().data["spec"]["path"] == "apps/c1").then_some(())
    })
    .await;
    steps.report("e2", "Ready").await;
    steps.until_size("two", "c1 c2 e1 e2 e3 e4").await;
    steps.report("e3 e4", "Ready").await;
    set.until_reason("Applied").await;
    set.patch(json!({"spec": {"onDelete": "Delete"}})).await;
    send_request(&scene.admin, "DELETE", &format!("{}/apps", set.path()), json!(null)).await.unwrap();
    until("the set is gone", async || set.get().await.is_none().then_some(())).await;
    set.undefine().await;
}
