//! One walk through a page: what it tells a person to type is typed, in its order.
//!
//! In: the blocks of a page. Out: nothing, or the first command that did not do what the page says. The cluster is the real
//! control plane; the daemon is what the chart has installed, started here because no kubelet does, and the Pods are said to run
//! by [`Walk::kubelet`] for the same reason.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::page::Block;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::Daemon;
use moorline_test_support::programs::{command, find};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::Scene;
use moorline_test_support::under_load::under_load;

/// The repository of the pages.
pub(crate) const URL: &str = "https://git.example.com/shop.git";

/// Namespace in which the pages install the daemon.
const PLACE: &str = "moorline";

/// Time within which the shown state must be reached.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Walk {
    pub(crate) scene: Scene,
    page: String,
    path: std::ffi::OsString,
    daemon: Option<Daemon>,
    kubelet: JoinHandle<()>,
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

impl Walk {
    /// A folder that looks like a clone of this repository, and the programs; none where one of them is not to be had.
    pub(crate) async fn new(page: &str) -> Option<Self> {
        let (helm, kubectl) = (find("helm")?, find("kubectl")?);
        let scene = Scene::new("pages").await?;
        let root = scene.root.path();
        let (checkout, programs) = (root.join("checkout"), root.join("programs"));
        for folder in [&checkout, &programs] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        for entry in ["charts", "config", "docs", "examples", "Cargo.toml"] {
            symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(entry), checkout.join(entry)).expect("a link");
        }
        let binary = Path::new(env!("CARGO_BIN_EXE_moorline"));
        for (name, program) in [("helm", &*helm), ("kubectl", &kubectl), ("moorline", binary)] {
            symlink(program, programs.join(name)).expect("a link");
        }
        let bare = scene.work.bare.to_string_lossy().into_owned();
        scene.work.git(&["-C", &bare, "config", "http.receivepack", "true"]);
        let known = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&known)));
        let kubelet = tokio::spawn(Self::kubelet(scene.admin.clone()));
        Some(Self { page: page.to_owned(), path: path.expect("a PATH"), daemon: None, kubelet, scene })
    }

    /// The daemon as the chart installs it, the Sync `shop` of a folder with a ConfigMap, and the namespaces of the pages.
    pub(crate) async fn served(&mut self) {
        let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": "normal"}});
        self.scene.work.push(&[("app/settings.json", &settings.to_string())]);
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop", "namespace": PLACE},
            "spec": {"source": {"git": {"url": URL}}, "path": "app", "targetNamespace": "shop", "createNamespace": true},
        });
        let places = "kubectl wait namespace/shop namespace/moorline --for=delete --timeout=1m\n\
             kubectl create namespace team-a\nkubectl create namespace shop";
        self.typed(places, 0).await;
        let install = format!(
            "helm install {PLACE} charts/{PLACE} -n {PLACE} --create-namespace --set image.repository=example.com/{PLACE} \
             --set rbac.grant=clusterAdmin"
        );
        self.typed(&install, 0).await;
        let apply = format!(
            "echo '{sync}' | kubectl apply -f -\nkubectl wait --for=condition=Ready sync/shop -n {PLACE} --timeout=5m"
        );
        self.typed(&apply, 0).await;
    }

    /// Leaves nothing behind that the next walk would stumble over.
    pub(crate) async fn ends(&mut self) {
        self.typed(&format!("helm uninstall {PLACE} -n {PLACE} --ignore-not-found"), 0).await;
        self.typed("kubectl delete syncs --all -A", 0).await;
        self.typed(&format!("kubectl delete namespace shop team-a {PLACE}"), 0).await;
    }

    /// The program finds no fault with the manifests of a block, and the API server would take them; but of a kind that is
    /// defined beside them it knows nothing yet.
    pub(crate) async fn taken(&mut self, block: &Block) {
        let folder = self.scene.root.path().join("checkout/manifests");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (at, document) in block.text.split("\n---\n").enumerate() {
            std::fs::write(folder.join(format!("{at}.yaml")), document).expect("a file");
        }
        self.typed("moorline check manifests", block.line).await;
        let server = "for file in manifests/*.yaml; do grep -q '^apiVersion: example.com/' $file || \
             kubectl apply --server-side --dry-run=server --validate=strict -f $file; done";
        self.typed(server, block.line).await;
    }

    /// Types every block that is typed and not left out.
    pub(crate) async fn through(&mut self, blocks: &[Block], left_out: impl Fn(&Block) -> bool) {
        for block in blocks.iter().filter(|block| block.is_typed() && !left_out(block)) {
            match block.language.as_str() {
                "console" => self.shown(block).await,
                _ => drop(self.typed(&block.text, block.line).await),
            }
        }
    }

    /// Types lines into a shell: what they print. The first that fails ends it.
    pub(crate) async fn typed(&mut self, lines: &str, at: usize) -> String {
        let (code, data, words) = self.shell(lines).await;
        assert_eq!(code, 0, "{}:{at}: {lines}\n{data}{words}\n{}", self.page, self.log());
        if lines.contains("helm install") || lines.contains("helm upgrade") {
            self.starts().await;
        }
        if lines.contains("helm uninstall") {
            self.daemon = None;
        }
        data
    }

    /// Types the lines that begin with `$ `; what stands below each is a part of what it prints, where `...` is anything. What
    /// only shows may be typed again: a person, too, looks a moment later.
    async fn shown(&mut self, block: &Block) {
        for part in block.text.split("$ ").skip(1) {
            let (typed, expect) = part.split_once('\n').unwrap_or((part, ""));
            let begun = Instant::now();
            loop {
                let (code, data, words) = self.shell(typed).await;
                let missing = expect.lines().find(|line| !data.lines().any(|real| fits(line, real)));
                // `plan` says by its exit code that there is something to do.
                match missing {
                    None if [0, 2, 3].contains(&code) => break,
                    _ if begun.elapsed() < under_load(PATIENCE) => {
                        tokio::time::sleep(Duration::from_millis(200)).await
                    }
                    _ => panic!(
                        "{}:{}: {typed}\n{data}{words}\nnot printed: {missing:?}\n{}",
                        self.page,
                        block.line,
                        self.log()
                    ),
                }
            }
        }
    }

    async fn shell(&self, lines: &str) -> (i32, String, String) {
        let root = self.scene.root.path();
        // No image is pulled here, so that what takes longer than this never comes.
        let lines = lines
            .replace(URL, &self.scene.git.url("repository.git"))
            .replace("--timeout=5m", "--timeout=30s");
        let mut shell = command(Path::new("bash"));
        shell
            .args(["-euo", "pipefail", "-c", &lines])
            .current_dir(root.join("checkout"))
            .env("PATH", &self.path)
            .env("HOME", root)
            .env("KUBECONFIG", self.scene.plane.kubeconfig_file(ADMIN))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        for (name, value) in [("NAME", "a"), ("EMAIL", "a@example.com")] {
            shell.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        for name in ["CACHE", "CONFIG", "DATA"] {
            shell.env(format!("HELM_{name}_HOME"), root.join(name));
        }
        // The kubelet and the daemon's log go on meanwhile.
        let output =
            tokio::task::spawn_blocking(move || shell.output()).await.expect("the shell is not stopped");
        let output = output.expect("bash starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// The daemon as the chart has it now, but that it tries again sooner.
    async fn starts(&mut self) {
        // Two of them would wait for each other's Lease.
        if let Some(mut daemon) = self.daemon.take() {
            daemon.terminate();
        }
        let token = format!("kubectl create token {PLACE} -n {PLACE} --duration 1h");
        let settings =
            format!("kubectl get configmap {PLACE} -n {PLACE} -o jsonpath='{{.data.daemon\\.yaml}}'");
        let (_, token, words) = self.shell(&token).await;
        assert!(!token.is_empty(), "{words}");
        let folder = self.scene.root.path().join("daemon");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("daemon.yaml"), self.shell(&settings).await.1).expect("a file");
        let mut config: Value =
            serde_json::from_str(&self.scene.plane.kubeconfig(ADMIN)).expect("a kubeconfig is JSON");
        config["users"][0]["user"] = json!({"token": token.trim()});
        let file = folder.join("daemon.yaml");
        let arguments = ["--config", &file.to_string_lossy(), "--namespace", PLACE, "--retry-base", "100ms"];
        let reaper = &self.scene.plane.reaper;
        self.daemon = Some(Daemon::with_kubeconfig(reaper, &config.to_string(), &folder, &arguments));
    }

    fn log(&self) -> String {
        self.daemon.as_ref().map(Daemon::log).unwrap_or_default()
    }

    /// Says of every Pod that it runs, and of one of a Job that it is done.
    async fn kubelet(admin: kube::Client) {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let Ok(pods) = send_request(&admin, "GET", "/api/v1/pods", Value::Null).await else { continue };
            for pod in pods["items"].as_array().into_iter().flatten() {
                if pod["status"]["phase"] != "Pending" {
                    continue;
                }
                let of_job = pod["metadata"]["ownerReferences"][0]["kind"] == "Job";
                let ready = json!([{"type": "Ready", "status": if of_job { "False" } else { "True" }}]);
                let phase = if of_job { "Succeeded" } else { "Running" };
                let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
                let mut path = String::new();
                let _ = write!(path, "/api/v1/namespaces/{}/pods/{}/status", text("namespace"), text("name"));
                let _ = send_request(
                    &admin,
                    "PATCH",
                    &path,
                    json!({"status": {"phase": phase, "conditions": ready}}),
                )
                .await;
            }
        }
    }
}

/// True if a line is as shown: the parts between `...` come in their order, and blanks count once.
fn fits(shown: &str, real: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, real) = (words(shown), words(real));
    let mut rest = real.as_str();
    let parts: Vec<&str> = shown.split("...").collect();
    for (at, part) in parts.iter().enumerate() {
        match rest.find(part) {
            Some(place) if at > 0 || place == 0 => rest = &rest[place + part.len()..],
            _ => return false,
        }
    }
    parts.last().is_some_and(|last| last.is_empty()) || rest.is_empty()
}

#[test]
fn a_line_is_as_shown_but_for_what_is_left_open() {
    let check =
        |shown: &str, real: &str, expect: bool| assert_eq!(fits(shown, real), expect, "{shown} {real}");
    check("a  b", "a b", true);
    check("a b", "a b c", false);
    check("a ... c", "a b b c", true);
    check("...", "", true);
    check("... c", "a b", false);
    check("main@...", "main@12", true);
    check("b", "a b", false);
}
