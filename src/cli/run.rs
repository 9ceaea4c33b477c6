//! `moorline run`: starts the daemon.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args};
use tokio::sync::{mpsc, watch};

use super::crd_update::define;
use super::election::{self, Election, forward_webhooks};
use super::exit::Exit;
use super::journal_start::{begin_journal, flush_journal, open_journal};
use super::listeners::{PageRequests, listen_to_probes, relay, serve_people, start_page, start_server};
use super::proof_keys::ProofKeys;
use super::repository_url::{address, require_repository};
use super::sandbox::connect_or_sandbox;
use super::setting_flags::SettingFlags;
pub(super) use super::signals::shutdown_signal;
use super::sources::sources;
use super::{Streams, logs, settings_file};
use crate::api::{PATH_ANNOTATION, SOURCE_ANNOTATION, SyncName};
use crate::cluster::lease::{Leadership, LeaseClaim, Terms, WritePermit};
use crate::cluster::{Cluster, Connection};
use crate::controller::lease_terms::{End, through_terms};
use crate::controller::spec::ValidatedSpec;
use crate::controller::{
    Board, Context, ContextOptions, LeaseRecord, change_windows, manager, notifications, standalone,
    sync_sets,
};
use crate::helm::{Helm, IsolationLevel};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::name_rules;
use crate::report::board::DaemonRole;
use crate::serve::DaemonHealth;
use crate::serve::webhooks::WebhookEndpoint;
use crate::settings::{HelmFence, Settings};
use crate::source::webhook_call::RepositoryNames;
use crate::source::{AllowList, Credentials, Reference, Repositories};

/// Run the daemon: sync the cluster from Git repositories
///
/// Without --url it serves the Syncs of the cluster; with it, one repository, without a CRD.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline run                                                    serve the Syncs of the cluster
  moorline run --url https://example.com/repo --path clusters/a   follow one repository
  moorline run --url . --path examples/quickstart                 follow the folder you are in

The cluster is that of KUBECONFIG, or in a pod its own.")]
pub(super) struct RunArgs {
    /// One repository instead of Syncs: https://..., or a folder of this machine
    #[arg(long)]
    url: Option<String>,

    /// The folder of manifests in the repository
    #[arg(long, default_value = "", requires = "url")]
    path: String,

    /// Name of the owner of the objects
    #[arg(long, default_value = "default", requires = "url")]
    name: String,

    /// Poll interval of the repository, in seconds
    #[arg(long, default_value_t = 30, requires = "url")]
    interval: u64,

    /// Follow the repository although the Lease records another one
    #[arg(long, requires = "url")]
    take_over: bool,

    /// Use a temporary API server in this process instead of a cluster
    #[arg(long)]
    sandbox: bool,

    /// The daemon's own namespace [default: that of the pod, or of the kubeconfig]
    #[arg(long, short)]
    namespace: Option<String>,

    /// Elect a leader by a Lease, so that only one of several daemons writes
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    leader_election: bool,

    /// A file of settings, in YAML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: SettingFlags,
}

pub(super) fn run(arguments: &RunArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let settings = match settings_file::read(arguments.config.as_deref(), &arguments.settings)? {
        Ok(settings) => settings,
        Err(errors) => {
            super::manifests::print_problems(&errors, streams);
            return Ok(Exit::Failure);
        }
    };
    let level = logs::init(settings.log_format, settings.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(run_daemon(arguments, settings, level, streams));
    // A poll of a silent server may still hold a thread; waiting for it would hang the exit.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

async fn run_daemon(
    arguments: &RunArgs,
    settings: Settings,
    level: logs::LogLevelHandle,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    arguments.url.as_deref().map_or(Ok(()), require_repository)?;
    let (connection, own_server) = connect_or_sandbox(arguments.sandbox, settings.http2, streams).await?;
    let namespace: Box<str> = arguments.namespace.as_deref().map_or(connection.namespace.clone(), Box::from);
    if let Some(rule) = name_rules::namespace(&namespace) {
        bail!("--namespace: the name of a namespace {rule}");
    }
    let (metrics, health) = (Metrics::new()?, DaemonHealth::new());
    let (end, ending) = watch::channel(false);
    let (call, called) = mpsc::channel(MAX_CALLS);
    let hooks = settings.webhook_secret_file.clone().map(|secret| WebhookEndpoint::new(secret, call));
    let server = start_server(&settings, &health, &metrics, hooks, ending.clone()).await?;
    listen_to_probes(&settings, &health, ending.clone()).await?;
    let means_own = arguments.url.is_some() || own_server.is_some();
    let sources = sources(&settings, means_own, &connection).await?;
    let reviewer = Cluster::new(connection.clone(), metrics.clone(), WritePermit::unlimited(), &settings);
    let (board, page) = start_page(&settings, (&sources.0, &namespace, reviewer), ending.clone()).await;
    let signal = tokio::spawn(async move {
        shutdown_signal().await;
        end.send_replace(true);
    });
    let election = match arguments.leader_election {
        true => Some(Election {
            connection: connection.clone(),
            claim: claim(arguments, &settings, &namespace)?,
            timings: election::timings(&settings),
            metrics: metrics.clone(),
            health: health.clone(),
            board: board.clone(),
            ending: ending.clone(),
        }),
        false => None,
    };
    let journal = open_journal(&settings, &connection, &sources.0, &metrics)?;
    let daemon = Daemon {
        arguments,
        journal: journal.clone(),
        level,
        connection,
        namespace,
        sources,
        metrics,
        health,
        board,
        election,
        local_repository_root: own_server.as_ref().map(|_| "/".into()),
        ending,
    };
    let leadership = daemon.serve(settings, called, page).await?;
    flush_journal(&journal).await;
    release(leadership).await?;
    signal.abort();
    drop(server);
    Ok(Exit::Done)
}

/// Everything that outlives a term of the Lease.
struct Daemon<'a> {
    arguments: &'a RunArgs,
    level: logs::LogLevelHandle,
    journal: Journal,
    connection: Connection,
    namespace: Box<str>,
    sources: (Repositories, AllowList),
    metrics: Metrics,
    health: DaemonHealth,
    board: Board,
    election: Option<Election>,
    local_repository_root: Option<PathBuf>,
    ending: watch::Receiver<bool>,
}

impl Daemon<'_> {
    /// Serves until the daemon is stopped; returns the Lease if it is held then. While another
    /// daemon holds it, this one is on standby.
    async fn serve(
        &self,
        mut settings: Settings,
        mut called: mpsc::Receiver<RepositoryNames>,
        mut page: PageRequests,
    ) -> anyhow::Result<Option<Leadership>> {
        let Some(election) = &self.election else {
            let (context, _) = self.start_term(settings, None)?;
            self.serve_term(context, &mut called, &mut page).await?;
            return Ok(None);
        };
        let mut held = None;
        loop {
            let won = match held.take() {
                Some(held) => Some(held),
                None => tokio::select! {
                    won = election.wait() => won?,
                    () = forward_webhooks(&self.connection, &mut called) => None,
                },
            };
            let Some(mut leadership) = won else { return Ok(None) };
            let (context, terms) = self.start_term(settings, Some(&leadership))?;
            let tell = |leadership: Option<&Leadership>| self.on_term_change(&context, leadership);
            let work = self.serve_term(context.clone(), &mut called, &mut page);
            let campaign = async |waits_for: &(dyn Fn(&str) + Sync)| election.campaign(waits_for).await;
            match through_terms(work, &mut leadership, &terms, &tell, campaign).await? {
                End::Done(done) => return done.map(|()| Some(leadership)),
                End::Taken => {}
                End::Interrupted(next) => held = Some(*next),
            }
            self.metrics.leader(false);
            context.retire();
            settings = Settings::clone(&context.settings());
        }
    }

    /// Starts to serve, with empty memory of the cluster.
    fn start_term(
        &self,
        settings: Settings,
        leadership: Option<&Leadership>,
    ) -> anyhow::Result<(Arc<Context>, Terms)> {
        let terms = Terms::from(leadership.map_or_else(WritePermit::unlimited, Leadership::permit));
        self.metrics.leader(true);
        self.board.begin_term();
        let cluster = Cluster::new(self.connection.clone(), self.metrics.clone(), terms.clone(), &settings);
        begin_journal(&self.journal, &cluster, leadership);
        let name =
            || election::lease_name(self.arguments.url.as_ref().map(|_| &*self.arguments.name), &settings);
        let held_by = leadership.map(|_| format!("{}/{}", self.namespace, name()));
        let notebook = leadership.filter(|_| self.arguments.url.is_some()).map(LeaseRecord::new);
        let program = std::env::current_exe().context("cannot find this program")?;
        let strength = match settings.helm_fence {
            HelmFence::Required => IsolationLevel::Required,
            HelmFence::BestEffort => IsolationLevel::BestEffort,
        };
        let helm =
            Helm::with_disk_cache(&settings.helm, program, settings.data_dir.join(Repositories::RENDERED))
                .with_isolation(strength);
        let parts = ContextOptions {
            sources: self.sources.clone(),
            helm,
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            settings,
            namespace: self.namespace.clone(),
            held_by,
            notebook: notebook.map(Arc::new),
            disk: self.local_repository_root.clone(),
            ending: self.ending.clone(),
        };
        Ok((Arc::new(Context::new(cluster, self.board.clone(), parts)), terms))
    }

    /// Records that a term has ended (`None`), or that the next one has begun and no other daemon
    /// held the Lease in between.
    fn on_term_change(&self, context: &Context, leadership: Option<&Leadership>) {
        self.metrics.leader(leadership.is_some());
        match leadership {
            Some(leadership) => {
                context.continue_term(leadership);
                leadership.anchor(&self.journal);
                self.board.stand(DaemonRole::Serving);
            }
            None => self.board.stand(DaemonRole::Standby(None)),
        }
    }

    /// Serves all Syncs, or the one repository, until the daemon is stopped.
    async fn serve_term(
        &self,
        context: Arc<Context>,
        called: &mut mpsc::Receiver<RepositoryNames>,
        page: &mut PageRequests,
    ) -> anyhow::Result<()> {
        let (call, calls) = mpsc::channel(MAX_CALLS);
        let arguments = self.arguments;
        let reset = settings_file::watch(
            arguments.config.as_deref(),
            &arguments.settings,
            context.clone(),
            self.level.clone(),
        );
        let run = arguments.url.as_ref().map(|_| SyncName::new(&self.namespace, &arguments.name));
        let mut keys = ProofKeys::new(&context, &self.namespace, run, self.local_repository_root.is_some());
        let mut ending = self.ending.clone();
        tokio::select! {
            () = keys.begin(&context) => {}
            _ = ending.wait_for(|ends| *ends) => return Ok(()),
        }
        tokio::select! {
            done = run_controller(arguments, context.clone(), calls) => done,
            () = keys.keep() => Ok(()),
            () = serve_people(page, context) => Ok(()),
            () = reset => Ok(()),
            () = relay(called, call) => Ok(()),
        }
    }
}

/// Releases the Lease, so that the next daemon need not wait for its expiry.
async fn release(leadership: Option<Leadership>) -> anyhow::Result<()> {
    let Some(leadership) = leadership else { return Ok(()) };
    let released = tokio::time::timeout(RELEASE, leadership.release()).await;
    Ok(released.context("the Lease could not be released in time; it will expire")??)
}

/// Runs the controller of the cluster's Syncs, or of one repository.
async fn run_controller(
    arguments: &RunArgs,
    context: Arc<Context>,
    called: mpsc::Receiver<RepositoryNames>,
) -> anyhow::Result<()> {
    match &arguments.url {
        None => {
            let (cluster, shared) = (context.cluster.clone(), context.clone());
            let serving = async { tokio::join!(define(&cluster), manager::run(context, called)) };
            let serving = change_windows::run_beside(shared.clone(), serving);
            let serving = sync_sets::run_beside(shared.clone(), serving);
            notifications::run_beside(shared, serving).await;
            Ok(())
        }
        Some(url) => follow_one(arguments, url, context, called).await,
    }
}

/// The most webhook calls that wait in the queue.
const MAX_CALLS: usize = 64;

/// Time to release the Lease after running work has had its own time to finish: a stop takes ten
/// seconds at most.
const RELEASE: Duration = Duration::from_secs(2);

/// The claim on the Lease, with the source that is recorded on it.
fn claim(arguments: &RunArgs, settings: &Settings, namespace: &str) -> anyhow::Result<LeaseClaim> {
    let record = match &arguments.url {
        // An address prints without credentials, so none get into the Lease.
        Some(url) => {
            let valid_spec = valid_spec(arguments, url, namespace)?;
            BTreeMap::from([
                (SOURCE_ANNOTATION.to_owned(), valid_spec.address.to_string()),
                (PATH_ANNOTATION.to_owned(), valid_spec.path),
            ])
        }
        None => BTreeMap::new(),
    };
    Ok(LeaseClaim {
        namespace: namespace.to_owned(),
        name: election::lease_name(arguments.url.as_ref().map(|_| &*arguments.name), settings),
        identity: election::identity(),
        record,
        take_over: arguments.take_over,
    })
}

fn valid_spec(arguments: &RunArgs, url: &str, namespace: &str) -> anyhow::Result<ValidatedSpec> {
    let interval = Duration::from_secs(arguments.interval);
    let mut valid_spec =
        ValidatedSpec::plain(address(url)?, Reference::Head, &arguments.path, namespace, interval);
    valid_spec.options.helm.release = arguments.name.as_str().into();
    Ok(valid_spec)
}

async fn follow_one(
    arguments: &RunArgs,
    url: &str,
    context: Arc<Context>,
    called: mpsc::Receiver<RepositoryNames>,
) -> anyhow::Result<()> {
    if let Some(rule) = name_rules::sync_name(&arguments.name) {
        bail!("--name: the name of a Sync {rule}");
    }
    let valid_spec = valid_spec(arguments, url, &context.process.namespace)?;
    let repository =
        context.sources.repositories.repository(&valid_spec.address, "", &Credentials::default())?;
    let repository = repository.on_behalf_of(&context.process.namespace);
    let owner = SyncName::new(&context.process.namespace, &arguments.name);
    standalone::run(context, owner, valid_spec, repository, called).await;
    Ok(())
}
