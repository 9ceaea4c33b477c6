//! Drift on a real API server: what others do to an object of ours, and what its metadata alone tells of it.
//!
//! Each case applies an object, lets somebody else change it, and compares the observed object with the
//! known one. In each case, one more apply of ours must lead back to `verified`.

mod admission;
mod generation;
pub(crate) mod ground;
mod lists;
mod managers;
pub(crate) mod place;

use ground::Ground;
use http::Method;
use moorline::fields::{FieldSet, entries, retained_fields};
use moorline::observed::Observed;
use place::{APPLY, MERGE, Place, STEPS, shown};
use serde_json::{Value, json};

fn config_map() -> (&'static str, Value) {
    ("configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x", "b": "y"}}))
}

/// Paused and without replicas, so that the controller writes its status and nothing else.
fn deployment() -> (&'static str, Value) {
    let env = json!([{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "2"}]);
    let spec = json!({
        "replicas": 0, "paused": true, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
            {"name": "app", "image": "web:1", "env": env}, {"name": "sidecar", "image": "proxy:1"},
        ]}},
    });
    ("deployments", json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}))
}

fn service() -> (&'static str, Value) {
    let spec =
        json!({"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]});
    ("services", json!({"apiVersion": "v1", "kind": "Service", "spec": spec}))
}

fn role() -> (&'static str, Value) {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    ("roles", json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules}))
}

fn autoscaler() -> (&'static str, Value) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "absent"});
    let spec = json!({"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": target});
    (
        "horizontalpodautoscalers",
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}),
    )
}

const IMAGE: &str = "/spec/template/spec/containers/0/image";

#[tokio::test]
async fn who_changes_a_field_of_ours_is_named_with_it() {
    let Some(ground) = Ground::new().await else { return };
    let merge = async |it: &Place| it.patch("kubectl-edit", MERGE, json!({"data": {"a": "z"}})).await;
    let seen = ground.check(config_map(), merge, "kubectl-edit: data.a").await;
    assert!(seen.extra_fields.is_empty(), "a field of ours is no addition: {:?}", seen.extra_fields);
    let put = async |it: &Place| it.put("curl", |body| body["data"]["a"] = "z".into()).await;
    ground.check(config_map(), put, "curl: data.a").await;
    let dump = async |it: &Place| {
        it.put("kubectl-replace", |body| {
            body["metadata"]
                .as_object_mut()
                .expect("metadata")
                .retain(|key, _| !["managedFields", "resourceVersion"].contains(&key.as_str()));
            body["data"]["a"] = "z".into();
        })
        .await;
    };
    ground.check(config_map(), dump, "kubectl-replace: data.a").await;
    let force = async |it: &Place| {
        let part = it.part(json!({"data": {"a": "z"}}));
        it.patch_at("?force=true", "helm", APPLY, part).await;
    };
    ground.check(config_map(), force, "helm: data.a").await;
    let image = async |it: &Place| {
        it.patch("kubectl-set", STEPS, json!([{"op": "replace", "path": IMAGE, "value": "web:2"}])).await;
    };
    ground.check(deployment(), image, "kubectl-set: spec.template.spec.containers[name=app].image").await;
    let own_name = async |it: &Place| it.patch("moorline/ops/web", MERGE, json!({"data": {"a": "z"}})).await;
    ground.check(config_map(), own_name, "moorline/ops/web: data.a").await;
    let scale = async |it: &Place| {
        it.patch_at("/scale", "kubectl-scale", MERGE, json!({"spec": {"replicas": 2}})).await;
    };
    ground.check(deployment(), scale, "kubectl-scale (scale): spec.replicas").await;
    let append = async |it: &Place| {
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]});
        it.patch("kubectl-edit", STEPS, json!([{"op": "add", "path": "/rules/-", "value": rule}])).await;
    };
    ground.check(role(), append, "kubectl-edit: rules").await;
    // By another version of the API.
    let old = async |it: &Place| {
        let path = it.path().replace("autoscaling/v2", "autoscaling/v1");
        let body = json!({"spec": {"maxReplicas": 5}});
        it.try_send(Method::PATCH, &path, MERGE, "kubectl-edit", &body).await.expect("a patch");
    };
    ground.check(autoscaler(), old, "kubectl-edit: spec.maxReplicas").await;
}

#[tokio::test]
async fn who_removes_a_field_of_ours_is_not_known() {
    let Some(ground) = Ground::new().await else { return };
    let leaf = async |it: &Place| it.patch("kubectl-edit", MERGE, json!({"data": {"a": null}})).await;
    ground.check(config_map(), leaf, "?: data.a").await;
    let item = async |it: &Place| {
        it.patch(
            "kubectl-edit",
            STEPS,
            json!([{"op": "remove", "path": "/spec/template/spec/containers/1"}]),
        )
        .await;
    };
    ground.check(deployment(), item, "?: spec.template.spec.containers[name=sidecar]").await;
    let label = async |it: &Place| {
        it.patch("kubectl-label", MERGE, json!({"metadata": {"labels": {"moorline.dev/sync": null}}})).await;
    };
    ground.check(config_map(), label, "?: metadata.labels[\"moorline.dev/sync\"]").await;
    let other = async |it: &Place| {
        it.patch("kubectl-label", MERGE, json!({"metadata": {"labels": {"moorline.dev/sync": "x"}}})).await;
    };
    ground.check(config_map(), other, "kubectl-label: metadata.labels[\"moorline.dev/sync\"]").await;
}

#[tokio::test]
async fn what_takes_nothing_is_verified_where_the_generation_tells_and_moved_elsewhere() {
    let Some(ground) = Ground::new().await else { return };
    let same = async |it: &Place| {
        let fields = ["data", "spec"].map(|field| (field.to_owned(), it.body[field].clone()));
        let fields: Value = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
        it.patch("helm", APPLY, it.part(fields)).await;
    };
    ground.check(config_map(), same, "moved").await;
    ground.check(deployment(), same, "verified").await;
    let label = async |it: &Place| it.patch("x", MERGE, json!({"metadata": {"labels": {"x": "y"}}})).await;
    ground.check(deployment(), label, "verified").await;
    // A status, and what is written beside it.
    let conditions = json!([{"type": "X", "status": "True", "reason": "x", "message": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let status = async |it: &Place| {
        let body = json!({"spec": {"replicas": 9}, "status": {"conditions": conditions}});
        it.patch_at("/status", "x", MERGE, body).await;
    };
    ground.check(service(), status, "verified").await;
    let replicas = async |it: &Place| {
        let body = json!({"spec": {"replicas": 9}, "status": {"collisionCount": 3}});
        it.patch_at("/status", "x", MERGE, body).await;
    };
    ground.check(deployment(), replicas, "verified").await;
    // The order of items is not owned.
    let turned = async |it: &Place| {
        let env = json!([{"name": "TWO", "value": "2"}, {"name": "ONE", "value": "1"}]);
        let path = "/spec/template/spec/containers/0/env";
        it.patch("x", STEPS, json!([{"op": "replace", "path": path, "value": env}])).await;
    };
    ground.check(deployment(), turned, "moved").await;
    // The same name applies other values.
    let ours = async |it: &Place| {
        let mut body = it.body.clone();
        body["data"]["a"] = "z".into();
        it.patch_at("?force=true", "moorline/ops/web", APPLY, body).await;
    };
    ground.check(config_map(), ours, "moved").await;
    // After an edit our entry is forged back.
    let forged = async |it: &Place| {
        let before = it.get().await["metadata"]["managedFields"].clone();
        it.patch("kubectl-edit", MERGE, json!({"data": {"a": "z"}})).await;
        it.patch("kubectl-edit", MERGE, json!({"metadata": {"managedFields": before}})).await;
    };
    ground.check(config_map(), forged, "moved").await;
    let forged = async |it: &Place| {
        let before = it.get().await["metadata"]["managedFields"].clone();
        it.patch("kubectl-edit", MERGE, json!({"spec": {"replicas": 1}})).await;
        it.patch("kubectl-edit", MERGE, json!({"metadata": {"managedFields": before}})).await;
    };
    ground.check(deployment(), forged, "moved").await;
}

#[tokio::test]
async fn additions_are_listed_and_looked_into() {
    let Some(ground) = Ground::new().await else { return };
    let extras = |seen: &Observed| -> Vec<String> {
        seen.extra_fields.iter().map(|extra| format!("{}: {}", extra.manager, extra.path)).collect()
    };
    let container = async |it: &Place| {
        let debug = json!({"name": "debug", "image": "busybox:1"});
        let path = "/spec/template/spec/containers/-";
        it.patch("kubectl-edit", STEPS, json!([{"op": "add", "path": path, "value": debug}])).await;
    };
    let seen = ground.check(deployment(), container, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.template.spec.containers[name=debug]"]);
    let host = async |it: &Place| {
        it.patch("kubectl-edit", MERGE, json!({"spec": {"template": {"spec": {"hostNetwork": true}}}})).await;
    };
    let seen = ground.check(deployment(), host, "moved").await;
    assert_eq!(extras(&seen), ["kubectl-edit: spec.template.spec.hostNetwork"]);
    let key = async |it: &Place| it.patch("k9s", MERGE, json!({"data": {"c": "z"}})).await;
    let seen = ground.check(config_map(), key, "moved").await;
    assert_eq!(extras(&seen), ["k9s: data.c"]);
    let port = async |it: &Place| {
        it.patch(
            "kubectl-edit",
            MERGE,
            json!({"spec": {"externalName": "x", "sessionAffinity": "ClientIP"}}),
        )
        .await;
    };
    let seen = ground.check(service(), port, "moved").await;
    assert!(
        extras(&seen).contains(&"kubectl-edit: spec.sessionAffinity".to_owned()),
        "{:?}",
        seen.extra_fields
    );
    let annotated = async |it: &Place| {
        let switch = json!({"metadata": {"annotations": {"moorline.dev/reconcile": "disabled", "kubectl.kubernetes.io/x": "y"}}});
        it.patch("kubectl-annotate", MERGE, switch).await;
    };
    let seen = ground.check(config_map(), annotated, "moved").await;
    assert!(seen.reconcile_disabled && seen.extra_fields.is_empty(), "{:?}", seen.extra_fields);
}

#[tokio::test]
async fn an_entry_that_is_gone_and_an_object_made_anew_are_seen() {
    let Some(ground) = Ground::new().await else { return };
    let reset = async |it: &Place| it.patch("x", MERGE, json!({"metadata": {"managedFields": [{}]}})).await;
    let seen = ground.check(config_map(), reset, "?: ").await;
    assert!(!seen.applied_by_us);
    let recreated = async |it: &Place| it.recreate("velero").await;
    let seen = ground.check(config_map(), recreated, "velero: metadata.uid").await;
    assert!(!seen.applied_by_us && seen.baseline.is_none());
    let deleted = async |it: &Place| {
        it.patch("x", MERGE, json!({"metadata": {"finalizers": ["example.com/x"]}})).await;
        it.try_send(Method::DELETE, &it.path(), "application/json", "x", &json!({})).await.expect("a DELETE");
    };
    let place = ground.place(config_map());
    let applied = place.apply().await;
    deleted(&place).await;
    let seen = place.again(&applied).await;
    assert_eq!(
        (shown(&seen.verification), seen.deleting),
        ("?: metadata.deletionTimestamp".to_owned(), true)
    );
}

#[tokio::test]
async fn events_that_come_late_undo_nothing() {
    let Some(ground) = Ground::new().await else { return };
    let place = ground.place(deployment());
    let applied = place.apply().await;
    let first = place.seen().await;
    place.patch("kubectl-scale", MERGE, json!({"spec": {"replicas": 1}})).await;
    let edited = place.seen().await;
    let healed = place.apply().await;
    let owner = place::owner();
    for late in [&first, &edited] {
        assert_eq!(healed.update_from_event(late, &owner), healed);
    }
    let drifted = applied.update_from_event(&edited, &owner);
    assert_eq!(shown(&drifted.verification), "kubectl-scale: spec.replicas");
    assert_eq!(drifted.update_from_event(&first, &owner), drifted);
}

/// A conflict names each field as we write it in the server's form.
#[tokio::test]
async fn conflicts_name_fields_in_the_servers_form() {
    let Some(ground) = Ground::new().await else { return };
    let place = ground.place(deployment());
    place.apply().await;
    let own = |object: &moorline::object::Object| {
        let entries = entries(object.body["metadata"].as_object().expect("metadata"));
        entries.into_iter().find(|entry| entry.is_applied_by("moorline/ops/web")).expect("our entry").fields
    };
    let ours = own(&place.seen().await);
    let containers = json!([{"name": "app", "image": "web:9", "env": [{"name": "ONE", "value": "9"}]}]);
    let spec = json!({"replicas": 7, "template": {"spec": {"containers": containers}}});
    let theirs = place.part(json!({"metadata": {"annotations": {"moorline.dev/id": "other"}}, "spec": spec}));
    let refused = place.try_send(Method::PATCH, &place.path(), APPLY, "helm", &theirs).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 409);
    let causes = status.details.as_ref().expect("details").causes.clone();
    let mut named: Vec<String> = causes.into_iter().map(|cause| cause.field).collect();
    named.sort();
    let forms: Vec<String> =
        ours.owned_paths().iter().map(moorline::fields::FieldPath::server_form).collect();
    let unknown: Vec<_> = named.iter().filter(|field| !forms.contains(field)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not among {forms:?}");
    assert_eq!(
        named,
        [
            ".metadata.annotations.moorline.dev/id",
            ".spec.replicas",
            ".spec.template.spec.containers[name=\"app\"].env[name=\"ONE\"].value",
            ".spec.template.spec.containers[name=\"app\"].image",
        ]
    );
    let bytes = ours.to_bytes();
    assert!(bytes.len() < 450, "{} bytes", bytes.len());
    assert_eq!(FieldSet::from_bytes(&bytes), Some(ours));
}

/// A field that we drop stays where others own it too.
#[tokio::test]
async fn fields_that_survive_their_removal_are_named() {
    let Some(ground) = Ground::new().await else { return };
    let mut place = ground.place(config_map());
    let same = place.part(json!({"data": {"a": "x"}}));
    let old = place.apply().await;
    place.patch("helm", APPLY, same).await;
    place.body["data"] = json!({"c": "z"});
    let new = place.apply().await;
    let own = |seen: &Observed| {
        seen.baseline
            .as_ref()
            .and_then(|it| it.own_entry.as_ref())
            .map(|own| own.fields())
            .expect("our entry")
    };
    let live = place.get().await;
    assert_eq!(live["data"], json!({"a": "x", "c": "z"}));
    let mut foreign = entries(live["metadata"].as_object().expect("metadata"));
    foreign.retain(|entry| !entry.is_applied_by("moorline/ops/web"));
    let survivors = retained_fields(&own(&old), &own(&new), &foreign);
    let survivors: Vec<_> = survivors.iter().map(|it| (it.path.to_string(), it.managers.join(" "))).collect();
    assert_eq!(survivors, [("data.a".to_owned(), "helm".to_owned())]);
}
