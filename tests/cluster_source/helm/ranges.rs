//! A published chart whose version is a range, or comes without a digest: what is taken up counts like a commit.

use std::process::Command;

use kube::api::DeleteParams;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::daemon::{daemon, file, started};
use moorline_test_support::authority::Authority;
use moorline_test_support::daemon::until;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::programs::find;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;

/// A version of a chart: its archive, as helm packages it, and its digest.
#[derive(Clone)]
pub(super) struct Packaged {
    pub(super) version: &'static str,
    pub(super) archive: Vec<u8>,
    pub(super) digest: String,
}

pub(super) fn digest_of(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{digits}")
}

/// Packages the chart `web` with one template.
pub(super) fn packaged(scene: &Scene, version: &'static str, template: &str) -> Packaged {
    let folder = tempfile::tempdir_in(scene.root.path()).unwrap();
    let chart = folder.path().join("web");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(chart.join("Chart.yaml"), format!("apiVersion: v2\nname: web\nversion: {version}\n"))
        .unwrap();
    std::fs::write(chart.join("templates/map.yaml"), template).unwrap();
    let helm = std::path::absolute(find("helm").unwrap()).unwrap();
    let made = Command::new(helm).args(["package", "web"]).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let archive = std::fs::read(folder.path().join(format!("web-{version}.tgz"))).unwrap();
    Packaged { version, digest: digest_of(&archive), archive }
}

/// A template with this value.
pub(super) fn map(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{key: \"{value} {{{{ .Values.word }}}}\"}}\n"
    )
}

/// Publishes these versions; an index that did not change is not sent again. `login` is the header that is wanted.
pub(super) fn publish(server: &GitServer, all: &[Packaged], login: Option<&'static str>) {
    let entries: Vec<Value> = all
        .iter()
        .map(|one| json!({"apiVersion": "v2", "name": "web", "version": one.version, "digest": one.digest, "urls": [format!("web-{}.tgz", one.version)]}))
        .collect();
    let index = json!({"apiVersion": "v1", "entries": {"web": entries}}).to_string().into_bytes();
    let etag = format!("\"{}\"", &digest_of(&index)[7..23]);
    let headers: &'static str = format!("ETag: {etag}\r\n").leak();
    let all = all.to_vec();
    server.rule(move |request| {
        if login.is_some() && request.header("authorization") != login {
            return Reply::Raw(401, "", Vec::new());
        }
        match request.path.as_str() {
            "/charts/index.yaml" if request.header("if-none-match") == Some(&*etag) => {
                Reply::Raw(304, "", Vec::new())
            }
            "/charts/index.yaml" => Reply::Raw(200, headers, index.clone()),
            path => match all.iter().find(|one| path == format!("/charts/web-{}.tgz", one.version)) {
                Some(one) => Reply::Raw(200, "", one.archive.clone()),
                None => Reply::Raw(404, "", Vec::new()),
            },
        }
    });
}

fn paths(server: &GitServer) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

async fn remove(scene: &Scene) {
    scene.maps().delete("web", &DeleteParams::default()).await.unwrap();
}

async fn value(scene: &Scene) -> String {
    scene.values().await.get("web").cloned().unwrap_or_default()
}

/// Waits until the object has this value, and the Sync is ready with this version of the chart.
async fn until_value(scene: &Scene, expect: &str, version: &str) {
    until(&format!("the value is {expect}"), async || (value(scene).await == expect).then_some(())).await;
    until("the status has it", async || {
        let applied = scene.status("shop", "/revision/applied").await;
        let is_ready = scene.status("shop", "/conditions/0/status").await == json!("True");
        (is_ready && applied.as_str()?.contains(&format!("web:{version}@"))).then_some(())
    })
    .await;
}

async fn message(scene: &Scene) -> String {
    scene.status("shop", "/conditions/0/message").await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_version_in_the_range_counts_like_a_commit() {
    let Some(scene) = Scene::new("chart-range").await else { return };
    let Some(one) = daemon(&scene) else { return };
    let server = GitServer::start(scene.root.path());
    let first = packaged(&scene, "1.0.0", &map("first"));
    let second = packaged(&scene, "1.1.0", &map("second"));
    let third = packaged(&scene, "2.0.0", &map("third"));
    publish(&server, &[first.clone(), third.clone()], None);
    let chart = json!({"url": server.url("charts"), "name": "web", "version": "1.x"});
    let helm = json!({"chart": chart, "valuesFiles": ["prod.yaml"]});
    let commit = scene.push(&[file("shop/prod.yaml", "word: prod\n")]);
    scene.sync("shop", json!({"path": "./shop", "interval": "5s", "render": {"helm": helm}})).await;
    let value = async || value(&scene).await;
    until_value(&scene, "first prod", "1.0.0").await;
    let taken = |one: &Packaged| format!("main@{commit}+web:{}@{}", one.version, one.digest);
    assert_eq!(scene.status("shop", "/revision/applied").await, json!(taken(&first)));
    let short = format!("main@{}+web:1.0.0", &commit[..8]);
    assert_eq!(scene.status("shop", "/revision/short").await, json!(short));
    assert_eq!(
        scene.status("shop", "/revision/chart").await,
        json!({"name": "web", "version": "1.0.0", "digest": first.digest})
    );

    // An unchanged index costs one conditional request a look, no render, and no request on an object.
    scene.settle().await;
    server.requests();
    scene.proxy.take_requests();
    let looks = std::cell::Cell::new(0);
    until("two more looks", async || {
        looks.set(looks.get() + server.requests().len());
        (looks.get() >= 2).then_some(())
    })
    .await;
    assert!(!scene.proxy.take_requests().iter().any(|asked| asked.is_on_object()));
    assert_eq!(started(&scene), 1);

    // A version of the range is taken up with the same commit.
    publish(&server, &[first.clone(), second.clone(), third.clone()], None);
    until_value(&scene, "second prod", "1.1.0").await;
    assert_eq!(scene.status("shop", "/revision/applied").await, json!(taken(&second)));
    let history = scene.status("shop", "/history").await;
    assert_eq!(
        (&history[0]["revision"], &history[1]["revision"]),
        (&json!(taken(&second)), &json!(taken(&first)))
    );
    assert_eq!(started(&scene), 2);
    let asked = paths(&server);
    assert_eq!(asked.iter().filter(|path| path.ends_with(".tgz")).count(), 1, "{asked:?}");

    // The same version with other content is not taken, and the previous revision is held, also by another daemon.
    let anew = Packaged { version: "1.1.0", ..packaged(&scene, "1.1.0", &map("anew")) };
    publish(&server, &[first.clone(), anew.clone(), third.clone()], None);
    scene.until_reason("shop", "ChartMoved").await;
    let told = message(&scene).await;
    assert!(
        told.contains(&second.digest) && told.contains(&anew.digest) && told.contains("web:1.1.0"),
        "{told}"
    );
    drop(one);
    let two = daemon(&scene);
    remove(&scene).await;
    until("what is held is repaired", async || (value().await == "second prod").then_some(())).await;
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, json!("ChartMoved"));

    // A server that is away holds nothing back: a commit is taken up with the previous version.
    server.rule(|_| Reply::Raw(503, "", Vec::new()));
    scene.push(&[file("shop/prod.yaml", "word: other\n")]);
    until("the commit is applied", async || (value().await == "second other").then_some(())).await;
    drop(two);
    let _three = daemon(&scene);
    remove(&scene).await;
    until("it is held", async || (value().await == "second other").then_some(())).await;

    // A range that matches nothing is reported with the newest version.
    publish(&server, &[first, second, third], None);
    let range = |version: &str| json!({"spec": {"render": {"helm": {"chart": {"version": version}}}}});
    scene.patch_sync("shop", range(">=3")).await;
    scene.until_reason("shop", "ChartNotFound").await;
    let told = message(&scene).await;
    assert!(told.contains("no version in the range >=3 of the chart web (the newest is 2.0.0)"), "{told}");
    assert_eq!(value().await, "second other");
    scene.patch_sync("shop", range("~2.0")).await;
    until_value(&scene, "third other", "2.0.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_the_server_refuses_is_rolled_back() {
    let Some(scene) = Scene::new("chart-rollback").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let server = GitServer::start(scene.root.path());
    let first = packaged(&scene, "1.0.0", &map("first"));
    let bad = packaged(&scene, "1.1.0", &map("second").replace("\ndata: ", "\nimmutable: 3\ndata: "));
    let good = packaged(&scene, "1.2.0", &map("third"));
    publish(&server, std::slice::from_ref(&first), None);
    let chart = json!({"url": server.url("charts"), "name": "web", "version": "1.x"});
    let commit = scene.push(&[file("shop/words.txt", "words")]);
    let spec = json!({
        "path": "./shop", "interval": "5s", "render": {"helm": {"chart": chart, "values": {"word": "x"}}},
        "rollback": {"onFailure": true}, "health": {"timeout": "5s"},
    });
    scene.sync("shop", spec).await;
    let value = async || value(&scene).await;
    until("the first version is healthy", async || {
        scene.status("shop", "/revision/healthy").await.as_str()?.contains("web:1.0.0").then_some(())
    })
    .await;
    publish(&server, &[first.clone(), bad.clone()], None);
    scene.until_reason("shop", "RolledBack").await;
    let rejected = scene.status("shop", "/revision/rejected").await;
    assert_eq!(rejected, json!(format!("main@{commit}+web:1.1.0@{}", bad.digest)));
    assert_eq!(value().await, "first x");
    publish(&server, &[first, bad, good], None);
    until("the next version is applied", async || (value().await == "third x").then_some(())).await;
}

/// Makes a Secret in the namespace of the scene.
async fn secret(scene: &Scene, name: &str, data: Value) {
    let path = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
    send_request(&scene.admin, "POST", &path, json!({"metadata": {"name": name}, "stringData": data}))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_chart_is_fetched_with_the_login_of_its_secret() {
    let Some(scene) = Scene::new("chart-login").await else { return };
    let Some(_daemon) = daemon(&scene) else { return };
    let authority = Authority::new();
    let server = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
    let first = packaged(&scene, "1.0.0", &map("first"));
    publish(&server, std::slice::from_ref(&first), Some("Basic bWU6cGxhbnRlZA=="));
    let url = format!("https://localhost:{}/charts", server.port);
    let chart =
        |name: &str| json!({"url": url, "name": "web", "version": "1.0.0", "secretRef": {"name": name}});
    let spec = |name: &str| json!({"path": "./shop", "interval": "5s", "render": {"helm": {"chart": chart(name), "values": {"word": "x"}}}});
    scene.push(&[file("shop/words.txt", "words")]);
    // The Secret is missing, then it has a wrong password, then the right one.
    scene.sync("shop", spec("login")).await;
    scene.until_reason("shop", "SecretMissing").await;
    assert!(server.requests().is_empty());
    secret(&scene, "login", json!({"username": "me", "password": "wrong", "ca.crt": authority.pem})).await;
    scene.until_reason("shop", "RepositoryAccessDenied").await;
    let patch = json!({"stringData": {"password": "planted"}});
    let path = format!("/api/v1/namespaces/{}/secrets/login", scene.namespace);
    send_request(&scene.admin, "PATCH", &path, patch).await.unwrap();
    let value = async || value(&scene).await;
    until("the chart is applied", async || (value().await == "first x").then_some(())).await;

    // A login in the form of Docker is the one of this server.
    let config =
        json!({"auths": {format!("localhost:{}", server.port): {"auth": "bWU6cGxhbnRlZA=="}}}).to_string();
    secret(&scene, "docker", json!({".dockerconfigjson": config, "ca.crt": authority.pem})).await;
    let second = packaged(&scene, "1.0.1", &map("second"));
    publish(&server, &[first, second], Some("Basic bWU6cGxhbnRlZA=="));
    let mut other = spec("docker");
    other["render"]["helm"]["chart"]["version"] = json!("~1.0");
    scene.patch_sync("shop", json!({"spec": other})).await;
    until("the other version is applied", async || (value().await == "second x").then_some(())).await;
    let status = scene.status("shop", "").await.to_string();
    let log = std::fs::read_to_string(scene.root.path().join("daemon/daemon.log")).unwrap();
    assert!(!status.contains("planted") && !log.contains("planted") && !log.contains("cGxhbnRlZA"));
}
