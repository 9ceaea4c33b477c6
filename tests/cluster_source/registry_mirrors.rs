//! Mirrors in the settings of the daemon are asked before their registry, and held to its digests.

use std::sync::Arc;

use moorline_test_support::artifact_registry::{ArtifactRegistry, RegistryFault, RegistryLogin};
use moorline_test_support::authority::Authority;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, many};
use serde_json::json;

#[tokio::test]
async fn an_artifact_comes_from_the_mirror_and_from_its_registry_where_the_mirror_fails() {
    let Some(scene) = Scene::new("mirrors").await else { return };
    let authority = Arc::new(Authority::new());
    let start = || ArtifactRegistry::start_with(scene.root.path(), authority.clone(), false);
    let (registry, mirror) = (start(), start());
    registry.login(RegistryLogin::Bearer);
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    send_request(&scene.admin, "POST", &secrets, registry.docker_secret("registry")).await.unwrap();
    let files = |value: &str| many(2, value);
    let first = registry.push("shop", "v1", &files("one"));
    assert_eq!(mirror.push("hub/shop", "v1", &files("one")), first);
    let mirrors = format!("{}={}/hub", registry.host(), mirror.host());
    let _daemon = scene.daemon_with(&["--leader-election=false", "--registry-mirrors", &mirrors]);
    let oci = json!({"url": registry.url("shop"), "ref": {"tag": "v1"}, "secretRef": {"name": "registry"}});
    scene.sync("shop", json!({"source": {"oci": oci}, "interval": "1h"})).await;
    scene.until_ready("shop", &format!("v1@{first}")).await;
    scene.until_values(&files("one"), "all of it is applied").await;
    assert_eq!(registry.requests(), [""; 0]);

    // The mirror has the tag, and other content.
    let second = registry.push("shop", "v1", &files("two"));
    mirror.push("hub/shop", "v1", &files("two"));
    mirror.fault(RegistryFault::OtherLayer);
    scene.nudge("shop", "second").await;
    scene.until_ready("shop", &second).await;
    scene.until_values(&files("two"), "the layer is the one of the registry").await;
    let asked = registry.requests();
    assert!(asked.iter().any(|one| one.starts_with("GET shop/blobs/")), "{asked:?}");
    assert!(!asked.iter().any(|one| one.starts_with("HEAD")), "{asked:?}");

    // Nobody is there.
    let third = registry.push("shop", "v1", &files("three"));
    mirror.fault(RegistryFault::RedirectLoop);
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &third).await;
    let sent = mirror.server.requests();
    let login = |name: &str, value: &str| name == "authorization" && value.starts_with("Basic");
    assert!(!sent.iter().flat_map(|one| &one.headers).any(|(name, value)| login(name, value)));
    scene.delete_sync("shop").await;
}
