//! A login that is changed while the daemon runs.

use std::time::Duration;

use moorline_test_support::authority::Authority;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map};
use serde_json::json;

#[tokio::test]
async fn a_changed_secret_wakes_exactly_the_syncs_that_name_it() {
    let Some(scene) = Scene::new("rotation").await else { return };
    let authority = Authority::new();
    let closed = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
    // The user `u` with the password `new`.
    closed.rule(|request| match request.header("authorization") {
        Some("Basic dTpuZXc=") => Reply::Git,
        _ => Reply::Raw(401, "", Vec::new()),
    });
    let commit = scene.push(&[("a.json".to_owned(), config_map("a", "one"))]);
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let data = |password: &str| json!({"username": "u", "password": password, "ca.crt": authority.pem});
    let login = json!({"metadata": {"name": "login"}, "stringData": data("old")});
    send_request(&scene.admin, "POST", &secrets, login).await.unwrap();
    let _daemon = scene.daemon();
    let url = format!("https://localhost:{}/repository.git", closed.port);
    let source = json!({"git": {"url": url, "secretRef": {"name": "login"}}});
    scene.sync("closed", json!({"source": source, "interval": "1h"})).await;
    scene.sync("open", json!({"interval": "1h", "targetNamespace": "default"})).await;
    scene.until_reason("closed", "RepositoryAccessDenied").await;
    scene.until_ready("open", &commit).await;
    // The requests that the daemon still sends without a cause are over.
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(scene.git.requests());

    send_request(&scene.admin, "PATCH", &format!("{secrets}/login"), json!({"stringData": data("new")}))
        .await
        .unwrap();
    scene.until_ready("closed", &commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(scene.git.requests().len(), 0, "the repository of the other Sync is not asked");
    for name in ["closed", "open"] {
        scene.delete_sync(name).await;
    }
}
