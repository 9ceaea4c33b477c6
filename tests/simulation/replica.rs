//! The daemon of a story: the production loop, on its own way to the server.
//!
//! In: the server, a folder and a name. Out: a task that campaigns for the Lease and follows all Syncs while it holds it;
//! a process that loses it ends, and another begins.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use moorline::cluster::lease::{Claim, Clock, Timings, campaign_by};
use moorline::cluster::{Cluster, Connection};
use moorline::helm::Helm;
use moorline::metrics::Metrics;
use moorline::sandbox::{Line, Sandbox};
use moorline::serve::Health;
use moorline::settings::Settings;
use moorline::source::{AllowList, Repositories};
use moorline::sync::{Board, Context, Parts, Remembered, all};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::observer::LEASE;

/// The namespace of the daemon and its Syncs.
pub(crate) const NAMESPACE: &str = "moorline";

/// After how long a process that ended begins anew.
const RESTART: Duration = Duration::from_secs(2);

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
    line: Line,
    /// What all its Syncs share, once it leads.
    context: Arc<OnceLock<Arc<Context>>>,
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
        let (client, line) = self.sandbox.client_of(&name);
        let folder = self.folder.join(&name);
        let context = Arc::new(OnceLock::new());
        let task = tokio::spawn(process(client, folder.clone(), name, self.began, context.clone()));
        self.running = Some(Running { task, line, context, folder });
    }

    /// Ends in the middle of whatever it does; none of its requests arrives any more.
    pub(crate) fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            running.line.hold(true);
        }
    }

    /// Loses something that it remembers.
    pub(crate) fn lose(&self, what: Remembered) {
        if let Some(context) = self.running.as_ref().and_then(|running| running.context.get()) {
            context.lose(what);
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
    pub(crate) fn line(&self) -> Option<Line> {
        self.running.as_ref().map(|running| running.line.clone())
    }
}

async fn process(
    client: kube::Client,
    folder: PathBuf,
    name: String,
    began: Instant,
    shared: Arc<OnceLock<Arc<Context>>>,
) {
    let metrics = Metrics::new().unwrap();
    let settings = Settings { data_dir: folder.clone(), ..Settings::default() };
    let timings = Timings {
        duration: LEASE.0,
        renew_deadline: LEASE.1,
        retry: Duration::from_secs(3),
        request: Duration::from_secs(4),
    };
    let claim = Claim {
        namespace: NAMESPACE.into(),
        name: "moorline".into(),
        identity: name,
        record: std::collections::BTreeMap::new(),
        take_over: false,
    };
    let clock = Clock::Timers(began);
    let led = campaign_by(clock, client.clone(), metrics.clone(), claim, timings, &|_| {}).await;
    let Ok(leadership) = led else { return };
    let permit = leadership.permit();
    let cluster = Cluster::new(Connection::of(client, NAMESPACE), metrics.clone(), permit, &settings);
    let (_end, ending) = watch::channel(false);
    let (_call, calls) = mpsc::channel(1);
    let repositories = Repositories::new(&settings.data_dir, None).unwrap();
    let parts = Parts {
        sources: (repositories, AllowList::new("remoteBases", []).unwrap()),
        helm: Helm::keeping("helm", "moorline", folder.join(Repositories::RENDERED)),
        metrics,
        health: Health::new(),
        settings,
        namespace: NAMESPACE.into(),
        held_by: Some(format!("{NAMESPACE}/moorline")),
        notebook: None,
        disk: Some("/".into()),
        ending,
    };
    let context = Arc::new(Context::new(cluster, Board::new(false), parts));
    let context = shared.get_or_init(|| context).clone();
    tokio::select! {
        () = all::run(context, calls) => {}
        _ = leadership.lost() => {}
    }
    tokio::time::sleep(RESTART).await;
}
