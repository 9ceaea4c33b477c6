//! Environment of a measurement: a new control plane, a Git server, a repository of applications,
//! and the daemon.
//!
//! In: the number of applications.
//! Out: [`BenchEnvironment`], with functions that create Syncs, trigger polls, edit objects, and
//! measure the daemon's usage in a window.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use moorline::api::Sync;
use serde_json::{Value, json};

use super::settled::{AppliedRevisions, now};
use super::tail::AuditLogReader;
use super::usage;
use super::verdict::rounded;
use super::workload::{self, APPS, FOLDER};
use moorline_test_support::audit::Request;
use moorline_test_support::binaries::Binaries;
use moorline_test_support::control_plane::ControlPlane;
use moorline_test_support::credentials::{ADMIN, MOORLINE};
use moorline_test_support::daemon::Daemon;
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::start::start;

/// Namespace of the daemon and of its Syncs.
pub(crate) const SYSTEM: &str = "moorline";
/// Timeout for operations that take a moment.
pub(crate) const MOMENT: Duration = Duration::from_secs(60);
/// Number of concurrent requests of the benchmark itself.
const SIDE_BY_SIDE: usize = 16;

/// A control plane with a repository and a daemon. The daemon is declared first, so that it is
/// dropped first.
pub(crate) struct BenchEnvironment {
    daemon: Option<Daemon>,
    pub(crate) settled: AppliedRevisions,
    pub(crate) tail: AuditLogReader,
    pub(crate) work: Work,
    pub(crate) admin: Client,
    pub(crate) applications: usize,
    server: GitServer,
    /// Port of the daemon's metrics.
    port: u16,
    program: PathBuf,
    plane: ControlPlane,
    root: tempfile::TempDir,
}

/// Usage of the daemon at the start of a window.
pub(crate) struct Window {
    pub(crate) mark: usize,
    pub(crate) opened: f64,
    cpu: f64,
    classes: Option<BTreeMap<String, f64>>,
}

/// Usage of the daemon during a window.
#[derive(Debug, Clone)]
pub(crate) struct Usage {
    pub(crate) cpu: f64,
    /// Peak memory since the start of the daemon.
    pub(crate) peak: f64,
    /// Number of requests by verb and resource.
    pub(crate) requests: BTreeMap<String, usize>,
    /// Number of requests by class, as the daemon counts them.
    pub(crate) classes: Option<BTreeMap<String, f64>>,
}

/// Starts a new control plane with the usual settings.
pub(crate) async fn plane() -> ControlPlane {
    let binaries = Binaries::find().unwrap_or_else(|missing| panic!("{missing}"));
    start(&binaries).await.unwrap_or_else(|why| panic!("{why}"))
}

/// Creates the namespaces that exist before a measurement.
pub(crate) async fn create_namespaces(plane: &ControlPlane) {
    let admin = plane.client(ADMIN).await;
    for name in [APPS, SYSTEM] {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&admin, &format!("/api/v1/namespaces/{name}"), body.to_string()).await;
    }
}

impl BenchEnvironment {
    /// Creates an environment in which nothing is synced yet.
    pub(crate) async fn new(applications: usize) -> Self {
        Self::with_program(Path::new(env!("CARGO_BIN_EXE_moorline")), applications).await
    }

    /// Same as [`Self::new`], with another binary as the daemon.
    pub(crate) async fn with_program(program: &Path, applications: usize) -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
        let files = workload::files(applications);
        work.push(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
        let plane = plane().await;
        create_namespaces(&plane).await;
        let admin = plane.client(ADMIN).await;
        install(&admin, program).await;
        let syncs = Api::namespaced_with(admin.clone(), SYSTEM, &ApiResource::erase::<Sync>(&()));
        let mut ground = Self {
            daemon: None,
            settled: AppliedRevisions::follow(syncs),
            tail: AuditLogReader::new(plane.audit_log.clone()),
            work,
            admin,
            applications,
            server,
            port: 0,
            program: program.to_owned(),
            plane,
            root,
        };
        ground.start_daemon().await;
        ground
    }

    /// Starts the daemon and waits until it watches Syncs.
    pub(crate) async fn start_daemon(&mut self) {
        let mark = self.tail.mark();
        let arguments = ["--leader-election=false", "--namespace", SYSTEM];
        self.daemon = Some(Daemon::start_program(&self.program, &self.plane, self.root.path(), &arguments));
        let watches = |request: &Request| request.user == MOORLINE && request.resource == "syncs";
        let ready = self.tail.until(mark, MOMENT, |seen| seen.iter().any(watches).then_some(())).await;
        assert!(ready.is_some(), "the daemon watches no Syncs:\n{}", self.log());
        self.port = self.daemon.as_ref().and_then(|daemon| port(&daemon.log())).unwrap_or_default();
    }

    /// Stops the daemon and returns the time that it took.
    pub(crate) fn stop_daemon(&mut self) -> f64 {
        let ended = self.daemon.as_mut().map(Daemon::terminate).unwrap_or_default();
        self.daemon = None;
        ended.as_secs_f64()
    }

    /// Returns the end of the daemon's log.
    pub(crate) fn log(&self) -> String {
        let log = self.daemon.as_ref().map(Daemon::log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Creates one Sync of all applications; returns the time of its creation.
    pub(crate) async fn create_sync(&self) -> f64 {
        let begun = now();
        self.create("apps", FOLDER).await;
        begun
    }

    /// Creates a Sync for each application; returns the time before the first.
    pub(crate) async fn create_sync_each(&self) -> f64 {
        let begun = now();
        let names = (0..self.applications).map(workload::name);
        let created = futures::stream::iter(names).map(|name| async move {
            self.create(&name, &format!("{FOLDER}/{name}")).await;
        });
        created.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await;
        begun
    }

    async fn create(&self, name: &str, path: &str) {
        create(&self.admin, &sync(name, path, &self.server.url("repository.git")), "").await;
    }

    /// Asks the daemon to poll the repository of a Sync now; returns the time before the request.
    pub(crate) async fn trigger_poll(&self, name: &str) -> f64 {
        let value = format!("bench-{}", now());
        let body = json!({"metadata": {"annotations": {"moorline.dev/requested-at": value}}});
        let begun = now();
        let uri = format!("/apis/moorline.dev/v1alpha1/namespaces/{SYSTEM}/syncs/{name}");
        patch(&self.admin, &uri, "application/merge-patch+json", body.to_string()).await;
        begun
    }

    /// Same, for the Syncs of all applications.
    pub(crate) async fn nudge_each(&self) -> f64 {
        let begun = now();
        let names = (0..self.applications).map(workload::name);
        let nudged = futures::stream::iter(names).map(|name| async move { self.trigger_poll(&name).await });
        nudged.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await;
        begun
    }

    /// Edits an object like a person would; returns the time before the request.
    pub(crate) async fn edit(&self, uri: &str, operations: Value) -> f64 {
        let begun = now();
        let uri = format!("{uri}?fieldManager=kubectl-edit");
        patch(&self.admin, &uri, "application/json-patch+json", operations.to_string()).await;
        begun
    }

    /// Time of the daemon's last write to each object, by the managed fields, which only writes
    /// change.
    pub(crate) async fn last_written(&self) -> BTreeMap<String, Option<String>> {
        let collections = [
            format!("/apis/apps/v1/namespaces/{APPS}/deployments"),
            format!("/api/v1/namespaces/{APPS}/services"),
            format!("/api/v1/namespaces/{APPS}/serviceaccounts"),
            format!("/api/v1/namespaces/{APPS}/configmaps"),
        ];
        let mut written = BTreeMap::new();
        for collection in collections {
            let request = http::Request::get(&collection).body(Vec::new()).expect("a literal request");
            let list: Value = self.admin.request(request).await.expect("a list");
            for item in list["items"].as_array().into_iter().flatten() {
                let metadata = &item["metadata"];
                let entries = metadata["managedFields"].as_array().into_iter().flatten();
                let own =
                    |entry: &&Value| entry["manager"].as_str().is_some_and(|it| it.starts_with("moorline/"));
                let time = entries.filter(own).find_map(|entry| entry["time"].as_str().map(str::to_owned));
                let name = metadata["name"].as_str().unwrap_or_default();
                written.insert(format!("{collection}/{name}"), time);
            }
        }
        written
    }

    /// Starts to measure the daemon's usage.
    pub(crate) fn open(&mut self) -> Window {
        let mark = self.tail.mark();
        Window { mark, cpu: self.cpu(), classes: usage::classes(self.port), opened: now() }
    }

    /// Returns the daemon's usage since the start of the window.
    pub(crate) fn close(&mut self, window: &Window) -> Usage {
        let mut requests = BTreeMap::new();
        for request in self.tail.since(window.mark).iter().filter(|request| request.user == MOORLINE) {
            *requests.entry(request.verb_and_resource()).or_default() += 1;
        }
        let classes = window.classes.as_ref().zip(usage::classes(self.port)).map(|(before, mut after)| {
            after.iter_mut().for_each(|(class, count)| *count -= before.get(class).copied().unwrap_or(0.0));
            after.retain(|_, count| *count != 0.0);
            after
        });
        // Differences of hundredths have meaningless digits.
        let cpu = rounded(self.cpu() - window.cpu);
        Usage { cpu, peak: usage::peak_megabytes(self.process()), requests, classes }
    }

    /// Resident memory of the daemon now.
    pub(crate) fn resident(&self) -> f64 {
        usage::resident_megabytes(self.process())
    }

    /// CPU time of the daemon since its start, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.process())
    }

    fn process(&self) -> u32 {
        self.daemon.as_ref().map_or(0, |daemon| daemon.running.child.id())
    }
}

/// Installs the definition of Syncs, and waits until the API server serves it and has accepted one.
async fn install(admin: &Client, program: &Path) {
    let printed = Command::new(program).arg("crd").output().expect("moorline crd");
    let definition = String::from_utf8(printed.stdout).expect("YAML");
    apply(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev", definition)
        .await;
    let deadline = Instant::now() + MOMENT;
    let syncs: Api<DynamicObject> =
        Api::namespaced_with(admin.clone(), SYSTEM, &ApiResource::erase::<Sync>(&()));
    while let Err(error) = syncs.list_metadata(&Default::default()).await {
        assert!(Instant::now() < deadline, "Syncs are not served: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The server takes two seconds for the first write of a new kind; in a real cluster that was
    // long ago.
    create(admin, &sync("none", FOLDER, "https://example.com/none.git"), "?dryRun=All").await;
}

/// A Sync of a folder of the repository.
fn sync(name: &str, path: &str, url: &str) -> Value {
    json!({
        "apiVersion": "moorline.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": name},
        "spec": {
            "source": {"git": {"url": url}},
            "path": format!("./{path}"),
            "targetNamespace": APPS,
            // The benchmark itself triggers polls.
            "interval": "10m",
            "prune": {"budget": {"count": 1_000_000}},
        },
    })
}

async fn create(admin: &Client, sync: &Value, query: &str) {
    let uri = format!("/apis/moorline.dev/v1alpha1/namespaces/{SYSTEM}/syncs{query}");
    let request = http::Request::post(uri)
        .header("Content-Type", "application/json")
        .body(sync.to_string().into_bytes())
        .expect("a literal request");
    admin.request_text(request).await.expect("a new Sync");
}

/// Port on which a daemon has last reported to listen.
fn port(log: &str) -> Option<u16> {
    let line = log.lines().rfind(|line| line.contains("listening"))?;
    let (_, port) = line.split_once("127.0.0.1:")?;
    let digits = port.find(|digit: char| !digit.is_ascii_digit()).map_or(port, |end| &port[..end]);
    digits.parse().ok()
}

async fn apply(admin: &Client, uri: &str, body: String) {
    patch(admin, &format!("{uri}?fieldManager=bench&force=true"), "application/apply-patch+yaml", body).await;
}

async fn patch(admin: &Client, uri: &str, content: &str, body: String) {
    let request = http::Request::patch(uri)
        .header("Content-Type", content)
        .body(body.into_bytes())
        .expect("a sound request");
    let answer = admin.request_text(request).await;
    answer.unwrap_or_else(|error| panic!("{uri}: {error}"));
}
