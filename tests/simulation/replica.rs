//! A daemon of a story: the production loop, with its own connection to the server.
//!
//! In: the server, a folder and a name. Out: a task that acquires the Lease and serves all Syncs
//! while it holds it. A process that loses the Lease waits on standby, and continues or restarts
//! when it holds the Lease again, as `moorline run` does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moorline::cluster::lease::{Clock, Leadership, LeaseClaim, LeaseTimings, Terms, acquire_with_clock};
use moorline::cluster::{Cluster, Connection};
use moorline::controller::lease_terms::{End, through_terms};
use moorline::controller::{Board, CacheKind, Context, ContextOptions, manager};
use moorline::helm::Helm;
use moorline::metrics::Metrics;
use moorline::proof::KeyRing;
use moorline::sandbox::{ClientLink, Sandbox};
use moorline::serve::DaemonHealth;
use moorline::settings::Settings;
use moorline::source::{AllowList, Repositories};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::observer::LEASE;

/// The namespace of the daemon and its Syncs.
pub(crate) const NAMESPACE: &str = "moorline";

/// State that all Syncs of a process share, once it leads. It is another one after another replica led.
type Shared = Arc<Mutex<Option<Arc<Context>>>>;

/// One of the replicas.
pub(crate) struct Replica {
    name: &'static str,
    lives: u32,
    running: Option<Running>,
    sandbox: Sandbox,
    folder: PathBuf,
    began: Instant,
}

/// A process.
struct Running {
    task: JoinHandle<()>,
    line: ClientLink,
    context: Shared,
    folder: PathBuf,
}

impl Replica {
    pub(crate) fn new(name: &'static str, sandbox: &Sandbox, folder: &Path, began: Instant) -> Self {
        Self { name, lives: 0, running: None, sandbox: sandbox.clone(), folder: folder.into(), began }
    }

    /// Begins, if it does not run.
    pub(crate) fn begin(&mut self) {
        if self.running.as_ref().is_some_and(|running| !running.task.is_finished()) {
            return;
        }
        self.lives += 1;
        let name = format!("{}{}", self.name, self.lives);
        let (client, line) = self.sandbox.named_client(&name);
        let folder = self.folder.join(&name);
        let context = Shared::default();
        let process = Process::new(client, folder.clone(), name, self.began, context.clone());
        let task = tokio::task::spawn_local(process.run());
        self.running = Some(Running { task, line, context, folder });
    }

    /// Ends in the middle of whatever it does; none of its requests arrives any more.
    pub(crate) fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            running.line.set_held(true);
        }
    }

    /// Loses something that it remembers.
    pub(crate) fn lose(&self, what: CacheKind) {
        let Some(running) = &self.running else { return };
        if let Some(context) = &*running.context.lock().unwrap_or_else(PoisonError::into_inner) {
            context.drop_cache(what);
        }
    }

    /// Loses what it has of repositories on its disk.
    pub(crate) fn lose_mirrors(&self) {
        let Some(running) = &self.running else { return };
        // There are none before it has led.
        let _ = std::fs::remove_dir_all(&running.folder);
    }

    /// The name of the process that runs.
    pub(crate) fn process(&self) -> Option<String> {
        self.running.as_ref().map(|_| format!("{}{}", self.name, self.lives))
    }

    /// Its way to the server.
    pub(crate) fn line(&self) -> Option<ClientLink> {
        self.running.as_ref().map(|running| running.line.clone())
    }
}

/// A process: everything that outlives a term of the Lease.
struct Process {
    client: kube::Client,
    folder: PathBuf,
    name: String,
    clock: Clock,
    shared: Shared,
    metrics: Metrics,
    sources: (Repositories, AllowList),
    ending: watch::Receiver<bool>,
    /// Dropped with the process.
    _end: watch::Sender<bool>,
}

impl Process {
    fn new(client: kube::Client, folder: PathBuf, name: String, began: Instant, shared: Shared) -> Self {
        let (end, ending) = watch::channel(false);
        let (clock, metrics) = (Clock::Timers(began), Metrics::new().unwrap());
        let repositories =
            Repositories::new(&folder, None, moorline::source::HostPolicy::allow_all()).unwrap();
        let sources = (repositories, AllowList::new("remoteBases", []).unwrap());
        Self { client, folder, name, clock, shared, metrics, sources, ending, _end: end }
    }

    /// Serves while it holds the Lease, and stands by while another one does.
    async fn run(self) {
        let mut held = None;
        loop {
            let won = match held.take() {
                Some(held) => held,
                None => self.campaign(&|_| {}).await,
            };
            let mut leadership = won;
            let (context, terms) = self.begin(&leadership);
            let (_call, calls) = mpsc::channel(1);
            let work = manager::run(context.clone(), calls);
            let tell =
                |next: Option<&Leadership>| next.into_iter().for_each(|next| context.continue_term(next));
            let campaign = async |waits_for: &(dyn Fn(&str) + Sync)| {
                Ok::<_, std::convert::Infallible>(self.campaign(waits_for).await)
            };
            let Ok(end) = through_terms(work, &mut leadership, &terms, &tell, campaign).await;
            match end {
                End::Done(()) => return,
                End::Taken => {}
                End::Interrupted(next) => held = Some(*next),
            }
            context.retire();
        }
    }

    /// Gets the Lease, however long that takes.
    async fn campaign(&self, waits_for: &(dyn Fn(&str) + Sync)) -> Leadership {
        let timings = LeaseTimings {
            duration: LEASE.0,
            renew_deadline: LEASE.1,
            retry: Duration::from_secs(3),
            request: Duration::from_secs(4),
        };
        let claim = LeaseClaim {
            namespace: NAMESPACE.into(),
            name: "moorline".into(),
            identity: self.name.clone(),
            record: std::collections::BTreeMap::new(),
            take_over: false,
        };
        let (client, metrics) = (self.client.clone(), self.metrics.clone());
        match acquire_with_clock(self.clock, client, metrics, claim, timings, waits_for).await {
            Ok(won) => won,
            // An error that no waiting changes does not happen here.
            Err(_) => std::future::pending().await,
        }
    }

    /// Begins to serve, with nothing known of the cluster.
    fn begin(&self, leadership: &Leadership) -> (Arc<Context>, Terms) {
        let terms = Terms::from(leadership.permit());
        let settings = Settings { data_dir: self.folder.clone(), ..Settings::default() };
        let connection = Connection::from_client(self.client.clone(), NAMESPACE);
        let cluster = Cluster::new(connection, self.metrics.clone(), terms.clone(), &settings);
        cluster.notary().set_keys(Some(KeyRing::new([7; 32], [])));
        let parts = ContextOptions {
            sources: self.sources.clone(),
            helm: Helm::with_disk_cache("helm", "moorline", self.folder.join(Repositories::RENDERED)),
            metrics: self.metrics.clone(),
            health: DaemonHealth::new(),
            settings,
            namespace: NAMESPACE.into(),
            held_by: Some(format!("{NAMESPACE}/moorline")),
            notebook: None,
            disk: Some("/".into()),
            ending: self.ending.clone(),
        };
        let context = Arc::new(Context::new(cluster, Board::new(false), parts));
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.clone());
        (context, terms)
    }
}
