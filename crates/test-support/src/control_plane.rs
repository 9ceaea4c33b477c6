//! The shared control plane of a test program. Its tests take turns.
//!
//! Nothing here belongs to a runtime: each `#[tokio::test]` has its own, so each test creates its
//! own clients, and only paths and texts are shared.

use std::io::Write as _;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::binaries::Binaries;
use super::credentials::{ADMIN, Credentials};
use super::reaper::Reaper;
use super::sandbox_plane::{self, Plane};
use super::server::Server;
use super::start::start;
use super::sweep::{self, sweep};
use super::turn::Turn;

/// Index of the API server among the servers.
const API_SERVER: usize = 1;
/// Index of the controller manager.
const CONTROLLER_MANAGER: usize = 2;

/// A running control plane.
pub struct ControlPlane {
    /// URL of the API server.
    pub url: String,
    /// One line of JSON for each request; `audit.rs` reads it.
    pub audit_log: PathBuf,
    /// Directory for files of the tests; removed at the end.
    pub directory: PathBuf,
    /// Kills processes that a test starts, such as a daemon, when the test process ends.
    pub reaper: Arc<Reaper>,
    /// Host and port of etcd.
    pub(crate) etcd: (&'static str, u16),
    /// Program and arguments of the API server.
    pub(crate) api_server: (PathBuf, Vec<String>),
    pub(crate) authority: String,
    pub(crate) credentials: Arc<Credentials>,
    /// etcd, the API server, the controller manager. Empty for the sandbox, which runs in this
    /// process.
    pub(crate) servers: Mutex<Vec<Server>>,
    /// Namespaces that [`Self::namespace`] created.
    pub(crate) namespaces: Mutex<Vec<String>>,
}

impl ControlPlane {
    /// True for the sandbox.
    pub fn is_sandbox(&self) -> bool {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Creates a client of one of the users in `credentials.rs`. It retries nothing, so that one
    /// call is one request, and its user agent is the name of the running test.
    pub async fn client(&self, user: &str) -> Client {
        client_of(&self.kubeconfig(user), &running_test()).await.expect("a client of the control plane")
    }

    /// Returns a kubeconfig of one of the users, for programs that read one.
    pub fn kubeconfig(&self, user: &str) -> String {
        self.credentials.kubeconfig(user, &self.url, &self.authority)
    }

    /// Same as [`Self::kubeconfig`], as a file.
    pub fn kubeconfig_file(&self, user: &str) -> PathBuf {
        let path = self.directory.join(format!("{user}.kubeconfig"));
        std::fs::write(&path, self.kubeconfig(user))
            .expect("the control plane's directory can be written to");
        path
    }

    /// Creates a namespace with a name that begins with `purpose`. It is removed with the control
    /// plane: waiting for the deletion of each would take longer than all tests together.
    pub async fn namespace(&self, purpose: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{purpose}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let request = http::Request::post("/api/v1/namespaces")
            .header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("a literal request");
        self.client(ADMIN).await.request_text(request).await.expect("a new namespace");
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        name
    }

    /// Names of the namespaces that were created for tests.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Kills the API server, runs `meanwhile`, and starts the API server again; returns when it is
    /// ready.
    pub async fn restart_api_server(&self, meanwhile: impl AsyncFnOnce()) {
        self.act(&[API_SERVER], Server::kill);
        meanwhile().await;
        self.act(&[API_SERVER], Server::start_again);
        self.until_ready().await;
    }

    /// Starts the servers again that a test has stopped.
    pub(crate) async fn start_ended_servers(&self) {
        let started = {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = servers.iter_mut().filter_map(|server| server.ended().map(|_| server));
            ended.map(|server| server.start_again().expect("a server can be started")).count()
        };
        if started > 0 {
            self.until_ready().await;
        }
    }

    /// Kills the controller manager: until the end of the test no controller changes an object.
    pub fn end_controllers(&self) {
        self.act(&[CONTROLLER_MANAGER], Server::kill);
    }

    /// Applies a function to servers, by their indexes.
    pub(crate) fn act(&self, which: &[usize], act: fn(&mut Server) -> std::io::Result<()>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for place in which {
            assert!(
                !servers.is_empty(),
                "the sandbox has no servers to be killed: list the test in sandbox_plane.rs"
            );
            act(&mut servers[*place]).expect("a server can be killed and started");
        }
    }

    /// Waits until the API server answers.
    pub(crate) async fn until_ready(&self) {
        let admin = self.client(ADMIN).await;
        let ready = || http::Request::get("/readyz").body(Vec::new()).expect("a literal request");
        let begun = std::time::Instant::now();
        while admin.request_text(ready()).await.is_err() {
            assert!(begun.elapsed().as_secs() < 60, "the API server does not come back");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// The end of the API server's log, and of the log of each server that has ended unexpectedly.
    fn log_tails(&self) -> String {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words = servers.get(API_SERVER).map(|server| server.log.tail()).unwrap_or_default();
        words.extend(servers.iter_mut().filter_map(Server::ended));
        words
    }

    /// Removes the definition of Syncs, for a test that lists the kinds of a server.
    pub async fn remove_definition(&self) {
        sweep::remove_definition(self).await;
    }
}

/// The control plane, for the test that has the turn; if the test panics while it holds this, the
/// end of the API server's log is printed.
pub struct PlaneGuard {
    plane: &'static ControlPlane,
    _turn: Turn,
}

impl PlaneGuard {
    /// The control plane without the turn, for the threads of the test.
    pub fn plane(&self) -> &'static ControlPlane {
        self.plane
    }

    fn new(plane: &'static ControlPlane, beside: bool) -> Self {
        static IS_USED: AtomicBool = AtomicBool::new(false);
        let turn = Turn::take(beside);
        if turn.is_first() && IS_USED.swap(true, Ordering::Relaxed) {
            let swept = on_its_own_runtime(async || sweep(plane).await);
            swept.unwrap_or_else(|why| panic!("the control plane is not clean: {why}"));
        }
        turn.begin();
        Self { plane, _turn: turn }
    }
}

impl Deref for PlaneGuard {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane
    }
}

impl Drop for PlaneGuard {
    #[expect(clippy::print_stderr, reason = "libtest shows it with the failed test to which it belongs")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_tails());
        }
    }
}

/// Returns the control plane of this test program once no other test uses it; the first call starts
/// it, and later ones find it without the objects of earlier tests. `None`, after a line about the
/// reason, if none is available; in CI this is a failure, because skipped tests would not be
/// noticed there. With `MOORLINE_TEST_PLANE=sandbox` it is the sandbox, and `None` for tests that
/// the sandbox cannot run; with `MOORLINE_TEST_PLANE=none` it is `None`.
pub fn shared() -> Option<PlaneGuard> {
    with_turn(false)
}

/// Same as [`shared`], for a test that others may run beside: `turn.rs` says what it must leave
/// alone.
pub fn shared_beside() -> Option<PlaneGuard> {
    with_turn(true)
}

/// Returns a sandbox of its own for the running test, also without `MOORLINE_TEST_PLANE`: for tests
/// that ask nothing of a real API server. It ends with the test process.
pub fn own_sandbox() -> PlaneGuard {
    let plane = sandbox_plane::start().unwrap_or_else(|why| panic!("{why}"));
    PlaneGuard::new(Box::leak(Box::new(plane)), false)
}

fn with_turn(beside: bool) -> Option<PlaneGuard> {
    static SHARED_PLANE: OnceLock<SharedPlane> = OnceLock::new();
    if let Some(why) = sandbox_plane::skip_reason(&running_test()) {
        let _ = writeln!(std::io::stderr(), "skipped {} on the sandbox: {why}", running_test());
        return None;
    }
    match SHARED_PLANE.get_or_init(SharedPlane::reach) {
        SharedPlane::Running(plane) => Some(PlaneGuard::new(plane, beside)),
        SharedPlane::Failed(why) => panic!("{why}"),
        SharedPlane::LeftOut => {
            let _ = writeln!(std::io::stderr(), "skipped {}: MOORLINE_TEST_PLANE=none", running_test());
            None
        }
        SharedPlane::Absent(why)
            if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false") =>
        {
            panic!("CI is set, so this test must run: {why}")
        }
        SharedPlane::Absent(why) => {
            // Written to stderr directly: libtest hides the output of passing tests.
            let _ = writeln!(std::io::stderr(), "skipped {}: {why}", running_test());
            None
        }
    }
}

enum SharedPlane {
    Running(Box<ControlPlane>),
    LeftOut,
    Absent(String),
    Failed(String),
}

impl SharedPlane {
    fn reach() -> Self {
        match sandbox_plane::asked_for() {
            Plane::Without => return Self::LeftOut,
            Plane::Sandbox => {
                return match sandbox_plane::start() {
                    Ok(plane) => Self::Running(Box::new(plane)),
                    Err(why) => Self::Failed(why),
                };
            }
            Plane::Real => {}
        }
        let binaries = match Binaries::find() {
            Ok(binaries) => binaries,
            Err(why) => return Self::Absent(why),
        };
        match on_its_own_runtime(async || start(&binaries).await) {
            Ok(Ok(plane)) => Self::Running(Box::new(plane)),
            Ok(Err(why)) | Err(why) => Self::Failed(why),
        }
    }
}

/// Runs on a thread of its own, because the runtime of the calling test cannot be entered twice,
/// and under the name of that test.
fn on_its_own_runtime<T: Send>(act: impl AsyncFnOnce() -> T + Send) -> Result<T, String> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no runtime: {error}"))?;
        Ok(runtime.block_on(act()))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(running_test()).spawn_scoped(scope, run);
        let thread = thread.map_err(|error| format!("no thread: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
    })
}

/// Creates a client that connects to the server directly, regardless of proxy settings in the
/// environment.
pub(crate) async fn client_of(kubeconfig: &str, agent: &str) -> Result<Client, String> {
    // Fails if a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    config.proxy_url = None;
    config.default_retry = false;
    let agent = http::HeaderValue::from_str(agent).map_err(|error| error.to_string())?;
    config.headers.push((http::header::USER_AGENT, agent));
    Client::try_from(config).map_err(|error| error.to_string())
}

/// Name of the test on this thread, as libtest sets it: the `#[tokio::test]` runtime has no other
/// thread.
pub fn running_test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}
