//! A Sync whose login is a GitHub App: exchanges of its tokens, and nothing of them in any output.

use std::time::Duration;

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::github::{AppKey, Github, TOKEN_MARK};
use moorline_test_support::page_requests;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, file};
use serde_json::{Value, json};

/// Creates a Secret with the App's key in it.
async fn secret(scene: &Scene, name: &str, data: Value) {
    let uri = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let secret = json!({"metadata": {"name": name}, "stringData": data});
    send_request(&scene.admin, "POST", &uri, secret).await.unwrap();
}

/// Creates a Sync of a folder of the repository, which is polled when it is asked for.
async fn sync(scene: &Scene, github: &Github, name: &str, secret: &str) {
    let source = json!({"git": {"url": github.url(), "secretRef": {"name": secret}}});
    scene.sync(name, json!({"source": source, "path": name, "interval": "1h"})).await;
}

/// Returns all that people can see: the Syncs, their Events, the page, metrics and the log.
async fn shown(scene: &Scene, daemon: &Daemon) -> String {
    let mut all = vec![daemon.log(), daemon.get("/metrics").unwrap_or_default()];
    for uri in [
        format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncs", scene.namespace),
        format!("/apis/events.k8s.io/v1/namespaces/{}/events", scene.namespace),
    ] {
        all.push(send_request(&scene.admin, "GET", &uri, Value::Null).await.unwrap().to_string());
    }
    let page = until("the page is there", async || daemon.page()).await;
    for path in
        [format!("/syncs/{}/three", scene.namespace), format!("/api/v1/syncs/{}/one", scene.namespace)]
    {
        let answer = page_requests::get(&page, &path);
        assert_eq!(answer.status, 200, "{path}");
        all.push(answer.body);
    }
    all.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_exchanged_once_for_all_its_syncs() {
    let Some(scene) = Scene::new("app").await else { return };
    let Some(key) = AppKey::new(scene.root.path(), "app-key", "PEM") else { return };
    let github = Github::start(scene.root.path(), &key);
    let commit = scene.push(&[file("one/a", "1"), file("two/b", "1"), file("three/c", "1")]);
    secret(&scene, "app", github.secret(&key)).await;
    let arguments = ["--leader-election=false", "--log-level", "trace", "--page", "127.0.0.1:0"];
    let daemon = scene.daemon_with(&arguments);
    sync(&scene, &github, "one", "app").await;
    scene.until_ready("one", &commit).await;
    assert_eq!(github.state().exchanges, 1);
    sync(&scene, &github, "two", "app").await;
    scene.until_ready("two", &commit).await;
    scene.nudge("one", "again").await;
    until("it was polled again", async || {
        (scene.status("one", "/lastHandledRequest").await == "again").then_some(())
    })
    .await;
    assert_eq!(github.state().exchanges, 1, "the second Sync uses the token of the first");

    // A key that GitHub does not know: said once, and the other Syncs go on.
    let unknown = AppKey::new(scene.root.path(), "unknown-key", "PKCS8").unwrap();
    secret(&scene, "unknown", github.secret(&unknown)).await;
    sync(&scene, &github, "three", "unknown").await;
    scene.until_reason("three", "RepositoryAccessDenied").await;
    let message = scene.status("three", "/conditions/0/message").await.to_string();
    assert!(message.contains("does not accept the App's signature; compare githubAppID"), "{message}");
    assert_eq!(github.state().problems.iter().filter(|one| *one != "signature of another key").count(), 0);

    // A rotated key counts at once, without a restart; the token of the old one is not used again.
    let rotated = AppKey::new(scene.root.path(), "rotated-key", "PKCS8").unwrap();
    let before = github.state().exchanges;
    github.trust(&rotated);
    let uri = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    for name in ["app", "unknown"] {
        let data = json!({"stringData": github.secret(&rotated)});
        send_request(&scene.admin, "PATCH", &format!("{uri}/{name}"), data).await.unwrap();
    }
    scene.until_ready("three", &commit).await;
    let commit = scene.push(&[file("one/a", "2"), file("two/b", "2")]);
    for name in ["one", "two"] {
        scene.nudge(name, "rotated").await;
        scene.until_ready(name, &commit).await;
    }
    let exchanges = github.state().exchanges - before;
    assert!((1..=3).contains(&exchanges), "{exchanges} exchanges for one new key");

    // Tokens that live for seconds are renewed while the repository is polled.
    github.state().lifetime = Duration::from_secs(6);
    github.state().tokens.clear();
    scene.patch_sync("one", json!({"spec": {"interval": "5s"}})).await;
    let before = github.state().exchanges;
    until("tokens are renewed", async || (github.state().exchanges >= before + 3).then_some(())).await;
    let commit = scene.push(&[file("one/a", "3")]);
    scene.until_ready("one", &commit).await;

    let all = shown(&scene, &daemon).await;
    assert!(all.len() > 10_000, "there is much to look through: {}", all.len());
    let proof = {
        let asked = github.server.requests();
        let call = asked.iter().find(|one| one.path.ends_with("/access_tokens")).unwrap();
        call.header("authorization").unwrap().trim_start_matches("Bearer ").to_owned()
    };
    for hidden in [TOKEN_MARK, key.mark(), unknown.mark(), rotated.mark(), &proof, "planted"] {
        let around = |at: usize| all[at.saturating_sub(200)..].chars().take(400).collect::<String>();
        assert_eq!(all.find(hidden).map(around), None, "{hidden}");
    }
    for name in ["one", "two", "three"] {
        scene.delete_sync(name).await;
    }
}
