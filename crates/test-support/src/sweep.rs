//! Sweeps a control plane between two tests, so that each finds it as a new one.
//!
//! In: the control plane, which no test uses and no daemon watches.
//! Out: a cluster without Syncs, definitions, webhooks, policies, rights and objects of the
//! cluster that a test left. Namespaces that [`ControlPlane::namespace`] created stay: no later
//! test has the same name, and waiting for their deletion takes longer than most tests.

use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::credentials::{ADMIN, MOORLINE};
use super::daemon::until_within;
use super::rest::send_request;

/// Time for the deletion of definitions and namespaces, by controllers of a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Time after which an object with a finalizer is what keeps a namespace: it ends without that.
const STUCK: Duration = Duration::from_secs(20);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACES: &str = "/api/v1/namespaces";
const SYNCS: &str = "syncs.moorline.dev";

/// Collections of the cluster in which a test may leave objects, in the order of their deletion:
/// first those that could refuse the other deletions.
const OF_THE_CLUSTER: [&str; 18] = [
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
    // Kubernetes 1.35 has no v1 of them.
    "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings",
    "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/networking.k8s.io/v1/ingressclasses",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/api/v1/persistentvolumes",
    "/api/v1/nodes",
];

/// Collections of the namespace `default`.
const OF_DEFAULT: [&str; 10] = [
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apps/v1/namespaces/default/statefulsets",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/serviceaccounts",
];

/// Removes everything that earlier tests have left.
pub(crate) async fn sweep(plane: &ControlPlane) {
    plane.start_ended_servers().await;
    let admin = plane.client(ADMIN).await;
    for sync in list(&admin, "/apis/moorline.dev/v1alpha1/syncs").await {
        delete(&admin, &path_in("/apis/moorline.dev/v1alpha1", "syncs", &sync), &sync).await;
    }
    for collection in OF_THE_CLUSTER.iter().chain(&OF_DEFAULT) {
        for object in list(&admin, collection).await.iter().filter(|object| !is_built_in(collection, object))
        {
            delete(&admin, &format!("{collection}/{}", name(object)), object).await;
        }
    }
    let mut gone = Vec::new();
    for definition in list(&admin, DEFINITIONS).await.iter().filter(|it| !is_our_own(it)) {
        end_definition(&admin, definition).await;
        gone.push(format!("{DEFINITIONS}/{}", name(definition)));
    }
    let kept = plane.namespaces();
    let theirs = |namespace: &&Value| {
        let name = name(namespace);
        !matches!(name, "default" | "kube-system" | "kube-public" | "kube-node-lease")
            && !kept.iter().any(|kept| kept == name)
    };
    for namespace in list(&admin, NAMESPACES).await.iter().filter(theirs) {
        let path = format!("{NAMESPACES}/{}", name(namespace));
        delete(&admin, &path, namespace).await;
        gone.push(path);
    }
    let begun = Instant::now();
    for path in gone {
        until_within(TIMEOUT, &format!("{path}, which a test left, is gone"), async || {
            match send_request(&admin, "GET", &path, Value::Null).await {
                Err(kube::Error::Api(status)) if status.code == 404 => return Some(()),
                Ok(namespace) if path.starts_with(NAMESPACES) && begun.elapsed() > STUCK => {
                    let mut namespace = namespace;
                    namespace["spec"]["finalizers"] = json!([]);
                    let _ = send_request(&admin, "PUT", &format!("{path}/finalize"), namespace).await;
                }
                _ => {}
            }
            None
        })
        .await;
    }
}

/// Removes the definition of Syncs, for a test that lists the kinds of a server.
pub(crate) async fn remove_definition(plane: &ControlPlane) {
    let admin = plane.client(ADMIN).await;
    let path = format!("{DEFINITIONS}/{SYNCS}");
    let _ = send_request(&admin, "DELETE", &path, Value::Null).await;
    until_within(TIMEOUT, "Syncs are not served", async || {
        let groups = send_request(&admin, "GET", "/apis", Value::Null).await.ok()?;
        (!groups.to_string().contains("moorline.dev")).then_some(())
    })
    .await;
}

/// The objects of a collection; none where it is not served.
async fn list(admin: &Client, collection: &str) -> Vec<Value> {
    let answer = send_request(admin, "GET", collection, Value::Null).await.unwrap_or_default();
    answer.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Deletes an object, and no finalizer of a controller that does not run here keeps it.
async fn delete(admin: &Client, path: &str, object: &Value) {
    if object.pointer("/metadata/finalizers").is_some() {
        let _ = send_request(admin, "PATCH", path, json!({"metadata": {"finalizers": null}})).await;
    }
    let _ = send_request(admin, "DELETE", path, Value::Null).await;
}

/// Deletes a definition, with the finalizers of its objects, which could keep it for ever.
async fn end_definition(admin: &Client, definition: &Value) {
    let path = format!("{DEFINITIONS}/{}", name(definition));
    if definition.pointer("/spec/conversion/strategy").and_then(Value::as_str) == Some("Webhook") {
        // The webhook has ended with its test, and its objects could not be listed.
        let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
        let _ = send_request(admin, "PATCH", &path, none).await;
    }
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().find(|version| version["served"] == json!(true));
    if let Some(version) = served.and_then(|version| version["name"].as_str()) {
        let root = format!("/apis/{group}/{version}");
        for object in list(admin, &format!("{root}/{plural}")).await {
            if object.pointer("/metadata/finalizers").is_some() {
                delete(admin, &path_in(&root, plural, &object), &object).await;
            }
        }
    }
    delete(admin, &path, &Value::Null).await;
}

/// True for the definition of Syncs as `install` brings it.
fn is_our_own(definition: &Value) -> bool {
    name(definition) == SYNCS
        && definition.pointer("/status/storedVersions") == Some(&json!(["v1alpha1"]))
        && definition.pointer("/spec/versions").and_then(Value::as_array).is_some_and(|all| all.len() == 1)
        && definition.pointer("/metadata/deletionTimestamp").is_none()
}

/// True for an object that a new control plane has, too.
fn is_built_in(collection: &str, object: &Value) -> bool {
    let name = name(object);
    let plural = collection.rsplit('/').next().unwrap_or_default();
    match plural {
        "apiservices" => object.pointer("/spec/service").is_none(),
        "clusterroles" | "clusterrolebindings" => {
            name == MOORLINE || object.pointer("/metadata/labels/kubernetes.io~1bootstrapping").is_some()
        }
        "priorityclasses" => name.starts_with("system-"),
        "services" => name == "kubernetes",
        "configmaps" => name == "kube-root-ca.crt",
        "serviceaccounts" => name == "default",
        _ => false,
    }
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn path_in(root: &str, plural: &str, object: &Value) -> String {
    match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{}", name(object)),
        None => format!("{root}/{plural}/{}", name(object)),
    }
}
