//! Where everything is measured: a fresh control plane, a Git server, a repository of applications, and the daemon.
//!
//! In: how many applications. Out: [`Ground`], on which Syncs are created and nudged, people edit, and windows are
//! opened and closed over what the daemon uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use moorline::api::Sync;
use serde_json::{Value, json};

use super::settled::{Settled, now};
use super::tail::Tail;
use super::usage;
use super::verdict::rounded;
use super::workload::{self, APPS, FOLDER};
use crate::support::audit::Request;
use crate::support::binaries::Binaries;
use crate::support::control_plane::ControlPlane;
use crate::support::credentials::{ADMIN, MOORLINE};
use crate::support::daemon::Daemon;
use crate::support::git_server::{GitServer, Work};
use crate::support::start::start;

/// The namespace of the daemon and of its Syncs.
pub(crate) const SYSTEM: &str = "moorline";
/// For what takes a moment.
pub(crate) const MOMENT: Duration = Duration::from_secs(60);
/// Requests of the person who measures, side by side.
const SIDE_BY_SIDE: usize = 16;

/// A control plane with a repository and a daemon. The daemon is declared first, so that it ends first.
pub(crate) struct Ground {
    daemon: Option<Daemon>,
    pub(crate) settled: Settled,
    pub(crate) tail: Tail,
    pub(crate) work: Work,
    pub(crate) admin: Client,
    pub(crate) applications: usize,
    server: GitServer,
    /// Where the daemon tells its metrics.
    port: u16,
    program: PathBuf,
    plane: ControlPlane,
    root: tempfile::TempDir,
}

/// What the daemon had used when a window was opened.
pub(crate) struct Window {
    pub(crate) mark: usize,
    pub(crate) opened: f64,
    cpu: f64,
    classes: Option<BTreeMap<String, f64>>,
}

/// What the daemon used while a window was open.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    pub(crate) cpu: f64,
    /// The most memory since the daemon began.
    pub(crate) peak: f64,
    /// By verb and resource.
    pub(crate) requests: BTreeMap<String, usize>,
    /// By the daemon's own count.
    pub(crate) classes: Option<BTreeMap<String, f64>>,
}

/// A control plane of its own, with the settings of all others.
pub(crate) async fn plane() -> ControlPlane {
    let binaries = Binaries::find().unwrap_or_else(|missing| panic!("{missing}"));
    start(&binaries).await.unwrap_or_else(|why| panic!("{why}"))
}

/// The namespaces that stand before anything is measured.
pub(crate) async fn create_namespaces(plane: &ControlPlane) {
    let admin = plane.client(ADMIN).await;
    for name in [APPS, SYSTEM] {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        apply(&admin, &format!("/api/v1/namespaces/{name}"), body.to_string()).await;
    }
}

impl Ground {
    /// Everything stands and nothing is synced.
    pub(crate) async fn new(applications: usize) -> Self {
        Self::with_program(Path::new(env!("CARGO_BIN_EXE_moorline")), applications).await
    }

    /// The same with another binary as the daemon.
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
            settled: Settled::follow(syncs),
            tail: Tail::new(plane.audit_log.clone()),
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

    /// Ends the daemon and gives the time that it took.
    pub(crate) fn stop_daemon(&mut self) -> f64 {
        let ended = self.daemon.as_mut().map(Daemon::terminate).unwrap_or_default();
        self.daemon = None;
        ended.as_secs_f64()
    }

    /// The end of what the daemon has said.
    pub(crate) fn log(&self) -> String {
        let log = self.daemon.as_ref().map(Daemon::log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// One Sync of all applications; gives the time of its creation.
    pub(crate) async fn create_sync(&self) -> f64 {
        let begun = now();
        self.create("apps", FOLDER).await;
        begun
    }

    /// A Sync for each application; gives the time before the first was created.
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

    /// Asks the daemon to look at the repository of a Sync now; gives the time before that.
    pub(crate) async fn nudge(&self, name: &str) -> f64 {
        let value = format!("bench-{}", now());
        let body = json!({"metadata": {"annotations": {"moorline.dev/requested-at": value}}});
        let begun = now();
        let uri = format!("/apis/moorline.dev/v1alpha1/namespaces/{SYSTEM}/syncs/{name}");
        patch(&self.admin, &uri, "application/merge-patch+json", body.to_string()).await;
        begun
    }

    /// The same for the Syncs of all applications.
    pub(crate) async fn nudge_each(&self) -> f64 {
        let begun = now();
        let names = (0..self.applications).map(workload::name);
        let nudged = futures::stream::iter(names).map(|name| async move { self.nudge(&name).await });
        nudged.buffer_unordered(SIDE_BY_SIDE).collect::<Vec<_>>().await;
        begun
    }

    /// Edits an object as a person would; gives the time before that.
    pub(crate) async fn edit(&self, uri: &str, operations: Value) -> f64 {
        let begun = now();
        let uri = format!("{uri}?fieldManager=kubectl-edit");
        patch(&self.admin, &uri, "application/json-patch+json", operations.to_string()).await;
        begun
    }

    /// When the daemon last wrote each object, by the object's own record, which only writes change.
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

    /// From here on is counted what the daemon uses.
    pub(crate) fn open(&mut self) -> Window {
        let mark = self.tail.mark();
        Window { mark, cpu: self.cpu(), classes: usage::classes(self.port), opened: now() }
    }

    /// What the daemon has used since the window was opened.
    pub(crate) fn close(&mut self, window: &Window) -> Used {
        let mut requests = BTreeMap::new();
        for request in self.tail.since(window.mark).iter().filter(|request| request.user == MOORLINE) {
            *requests.entry(request.what()).or_default() += 1;
        }
        let classes = window.classes.as_ref().zip(usage::classes(self.port)).map(|(before, mut after)| {
            after.iter_mut().for_each(|(class, count)| *count -= before.get(class).copied().unwrap_or(0.0));
            after.retain(|_, count| *count != 0.0);
            after
        });
        // Differences of hundredths have digits that mean nothing.
        let cpu = rounded(self.cpu() - window.cpu);
        Used { cpu, peak: usage::peak_megabytes(self.process()), requests, classes }
    }

    /// The memory that the daemon has in use now.
    pub(crate) fn resident(&self) -> f64 {
        usage::resident_megabytes(self.process())
    }

    /// Processor time of the daemon since its start, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        usage::cpu_seconds(self.process())
    }

    fn process(&self) -> u32 {
        self.daemon.as_ref().map_or(0, |daemon| daemon.running.child.id())
    }
}

/// Tells the API server what a Sync is, and waits until it serves them and has taken one.
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
    // The server prepares a definition at the first write, for two seconds; in a cluster it did so long ago.
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
            // Whoever measures says when to look.
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

/// The port that a daemon said last it listens on.
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
