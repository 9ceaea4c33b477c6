//! A chart that is published in a repository of charts: fetched once, and held to its digest.

use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::support::git_server::{GitServer, Reply};
use super::super::support::programs::find;
use super::super::support::scene::Scene;
use super::daemon::{daemon, file, started};

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
    scene.proxy.asked();
    let commit = scene.push(&[file("shop/words.txt", "other words")]);
    scene.nudge("shop", "beside").await;
    scene.until_ready("shop", &commit).await;
    let asked = scene.proxy.asked();
    assert!(!asked.iter().any(|one| one.is_on_object()), "{asked:?}");
    assert_eq!(started(&scene), 1);

    // Other values are, of the chart that is here; also when nobody publishes it any more, and for a daemon that begins anew.
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

    // What is published anew under the same version is another chart, which nobody has asked for.
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
