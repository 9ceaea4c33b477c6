//! Changes by admission webhooks: they are in no managed fields, no matter who writes.

use http::Method;
use serde_json::{Value, json};

use super::ground::Ground;
use super::place::{MERGE, Place, STEPS, shown};
use moorline_test_support::admission::mutating_policy_version;
use moorline_test_support::daemon::until;

const IMAGE: &str = "/spec/template/spec/containers/0/image";

fn config_map() -> (&'static str, Value) {
    ("configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x", "b": "y"}}))
}

fn deployment() -> (&'static str, Value) {
    let spec = json!({
        "replicas": 0, "paused": true, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
            "containers": [{"name": "app", "image": "web:1"}],
        }},
    });
    ("deployments", json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}))
}

/// Has what a field manager writes to one kind of the namespace changed, from now on.
async fn policy(ground: &Ground, manager: &str, group: &str, resource: &str, step: &str) {
    let name = format!("{}.{resource}.{}", manager.replace('/', "-"), ground.namespace);
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": ground.namespace}});
    let rule = json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]});
    let by = format!("request.options.fieldManager == '{manager}'");
    let version = mutating_policy_version(&ground.client).await;
    let group = format!("/apis/{version}");
    let policy = json!({
        "apiVersion": version, "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]},
            "matchConditions": [{"name": "by", "expression": by}],
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[JSONPatch{{{step}}}]")}}],
        },
    });
    ground.ask(Method::POST, &format!("{group}/mutatingadmissionpolicies"), &policy).await.expect("a policy");
    let binding = json!({
        "apiVersion": version, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name},
    });
    ground
        .ask(Method::POST, &format!("{group}/mutatingadmissionpolicybindings"), &binding)
        .await
        .expect("a binding");
}

/// Waits until what this manager writes to an object does not stay as written.
async fn until_in_force(ground: &Ground, manager: &str, what: (&str, Value), pointer: &str) {
    let place = ground.place(what);
    let before = place.body.pointer(pointer).expect("a field");
    place.apply().await;
    let mut at = 0;
    until("the policy is in force", async || {
        at += 1;
        place.patch(manager, MERGE, json!({"metadata": {"labels": {"at": at.to_string()}}})).await;
        (place.get().await.pointer(pointer) != Some(before)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_admission_makes_of_the_writes_of_others_is_looked_into() {
    let Some(ground) = Ground::new().await else { return };
    let change = "op: 'replace', path: '/data/a', value: 'changed'";
    policy(&ground, "changes", "", "configmaps", change).await;
    policy(&ground, "removes", "", "configmaps", "op: 'remove', path: '/data/a'").await;
    let image = "op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'web:9'";
    policy(&ground, "changes", "apps", "deployments", image).await;
    for (manager, what, field) in [
        ("changes", config_map as fn() -> (&'static str, Value), "/data/a"),
        ("removes", config_map, "/data/a"),
        ("changes", deployment, IMAGE),
    ] {
        until_in_force(&ground, manager, what(), field).await;
        let write = async |it: &Place| {
            it.patch(manager, MERGE, json!({"metadata": {"labels": {"x": "y"}}})).await;
            assert_ne!(it.get().await.pointer(field), it.body.pointer(field), "it has changed on the way");
        };
        let (seen, healed) = ground.healed(what(), write, "moved").await;
        assert!(seen.extra_fields.is_empty(), "{:?}", seen.extra_fields);
        assert_eq!(healed.get().await.pointer(field), healed.body.pointer(field), "an apply heals it");
    }
}

#[tokio::test]
async fn what_admission_makes_of_our_own_writes_is_no_drift() {
    let Some(ground) = Ground::new().await else { return };
    let change = "op: 'replace', path: '/data/a', value: 'changed'";
    policy(&ground, "moorline/ops/web", "", "configmaps", change).await;
    let image = "op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'web:9'";
    policy(&ground, "moorline/ops/web", "apps", "deployments", image).await;
    for (what, field) in [(config_map as fn() -> (&'static str, Value), "/data/a"), (deployment, IMAGE)] {
        let place = ground.place(what());
        until("the policy is in force", async || {
            place.apply().await;
            (place.get().await.pointer(field) != place.body.pointer(field)).then_some(())
        })
        .await;
        // The controller of Deployments may write between two.
        let applied = until("an apply after another is no write", async || {
            let (first, second) = (place.apply().await, place.apply().await);
            (first.resource_version == second.resource_version).then_some(second)
        })
        .await;
        assert_ne!(place.get().await.pointer(field), place.body.pointer(field), "theirs stands");
        // The field is ours all the same, so that anyone who takes it is named.
        let lost = match field {
            IMAGE => "kubectl-edit: spec.template.spec.containers[name=app].image",
            _ => "kubectl-edit: data.a",
        };
        let edit = json!([{"op": "replace", "path": field, "value": "by hand"}]);
        place.patch("kubectl-edit", STEPS, edit).await;
        assert_eq!(shown(&place.again(&applied).await.verification), lost);
        let healed = place.apply().await;
        assert_eq!(shown(&place.again(&healed).await.verification), "verified");
    }
}
