//! A Sync that names the daemon's own machine gets an error that says so, and nothing there is asked, for every kind of fetch.

use std::path::Path;

use serde_json::{Value, json};

use moorline_test_support::scene::{Scene, config_map};

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
    // A host that is listed is allowed.
    let _daemon = scene.daemon_with(&["--leader-election=false", "--allowed-hosts", "127.0.0.1"]);
    scene.until_reason("shop", "Applied").await;
}

/// Writes down where the API server is, as a server does that serves no loopback.
async fn has_endpoint(scene: &Scene, address: &str, port: u16) {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": port}], "endpoints": [{"addresses": [address]}],
    });
    let path =
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes?fieldManager=test&force=true";
    let request = http::Request::patch(path).header("Content-Type", "application/apply-patch+yaml");
    let request = request.body(slice.to_string().into_bytes()).unwrap();
    scene.admin.request::<Value>(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_is_not_asked_at_its_service_or_its_endpoints() {
    let Some(scene) = Scene::new("hosts-api").await else { return };
    has_endpoint(&scene, "192.0.2.7", 6443).await;
    let places = ["192.0.2.7:6443", "10.0.0.1:443"];
    for (at, place) in places.iter().enumerate() {
        let url = format!("https://{place}/repository.git");
        scene.sync(&format!("api-{at}"), json!({"source": {"git": {"url": url}}})).await;
    }
    let arguments = ["--namespace", &scene.namespace, "--leader-election=false", "--allowed-hosts", ""];
    let variables = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    let variables = variables.map(|(name, value)| (name, Path::new(value)));
    let _daemon = scene.daemon_in(&scene.proxy, "daemon", &arguments, &variables);
    for at in 0..places.len() {
        scene.until_reason(&format!("api-{at}"), REFUSED).await;
        let message = scene.status(&format!("api-{at}"), "/conditions/0/message").await.to_string();
        assert!(message.contains("API server"), "{message}");
    }
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
