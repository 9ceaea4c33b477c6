//! Dependencies that a chart names and does not have in its folder `charts`: fetched by its lock, and rendered as by helm.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::daemon::{daemon, file, started};
use super::ranges::{Packaged, digest_of, map, packaged, publish};
use moorline::render::HelmOptions;
use moorline::render::helm::{Capabilities, FetchedDependency, LockedDependency};
use moorline::tree::{FileTree, TreeEntry};
use moorline_test_support::daemon::until;
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::programs::find;
use moorline_test_support::scene::Scene;

use super::charts::options;
use super::{helm_of, objects};

const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}-{{ .Chart.Name }}\"}\ndata: {key: {{ .Values.word | default \"none\" | quote }}}\n";

/// Runs helm in a folder; returns what it prints.
fn helm(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let program = std::path::absolute(find("helm").unwrap()).unwrap();
    let done =
        Command::new(program).args(arguments).current_dir(folder).env("HOME", folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

fn write(folder: &Path, path: &str, text: &str) {
    let place = folder.join(path);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, text).unwrap();
}

/// Returns the files below a folder as a tree, without those below the folder `charts` of `chart`.
fn tree(folder: &Path) -> FileTree {
    fn walk(root: &Path, at: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(at).unwrap().flatten() {
            let path = entry.path();
            let shown = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true if shown == "chart/charts" || shown.starts_with('.') => {}
                true => walk(root, &path, files),
                false => files.push((shown, std::fs::read(&path).unwrap())),
            }
        }
    }
    let mut files = Vec::new();
    walk(folder, folder, &mut files);
    files.into_iter().map(|(path, bytes)| (path, TreeEntry::File(bytes.as_slice().into()))).collect()
}

/// A chart of this name, and its template.
fn chart(folder: &Path, at: &str, name: &str, version: &str, more: &str) {
    write(
        folder,
        &format!("{at}/Chart.yaml"),
        &format!("apiVersion: v2\nname: {name}\nversion: {version}\n{more}"),
    );
    write(folder, &format!("{at}/templates/map.yaml"), TEMPLATE);
}

#[tokio::test]
async fn folders_of_the_repository_are_dependencies_by_the_lock_that_helm_writes() {
    let Some(program) = find("helm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    chart(folder, "libs/db", "db", "1.2.3", "");
    chart(folder, "libs/queue", "queue", "0.1.0-rc.1+build", "");
    let dependencies = "dependencies:\n\
        - {name: db, version: \">=1.0.0 <2\", repository: \"file://../libs/db\", condition: db.enabled, tags: [a, b]}\n\
        - {name: db, version: \"^1\", repository: \"file://../libs/db\", alias: second, import-values: [{child: b, parent: a}, c]}\n\
        - {name: queue, version: \">0.0.1-0\", repository: \"file://../libs/queue\"}\n";
    chart(folder, "chart", "shop", "1.0.0", dependencies);
    write(folder, "chart/values.yaml", "db: {enabled: true, word: x}\nsecond: {word: y}\n");
    helm(folder, &["dependency", "update", "chart"]).unwrap();
    let theirs = helm(folder, &["template", "default", "chart", "--skip-tests", "--include-crds"]).unwrap();
    let documents =
        moorline::yaml::read("helm", theirs.as_bytes(), moorline::yaml::Dialect::Kubectl).unwrap();
    let mut theirs: Vec<String> = documents.iter().map(|document| document.value.to_string()).collect();
    let (runner, _folder) = helm_of(&program);
    let render = async |tree: &FileTree| {
        objects(&runner, tree, options(HelmOptions::default()), Capabilities::default()).await
    };
    let ours = render(&tree(folder)).await.unwrap();
    let mut ours: Vec<String> =
        ours.iter().map(|object| serde_json::Value::Object(object.body.clone()).to_string()).collect();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 4);

    // The lock of other dependencies, none, and a folder that has moved on.
    let refused = async |expect: &str| {
        let told = render(&tree(folder)).await.unwrap_err();
        assert!(told.contains(expect), "{expect}: {told}");
    };
    let lock = std::fs::read_to_string(folder.join("chart/Chart.lock")).unwrap();
    chart(folder, "libs/db", "db", "1.3.0", "");
    refused("ChartDependencyMissing: chart/Chart.yaml: the dependency db is in ../libs/db, which has another version than Chart.lock").await;
    chart(folder, "libs/db", "db", "1.2.3", "");
    chart(folder, "chart", "shop", "1.0.0", &dependencies.replace(">=1.0.0", ">=1.1.0"));
    refused(
        "ChartLockStale: chart/Chart.lock: it does not fit Chart.yaml; run `helm dependency update chart`",
    )
    .await;
    std::fs::remove_file(folder.join("chart/Chart.lock")).unwrap();
    refused("no Chart.lock has its exact version; run `helm dependency update chart` and commit Chart.lock")
        .await;
    let outside = dependencies.replace("file://../libs/queue", "file://../../libs/queue");
    chart(folder, "chart", "shop", "1.0.0", &outside);
    write(folder, "chart/Chart.lock", &lock);
    refused("ChartLockStale").await;
}

#[tokio::test]
async fn dependencies_that_were_fetched_are_rendered_as_helm_renders_its_own() {
    let Some(program) = find("helm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    chart(folder, "published/db", "db", "1.2.3", "");
    helm(folder, &["package", "published/db"]).unwrap();
    let archive = std::fs::read(folder.join("db-1.2.3.tgz")).unwrap();
    let server = GitServer::start(folder);
    let index = json!({"apiVersion": "v1", "entries": {"db": [{
        "apiVersion": "v2", "name": "db", "version": "1.2.3", "digest": digest_of(&archive), "urls": ["db-1.2.3.tgz"]}]}});
    let served = archive.clone();
    server.rule(move |request| match request.path.as_str() {
        "/charts/index.yaml" => Reply::Raw(200, "", index.to_string().into_bytes()),
        _ => Reply::Raw(200, "", served.clone()),
    });
    let url = server.url("charts");
    let dependencies =
        format!("dependencies:\n- {{name: db, version: 1.x, repository: \"{url}\", alias: data}}\n");
    chart(folder, "chart", "shop", "1.0.0", &dependencies);
    helm(folder, &["dependency", "update", "chart"]).unwrap();
    let theirs = helm(folder, &["template", "default", "chart", "--skip-tests", "--include-crds"]).unwrap();
    let documents =
        moorline::yaml::read("helm", theirs.as_bytes(), moorline::yaml::Dialect::Kubectl).unwrap();
    let theirs: Vec<_> = documents.into_iter().map(|document| document.value).collect();
    let (runner, _folder) = helm_of(&program);
    let locked = LockedDependency { name: "db".into(), version: "1.2.3".into(), repository: url };
    let fetched = FetchedDependency { locked, archive: archive.into() };
    let with = HelmOptions { dependencies: vec![fetched], ..HelmOptions::default() };
    let ours = objects(&runner, &tree(folder), options(with), Capabilities::default()).await.unwrap();
    let ours: Vec<_> = ours.iter().map(|object| serde_json::Value::Object(object.body.clone())).collect();
    assert_eq!(ours, theirs);
    // On the command line nothing is fetched, and it is said what to do.
    let told =
        objects(&runner, &tree(folder), options(HelmOptions::default()), Capabilities::default()).await;
    let told = told.unwrap_err();
    assert!(
        told.contains("only the daemon fetches dependencies; run `helm dependency build chart`"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_fetches_the_dependencies_of_a_chart_once() {
    let Some(scene) = Scene::new("chart-dependencies").await else { return };
    let Some(one) = daemon(&scene) else { return };
    let server = GitServer::start(scene.root.path());
    let first = packaged(&scene, "1.0.0", &map("first"));
    let second = packaged(&scene, "1.1.0", &map("second"));
    publish(&server, &[first.clone(), second.clone()], None);
    let files = |version: &str, folder: &Path| {
        let dependencies = format!(
            "dependencies:\n- {{name: web, version: {version}, repository: \"{}\"}}\n",
            server.url("charts")
        );
        chart(folder, "chart", "shop", "1.0.0", &dependencies);
        let lock = match helm(folder, &["dependency", "update", "chart"]) {
            Ok(_) => std::fs::read_to_string(folder.join("chart/Chart.lock")).unwrap(),
            Err(told) => panic!("{told}"),
        };
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
        [
            file("chart/Chart.yaml", &read("chart/Chart.yaml")),
            file("chart/templates/map.yaml", TEMPLATE),
            file("chart/Chart.lock", &lock),
        ]
    };
    let folder = tempfile::tempdir_in(scene.root.path()).unwrap();
    let all = files("1.0.0", folder.path());
    server.requests();
    // Without the lock nothing is asked for.
    scene.push(&all[..2]);
    let helm_options = json!({"values": {"web": {"word": "x"}}});
    scene.sync("shop", json!({"path": "./chart", "interval": "1h", "render": {"helm": helm_options}})).await;
    scene.until_reason("shop", "ChartDependencyMissing").await;
    assert!(server.requests().is_empty());
    let commit = scene.push(&all[2..]);
    scene.nudge("shop", "lock").await;
    scene.until_ready("shop", &commit).await;
    let value = async || scene.values().await.get("web").cloned().unwrap_or_default();
    assert_eq!(value().await, "first x");
    let asked: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/charts/index.yaml", "/charts/web-1.0.0.tgz"]);
    assert_eq!(started(&scene), 1);

    // It is here for other values and another daemon, also when nobody publishes it any more.
    server.rule(|_| Reply::Raw(503, "", Vec::new()));
    drop(one);
    let _two = daemon(&scene);
    let with = json!({"spec": {"render": {"helm": {"values": {"web": {"word": "y"}}}}}});
    scene.patch_sync("shop", with).await;
    until("the other value is there", async || (value().await == "first y").then_some(())).await;
    assert!(server.requests().is_empty());

    // Another version that cannot be had is reported by its name, and what is applied stays.
    publish(&server, &[first.clone(), second.clone()], None);
    let all = files("1.1.0", folder.path());
    server.rule(|_| Reply::Raw(503, "", Vec::new()));
    scene.push(&all);
    scene.nudge("shop", "other").await;
    until("the server is reported", async || {
        let told = scene.status("shop", "/conditions/0/message").await;
        told.as_str()?.contains("the dependency web 1.1.0: ").then_some(())
    })
    .await;
    assert_eq!(value().await, "first y");
    let lying = Packaged { archive: first.archive.clone(), ..second.clone() };
    publish(&server, &[first.clone(), lying], None);
    scene.nudge("shop", "lying").await;
    scene.until_reason("shop", "ChartDigestDiffers").await;
    assert_eq!(value().await, "first y");
    publish(&server, &[first, second], None);
    scene.nudge("shop", "honest").await;
    until("the other version is there", async || (value().await == "second y").then_some(())).await;
}
