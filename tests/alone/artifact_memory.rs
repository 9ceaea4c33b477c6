//! A large artifact in the memory of a small Pod.

use std::time::{Duration, Instant};

use moorline_test_support::artifact_registry::ArtifactRegistry;
use moorline_test_support::cgroup::peak_mib;
use moorline_test_support::daemon::until_within;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map};
use serde_json::json;

/// Number of files, and of lines of 16 digits in each: 50 MB together.
const FILES: usize = 10_000;
const LINES: usize = 306;

/// Memory of the daemon.
const MEMORY: &str = "256Mi";
const MOST_MIB: u64 = 256;

#[tokio::test]
async fn ten_thousand_files_of_an_artifact_fit_into_a_small_pod() {
    let Some(scene) = Scene::new("artifact-memory").await else { return };
    let registry = ArtifactRegistry::start(scene.root.path());
    let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    let authority = registry.authority_secret("registry");
    send_request(&scene.admin, "POST", &secrets, authority).await.unwrap();
    let mut number = 1_u64;
    let mut line = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{number:016x}")
    };
    let files: Vec<(String, String)> = (0..FILES)
        .map(|at| {
            let text = config_map(&format!("map-{at}"), &(0..LINES).map(|_| line()).collect::<String>());
            (format!("app-{}/{at}.json", at % 100), text)
        })
        .collect();
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    assert!(bytes > 49_000_000, "{bytes}");
    let digest = registry.push("shop", "v1", &files);
    let daemon = scene.daemon_with(&["--leader-election=false", "--memory", MEMORY]);
    let begun = Instant::now();
    let oci = json!({"url": registry.url("shop"), "ref": {"tag": "v1"}, "secretRef": {"name": "registry"}});
    scene.sync("shop", json!({"source": {"oci": oci}, "path": "app-7", "interval": "1h"})).await;
    until_within(Duration::from_secs(180), "a hundredth of it is applied", async || {
        (scene.status("shop", "/revision/applied").await == format!("v1@{digest}")).then_some(())
    })
    .await;
    let peak = peak_mib(daemon.running.child.id()).expect("the daemon runs");
    println!("{bytes} bytes in {FILES} files: {:?}, peak memory {peak} MiB", begun.elapsed());
    assert!(peak < MOST_MIB, "{peak} MiB");
    scene.delete_sync("shop").await;
}
