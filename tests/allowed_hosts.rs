//! A Sync that names the daemon's own machine is told so, and nothing there is asked, for every kind of fetch.

mod support;

use serde_json::{Value, json};

use support::scene::{Scene, config_map};

const REFUSED: &str = "HostNotAllowed";

#[tokio::test(flavor = "multi_thread")]
async fn by_default_the_daemons_own_machine_is_not_asked() {
    let Some(scene) = Scene::new("hosts").await else { return };
    scene.push(&[("a.json".to_owned(), config_map("a", "1"))]);
    scene.sync("shop", json!({})).await;
    let daemon = scene.daemon_with(&["--leader-election=false", "--allowed-hosts", ""]);
    scene.until_reason("shop", REFUSED).await;
    let message = scene.status("shop", "/conditions/0/message").await;
    assert!(message.as_str().is_some_and(|text| text.contains("allowedHosts")), "{message}");
    assert!(scene.git.requests().is_empty());
    drop(daemon);
    // Who lists it means it.
    let _daemon = scene.daemon_with(&["--leader-election=false", "--allowed-hosts", "127.0.0.1"]);
    scene.until_reason("shop", "Applied").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_commit_or_a_spec_names_besides_is_judged_too() {
    let Some(scene) = Scene::new("hosts-named").await else { return };
    let port = scene.git.port;
    let base = format!("resources: [\"http://127.0.0.2:{port}/repository.git//a\"]\n");
    scene.push(&[
        ("based/kustomization.yaml".to_owned(), base),
        ("charted/values.yaml".to_owned(), "a: 1\n".to_owned()),
    ]);
    let chart = |url: String, name: Value| {
        let mut chart =
            json!({"url": url, "version": "1.0.0", "digest": format!("sha256:{}", "0".repeat(64))});
        if !name.is_null() {
            chart["name"] = name;
        }
        json!({"path": "charted", "render": {"type": "Helm", "helm": {"chart": chart}}})
    };
    scene.sync("based", json!({"path": "based"})).await;
    scene.sync("charted", chart(format!("http://127.0.0.2:{port}/charts"), json!("web"))).await;
    scene.sync("published", chart(format!("oci://127.0.0.2:{port}/web"), Value::Null)).await;
    let prefix = format!("http://127.0.0.2:{port}");
    let _daemon = scene.daemon_with(&[
        "--leader-election=false",
        "--allowed-hosts",
        "127.0.0.1",
        "--remote-bases",
        &prefix,
    ]);
    for name in ["based", "charted", "published"] {
        scene.until_reason(name, REFUSED).await;
    }
}
