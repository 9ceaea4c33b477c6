//! A published chart of a registry whose signatures are verified.

use moorline_test_support::artifact_registry::{ArtifactRegistry, gzip, tar};
use moorline_test_support::artifact_signer::ArtifactSigner;
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{QUIET_TIME, Scene};
use moorline_test_support::signers;
use serde_json::json;

use super::daemon::{daemon, file};
use super::ranges::{digest_of, map, packaged};
use crate::artifact_signatures::{by_keys, registry, trust, trust_in, until_refused};

const ARCHIVE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

fn publish(scene: &Scene, registry: &ArtifactRegistry, version: &'static str, value: &str) -> String {
    let chart = packaged(scene, version, &map(value));
    registry.layer("charts/web", version, ARCHIVE, &chart.archive)
}

/// Publishes the chart with a dependency that only its lock names.
fn publish_with_dependency(registry: &ArtifactRegistry, version: &str) -> String {
    let named = r#"[{"name":"db","version":"1.2.3","repository":"https://charts.example.com"}]"#;
    let lock =
        format!("dependencies: {named}\ndigest: {}\n", digest_of(format!("[{named},{named}]").as_bytes()));
    let chart = format!("apiVersion: v2\nname: web\nversion: {version}\ndependencies: {named}\n");
    let template = map("third");
    let files = [
        ("web/Chart.yaml", b'0', chart.as_bytes()),
        ("web/Chart.lock", b'0', lock.as_bytes()),
        ("web/templates/map.yaml", b'0', template.as_bytes()),
    ];
    registry.layer("charts/web", version, ARCHIVE, &gzip(&tar(&files)))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_version_that_a_trusted_key_signed_is_taken_up() {
    let Some(scene) = Scene::new("chart-signed").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let (registry, ann, eve) = (registry(&scene).await, ArtifactSigner::new(), ArtifactSigner::new());
    trust(&scene, &[&ann]).await;
    let first = publish(&scene, &registry, "1.0.0", "first");
    let chart = json!({"url": registry.url("charts/web"), "version": "1.x", "secretRef": {"name": "registry"},
        "verify": by_keys()});
    let helm = json!({"chart": chart, "valuesFiles": ["prod.yaml"]});
    scene.push(&[file("shop/prod.yaml", "word: prod\n")]);
    scene.sync("shop", json!({"path": "./shop", "interval": "5s", "render": {"helm": helm}})).await;
    until_refused(&scene, "SignatureMissing", &["chart web:1.0.0:", &first, "is not signed"]).await;
    let value = async || scene.values().await.get("web").cloned();
    assert_eq!(value().await, None, "nothing of it is applied");
    ann.sign_by_tag(&registry, "charts/web", &first);
    let until_value = async |expect: &str| {
        until(expect, async || (value().await? == expect).then_some(())).await;
    };
    until_value("first prod").await;

    let second = publish(&scene, &registry, "1.1.0", "second");
    eve.sign_by_tag(&registry, "charts/web", &second);
    let expected = format!("it was not made by the key {}", ann.fingerprint());
    until_refused(&scene, "SignerUnknown", &["chart web:1.1.0:", &expected]).await;
    scene.edit("web", "by hand").await;
    until_value("first prod").await;
    // A commit does not come with a chart that nobody trusts, nor with the previous one.
    scene.push(&[file("shop/prod.yaml", "word: next\n")]);
    scene.nudge("shop", "next").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value().await.as_deref(), Some("first prod"));
    ann.sign_by_tag(&registry, "charts/web", &second);
    until_value("second next").await;
    registry.requests();
    scene.settle().await;
    let asked = registry.requests();
    assert!(!asked.iter().any(|one| one.contains("referrers")), "one search for one version: {asked:?}");
    // Today's keys count for what is here, too.
    trust(&scene, &[&eve]).await;
    until_refused(&scene, "SignerUnknown", &[&format!("it was not made by the key {}", eve.fingerprint())])
        .await;
    scene.edit("web", "by hand").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value().await.as_deref(), Some("by hand"), "nobody holds it");
    trust(&scene, &[&ann]).await;
    until_value("second next").await;
    // A server that hides the newest version does not bring back an older one, though ann signed it.
    registry.remove_tags("1.1.0");
    until_refused(&scene, "VersionLowered", &["web:1.0.0@", "web:1.1.0@"]).await;
    assert_eq!(value().await.as_deref(), Some("second next"));
    // A signature does not cover what would be fetched beside the archive.
    ann.sign_by_tag(&registry, "charts/web", &publish_with_dependency(&registry, "1.2.0"));
    let expected = "the dependency db 1.2.3 is not in the signed chart";
    until_refused(&scene, "SignatureMissing", &[expected, "`helm package`"]).await;
    scene.edit("web", "by hand").await;
    until_value("second next").await;
}

/// The commit is refused, and so is the chart that came with the accepted one: nothing is held by half.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_commit_comes_with_a_chart_that_is_trusted_today_or_not_at_all() {
    let Some(scene) = Scene::new("chart-and-commit").await else { return };
    let Some(author) = signers::key(&scene, "ann") else { return };
    let Some(first_daemon) = daemon(&scene) else { return };
    let (registry, ann, eve) = (registry(&scene).await, ArtifactSigner::new(), ArtifactSigner::new());
    trust_in(&scene, "chart-signers", &[&ann]).await;
    signers::trust(&scene, &[&author]).await;
    let digest = publish(&scene, &registry, "1.0.0", "first");
    ann.sign_by_tag(&registry, "charts/web", &digest);
    let chart = json!({"url": registry.url("charts/web"), "version": "1.x", "secretRef": {"name": "registry"},
        "verify": {"keys": {"secretRef": {"name": "chart-signers"}}}});
    let helm = json!({"chart": chart, "valuesFiles": ["prod.yaml"]});
    signers::sign(&scene, Some(&author));
    scene.push(&[file("shop/prod.yaml", "word: prod\n")]);
    let mut spec = signers::spec(&scene, "HEAD", serde_json::Value::Null);
    (spec["path"], spec["render"]) = (json!("./shop"), json!({"helm": helm}));
    scene.sync("shop", spec).await;
    let value = async || scene.values().await.get("web").cloned();
    let until_value = async |expect: &str| {
        until(expect, async || (value().await? == expect).then_some(())).await;
    };
    until_value("first prod").await;
    signers::sign(&scene, None);
    scene.push(&[file("shop/prod.yaml", "word: unsigned\n")]);
    drop(first_daemon);
    let Some(_daemon) = daemon(&scene) else { return };
    scene.nudge("shop", "unsigned").await;
    scene.until_reason("shop", "SignatureMissing").await;
    scene.edit("web", "by hand").await;
    until_value("first prod").await;
    trust_in(&scene, "chart-signers", &[&eve]).await;
    tokio::time::sleep(QUIET_TIME).await;
    scene.edit("web", "by hand").await;
    tokio::time::sleep(QUIET_TIME).await;
    assert_eq!(value().await.as_deref(), Some("by hand"), "its chart is trusted no more");
    trust_in(&scene, "chart-signers", &[&ann]).await;
    until_value("first prod").await;
}
