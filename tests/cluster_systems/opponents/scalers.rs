//! Scalers of objects: a HorizontalPodAutoscaler, KEDA, and what changes resources instead of numbers.

use std::time::Duration;

use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use super::ground::{
    IMAGE, Opponent, assert_repaired, define, deployments, everywhere, file, quiet_after, until_contested,
    web, writes,
};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::Scene;
use moorline_test_support::status::condition;

fn scaler(name: &str, target: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {
            "minReplicas": 2, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        },
    })
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}})
}

#[tokio::test]
async fn an_autoscaler_moves_replicas_up_and_down() {
    let Some(scene) = Scene::new("hpa").await else { return };
    let names = ["with", "without"];
    let webs = [web("with", json!({"replicas": 2, "minReadySeconds": 2})), web("without", json!({}))];
    let files: Vec<_> = webs.iter().map(file).chain(names.map(|name| file(&scaler(name, name)))).collect();
    let (_daemon, _) = scene.applied(&files, json!({})).await;
    let autoscaler = Opponent::new(&deployments(&scene), "kube-controller-manager");
    // The server's own controller brings it to the least number.
    autoscaler.until("the least number", "without", |live| live["spec"]["replicas"] == 2).await;
    // There are no metrics here, which it says once it has looked for them.
    until("the server's controller has looked", async || {
        let said = condition(&scene, "shop", "Healthy").await["message"].to_string();
        said.contains("it does not scale").then_some(())
    })
    .await;
    for replicas in [2, 5, 3, 9, 4] {
        for name in names {
            autoscaler.scales(name, replicas).await;
        }
    }
    let asked = quiet_after(&scene, autoscaler.moved(), "scaled").await;
    for name in names {
        assert!(writes(&asked, name) <= 8, "a look for each generation at most");
        assert_eq!(autoscaler.live(name).await["spec"]["replicas"], 4, "{name}");
    }
    assert_repaired(
        &scene,
        &deployments(&scene),
        "with",
        json!({"spec": {"minReadySeconds": 5}}),
        "spec.minReadySeconds",
    )
    .await;
    let webs = [
        web("with", json!({"replicas": 7, "minReadySeconds": 3})),
        web("without", json!({"minReadySeconds": 3})),
    ];
    let commit = scene.push(&webs.iter().map(file).collect::<Vec<_>>());
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    for name in names {
        let spec = autoscaler.live(name).await["spec"].clone();
        assert_eq!((&spec["replicas"], &spec["minReadySeconds"]), (&json!(4), &json!(3)), "{name}");
    }
    assert_eq!(scene.status("shop", "/contested").await, Value::Null);
}

#[tokio::test]
async fn pods_that_are_resized_are_no_drift() {
    let Some(scene) = Scene::new("vpa").await else { return };
    let mut rolling = web("web", json!({"paused": false}));
    rolling["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    let (_daemon, _) = scene.applied(&[file(&rolling)], json!({})).await;
    let pods = scene.dynamic("", "v1", "Pod");
    let first = async || pods.list(&ListParams::default()).await.unwrap().items.into_iter().next();
    let pod = until("the Pod is there", async || first().await?.metadata.name).await;
    quiet_after(&scene, std::time::Instant::now(), "rolled out").await;
    let updater = Opponent::new(&pods, "vpa-updater");
    let said = json!({"metadata": {"annotations": {"vpaUpdates": "Pod resources updated by web"}}});
    updater.merges(&pod, said).await;
    // One that cannot be resized is evicted, and its successor is made with other requests.
    pods.delete(&pod, &DeleteParams::default().grace_period(0)).await.unwrap();
    until("another Pod is there", async || first().await?.metadata.name.filter(|name| *name != pod)).await;
    let asked = quiet_after(&scene, updater.moved(), "resized").await;
    assert_eq!(writes(&asked, "web"), 0);
}

fn requests(cpu: &str) -> Value {
    let container = json!({"name": "web", "resources": {"requests": {"cpu": cpu}}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {"template": {"spec": {"containers": [container]}}},
    })
}

#[tokio::test]
async fn requests_that_are_written_into_a_template_are_left_or_contested() {
    let Some(scene) = Scene::new("rightsizer").await else { return };
    let sized = |name: &str| {
        let mut web = web(name, json!({}));
        web["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
        file(&web)
    };
    let place = "/spec/template/spec/containers/0/resources";
    let ignored = json!([{"target": {"kind": "Deployment", "name": "left"}, "paths": [place]}]);
    let (_daemon, _) =
        scene.applied(&[sized("left"), sized("fought")], json!({"ignoreFields": ignored})).await;
    let sizer = Opponent::new(&deployments(&scene), "rightsizer");
    scene.proxy.take_requests();
    for cpu in ["150m", "200m", "250m"] {
        sizer.applies("left", &requests(cpu)).await;
    }
    let asked = quiet_after(&scene, sizer.moved(), "left to it").await;
    assert!(writes(&asked, "left") <= 3, "a look for each generation at most");
    let cpu = "/spec/template/spec/containers/0/resources/requests/cpu";
    assert_eq!(sizer.live("left").await.pointer(cpu), Some(&json!("250m")));

    let insists = sizer.insists("fought", requests("300m"), cpu);
    let (contested, message) = until_contested(&scene, "shop").await;
    let field = "spec.template.spec.containers[name=web].resources.requests.cpu";
    assert_eq!(contested, [(field.to_owned(), "rightsizer".to_owned())]);
    assert!(message.contains(&format!("rightsizer reverts every repair of {field}")), "{message}");
    let asked = quiet_after(&scene, sizer.moved(), "contested").await;
    assert_eq!(writes(&asked, "fought"), 5);
    drop(insists);
    let person = Opponent::new(&deployments(&scene), "kubectl-edit");
    person.edits("fought", image("example.com/web:2")).await;
    let repaired = |live: &Value| live.pointer(IMAGE) == Some(&json!("example.com/web:1"));
    let live = person.until("what is not contested is repaired", "fought", repaired).await;
    assert_eq!(live.pointer(cpu), Some(&json!("300m")));
}

/// True if the number of replicas is a Sync's.
fn sets_replicas(live: &Value) -> bool {
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let holds = |entry: &Value| {
        let manager = entry["manager"].as_str().unwrap();
        manager.starts_with("moorline/") && entry.pointer("/fieldsV1/f:spec/f:replicas").is_some()
    };
    entries.iter().any(holds)
}

/// The fields of a ScaledObject that matter here.
async fn scaled_objects(scene: &Scene) -> kube::Api<kube::api::DynamicObject> {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let spec = json!({"type": "object", "required": ["scaleTargetRef", "triggers"], "properties": {
        "scaleTargetRef": {"type": "object", "required": ["name"],
            "properties": {"apiVersion": text, "kind": text, "name": text}},
        "minReplicaCount": number, "maxReplicaCount": number, "idleReplicaCount": number,
        "triggers": {"type": "array", "items": {"type": "object", "required": ["type", "metadata"], "properties": {
            "type": text, "metadata": {"type": "object", "additionalProperties": text},
        }}},
    }});
    define(scene, "keda.sh", "v1alpha1", "ScaledObject", spec).await
}

fn scaled_object(target: &str) -> Value {
    json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": target},
        "spec": {
            "scaleTargetRef": {"name": target}, "minReplicaCount": 0, "maxReplicaCount": 9,
            "triggers": [{"type": "queue", "metadata": {"length": "5"}}],
        },
    })
}

/// Changes by KEDA's operator to a Deployment, with a HorizontalPodAutoscaler as long as there is work.
async fn works_and_rests(scene: &Scene, keda: &Opponent, name: &str) {
    let autoscalers = scene.dynamic("autoscaling", "v2", "HorizontalPodAutoscaler");
    let operator = Opponent::new(&autoscalers, "keda-operator");
    let scaler_name = format!("keda-hpa-{name}");
    keda.scales(name, 1).await;
    operator.creates(scaler(&scaler_name, name)).await;
    keda.scales(name, 6).await;
    quiet_after(scene, keda.moved(), "at work").await;
    autoscalers.delete(&scaler_name, &DeleteParams::default()).await.unwrap();
    keda.scales(name, 0).await;
    let asked = quiet_after(scene, keda.moved(), "at rest").await;
    assert!(writes(&asked, name) <= 2, "a look for each generation at most");
    assert_eq!(keda.live(name).await["spec"]["replicas"], 0, "{name} rests");
}

#[tokio::test]
async fn keda_scales_to_zero_by_itself() {
    let Some(scene) = Scene::new("keda").await else { return };
    let scaled = scaled_objects(&scene).await;
    let files = [
        file(&web("in-git", json!({"replicas": 3}))),
        file(&scaled_object("in-git")),
        file(&web("live", json!({"replicas": 3}))),
    ];
    let (daemon, _) = scene.applied(&files, json!({})).await;
    let keda = Opponent::new(&deployments(&scene), "keda");
    keda.scales("in-git", 0).await;
    quiet_after(&scene, keda.moved(), "Git scales it").await;
    works_and_rests(&scene, &keda, "in-git").await;

    // The ScaledObject of another team.
    Opponent::new(&scaled, "kubectl-create").creates(scaled_object("live")).await;
    let live = keda.until("the number is handed over", "live", |live| !sets_replicas(live)).await;
    assert_eq!(live["spec"]["replicas"], 3);
    keda.scales("live", 0).await;
    works_and_rests(&scene, &keda, "live").await;
    // A daemon that restarts sees first who scales what.
    drop(daemon);
    let _daemon = scene.daemon();
    let webs = ["in-git", "live"].map(|name| file(&web(name, json!({"replicas": 4, "minReadySeconds": 3}))));
    let commit = scene.push(&webs);
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    for name in ["in-git", "live"] {
        let spec = keda.live(name).await["spec"].clone();
        assert_eq!((&spec["replicas"], &spec["minReadySeconds"]), (&json!(0), &json!(3)), "{name}");
    }
    scaled.delete("live", &DeleteParams::default()).await.unwrap();
    keda.until("Git's number comes back", "live", |live| live["spec"]["replicas"] == 4).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(keda.live("in-git").await["spec"]["replicas"], 0);
}

#[tokio::test]
async fn keda_that_is_installed_later_is_found() {
    let Some(scene) = Scene::new("keda-later").await else { return };
    let definitions = everywhere(&scene, "apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let name = "scaledobjects.keda.sh";
    let _ = definitions.delete(name, &DeleteParams::default()).await;
    until("nobody knows KEDA", async || definitions.get_opt(name).await.unwrap().is_none().then_some(()))
        .await;
    let (_daemon, _) = scene.applied(&[file(&web("web", json!({"replicas": 3})))], json!({})).await;
    let scaled = scaled_objects(&scene).await;
    Opponent::new(&scaled, "kubectl-create").creates(scaled_object("web")).await;
    let keda = Opponent::new(&deployments(&scene), "keda");
    keda.scales("web", 0).await;
    keda.until("the number is handed over", "web", |live| !sets_replicas(live)).await;
    quiet_after(&scene, keda.moved(), "found").await;
    assert_eq!(keda.live("web").await["spec"]["replicas"], 0);
    works_and_rests(&scene, &keda, "web").await;
}
