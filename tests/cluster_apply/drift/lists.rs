//! Changes by others to lists of ours: each sort of list belongs to us in its own way, as a whole, by its items, or not
//! even in its order.

use serde_json::{Value, json};

use super::ground::Ground;
use super::place::{MERGE, Place, STEPS};

const SPEC: &str = "/spec/template/spec";

fn extras(seen: &moorline::observed::Observed) -> Vec<String> {
    seen.extra_fields.iter().map(|extra| format!("{}: {}", extra.manager, extra.path)).collect()
}

/// Paused and without replicas, with one list of each sort that pods have.
fn deployment() -> (&'static str, Value) {
    let app = json!({
        "name": "app", "image": "web:1", "args": ["one", "two"],
        "env": [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "2"}],
        "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
    });
    let steps = json!([{"name": "first", "image": "step:1"}, {"name": "second", "image": "step:2"}]);
    let spec = json!({
        "replicas": 0, "paused": true, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "containers": [app], "initContainers": steps, "volumes": [{"name": "tmp", "emptyDir": {}}],
        }},
    });
    ("deployments", json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}))
}

fn service() -> (&'static str, Value) {
    let spec =
        json!({"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]});
    ("services", json!({"apiVersion": "v1", "kind": "Service", "spec": spec}))
}

fn binding() -> (&'static str, Value) {
    let body = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "absent"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    ("rolebindings", body)
}

fn network_policy() -> (&'static str, Value) {
    let spec = json!({"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]});
    ("networkpolicies", json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": spec}))
}

/// A kind with lists and mappings of all types, and a part without any type.
fn definition() -> Value {
    let strings = json!({"type": "string"});
    let properties = json!({
        "sails": {"type": "array", "items": strings, "x-kubernetes-list-type": "set"},
        "masts": {"type": "array", "items": strings, "x-kubernetes-list-type": "atomic"},
        "ropes": {"type": "array", "items": strings},
        "flag": {"type": "object", "additionalProperties": strings, "x-kubernetes-map-type": "atomic"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    });
    let spec = json!({"type": "object", "properties": properties});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.drift.example.com"},
        "spec": {"group": "drift.example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

fn boat() -> (&'static str, Value) {
    let spec = json!({
        "sails": ["jib", "main"], "masts": ["fore"], "ropes": ["halyard"], "flag": {"colour": "red"},
        "free": {"deck": {"crew": ["ann"], "size": 3}},
    });
    ("boats", json!({"apiVersion": "drift.example.com/v1", "kind": "Boat", "spec": spec}))
}

async fn steps(it: &Place, op: &str, path: &str, value: Value) {
    it.patch("kubectl-edit", STEPS, json!([{"op": op, "path": path, "value": value}])).await;
}

#[tokio::test]
async fn an_item_that_stands_twice_is_lost() {
    let Some(ground) = Ground::new().await else { return };
    let port = async |it: &Place| {
        let port = json!({"containerPort": 80, "name": "more", "protocol": "TCP"});
        steps(it, "add", &format!("{SPEC}/containers/0/ports/-"), port).await;
    };
    let item = "spec.template.spec.containers[name=app].ports[containerPort=80,protocol=TCP]";
    ground.check(deployment(), port, &format!("kubectl-edit: {item}")).await;
    let env = async |it: &Place| {
        let one = json!({"name": "ONE", "value": "more"});
        steps(it, "add", &format!("{SPEC}/containers/0/env/-"), one).await;
    };
    let item = "spec.template.spec.containers[name=app].env[name=ONE]";
    ground.check(deployment(), env, &format!("kubectl-edit: {item}")).await;
}

#[tokio::test]
async fn the_order_of_items_is_looked_into() {
    let Some(ground) = Ground::new().await else { return };
    ground.define(&definition()).await;
    let names = async |place: &Place, pointer: &str| -> Vec<String> {
        let live = place.get().await;
        let items = live.pointer(pointer).and_then(Value::as_array).expect("a list").clone();
        let name = |item: &Value| item.as_str().or(item["name"].as_str()).expect("a name").to_owned();
        items.iter().map(name).collect()
    };
    let pointer = &format!("{SPEC}/initContainers");
    let [first, second, other] = [("first", "step:1"), ("second", "step:2"), ("other", "step:0")]
        .map(|(name, image)| json!({"name": name, "image": image}));
    let turn = async |it: &Place| steps(it, "replace", pointer, json!([second, first])).await;
    let (seen, healed) = ground.healed(deployment(), turn, "moved").await;
    assert!(seen.extra_fields.is_empty(), "{:?}", seen.extra_fields);
    assert_eq!(names(&healed, pointer).await, ["first", "second"], "an apply brings our order");
    // Items that others put in front of ours stays there.
    let front = async |it: &Place| steps(it, "add", &format!("{pointer}/0"), other.clone()).await;
    let (seen, healed) = ground.healed(deployment(), front, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.template.spec.initContainers[name=other]"]);
    assert_eq!(names(&healed, pointer).await, ["other", "first", "second"]);
    let turn = async |it: &Place| steps(it, "replace", "/spec/sails", json!(["main", "jib"])).await;
    let (_, healed) = ground.healed(boat(), turn, "moved").await;
    assert_eq!(names(&healed, "/spec/sails").await, ["jib", "main"]);
    let front = async |it: &Place| steps(it, "add", "/spec/sails/0", json!("genoa")).await;
    let (seen, healed) = ground.healed(boat(), front, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.sails[\"genoa\"]"]);
    assert_eq!(names(&healed, "/spec/sails").await, ["genoa", "jib", "main"]);
    lists_without_keys(&ground).await;
}

/// A list without keys has no items: a manager that adds to it takes all of it.
async fn lists_without_keys(ground: &Ground) {
    for (path, value, field) in [
        ("/spec/masts/-", json!("mizzen"), "spec.masts"),
        ("/spec/ropes/-", json!("sheet"), "spec.ropes"),
        ("/spec/flag/shape", json!("square"), "spec.flag"),
        ("/spec/free/deck/crew/-", json!("bob"), "spec.free.deck.crew"),
    ] {
        let add = async |it: &Place| steps(it, "add", path, value).await;
        ground.check(boat(), add, &format!("kubectl-edit: {field}")).await;
    }
    // Without a schema, mappings still belong to each by their keys.
    let leaf = async |it: &Place| steps(it, "add", "/spec/free/deck/wheel", json!("oak")).await;
    let seen = ground.check(boat(), leaf, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.free.deck.wheel"]);
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"});
    let add = async |it: &Place| steps(it, "add", "/subjects/-", subject).await;
    ground.check(binding(), add, "kubectl-edit: subjects").await;
    let add = async |it: &Place| {
        it.patch("kubectl-edit", MERGE, json!({"spec": {"selector": {"tier": "x"}}})).await
    };
    ground.check(service(), add, "kubectl-edit: spec.selector").await;
    let add = async |it: &Place| {
        let labels = json!({"podSelector": {"matchLabels": {"tier": "x"}}});
        it.patch("kubectl-edit", MERGE, json!({"spec": labels})).await;
    };
    ground.check(network_policy(), add, "kubectl-edit: spec.podSelector").await;
    let add =
        async |it: &Place| steps(it, "add", &format!("{SPEC}/containers/0/args/-"), json!("three")).await;
    ground.check(deployment(), add, "kubectl-edit: spec.template.spec.containers[name=app].args").await;
}

#[tokio::test]
async fn what_is_set_beside_ours_is_an_addition() {
    let Some(ground) = Ground::new().await else { return };
    let medium = async |it: &Place| {
        steps(it, "add", &format!("{SPEC}/volumes/0/emptyDir/medium"), json!("Memory")).await
    };
    let seen = ground.check(deployment(), medium, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.template.spec.volumes[name=tmp].emptyDir.medium"]);
    let env = async |it: &Place| {
        steps(it, "add", &format!("{SPEC}/containers/0/env/-"), json!({"name": "DEBUG", "value": "1"})).await;
    };
    let seen = ground.check(deployment(), env, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.template.spec.containers[name=app].env[name=DEBUG]"]);
    let kind =
        async |it: &Place| it.patch("kubectl-edit", MERGE, json!({"spec": {"type": "NodePort"}})).await;
    let seen = ground.check(service(), kind, "moved").await;
    assert!(extras(&seen).contains(&"kubectl-edit: spec.type".to_owned()), "{:?}", seen.extra_fields);
    // If Git names the type, it is ours.
    let (resource, mut body) = service();
    body["spec"]["type"] = "ClusterIP".into();
    ground.check((resource, body), kind, "kubectl-edit: spec.type").await;
}
