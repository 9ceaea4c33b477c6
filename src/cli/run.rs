//! `moorline run`: the daemon.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{ArgAction, Args};
use tokio::sync::{mpsc, watch};

use super::exit::Exit;
use super::listening::{listen, show};
use super::sandbox::{ThrowAway, chance};
use super::setting_flags::SettingFlags;
use super::{Streams, logs, settings_file};
use crate::api::{self, PATH_ANNOTATION, SOURCE_ANNOTATION, SyncName};
use crate::cluster::lease::{Claim, Leadership, Loss, Permit, Timings};
use crate::cluster::{Cluster, Connection, Definition, connect};
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::render;
use crate::report::board::Stance;
use crate::sandbox::Options;
use crate::serve::Health;
use crate::serve::hooks::{Called, Hooks, repository_name};
use crate::settings::Settings;
use crate::source::{Address, AllowList, Credentials, Proxy, Reference, Repositories};
use crate::sync::gone::RUN;
use crate::sync::wish::Wish;
use crate::sync::{Board, Context, Notebook, Parts, all, look, single};

/// Follow Git repositories and hold the cluster to them
///
/// Without --url it follows the Syncs of the cluster; with it, one repository, without any resource of ours.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline run                                                    follow the Syncs of the cluster
  moorline run --url https://example.com/repo --path clusters/a   follow one repository
  moorline run --url . --path examples/quickstart                 follow the folder you are in

KUBECONFIG says which cluster; in a pod it is the one around it.")]
pub(super) struct Arguments {
    /// One repository instead of Syncs: https://..., or a folder of this machine
    #[arg(long)]
    url: Option<String>,

    /// The folder of manifests in the repository
    #[arg(long, default_value = "", requires = "url")]
    path: String,

    /// The name under which objects are owned
    #[arg(long, default_value = "default", requires = "url")]
    name: String,

    /// How often the repository is asked, in seconds
    #[arg(long, default_value_t = 30, requires = "url")]
    interval: u64,

    /// Follow the repository although the Lease records another one
    #[arg(long, requires = "url")]
    take_over: bool,

    /// A throw-away API server in this process instead of a cluster
    #[arg(long)]
    sandbox: bool,

    /// The daemon's own namespace; else the pod's, else the one of the kubeconfig
    #[arg(long, short)]
    namespace: Option<String>,

    /// Wait for a Lease, so that of several daemons one writes
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    leader_election: bool,

    /// A file of settings, in YAML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: SettingFlags,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let settings = match settings_file::read(arguments.config.as_deref(), &arguments.settings)? {
        Ok(settings) => settings,
        Err(errors) => {
            super::manifests::tell(&errors, streams);
            return Ok(Exit::Failure);
        }
    };
    let level = logs::init(settings.log_format, settings.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(daemon(arguments, settings, level, streams));
    // A look at a silent server may still hold a thread; it is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

async fn daemon(
    arguments: &Arguments,
    settings: Settings,
    level: logs::Level,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (connection, own_server) = reach(arguments, streams).await?;
    let namespace: Box<str> = arguments.namespace.as_deref().map_or(connection.namespace.clone(), Box::from);
    if let Some(rule) = render::namespace_rule(&namespace) {
        bail!("--namespace: the name of a namespace {rule}");
    }
    let (metrics, health) = (Metrics::new()?, Health::new());
    let (end, ending) = watch::channel(false);
    let (call, mut called) = mpsc::channel(MAX_CALLS);
    let hooks = settings.webhook_secret_file.clone().map(|secret| Hooks::new(secret, call));
    let server = listen(&settings, &health, &metrics, hooks, ending.clone()).await?;
    let (board, looks) = show(&settings, ending.clone()).await;
    let sources = sources(&settings)?;
    let signal = tokio::spawn(async move {
        interrupted().await;
        end.send_replace(true);
    });
    let leadership = match arguments.leader_election {
        true => {
            let led = tokio::select! {
                led = lead(arguments, &settings, &connection, &namespace, (&health, &metrics, &board), ending.clone()) => led?,
                () = pass_on(&connection, &mut called) => None,
            };
            let Some(led) = led else { return Ok(Exit::Done) };
            Some(led)
        }
        false => None,
    };
    let permit = leadership.as_ref().map_or_else(Permit::always, Leadership::permit);
    metrics.leader(true);
    let cluster = Cluster::new(connection, metrics.clone(), permit.clone(), &settings);
    let held_by = leadership.as_ref().map(|_| format!("{namespace}/{}", lease_name(arguments, &settings)));
    let notebook = leadership.as_ref().filter(|_| arguments.url.is_some()).map(Notebook::new);
    let program = std::env::current_exe().context("cannot find this program")?;
    let helm = Helm::keeping(&settings.helm, program, settings.data_dir.join(Repositories::RENDERED));
    let context = Arc::new(Context::new(
        cluster,
        board,
        Parts {
            sources,
            helm,
            metrics,
            health,
            settings,
            namespace,
            held_by,
            permit,
            notebook,
            disk: own_server.as_ref().map(|_| "/".into()),
            ending,
        },
    ));
    let reset =
        settings_file::follow(arguments.config.as_deref(), &arguments.settings, context.clone(), level);
    tokio::select! {
        done = work(arguments, context.clone(), called) => done?,
        () = look(context, looks) => {}
        () = reset => {}
        loss = lost(leadership.as_ref()) => bail!("the Lease is lost: {loss}"),
    }
    release(leadership).await?;
    signal.abort();
    drop(server);
    Ok(Exit::Done)
}

/// Gives the Lease back, so that nobody has to wait for its end.
async fn release(leadership: Option<Leadership>) -> anyhow::Result<()> {
    let Some(leadership) = leadership else { return Ok(()) };
    let released = tokio::time::timeout(RELEASE, leadership.release()).await;
    Ok(released.context("the Lease could not be released in time; it ends by itself")??)
}

/// The way to the cluster, or to an API server of this process, which knows Syncs.
async fn reach(
    arguments: &Arguments,
    streams: &mut Streams<'_>,
) -> anyhow::Result<(Connection, Option<ThrowAway>)> {
    if !arguments.sandbox {
        return Ok((connect(None).await?, None));
    }
    let options = Options { seed: chance(), readiness: Some(Duration::ZERO), ..Options::default() };
    let server = ThrowAway::start(&options, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    server.sandbox.define(&api::definition()?)?;
    server.tell(streams)?;
    Ok((Connection::of(server.sandbox.client(), "default"), Some(server)))
}

/// Returns when the Lease is lost, if there is one.
async fn lost(leadership: Option<&Leadership>) -> Loss {
    match leadership {
        Some(leadership) => leadership.lost().await,
        None => std::future::pending().await,
    }
}

/// Where repositories are kept, and which ones may be read besides those that Syncs name.
fn sources(settings: &Settings) -> anyhow::Result<(Repositories, AllowList)> {
    let direct: Vec<&str> = settings.proxy_direct.iter().map(|host| &**host).collect();
    let proxy = settings.proxy.as_ref().map(|url| Proxy::new(url.reveal(), &direct));
    let allowed = AllowList::new("remoteBases", settings.remote_bases.iter().map(|prefix| &**prefix))?;
    Ok((Repositories::new(&settings.data_dir, proxy.transpose()?)?, allowed))
}

/// Follows what there is to follow, until the daemon ends.
async fn work(
    arguments: &Arguments,
    context: Arc<Context>,
    called: mpsc::Receiver<Called>,
) -> anyhow::Result<()> {
    match &arguments.url {
        None => {
            let cluster = context.cluster.clone();
            tokio::join!(define(&cluster), all::run(context, called));
            Ok(())
        }
        Some(url) => follow_one(arguments, url, context, called).await,
    }
}

/// The most calls of webhooks that wait to be heeded.
const MAX_CALLS: usize = 64;

/// Brings the definition of Syncs up to date where that may be done. Nothing waits for it to be so.
async fn define(cluster: &Cluster) {
    let Ok(own) = api::definition() else { return };
    let by_hand = "moorline crd | kubectl apply --server-side --force-conflicts -f -";
    match cluster.define_syncs(&own).await {
        Definition::Same => {}
        Definition::Applied => tracing::info!("the definition of Syncs is brought up to date"),
        Definition::OfSync(sync) => {
            tracing::info!(
                sync = &*sync,
                "the definition of Syncs is another one, and is left to the Sync that applies it"
            )
        }
        Definition::Newer(version) => {
            tracing::info!(version = &*version, "the definition of Syncs is of a newer Moorline, and stays")
        }
        Definition::Other(failure) => {
            tracing::warn!(%failure, "the definition of Syncs is another one, and is served as it is; to bring it up to date: {by_hand}");
        }
        Definition::Unseen(failure) => {
            tracing::info!(%failure, "whether the definition of Syncs is up to date is not known; to bring it there: {by_hand}");
        }
    }
}

/// While another daemon leads, calls are passed on to it, as an annotation of the Syncs that they are about.
async fn pass_on(connection: &Connection, called: &mut mpsc::Receiver<Called>) {
    while let Some(names) = called.recv().await {
        match connection.call(|url| repository_name(url).is_some_and(|name| names.contains(&name))).await {
            Ok(syncs) => tracing::debug!(syncs, "a webhook was passed on"),
            Err(error) => tracing::warn!(%error, "a webhook could not be passed on"),
        }
    }
    // Nobody can call any more.
    std::future::pending().await
}

/// For the release of the Lease at the end, when what was under way has had its time: a stop takes ten seconds at most.
const RELEASE: Duration = Duration::from_secs(2);

fn lease_name(arguments: &Arguments, settings: &Settings) -> String {
    match (&arguments.url, &settings.instance) {
        (Some(_), _) => format!("{RUN}{}", arguments.name),
        (None, Some(instance)) => format!("moorline-{instance}"),
        (None, None) => "moorline".to_owned(),
    }
}

/// Waits for the Lease; none if the daemon is asked to end before.
async fn lead(
    arguments: &Arguments,
    settings: &Settings,
    connection: &Connection,
    namespace: &str,
    (health, metrics, board): (&Health, &Metrics, &Board),
    mut ending: watch::Receiver<bool>,
) -> anyhow::Result<Option<Leadership>> {
    let record = match &arguments.url {
        // The address is printed without anything secret.
        Some(url) => {
            let wish = wish(arguments, url, namespace)?;
            BTreeMap::from([
                (SOURCE_ANNOTATION.to_owned(), wish.address.to_string()),
                (PATH_ANNOTATION.to_owned(), wish.path),
            ])
        }
        None => BTreeMap::new(),
    };
    let timings = Timings {
        duration: settings.lease_duration,
        renew_deadline: settings.lease_renew_deadline,
        retry: settings.lease_retry_period,
        request: (settings.lease_duration.saturating_sub(settings.lease_renew_deadline)).mul_f64(0.8),
    };
    let claim = Claim {
        namespace: namespace.to_owned(),
        name: lease_name(arguments, settings),
        identity: identity(),
        record,
        take_over: arguments.take_over,
    };
    let waits_for = |leader: &str| board.stand(Stance::StandsBy(Some(leader.into())));
    // Who waits for its turn is ready to take it.
    health.ready(Ok(()));
    let beats = async {
        loop {
            health.beat();
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    };
    tokio::select! {
        won = connection.campaign(metrics.clone(), claim, timings, &waits_for) => Ok(Some(won?)),
        _ = ending.wait_for(|ending| *ending) => Ok(None),
        () = beats => Ok(None),
    }
}

/// This process and no other, also on a machine where several run.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let chance = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}_{}_{}", host.as_deref().unwrap_or("moorline"), std::process::id(), chance.as_nanos())
}

/// The repository, wherever this is read: a path on the disk means what it does where it was typed.
fn address(url: &str) -> anyhow::Result<Address> {
    let address = Address::any(url)?;
    let Some(path) = address.local_path() else { return Ok(address) };
    let whole = path.canonicalize().or_else(|_| std::path::absolute(path))?;
    Ok(Address::any(&whole.to_string_lossy())?)
}

fn wish(arguments: &Arguments, url: &str, namespace: &str) -> anyhow::Result<Wish> {
    let interval = Duration::from_secs(arguments.interval);
    let mut wish = Wish::plain(address(url)?, Reference::Head, &arguments.path, namespace, interval);
    wish.options.helm.release = arguments.name.as_str().into();
    Ok(wish)
}

async fn follow_one(
    arguments: &Arguments,
    url: &str,
    context: Arc<Context>,
    called: mpsc::Receiver<Called>,
) -> anyhow::Result<()> {
    if let Some(rule) = render::sync_name_rule(&arguments.name) {
        bail!("--name: the name of a Sync {rule}");
    }
    let wish = wish(arguments, url, &context.namespace)?;
    let repository = context.repositories.repository(&wish.address, "", &Credentials::default())?;
    let owner = SyncName::new(&context.namespace, &arguments.name);
    single::run(context, owner, wish, repository, called).await;
    Ok(())
}

/// Waits until somebody asks this process to end, or closes the terminal in which it was started. From the call on nobody
/// ends it otherwise, so that whoever leaves something behind calls it first.
pub(super) fn interrupted() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let hangup = if outlives_its_terminal() { None } else { signal(SignalKind::hangup()).ok() };
    async {
        let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
            return std::future::pending().await;
        };
        let hung_up = async {
            match hangup {
                Some(mut hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = hung_up => {}
        }
    }
}

/// True if it was started to go on without a terminal, as `nohup` does: SIGHUP, the first of the signals, is ignored.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
