//! A place for one release of the chart: a namespace, a repository, and the daemon as the chart's ServiceAccount.
//!
//! Releases go one after the other, because there is one definition of Syncs, and every daemon sees the Syncs of all.

use std::path::{Path, PathBuf};
use std::process::Command;

use kube::Client;
use serde_json::{Value, json};

use super::programs::{CHART, Helm, IMAGE, command, documents, find, run, text};
use moorline_test_support::command::Outcome;
use moorline_test_support::control_plane::{PlaneGuard, shared};
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::registry::Registry;
use moorline_test_support::rest::send_request;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) struct Release {
    pub(crate) namespace: String,
    pub(crate) admin: Client,
    pub(crate) plane: PlaneGuard,
    helm: Helm,
    work: Work,
    git: GitServer,
    root: tempfile::TempDir,
}

impl Release {
    /// A place without a release; none where there is no control plane or no helm.
    pub(crate) async fn new(purpose: &str) -> Option<Self> {
        let (plane, helm) = (shared()?, Helm::here()?);
        let namespace = plane.namespace(purpose).await;
        let admin = plane.client(ADMIN).await;
        let strict = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        send_request(&admin, "PATCH", &format!("/api/v1/namespaces/{namespace}"), strict)
            .await
            .expect("a label");
        let root = tempfile::tempdir().expect("a folder");
        let (work, git) = (Work::new(root.path()), GitServer::start(root.path()));
        Some(Self { namespace, admin, plane, helm, work, git, root })
    }

    /// Runs helm in the namespace, as the administrator, and with an image where the chart is rendered.
    pub(crate) fn helm(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.helm.command();
        let command = command.env("KUBECONFIG", self.plane.kubeconfig_file(ADMIN)).args(arguments);
        if arguments.first() != Some(&"uninstall") {
            command.args(IMAGE);
        }
        run(command.args(["--namespace", &self.namespace]))
    }

    pub(crate) fn chart(&self) -> &'static str {
        CHART
    }

    /// Packs the chart, pushes it to a registry, and returns its name there.
    pub(crate) fn publish(&self, registry: &Registry) -> String {
        let folder = self.root.path().join("packed");
        let helm = |arguments: &[&str]| {
            run(self.helm.command().args(arguments)).unwrap_or_else(|error| panic!("{error}"))
        };
        helm(&["package", CHART, "--destination", &folder.to_string_lossy()]);
        let packed = folder.join(concat!("moorline-", env!("CARGO_PKG_VERSION"), ".tgz"));
        let charts = format!("oci://{}/charts", registry.address);
        helm(&["push", &packed.to_string_lossy(), &charts, "--plain-http"]);
        format!("{charts}/moorline")
    }

    /// Values as a file.
    pub(crate) fn values_file(&self, text: &str) -> String {
        let file = self.root.path().join("values.yaml");
        std::fs::write(&file, text).expect("a file of values");
        file.to_string_lossy().into_owned()
    }

    /// A copy of the chart whose definition of Syncs has a column less, and neither `spec.ignoreFields` nor
    /// `status.history`.
    pub(crate) fn older_chart(&self) -> String {
        let to = self.root.path().join("older");
        copy(Path::new(CHART), &to);
        let file = "crds/moorline.dev_syncs.yaml";
        let mut definition = documents(file, &text(&format!("charts/moorline/{file}"))).remove(0);
        let version = &mut definition["spec"]["versions"][0];
        version["additionalPrinterColumns"].as_array_mut().expect("columns").pop();
        let parts = &mut version["schema"]["openAPIV3Schema"]["properties"];
        for (part, field) in [("spec", "ignoreFields"), ("status", "history")] {
            let fields = parts[part]["properties"].as_object_mut().expect("fields");
            fields.remove(field).unwrap_or_else(|| panic!("the {part} has no {field}"));
        }
        std::fs::write(to.join(file), definition.to_string()).expect("a copy of the definition");
        to.to_string_lossy().into_owned()
    }

    /// Takes away the definitions that another test has left.
    pub(crate) async fn without_definition(&self) {
        for kind in ["syncs", "notifiers", "syncsets", "changewindows", "namespacechangewindows"] {
            let path = format!("{CRDS}/{kind}.moorline.dev");
            let _ = send_request(&self.admin, "DELETE", &path, Value::Null).await;
            until("there is no definition", async || self.get(&path).await.is_none().then_some(())).await;
        }
    }

    /// The path of what is in the namespace.
    pub(crate) fn path(&self, version: &str, rest: &str) -> String {
        let root = if version == "v1" { "/api" } else { "/apis" };
        format!("{root}/{version}/namespaces/{}/{rest}", self.namespace)
    }

    /// Returns the object at a path, as the administrator sees it.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        send_request(&self.admin, "GET", path, Value::Null).await.ok()
    }

    pub(crate) async fn create(&self, path: &str, body: Value) -> Result<Value, kube::Error> {
        send_request(&self.admin, "POST", path, body).await
    }

    pub(crate) fn url(&self) -> String {
        self.git.url("repository.git")
    }

    /// Pushes a file.
    pub(crate) fn push(&self, path: &str, text: &str) -> String {
        self.push_all(&[(path, text)])
    }

    /// Pushes files.
    pub(crate) fn push_all(&self, files: &[(&str, &str)]) -> String {
        self.work.push(files)
    }

    /// A Sync of the repository; `spec` is merged into its spec.
    pub(crate) fn sync(&self, name: &str, spec: Value) -> Value {
        let mut whole = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name},
            "spec": {"source": {"git": {"url": self.url()}}, "interval": "5s", "health": {"wait": false}},
        });
        for (field, value) in spec.as_object().expect("a map") {
            whole["spec"][field] = value.clone();
        }
        whole
    }

    /// The user that the chart's ServiceAccount is.
    pub(crate) fn user(&self) -> String {
        format!("system:serviceaccount:{}:moorline", self.namespace)
    }

    /// A kubeconfig of the chart's ServiceAccount.
    async fn kubeconfig(&self) -> String {
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        });
        let answer = self.create(&self.path("v1", "serviceaccounts/moorline/token"), request).await;
        let token = answer.expect("a token of the chart's ServiceAccount")["status"]["token"].take();
        let mut config: Value =
            serde_json::from_str(&self.plane.kubeconfig(ADMIN)).expect("a kubeconfig is JSON");
        config["users"][0]["user"]["token"] = token;
        config.to_string()
    }

    /// The daemon as the chart has it, but that it tries again sooner.
    pub(crate) async fn daemon(&self) -> Daemon {
        self.installed().await.start(&["--retry-base", "100ms", "--retry-cap", "1s"])
    }

    /// Returns the parts of the chart that the daemon uses: its ServiceAccount, and the settings of its ConfigMap.
    pub(crate) async fn installed(&self) -> Installed<'_> {
        let settings = self.get(&self.path("v1", "configmaps/moorline")).await.expect("the settings");
        let file = self.root.path().join("daemon.yaml");
        std::fs::write(&file, settings["data"]["daemon.yaml"].as_str().expect("a file")).expect("a file");
        Installed { release: self, kubeconfig: self.kubeconfig().await, settings: file }
    }

    /// Runs `moorline` as a user of the control plane.
    pub(crate) fn moorline(&self, user: &str, arguments: &[&str]) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
        let command = command.args(arguments).args(["-n", &self.namespace]);
        Outcome::of(&command.env("KUBECONFIG", self.plane.kubeconfig_file(user)).output().expect("it runs"))
    }

    /// Installs by `moorline install` as the administrator, and checks that it succeeds.
    pub(crate) fn install_without_helm(&self, arguments: &[&str]) -> String {
        let image = ["install", "--image", "registry.example.com/moorline"];
        let outcome = self.moorline(ADMIN, &[&image, arguments].concat());
        assert_eq!(outcome.code, 0, "{}{}", outcome.data, outcome.words);
        outcome.data
    }

    /// Takes away what `moorline install` has brought, by the commands of docs/install.md.
    pub(crate) async fn uninstall_without_helm(&self) {
        let Some(kubectl) = find("kubectl") else { return };
        let page = text("docs/install.md");
        let commands: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("- `kubectl ")?.strip_suffix('`')).collect();
        assert_eq!(commands.len(), 2, "docs/install.md has the commands that uninstall");
        for line in commands {
            let line = line.replace("-n moorline", &format!("-n {}", self.namespace));
            let mut delete = command(&kubectl);
            let delete = delete.args(line.split(' '));
            run(delete.env("KUBECONFIG", self.plane.kubeconfig_file(ADMIN))).expect("it goes");
        }
        let gone = self.get(&self.path("apps/v1", "deployments/moorline")).await;
        assert!(
            gone.is_none_or(|it| it["metadata"]["deletionTimestamp"].is_string()),
            "the Deployment is there"
        );
    }

    /// Takes the release and all Syncs of the namespace away, so that no later daemon serves them.
    pub(crate) async fn end(self) {
        let _ = self.helm(&["uninstall", "moorline", "--ignore-not-found"]);
        let syncs = self.path("moorline.dev/v1alpha1", "syncs");
        let left = self.get(&syncs).await.unwrap_or_default();
        for sync in left["items"].as_array().into_iter().flatten() {
            let path = format!("{syncs}/{}", sync["metadata"]["name"].as_str().unwrap_or_default());
            let free = json!({"metadata": {"finalizers": null}});
            let _ = send_request(&self.admin, "PATCH", &path, free).await;
            let _ = send_request(&self.admin, "DELETE", &path, Value::Null).await;
        }
    }
}

/// Parts of the chart that the daemon is started with.
pub(crate) struct Installed<'release> {
    release: &'release Release,
    kubeconfig: String,
    settings: PathBuf,
}

impl Installed<'_> {
    pub(crate) fn start(&self, more: &[&str]) -> Daemon {
        let Self { release, kubeconfig, settings } = self;
        let arguments = ["--config", &settings.to_string_lossy(), "--namespace", &release.namespace];
        let arguments = [&arguments[..], more].concat();
        Daemon::with_kubeconfig(&release.plane.reaper, kubeconfig, release.root.path(), &arguments)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("the chart can be read") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        match entry.file_type().expect("an entry has a type").is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), &to).expect("a copy")),
        }
    }
}
