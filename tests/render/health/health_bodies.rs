//! Bodies of the size that a cluster has, one for each family and each way that is long to walk. The annotation `expect` says
//! what they are.

use moorline::object::GroupKind;
use serde_json::{Map, Value, json};

/// Kinds and bodies.
pub fn bodies() -> Vec<(GroupKind, Map<String, Value>)> {
    let mut all = workloads();
    all.extend(others());
    all.extend(gateways());
    let body = |(kind, group, body): (&str, &str, Value)| match body {
        Value::Object(body) => (GroupKind::new(group, kind), body),
        other => panic!("{other} is no mapping"),
    };
    all.into_iter().map(body).collect()
}

type Named = (&'static str, &'static str, Value);

fn metadata(expect: &str) -> Value {
    let managed: Vec<Value> = (0..4)
        .map(|at| json!({"manager": format!("manager-{at}"), "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}))
        .collect();
    json!({
        "name": "web", "namespace": "shop", "uid": "b1b2c3d4", "generation": 4, "managedFields": managed,
        "annotations": {"expect": expect}, "labels": {"app.kubernetes.io/name": "web"},
    })
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "Reason", "message": "Something is as it is. ".repeat(8),
        "observedGeneration": 4, "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn template() -> Value {
    let container = |name: &str| json!({"name": name, "image": "example.com/web:1", "env": [{"name": "A", "value": "b"}], "ports": [{"containerPort": 80}]});
    json!({"spec": {"containers": [container("app"), container("proxy")], "initContainers": [container("load")]}})
}

fn workloads() -> Vec<Named> {
    let counts = json!({
        "observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 2,
        "conditions": [condition("Available", "True"), condition("Progressing", "True")],
        "currentRevision": "a", "updateRevision": "a", "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3,
    });
    let spec = json!({"replicas": 3, "template": template()});
    let statuses = |ready: bool| -> Vec<Value> {
        (0..4)
            .map(|at| {
                json!({
                    "name": format!("c{at}"), "ready": ready, "restartCount": 3, "state": {"running": {}},
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                })
            })
            .collect()
    };
    let pod = |ready: bool| {
        let conditions: Vec<Value> = ["Initialized", "PodScheduled", "ContainersReady", "Ready"]
            .into_iter()
            .map(|kind| condition(kind, if ready || kind == "PodScheduled" { "True" } else { "False" }))
            .collect();
        json!({"phase": "Running", "conditions": conditions, "containerStatuses": statuses(ready)})
    };
    let with =
        |expect: &str, status: &Value| json!({"metadata": metadata(expect), "spec": spec, "status": status});
    let job = json!({"conditions": [condition("SuccessCriteriaMet", "True"), condition("Complete", "True")]});
    vec![
        ("Deployment", "apps", with("Progressing", &counts)),
        ("StatefulSet", "apps", with("Healthy", &counts)),
        ("DaemonSet", "apps", with("Healthy", &counts)),
        ("ReplicaSet", "apps", with("Progressing", &counts)),
        ("Pod", "", with("Healthy", &pod(true))),
        ("Pod", "", with("Degraded", &pod(false))),
        ("Job", "batch", with("Healthy", &job)),
        ("CronJob", "batch", with("Progressing", &json!({"lastScheduleTime": "2026-01-01T00:00:00Z"}))),
    ]
}

fn others() -> Vec<Named> {
    let with = |expect: &str, status: Value| json!({"metadata": metadata(expect), "spec": {"type": "LoadBalancer"}, "status": status});
    let many = |names: &[&str], last: &str| -> Vec<Value> {
        let rest = names.iter().map(|name| condition(name, "True"));
        rest.chain([condition(last, "False")]).collect()
    };
    let namespace = many(&["NamespaceContentRemaining"], "NamespaceFinalizersRemaining");
    let plain: Vec<Value> = (0..20).map(|at| condition(&format!("Other{at}"), "True")).collect();
    let ready: Vec<Value> = plain.iter().cloned().chain([condition("Ready", "False")]).collect();
    vec![
        ("PersistentVolumeClaim", "", with("Progressing", json!({"phase": "Pending"}))),
        ("Service", "", with("Progressing", json!({"loadBalancer": {}}))),
        ("Ingress", "networking.k8s.io", with("Healthy", json!({"loadBalancer": {}}))),
        (
            "HorizontalPodAutoscaler",
            "autoscaling",
            with("Progressing", json!({"conditions": many(&["AbleToScale"], "ScalingActive")})),
        ),
        (
            "PodDisruptionBudget",
            "policy",
            with("Healthy", json!({"observedGeneration": 4, "conditions": many(&[], "DisruptionAllowed")})),
        ),
        (
            "APIService",
            "apiregistration.k8s.io",
            with("Progressing", json!({"conditions": many(&[], "Available")})),
        ),
        (
            "CustomResourceDefinition",
            "apiextensions.k8s.io",
            with("Progressing", json!({"conditions": many(&["NamesAccepted"], "Established")})),
        ),
        ("Namespace", "", with("Progressing", json!({"phase": "Terminating", "conditions": namespace}))),
        ("Widget", "example.com", with("Progressing", json!({"observedGeneration": 4, "conditions": ready}))),
        (
            "Widget",
            "example.com",
            with("Degraded", json!({"phase": "CreateFailed", "message": "m", "conditions": plain})),
        ),
        ("ConfigMap", "", with("Healthy", json!({}))),
    ]
}

fn gateways() -> Vec<Named> {
    let accepted = |last: &str| {
        json!([
            condition("Accepted", "True"),
            condition("ResolvedRefs", last),
            condition("Programmed", "True")
        ])
    };
    let listeners: Vec<Value> =
        (0..16).map(|at| json!({"name": format!("l{at}"), "conditions": accepted("True")})).collect();
    let refs: Vec<Value> =
        (0..8).map(|at| json!({"name": format!("g{at}"), "sectionName": "https"})).collect();
    let parents: Vec<Value> = refs
        .iter()
        .enumerate()
        .map(|(at, of)| json!({"parentRef": of, "conditions": accepted(if at == 7 { "False" } else { "True" })}))
        .collect();
    let group = "gateway.networking.k8s.io";
    let with = |expect: &str, status: Value| json!({"metadata": metadata(expect), "spec": {"parentRefs": refs}, "status": status});
    vec![
        ("GatewayClass", group, with("Healthy", json!({"conditions": accepted("True")}))),
        ("Gateway", group, with("Healthy", json!({"conditions": accepted("True"), "listeners": listeners}))),
        ("HTTPRoute", group, with("Degraded", json!({"parents": parents}))),
    ]
}
