//! Change windows: a closed window holds new revisions while drift is repaired. When it opens, they are applied without a command. An
//! override applies one before that.

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, file};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WINDOWS: &str = "/apis/moorline.dev/v1alpha1";

async fn apply(scene: &Scene, path: &str, object: Value) {
    let uri = format!("{path}?fieldManager=tests&force=true");
    let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    scene.admin.request::<Value>(request).await.unwrap();
}

async fn delete(scene: &Scene, path: &str) {
    send_request(&scene.admin, "DELETE", path, json!(null)).await.unwrap();
}

/// Creates the two kinds.
async fn define(scene: &Scene) {
    let definitions = [
        ("changewindows", moorline::api::change_window_definition().unwrap()),
        ("namespacechangewindows", moorline::api::namespace_change_window_definition().unwrap()),
    ];
    for (plural, definition) in definitions {
        apply(scene, &format!("{DEFINITIONS}/{plural}.moorline.dev"), definition).await;
        until("windows are served", async || {
            send_request(&scene.admin, "GET", &format!("{WINDOWS}/{plural}"), json!(null)).await.ok()
        })
        .await;
    }
}

/// Creates a window of the cluster for the namespace of the scene; returns its path.
async fn window(scene: &Scene, name: &str, mut spec: Value) -> String {
    spec["namespaceSelector"] = json!({"names": [scene.namespace]});
    let path = format!("{WINDOWS}/changewindows/{name}");
    let version = "moorline.dev/v1alpha1";
    let object =
        json!({"apiVersion": version, "kind": "ChangeWindow", "metadata": {"name": name}, "spec": spec});
    apply(scene, &path, object).await;
    path
}

/// Waits until the status names the window that holds a commit; returns the hash of the plan.
async fn until_held(scene: &Scene, commit: &str, by: &str) -> String {
    until(&format!("{commit} is held by {by}"), async || {
        let held = scene.status("shop", "/heldByWindow").await;
        let is_it = held["revision"].as_str().is_some_and(|it| it.ends_with(commit)) && held["by"] == by;
        is_it.then(|| held["hash"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

async fn message(scene: &Scene) -> String {
    scene.status("shop", "/conditions/0/message").await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_window_holds_new_revisions_and_its_end_lets_them_in() {
    let Some(scene) = Scene::new("windows").await else { return };
    define(&scene).await;
    let freeze = window(&scene, "freeze", json!({"effect": "Deny", "reason": "end of year"})).await;
    let first = scene.push(&[file("a", "1")]);
    let _daemon = scene.daemon_with(&["--leader-election=false"]);
    scene.sync("shop", json!({})).await;

    // The first revision of a Sync is a new one.
    until_held(&scene, &first, "ChangeWindow freeze").await;
    scene.until_reason("shop", "WindowClosed").await;
    assert!(message(&scene).await.ends_with("held by ChangeWindow freeze: end of year"));
    assert!(scene.values().await.is_empty());
    delete(&scene, &freeze).await;
    scene.until_ready("shop", &first).await;
    assert_eq!(scene.status("shop", "/heldByWindow").await, Value::Null);

    // A window of the namespace holds the next one. What is applied stays Ready, and is repaired.
    let own = format!("{WINDOWS}/namespaces/{}/namespacechangewindows/own", scene.namespace);
    let object = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "NamespaceChangeWindow", "metadata": {"name": "own"},
        "spec": {"effect": "Deny"},
    });
    apply(&scene, &own, object).await;
    until("the window is known", async || {
        let found = send_request(&scene.admin, "GET", &own, json!(null)).await.ok()?;
        (found["status"]["conditions"][0]["status"] == "True").then_some(())
    })
    .await;
    let second = scene.push(&[file("a", "2"), file("b", "2")]);
    let hash = until_held(&scene, &second, "NamespaceChangeWindow own").await;
    scene.until_reason("shop", "Applied").await;
    scene.edit("a", "by hand").await;
    scene.until_values(&[file("a", "1")], "drift is repaired").await;
    scene.assert_calm("while a window holds a revision").await;

    // An override is about one plan, and has a name and a reason.
    let annotate =
        async |values: Value| scene.patch_sync("shop", json!({"metadata": {"annotations": values}})).await;
    let by = format!("{hash} ada");
    annotate(json!({"moorline.dev/override": hash, "moorline.dev/override-by": by})).await;
    until("the reason is missed", async || {
        message(&scene).await.contains("override-reason is missing").then_some(())
    })
    .await;
    assert_eq!(scene.values().await.len(), 1);
    annotate(json!({"moorline.dev/override-reason": "CVE"})).await;
    scene.until_ready("shop", &second).await;
    let overridden = scene.status("shop", "/revision/overridden").await;
    assert_eq!((&overridden["by"], &overridden["reason"]), (&json!("ada"), &json!("CVE")));

    // The override does not cover the next revision, and a window that cannot be read is closed.
    let mars = json!({"effect": "Allow", "schedule": "* * * * *", "duration": "1h", "timeZone": "Mars/Base"});
    let broken = window(&scene, "broken", mars).await;
    delete(&scene, &own).await;
    until("the window says why", async || {
        let found = send_request(&scene.admin, "GET", &broken, json!(null)).await.ok()?;
        (found["status"]["conditions"][0]["reason"] == "SpecInvalid").then_some(())
    })
    .await;
    let third = scene.push(&[file("a", "3")]);
    until_held(&scene, &third, "ChangeWindow broken").await;
    assert!(message(&scene).await.contains("there is no time zone"));
    let always =
        json!({"effect": "Allow", "schedule": "* * * * *", "duration": "1h", "timeZone": "Asia/Seoul"});
    window(&scene, "broken", always).await;
    scene.until_ready("shop", &third).await;

    scene.delete_sync("shop").await;
    for plural in ["changewindows", "namespacechangewindows"] {
        delete(&scene, &format!("{DEFINITIONS}/{plural}.moorline.dev")).await;
    }
}
