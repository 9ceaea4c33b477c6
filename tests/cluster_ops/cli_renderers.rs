//! Every verb that renders, with every renderer: none of them ends with a panic.
//!
//! In: a folder of manifests, a kustomization and a chart, on the disk and in a repository; a sandbox as the cluster, or the control
//! plane of the tests. Out: exit codes and words. A panic is exit code 101. Without a helm a chart cannot be rendered, and the verb
//! says so and ends with 1.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use moorline_test_support::command::Folder;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::git_server::Work;
use moorline_test_support::programs;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

/// The renderers, by the folder in which each has something to do.
const RENDERERS: [&str; 3] = ["plain", "kustomization", "chart"];

/// For what takes a moment on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A manifest that is sound.
const CONFIG_MAP: &[u8] = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {mode: fast}\n";

/// A sandbox that ends with the test.
struct Sandbox {
    server: Child,
    kubeconfig: String,
}

impl Sandbox {
    fn start(folder: &Folder) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(["sandbox", "--seed", "1"])
            .env("TMPDIR", &folder.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
        Self { server, kubeconfig }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The verbs that render a path, with the exit code of a render that succeeds against an empty cluster.
const VERBS: [(&[&str], i32); 7] = [
    (&["render"], 0),
    (&["check"], 0),
    (&["check", "--server", "--namespace", "default"], 0),
    (&["rbac"], 0),
    (&["plan", "--against", "live", "--namespace", "default"], 2),
    (&["plan", "--against", "cluster", "--namespace", "default"], 2),
    (&["plan", "--against", "cluster", "--namespace", "default", "--output", "json"], 2),
];

/// The task of each renderer: the same ConfigMap.
const FILES: [(&str, &[u8]); 5] = [
    ("plain/map.yaml", CONFIG_MAP),
    ("kustomization/map.yaml", CONFIG_MAP),
    ("kustomization/kustomization.yaml", b"resources: [map.yaml]\n"),
    ("chart/Chart.yaml", b"apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
    ("chart/templates/map.yaml", CONFIG_MAP),
];

fn folder() -> Folder {
    Folder::new("renderers", &[&FILES[..], &[("live/none.yaml", b"")]].concat())
}

/// The same as text, for a repository.
fn texts() -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    FILES.iter().map(|(path, bytes)| ((*path).to_owned(), text(bytes))).collect()
}

/// The helm of the tests, or one that is not there.
fn helm() -> (PathBuf, bool) {
    let helm = programs::find("helm");
    let is_there = helm.is_some();
    (helm.unwrap_or_else(|| PathBuf::from("/nonexistent/helm")), is_there)
}

/// The verb has ended with this code, and without a panic.
#[track_caller]
fn assert_ends(what: &str, output: &Output, expect: i32) {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!words.contains("panicked"), "{what}: {words}");
    let data = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(expect), "{what}: {words}{data}");
}

#[test]
fn no_verb_panics_with_any_renderer() {
    let folder = folder();
    let sandbox = Sandbox::start(&folder);
    let (program, has_helm) = helm();
    for renderer in RENDERERS {
        for (verb, expect) in VERBS {
            let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
                .args(verb)
                .arg(renderer)
                .current_dir(&folder.0)
                .env("KUBECONFIG", &sandbox.kubeconfig)
                .env("MOORLINE_HELM", &program)
                .output()
                .unwrap();
            let renders = renderer != "chart" || has_helm;
            assert_ends(&format!("{verb:?} {renderer}"), &output, if renders { expect } else { 1 });
        }
    }
}

/// An Application and a Kustomization of the scene's repository, of one folder and with its name.
async fn held_by_others(scene: &Scene, folder: &str) {
    let (namespace, url) = (&scene.namespace, scene.git.url("repository.git"));
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": folder},
        "spec": {"project": "default", "source": {"repoURL": url, "path": folder, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace}},
    });
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": folder},
        "spec": {"url": url, "ref": {"branch": "main"}, "interval": "10s"},
    });
    let kustomization = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": folder},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": folder}, "path": folder, "interval": "10m",
            "prune": true, "targetNamespace": namespace},
    });
    for (plural, object) in
        [("applications", application), ("gitrepositories", repository), ("kustomizations", kustomization)]
    {
        let uri = format!("/apis/{}/namespaces/{namespace}/{plural}", object["apiVersion"].as_str().unwrap());
        send_request(&scene.admin, "POST", &uri, object).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_verb_that_reads_a_repository_panics_with_any_renderer() {
    let Some(scene) = Scene::new("renderers").await else { return };
    moorline_test_support::gitops_tools::install(&scene).await;
    scene.push(&texts());
    let (program, has_helm) = helm();
    let kubeconfig = scene.root.path().join("kubeconfig-of-a-person");
    std::fs::write(&kubeconfig, scene.plane.kubeconfig(ADMIN)).unwrap();
    for renderer in RENDERERS {
        scene.sync(renderer, json!({"path": renderer})).await;
        held_by_others(&scene, renderer).await;
        let adopts = |kind: &str| {
            let place = ["--sync-namespace", scene.namespace.as_str(), "--sync"].map(str::to_owned);
            let verb = vec!["adopt".to_owned(), format!("{kind}/{renderer}")];
            [verb, place.to_vec(), vec![format!("new-{renderer}")]].concat()
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (verb, expect) in [
            (words(&["plan", "--sync", renderer]), 2),
            (words(&["plan", "--sync", renderer, "--output", "json"]), 2),
            (words(&["rbac", "--sync", renderer]), 0),
            (adopts("application"), 2),
            // Flux builds a chart in Git with kustomize, which has no object of it.
            (adopts("kustomization"), if renderer == "chart" { 1 } else { 2 }),
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
                .args(&verb)
                .args(["-n", &scene.namespace])
                .env("KUBECONFIG", &kubeconfig)
                .env("MOORLINE_HELM", &program)
                .output()
                .unwrap();
            let renders = renderer != "chart" || has_helm;
            assert_ends(&format!("{verb:?}"), &output, if renders { expect } else { 1 });
        }
    }
    for renderer in RENDERERS {
        scene.delete_sync(renderer).await;
    }
}

/// A demo that has come up: the process, and its kubeconfig.
fn demo(repository: &Path, path: &str, said: &Path, helm: &Path) -> (Child, String) {
    let log = std::fs::File::create(said).unwrap();
    let temporary = said.parent().unwrap();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let folders = [helm.parent().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&search));
    let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MOORLINE_"));
    ours.for_each(|(name, _)| {
        command.env_remove(name);
    });
    let mut demo = command
        .args(["demo", "--path", path, "--url"])
        .arg(repository)
        .env("TMPDIR", temporary)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map_while(Result::ok);
    let kubeconfig = lines.find_map(|line| Some(line.strip_prefix("export KUBECONFIG=")?.to_owned()));
    (demo, kubeconfig.expect("a kubeconfig"))
}

#[test]
fn the_demo_follows_a_repository_with_any_renderer() {
    let root = tempfile::tempdir().unwrap();
    let work = Work::new(root.path());
    let texts = texts();
    let files: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    work.push(&files);
    let (program, has_helm) = helm();
    for renderer in RENDERERS.iter().filter(|it| has_helm || **it != "chart") {
        let said = root.path().join("said");
        let (mut demo, kubeconfig) = demo(&work.bare, renderer, &said, &program);
        let begun = Instant::now();
        let sync = loop {
            let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
                .args(["status", "demo", "-n", "moorline", "-o", "json"])
                .env("KUBECONFIG", &kubeconfig)
                .output()
                .unwrap();
            let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if output.status.success() || begun.elapsed() > under_load(PATIENCE) {
                break list["items"][0].clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        let interrupted = Command::new("kill").args(["-INT", &demo.id().to_string()]).status().unwrap();
        let ended = demo.wait().unwrap();
        let words = std::fs::read_to_string(&said).unwrap();
        assert_eq!(sync["status"]["conditions"][0]["status"], "True", "{renderer}: {sync:#} {words}");
        assert_eq!(sync["status"]["objects"]["applied"], 1, "{renderer}: {sync:#}");
        assert!(!words.contains("panicked"), "{renderer}: {words}");
        assert!(interrupted.success() && ended.success(), "{renderer}: {ended} {words}");
    }
}
