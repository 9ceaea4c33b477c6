//! A chart that is published in a repository of charts: fetched once, and held to its digest.

use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::daemon::{daemon, file, started};
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::programs::find;
use moorline_test_support::scene::Scene;

/// The archive of a chart, as helm packages it, and its digest.
fn packaged(scene: &Scene, value: &str) -> (Vec<u8>, String) {
    let folder = tempfile::tempdir_in(scene.root.path()).unwrap();
    let chart = folder.path().join("web");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.0.0\n").unwrap();
    std::fs::write(chart.join("values.yaml"), format!("value: {value}\n")).unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-map\"}\ndata: {key: \"{{ required \"give a value\" .Values.value }}\"}\n";
    std::fs::write(chart.join("templates/map.yaml"), map).unwrap();
    let helm = std::path::absolute(find("helm").unwrap()).unwrap();
    let made = Command::new(helm).args(["package", "web"]).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let bytes = std::fs::read(folder.path().join("web-1.0.0.tgz")).unwrap();
    let digits = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    (bytes, format!("sha256:{digits}"))
}

fn publish(server: &GitServer, archive: &[u8]) {
    let archive = archive.to_vec();
    server.rule(move |request| match request.path.as_str() {
        "/charts/index.yaml" => {
            let index = "apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, urls: [web-1.0.0.tgz]}\n";
            Reply::Raw(200, "", index.as_bytes().to_vec())
        }
        "/charts/web-1.0.0.tgz" => Reply::Raw(200, "", archive.clone()),
        _ => Reply::Raw(404, "", Vec::new()),
    });
}

#[tokio::test]
async fn a_published_chart_is_fetched_once_and_held_to_its_digest() {
    let Some(scene) = Scene::new("chart-published").await else { return };
    let Some(one) = daemon(&scene) else { return };
    let server = GitServer::start(scene.root.path());
    let (archive, digest) = packaged(&scene, "own");
    publish(&server, &archive);
    let chart = |digest: &str| json!({"url": server.url("charts"), "name": "web", "version": "1.0.0", "digest": digest});
    let helm = json!({"chart": chart(&digest), "valuesFiles": ["prod.yaml"]});
    let commit = scene.push(&[file("shop/prod.yaml", "value: prod\n"), file("words.txt", "words")]);
    scene.sync("shop", json!({"path": "./shop", "interval": "1h", "render": {"helm": helm}})).await;
    scene.until_ready("shop", &commit).await;
    let value = async || scene.values().await.get("shop-map").cloned();
    assert_eq!(value().await.as_deref(), Some("prod"));
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/charts/index.yaml", "/charts/web-1.0.0.tgz"]);

    // A commit beside the values is no render and no request.
    scene.settle().await;
    scene.proxy.take_requests();
    let commit = scene.push(&[file("shop/words.txt", "other words")]);
    scene.nudge("shop", "beside").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.take_requests();
    assert!(!asked.iter().any(|one| one.is_on_object()), "{asked:?}");
    assert_eq!(started(&scene), 1);

    // Other values are, of the chart that is here; also when nobody publishes it any more, and for a daemon that restarts.
    server.rule(|_| Reply::Raw(503, "", Vec::new()));
    let commit = scene.push(&[file("shop/prod.yaml", "value: other\n")]);
    scene.nudge("shop", "values").await;
    scene.until_ready("shop", &commit).await;
    drop(one);
    let _two = daemon(&scene);
    let commit = scene.push(&[file("shop/prod.yaml", "value: third\n")]);
    scene.nudge("shop", "third").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value().await.as_deref(), Some("third"));
    assert!(server.requests().is_empty());
    assert_eq!(started(&scene), 3);

    // An archive that is published again under the same version is another chart, which nobody has asked for.
    let (anew, other) = packaged(&scene, "anew");
    assert_ne!(digest, other);
    publish(&server, &archive);
    let with = |digest: &str| json!({"spec": {"render": {"helm": {"chart": chart(digest)}}}});
    scene.patch_sync("shop", with(&other)).await;
    scene.until_reason("shop", "ChartDigestDiffers").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    assert!(told.as_str().is_some_and(|told| told.contains(&digest) && told.contains(&other)), "{told}");
    assert_eq!(value().await.as_deref(), Some("third"), "what is there stays");
    publish(&server, &anew);
    scene.patch_sync("shop", with(&other)).await;
    scene.nudge("shop", "anew").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(scene.status("shop", "/problems").await, Value::Null);
}

#[tokio::test]
async fn a_chart_that_a_kustomization_names_is_fetched_by_its_digest() {
    let Some(scene) = Scene::new("chart-named").await else { return };
    let Some(one) = daemon(&scene) else { return };
    let server = GitServer::start(scene.root.path());
    let (archive, digest) = packaged(&scene, "own");
    publish(&server, &archive);
    let named = format!(
        "namePrefix: x-\nhelmCharts:\n- name: web\n  releaseName: shop\n  version: 1.0.0\n  repo: {}\n  valuesInline: {{more: true}}\n",
        server.url("charts")
    );
    let with = |digest: &str| {
        format!("metadata:\n  annotations: {{moorline.dev/digest.web-1.0.0: \"{digest}\"}}\n{named}")
    };

    // Without a digest nobody is asked, and it is said what to write.
    scene.push(&[file("shop/kustomization.yaml", &named)]);
    scene.sync("shop", json!({"path": "./shop", "interval": "1h"})).await;
    scene.until_reason("shop", "KustomizeUnsupported").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    let expect = "shop/kustomization.yaml:3:3: there is no chart charts/web-1.0.0/web, and fetching it requires a digest; write moorline.dev/digest.web-1.0.0: sha256:";
    assert!(told.as_str().is_some_and(|it| it.contains(expect)), "{told}");
    assert!(server.requests().is_empty());

    let commit = scene.push(&[file("shop/kustomization.yaml", &with(&digest))]);
    scene.nudge("shop", "digest").await;
    scene.until_ready("shop", &commit).await;
    let value = async || scene.values().await.get("x-shop-map").cloned();
    assert_eq!(value().await.as_deref(), Some("own"));
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/charts/index.yaml", "/charts/web-1.0.0.tgz"]);
    assert_eq!(started(&scene), 1);
    scene.settle().await;
    scene.assert_calm("once the chart is here").await;

    // It is here for another commit and another daemon, also when nobody publishes it any more.
    server.rule(|_| Reply::Raw(503, "", Vec::new()));
    drop(one);
    let _two = daemon(&scene);
    let other = with(&digest).replace("more: true", "value: other");
    let commit = scene.push(&[file("shop/kustomization.yaml", &other)]);
    scene.nudge("shop", "other").await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(value().await.as_deref(), Some("other"));
    assert!(server.requests().is_empty());

    // Another digest is another chart, which this server does not have.
    publish(&server, &archive);
    let (_, strange) = packaged(&scene, "strange");
    scene.push(&[file("shop/kustomization.yaml", &with(&strange))]);
    scene.nudge("shop", "strange").await;
    scene.until_reason("shop", "ChartDigestDiffers").await;
    let told = scene.status("shop", "/conditions/0/message").await;
    assert!(told.as_str().is_some_and(|it| it.contains("shop/kustomization.yaml:5:3: ")), "{told}");
    assert_eq!(value().await.as_deref(), Some("other"), "what is there stays");
}
