//! Mounts: other repositories and artifacts in folders of a source, each with its own revision.

mod held;
mod kinds;

use std::path::PathBuf;

use moorline_test_support::artifact_registry::{ArtifactRegistry, RegistryLogin};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, text};
use serde_json::{Value, json};

/// A repository on a server of its own, and a registry, beside the repository of a scene.
struct Elsewhere {
    work: Work,
    git: GitServer,
    registry: ArtifactRegistry,
}

impl Elsewhere {
    async fn new(scene: &Scene) -> Self {
        let root: PathBuf = scene.root.path().join("elsewhere");
        std::fs::create_dir_all(&root).unwrap();
        let registry = ArtifactRegistry::start(&root);
        registry.login(RegistryLogin::Bearer);
        let secrets = format!("/api/v1/namespaces/{}/secrets", scene.namespace);
        send_request(&scene.admin, "POST", &secrets, registry.docker_secret("registry")).await.unwrap();
        Self { work: Work::new(&root), git: GitServer::start(&root), registry }
    }

    fn push(&self, files: &[(String, String)]) -> String {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        self.work.push(&files)
    }

    /// Pushes the artifact `extra`, and returns its digest.
    fn extra(&self, value: &str) -> String {
        let files = [text("kustomization.yaml", r#"{"resources": ["b.json"]}"#), map("b.json", "b", value)];
        self.registry.push("extra", "v1", &files)
    }

    /// A mount of the repository.
    fn repository(&self, path: &str) -> Value {
        json!({"path": path, "git": {"url": self.git.url("repository.git")}})
    }

    /// A mount of the artifact `extra`.
    fn artifact(&self, path: &str) -> Value {
        let oci = json!({"url": self.registry.url("extra"), "ref": {"tag": "v1"}, "secretRef": {"name": "registry"}});
        json!({"path": path, "oci": oci})
    }
}

/// The spec of a Sync with these mounts.
fn spec(scene: &Scene, mounts: &[Value], interval: &str) -> Value {
    let git = json!({"url": scene.git.url("repository.git")});
    json!({"source": {"git": git, "mounts": mounts}, "path": "./clusters/prod", "interval": interval})
}

/// A kustomization with these resources.
fn kustomization(path: &str, resources: &[&str]) -> (String, String) {
    text(&format!("{path}/kustomization.yaml"), &json!({"resources": resources}).to_string())
}

fn map(path: &str, name: &str, value: &str) -> (String, String) {
    text(path, &config_map(name, value))
}

/// A value of each object.
fn values(expect: &[(&str, &str)]) -> Vec<(String, String)> {
    expect.iter().map(|(name, value)| map("", name, value)).collect()
}

async fn message(scene: &Scene) -> String {
    scene.status("shop", "/conditions/0/message").await.as_str().unwrap_or_default().to_owned()
}

/// Waits until the message of the Sync has this part.
async fn until_says(scene: &Scene, part: &str) {
    until(&format!("the message has {part:?}"), async || message(scene).await.contains(part).then_some(()))
        .await;
}

/// A Sync of a kustomization that refers to a mounted repository and a mounted artifact.
struct Mounted {
    scene: Scene,
    elsewhere: Elsewhere,
    daemon: Daemon,
    own: String,
    base: String,
    extra: String,
}

impl Mounted {
    async fn new(purpose: &str, interval: &str) -> Option<Self> {
        let scene = Scene::new(purpose).await?;
        let elsewhere = Elsewhere::new(&scene).await;
        let base = elsewhere.push(&[kustomization("app", &["a.json"]), map("app/a.json", "a", "one")]);
        let extra = elsewhere.extra("one");
        let own = scene.push(&[
            kustomization("clusters/prod", &["../../vendor/base/app", "../../vendor/extra", "c.json"]),
            map("clusters/prod/c.json", "c", "one"),
        ]);
        let daemon = scene.daemon();
        let mounts = [elsewhere.repository("./vendor/base"), elsewhere.artifact("vendor/extra/")];
        scene.sync("shop", spec(&scene, &mounts, interval)).await;
        let mounted = Self { scene, elsewhere, daemon, own, base, extra };
        mounted.until_applied().await;
        Some(mounted)
    }

    /// The revision of all sources as the status has it.
    fn revision(&self) -> String {
        let Self { own, base, extra, .. } = self;
        format!("main@{own}+vendor/base/:main@{base}+vendor/extra/:v1@{extra}")
    }

    async fn until_applied(&self) {
        self.scene.until_ready("shop", &self.revision()).await;
    }

    async fn has(&self, expect: [&str; 3], what: &str) {
        let [a, b, c] = expect;
        self.scene.until_values(&values(&[("a", a), ("b", b), ("c", c)]), what).await;
    }

    /// Moves the mounted repository, and waits until that is applied.
    async fn move_base(&mut self, value: &str) {
        self.base = self.elsewhere.push(&[map("app/a.json", "a", value)]);
        self.scene.nudge("shop", &self.base).await;
        self.until_applied().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_that_moves_is_a_new_revision() {
    let Some(mut it) = Mounted::new("mounts", "1h").await else { return };
    it.has(["one", "one", "one"], "all sources are applied").await;
    let shown = json!([
        {"path": "vendor/base", "revision": format!("main@{}", it.base)},
        {"path": "vendor/extra", "revision": format!("v1@{}", it.extra)},
    ]);
    assert_eq!(it.scene.status("shop", "/revision/mounts").await, shown);
    let short =
        format!("main@{}+vendor/base@{}+vendor/extra@{}", &it.own[..8], &it.base[..8], &it.extra[..15]);
    assert_eq!(it.scene.status("shop", "/revision/short").await, json!(short));
    let first = it.revision();

    it.move_base("two").await;
    it.has(["two", "one", "one"], "the mounted repository has moved alone").await;
    it.extra = it.elsewhere.extra("two");
    it.scene.nudge("shop", "artifact").await;
    it.until_applied().await;
    it.has(["two", "two", "one"], "the mounted artifact has moved alone").await;
    it.own = it.scene.push(&[map("clusters/prod/c.json", "c", "two")]);
    it.scene.nudge("shop", "own").await;
    it.until_applied().await;
    it.has(["two", "two", "two"], "the repository has moved alone").await;
    let history = it.scene.status("shop", "/history").await;
    assert_eq!((history.as_array().unwrap().len(), &history[3]["revision"]), (4, &json!(first)));

    // A commit that changes no file which the render read is applied without a render.
    let before = it.scene.versions().await;
    it.base = it.elsewhere.push(&[text("notes.txt", "later")]);
    it.scene.nudge("shop", "notes").await;
    it.until_applied().await;
    assert_eq!(it.scene.versions().await, before);
    it.scene.edit("a", "by hand").await;
    it.has(["two", "two", "two"], "an edit is repaired").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_mounts_cost_one_look_each() {
    let Some(it) = Mounted::new("mounts-calm", "5s").await else { return };
    it.scene.settle().await;
    let reads = || {
        let page = it.daemon.get("/metrics").unwrap_or_default();
        let is_read = |line: &&str| {
            line.starts_with("moorline_git_operation_seconds_count") && line.contains("\"read\"")
        };
        page.lines().find(is_read).map(str::to_owned)
    };
    let before = reads();
    assert!(before.is_some(), "the metric is there");
    it.elsewhere.registry.requests();
    it.elsewhere.git.requests();
    it.scene.git.requests();
    it.scene.proxy.take_requests();
    tokio::time::sleep(std::time::Duration::from_secs(12)).await;
    let heads = it.elsewhere.registry.requests();
    assert!(heads.iter().all(|one| one == "HEAD extra/manifests/v1"), "{heads:?}");
    let (base, own) = (it.elsewhere.git.requests(), it.scene.git.requests());
    assert!(base.iter().all(|one| one.path.ends_with("/git-upload-pack")), "{base:?}");
    for count in [heads.len(), base.len(), own.len()] {
        assert!((2..=4).contains(&count), "{} {} {}", heads.len(), base.len(), own.len());
    }
    assert_eq!(reads(), before, "nothing is read, so nothing is rendered");
    it.scene.assert_calm("with unchanged mounts").await;
}
