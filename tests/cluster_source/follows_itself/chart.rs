//! The chart as a Sync: a commit with a new version of it is an upgrade of the daemon.

use serde_json::{Value, json};

use super::{DEFINITION, changed, files, get, hands_over, holder, moves, now, until_protected};
use moorline_test_support::daemon::until;
use moorline_test_support::programs::find;
use moorline_test_support::scene::Scene;

/// The release has the name that a person gives it by hand, and is in the daemon's own namespace.
const RELEASE: &str = "moorline";

/// The objects of the chart with its default values.
fn objects(namespace: &str) -> Vec<String> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut all = vec![DEFINITION.to_owned(), deployment(namespace)];
    for kind in ["configmaps", "services", "serviceaccounts"] {
        all.push(format!("/api/v1/namespaces/{namespace}/{kind}/{RELEASE}"));
    }
    for kind in ["roles", "rolebindings"] {
        all.push(format!("{rbac}/namespaces/{namespace}/{kind}/{RELEASE}"));
    }
    for kind in ["clusterroles", "clusterrolebindings"] {
        all.push(format!("{rbac}/{kind}/{namespace}.{RELEASE}"));
    }
    all
}

fn deployment(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{RELEASE}")
}

async fn image(scene: &Scene) -> Value {
    let live = get(scene, &deployment(&scene.namespace)).await;
    live.pointer("/spec/template/spec/containers/0/image").cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_by_a_new_chart_hands_over_to_the_new_daemon() {
    let Some(scene) = Scene::new("chart-itself").await else { return };
    let Some(helm) = find("helm") else { return };
    let arguments = ["--helm", &std::path::absolute(helm).unwrap().display().to_string()];
    let mut all = Vec::new();
    files("charts/moorline", &mut all);
    let first = scene.push(&all);
    let helm = json!({"releaseName": RELEASE, "values": {"image": {"repository": "moorline"}}});
    scene.sync("self", json!({"path": "charts/moorline", "interval": "1h", "render": {"helm": helm}})).await;
    let old = scene.daemon_at(&scene.proxy, "old", &arguments);
    scene.until_ready("self", &first).await;
    let before = holder(&scene).await;
    assert!(before.is_some());
    assert_eq!(image(&scene).await, concat!("moorline:", env!("CARGO_PKG_VERSION")));
    scene.settle().await;
    let before_upgrade = now(&scene, objects(&scene.namespace)).await;

    // The commit brings another version, which is in a label of every object and names the image, and a definition that
    // differs from the one that the program was built with.
    let upgrade = scene.push(&[
        changed("charts/moorline/Chart.yaml", "appVersion: 0.1.0", "appVersion: 0.2.0"),
        changed("charts/moorline/crds/moorline.dev_syncs.yaml", "name: Drift", "name: Drifted"),
    ]);
    scene.nudge("self", "upgrade").await;
    until("the Deployment names the new image", async || {
        (image(&scene).await == "moorline:0.2.0").then_some(())
    })
    .await;
    let new = scene.daemon_at(&scene.proxy, "new", &arguments);
    scene.until_ready("self", &upgrade).await;
    hands_over(&scene, old, before, &upgrade).await;
    let moved = moves(&scene, &before_upgrade).await;
    assert!(moved.iter().all(|(_, count)| *count == 1), "each object moves once: {moved:?}; {}", new.log());

    // The daemon does not delete what it needs to run.
    let gone =
        ["deployment", "rbac", "serviceaccount"].map(|name| format!("charts/moorline/templates/{name}.yaml"));
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    scene.remove(&[&gone[..], &["charts/moorline/crds/moorline.dev_syncs.yaml"]].concat());
    until_protected(&scene).await;
    for path in objects(&scene.namespace) {
        get(&scene, &path).await;
    }
    scene.delete_sync("self").await;
}
