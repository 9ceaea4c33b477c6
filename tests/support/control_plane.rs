//! The one control plane of a test binary, as its tests see it.
//!
//! Nothing here belongs to a runtime: each `#[tokio::test]` has its own, so that each test makes its clients
//! itself, and what is shared is paths and texts.

use std::io::Write as _;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::binaries::Binaries;
use super::credentials::{ADMIN, Credentials};
use super::reaper::Reaper;
use super::sandbox_plane;
use super::server::Server;
use super::start::start;

/// The API server's place among the servers.
const API_SERVER: usize = 1;
/// The controller manager's.
const CONTROLLER_MANAGER: usize = 2;

/// A running control plane.
pub(crate) struct ControlPlane {
    /// Where the API server listens.
    pub(crate) url: String,
    /// One line of JSON for each request; `support::audit` reads it.
    pub(crate) audit_log: PathBuf,
    /// Where the tests may put files of their own; it is removed at the end.
    pub(crate) directory: PathBuf,
    /// Ends with the test process what a test starts, such as a daemon.
    pub(crate) reaper: Arc<Reaper>,
    /// Where etcd listens.
    pub(super) etcd: (&'static str, u16),
    /// The API server's program and arguments.
    pub(super) api_server: (PathBuf, Vec<String>),
    pub(super) authority: String,
    pub(super) credentials: Arc<Credentials>,
    /// etcd, the API server, the controller manager. The sandbox is in this process and has none of them.
    pub(super) servers: Mutex<Vec<Server>>,
}

impl ControlPlane {
    /// True on the sandbox.
    pub(crate) fn is_sandbox(&self) -> bool {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// A client of one of the users in `support::credentials`. It retries nothing, so that a request that a
    /// test makes is one request, and it names the running test as its user agent.
    pub(crate) async fn client(&self, user: &str) -> Client {
        client_of(&self.kubeconfig(user), &running_test()).await.expect("a client of the control plane")
    }

    /// A kubeconfig of one of the users, for programs that read one.
    pub(crate) fn kubeconfig(&self, user: &str) -> String {
        self.credentials.kubeconfig(user, &self.url, &self.authority)
    }

    /// The same as a file.
    pub(crate) fn kubeconfig_file(&self, user: &str) -> PathBuf {
        let path = self.directory.join(format!("{user}.kubeconfig"));
        std::fs::write(&path, self.kubeconfig(user))
            .expect("the control plane's directory can be written to");
        path
    }

    /// A new namespace whose name begins with `purpose`. It goes with the control plane: waiting for each to be
    /// deleted would cost more than all tests together.
    pub(crate) async fn namespace(&self, purpose: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{purpose}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let request = http::Request::post("/api/v1/namespaces")
            .header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("a literal request");
        self.client(ADMIN).await.request_text(request).await.expect("a new namespace");
        name
    }

    /// Kills the API server, does something, and starts the API server again; done when it answers.
    pub(crate) async fn restart_api_server(&self, meanwhile: impl AsyncFnOnce()) {
        self.act(&[API_SERVER], Server::kill);
        meanwhile().await;
        self.act(&[API_SERVER], Server::start_again);
        self.until_ready().await;
    }

    /// Ends the controller manager: from now on objects are as they were written.
    pub(crate) fn end_controllers(&self) {
        self.act(&[CONTROLLER_MANAGER], Server::kill);
    }

    /// Does something to servers, by their places.
    pub(super) fn act(&self, which: &[usize], act: fn(&mut Server) -> std::io::Result<()>) {
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
    pub(super) async fn until_ready(&self) {
        let admin = self.client(ADMIN).await;
        let ready = || http::Request::get("/readyz").body(Vec::new()).expect("a literal request");
        let begun = std::time::Instant::now();
        while admin.request_text(ready()).await.is_err() {
            assert!(begun.elapsed().as_secs() < 60, "the API server does not come back");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    /// The end of the API server's log, and that of any server which should be running and is not.
    fn last_words(&self) -> String {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words = servers.get(API_SERVER).map(|server| server.log.tail()).unwrap_or_default();
        words.extend(servers.iter_mut().filter_map(Server::ended));
        words
    }
}

/// The control plane with the API server's last words, should the test panic while it has this.
pub(crate) struct Shared(&'static ControlPlane);

impl Deref for Shared {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.0
    }
}

impl Drop for Shared {
    #[expect(clippy::print_stderr, reason = "libtest shows it with the failed test to which it belongs")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.last_words());
        }
    }
}

/// The control plane of this test binary, started by the first test that asks. `None`, after a line about it,
/// where none is to be had; in CI that is a failure, because there nobody would notice what was skipped. With
/// `MOORLINE_TEST_PLANE=sandbox` it is the sandbox, and `None` for the tests that the sandbox cannot run.
pub(crate) fn shared() -> Option<Shared> {
    static STANDING: OnceLock<Standing> = OnceLock::new();
    if let Some(why) = sandbox_plane::skips(&running_test()) {
        let _ = writeln!(std::io::stderr(), "skipped {} on the sandbox: {why}", running_test());
        return None;
    }
    match STANDING.get_or_init(Standing::reach) {
        Standing::Running(plane) => Some(Shared(plane)),
        Standing::Failed(why) => panic!("{why}"),
        Standing::Absent(why) if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false") => {
            panic!("CI is set, so that this test must run: {why}")
        }
        Standing::Absent(why) => {
            // Past libtest, which hides what passing tests print.
            let _ = writeln!(std::io::stderr(), "skipped {}: {why}", running_test());
            None
        }
    }
}

enum Standing {
    Running(Box<ControlPlane>),
    Absent(String),
    Failed(String),
}

impl Standing {
    fn reach() -> Self {
        if sandbox_plane::is_asked_for() {
            return match sandbox_plane::start() {
                Ok(plane) => Self::Running(Box::new(plane)),
                Err(why) => Self::Failed(why),
            };
        }
        let binaries = match Binaries::find() {
            Ok(binaries) => binaries,
            Err(why) => return Self::Absent(why),
        };
        // On its own thread, because the runtime of the test that asks cannot be entered twice.
        let started = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| format!("no runtime: {error}"))?;
            runtime.block_on(start(&binaries))
        })
        .join();
        match started {
            Ok(Ok(plane)) => Self::Running(Box::new(plane)),
            Ok(Err(why)) => Self::Failed(why),
            Err(_) => Self::Failed("the start of the control plane panicked".to_owned()),
        }
    }
}

/// A client that goes straight to the server, whatever proxy the environment names.
pub(super) async fn client_of(kubeconfig: &str, agent: &str) -> Result<Client, String> {
    // It fails when there is a provider already, which is as good.
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

/// The name of the test on this thread, as libtest gives it: the `#[tokio::test]` runtime has no other thread.
pub(crate) fn running_test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}
