//! Nothing is kept for a Sync whose identity, keys or spec cannot be relied on: the rows of the table in docs/held-revision.md
//! that say so. No hand edit is repaired and nothing is pruned, also by a daemon that starts later.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::kept::{QUIET, assert_not_repaired, until_value};
use moorline_test_support::rest::{send_request, tenant};
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::signers::{key, sign, spec, trust};

const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// Two ConfigMaps.
fn two() -> [(String, String); 2] {
    ["a", "b"].map(|name| (format!("app/{name}.json"), config_map(name, "one")))
}

/// A hand edit stays and the object that left Git stays: nothing is written.
async fn assert_left(scene: &Scene, edit: &str) {
    scene.edit("a", edit).await;
    let before = scene.versions().await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(scene.versions().await, before, "nothing is written after {edit}");
    let expect = [("a", edit), ("b", "one")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(scene.values().await, expect.into());
}

/// The daemon gives this reason once more than that, and where the status is its own, that says that the revision is
/// not kept.
async fn until_said(scene: &Scene, daemon: &Daemon, reason: &str, before: usize) {
    until(&format!("a daemon runs, and says {reason}"), async || {
        (times(daemon, reason) > before).then_some(())
    })
    .await;
    if ["RightsMissing", "ServiceAccountRequired", "SignerUnknown"].contains(&reason) {
        until_not_kept(scene, reason).await;
    }
}

/// Counts the times that the log of a daemon, and of the one before it, names a reason.
fn times(daemon: &Daemon, reason: &str) -> usize {
    daemon.log().matches(reason).count()
}

/// Plays a change that takes the Sync's ground away: with a daemon that saw it come, and with one that starts later.
/// `returns` undoes the change.
async fn keeps_nothing(
    scene: &Scene,
    daemon: Daemon,
    (reason, begin): (&str, impl Fn() -> Daemon),
    returns: impl AsyncFnOnce(),
) {
    until_said(scene, &daemon, reason, 0).await;
    let commit = scene.remove(&["app/b.json"]);
    scene.nudge("shop", "removed").await;
    assert_left(scene, "edited").await;
    let before = times(&daemon, reason);
    drop(daemon);
    assert_left(scene, "edited while no daemon runs").await;
    let daemon = begin();
    until_said(scene, &daemon, reason, before).await;
    assert_left(scene, "edited after the restart").await;
    returns().await;
    scene.nudge("shop", "returned").await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&two()[..1], "the edit is repaired and the object that left Git is pruned").await;
    scene.delete_sync("shop").await;
}

fn rule(healthy: &str) -> serde_json::Value {
    json!({"rules": [{"group": "apps", "kind": "Deployment", "healthy": healthy}], "wait": false})
}

/// The previous spec is kept by a daemon that knows it. One that starts knows its hash only, and keeps nothing.
#[tokio::test]
async fn a_spec_that_is_not_valid() {
    let Some(scene) = Scene::new("not-valid").await else { return };
    let (daemon, _) = scene.applied(&two(), json!({"path": "app"})).await;
    // The API server does not know that this is no expression.
    scene.patch_sync("shop", json!({"spec": {"health": rule("object.status.replicas >")}})).await;
    scene.until_reason("shop", "SpecInvalid").await;
    let commit = scene.remove(&["app/b.json"]);
    scene.nudge("shop", "removed").await;
    scene.edit("a", "edited").await;
    until_value(&scene, "a", "one").await;
    scene.maps().delete("a", &DeleteParams::default()).await.unwrap();
    until_value(&scene, "a", "one").await;
    tokio::time::sleep(QUIET).await;
    scene.until_values(&two(), "nothing is pruned").await;
    drop(daemon);
    let _daemon = scene.daemon();
    until_not_kept(&scene, "SpecInvalid").await;
    assert_left(&scene, "edited after the restart").await;
    scene.patch_sync("shop", json!({"spec": {"health": rule("object.status.replicas > 0")}})).await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&two()[..1], "the edit is repaired and the object that left Git is pruned").await;
    scene.delete_sync("shop").await;
}

/// The Sync gives this reason, and says that its revision is not kept.
async fn until_not_kept(scene: &Scene, reason: &str) {
    until(&format!("{reason}: the revision is not kept"), async || {
        let ready = scene.status("shop", "/conditions/0").await;
        let is_told = ready["status"] == "False" && ready["reason"] == reason;
        (is_told && ready["message"].as_str()?.contains(" is not held")).then_some(())
    })
    .await;
}

/// A daemon of another namespace, which lends nobody its own rights.
async fn lost_its_account(purpose: &str, account: serde_json::Value, reason: &str) {
    let Some(scene) = Scene::new(purpose).await else { return };
    let elsewhere = scene.plane.namespace("elsewhere").await;
    tenant(&scene.admin, &scene.namespace, &VERBS).await;
    let arguments = ["--namespace", &elsewhere, "--leader-election=false"];
    let begin = || scene.daemon_in(&scene.proxy, "daemon", &arguments, &[]);
    let commit = scene.push(&two());
    let daemon = begin();
    scene.sync("shop", json!({"path": "app", "serviceAccountName": "tenant"})).await;
    scene.until_ready("shop", &commit).await;
    scene.patch_sync("shop", json!({"spec": {"serviceAccountName": account}})).await;
    scene.until_reason("shop", reason).await;
    let returns = async || {
        scene.patch_sync("shop", json!({"spec": {"serviceAccountName": "tenant"}})).await;
    };
    keeps_nothing(&scene, daemon, (reason, begin), returns).await;
}

#[tokio::test]
async fn a_service_account_that_is_not_named_any_more() {
    lost_its_account("unnamed", serde_json::Value::Null, "ServiceAccountRequired").await;
}

#[tokio::test]
async fn a_service_account_that_is_not_there() {
    lost_its_account("nobody", json!("gone"), "RightsMissing").await;
}

#[tokio::test]
async fn another_daemon_that_serves_it() {
    let Some(scene) = Scene::new("anothers").await else { return };
    let elsewhere = scene.plane.namespace("elsewhere").await;
    let (daemon, _) = scene.applied(&two(), json!({"path": "app"})).await;
    // The Lease of another daemon that lives, and a status of it.
    let leases: Api<Lease> = Api::namespaced(scene.admin.clone(), &elsewhere);
    let renewed = jiff::Timestamp::now().to_string();
    let lease = json!({"metadata": {"name": "moorline"}, "spec": {"holderIdentity": "other",
        "leaseDurationSeconds": 3600, "renewTime": renewed}});
    leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
    let status = json!({"status": {"heldBy": format!("{elsewhere}/moorline")}});
    let (by, patch) = (Default::default(), kube::api::Patch::Merge(&status));
    scene.syncs().patch_status("shop", &by, &patch).await.unwrap();
    let returns = async || {
        leases.delete("moorline", &DeleteParams::default()).await.unwrap();
    };
    keeps_nothing(&scene, daemon, ("HeldByOther", || scene.daemon()), returns).await;
}

#[tokio::test]
async fn a_revision_that_no_trusted_key_signs_any_more() {
    let Some(scene) = Scene::new("distrusted").await else { return };
    let (Some(ann), Some(bob)) = (key(&scene, "ann"), key(&scene, "bob")) else { return };
    trust(&scene, &[&ann]).await;
    sign(&scene, Some(&ann));
    let mut asked = spec(&scene, "HEAD", serde_json::Value::Null);
    asked["path"] = "app".into();
    let (daemon, _) = scene.applied(&two(), asked).await;
    trust(&scene, &[&bob]).await;
    let returns = async || trust(&scene, &[&ann]).await;
    keeps_nothing(&scene, daemon, ("SignerUnknown", || scene.daemon()), returns).await;
}

/// Two accounts with the same rights, and a Sync that acts as the first of them.
async fn two_accounts(scene: &Scene) -> Daemon {
    let (elsewhere, place) = (scene.plane.namespace("elsewhere").await, &scene.namespace);
    tenant(&scene.admin, place, &VERBS).await;
    let account = json!({"metadata": {"name": "other"}});
    send_request(&scene.admin, "POST", &format!("/api/v1/namespaces/{place}/serviceaccounts"), account)
        .await
        .unwrap();
    let binding = json!({
        "metadata": {"name": "other"},
        "subjects": [{"kind": "ServiceAccount", "name": "other", "namespace": place}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
    });
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{place}/rolebindings");
    send_request(&scene.admin, "POST", &bindings, binding).await.unwrap();
    let arguments = ["--namespace", &elsewhere, "--leader-election=false"];
    let daemon = scene.daemon_in(&scene.proxy, "daemon", &arguments, &[]);
    let commit = scene.push(&two());
    scene.sync("shop", json!({"path": "app", "serviceAccountName": "tenant"})).await;
    scene.until_ready("shop", &commit).await;
    daemon
}

/// Returns the number of requests in the name of an account.
async fn asked_as(scene: &Scene, mark: &AuditMark, account: &str) -> usize {
    let user = format!("system:serviceaccount:{}:{account}", scene.namespace);
    let requests = mark.requests().await.by_user(MOORLINE).filter(|one| one.impersonated == user);
    requests.as_slice().len()
}

#[tokio::test]
async fn another_service_account_counts_at_once_also_in_a_spec_that_is_not_valid() {
    let Some(scene) = Scene::new("other-invalid").await else { return };
    let _daemon = two_accounts(&scene).await;
    let spec = json!({"serviceAccountName": "other", "health": rule("object.status.replicas >")});
    scene.patch_sync("shop", json!({"spec": spec})).await;
    until_not_kept(&scene, "SpecInvalid").await;
    let mark = AuditMark::set(&scene.plane).await;
    let commit = scene.remove(&["app/b.json"]);
    scene.nudge("shop", "removed").await;
    assert_left(&scene, "edited").await;
    assert_eq!(asked_as(&scene, &mark, "tenant").await, 0, "nothing is done with the previous account");
    assert_eq!(asked_as(&scene, &mark, "other").await, 0, "nor with the new one");
    scene.patch_sync("shop", json!({"spec": {"health": rule("object.status.replicas > 0")}})).await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&two()[..1], "the edit is repaired and the object that left Git is pruned").await;
    assert_eq!(asked_as(&scene, &mark, "tenant").await, 0);
    scene.delete_sync("shop").await;
}

#[tokio::test]
async fn another_service_account_counts_at_once_also_with_a_path_that_is_missing() {
    let Some(scene) = Scene::new("other-path").await else { return };
    let _daemon = two_accounts(&scene).await;
    let spec = json!({"serviceAccountName": "other", "path": "gone"});
    scene.patch_sync("shop", json!({"spec": spec})).await;
    scene.until_reason("shop", "PathNotFound").await;
    let mark = AuditMark::set(&scene.plane).await;
    scene.edit("a", "edited").await;
    until_value(&scene, "a", "one").await;
    assert_eq!(asked_as(&scene, &mark, "tenant").await, 0, "nothing is done with the previous account");
    assert!(asked_as(&scene, &mark, "other").await > 0, "the new one repairs");
    // Without any rights of the new one nothing is repaired.
    let binding =
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings/other", scene.namespace);
    send_request(&scene.admin, "DELETE", &binding, serde_json::Value::Null).await.unwrap();
    // The API server learns of it a moment later.
    tokio::time::sleep(QUIET).await;
    assert_not_repaired(&scene, "b", "edited without rights").await;
    assert_eq!(asked_as(&scene, &mark, "tenant").await, 0);
    scene.delete_sync("shop").await;
}
