//! Controller of the daemon: runs one worker for each Sync, and holds the state that they share.
//!
//! In: a cluster, repositories, settings. Out: a cluster that matches the repositories. One Sync is
//! served by `resource/` (from the resource to a request), `worker/` (its event loop),
//! `reconcile/` (one run from fetch to status), `apply/` (from a plan to writes) and `deletion/`
//! (its finalizer). `schedule/` decides when a reconcile is due. `memory/` holds the state of a
//! Sync between reconciles, `peers/` the knowledge that Syncs share; `status/` writes the result.

pub mod apply;
mod cache_losses;
pub(crate) mod change_windows;
mod cloud_identity;
pub mod console;
mod definition_update;
pub mod deletion;
pub mod inspect;
pub mod inspect_pull_request;
pub mod inspect_sync_set;
pub mod key_manager;
pub mod lease_terms;
mod live_objects;
mod live_views;
pub mod manager;
mod memory;
pub(crate) mod notifications;
mod peers;
mod ready_status;
pub mod reconcile;
mod resource;
pub mod schedule;
pub mod spec;
pub mod standalone;
mod status;
pub(crate) mod sync_sets;
mod targets;
mod worker;

#[cfg(test)]
mod future_sizes;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::api::SyncName;
use crate::clock;
use crate::cluster::lease::Leadership;
use crate::cluster::{Cluster, connect};
use crate::fair_queue::FairQueue;
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::report::{ErrorCause, ReconcileError};
use crate::serve::DaemonHealth;
use crate::settings::Settings;
use crate::source::{AllowList, Repositories};
pub use cache_losses::CacheKind;
use cache_losses::CacheLosses;
use change_windows::WindowCenter;
pub use live_objects::serve_live_objects;
pub use memory::verification_times::until_turn;
use notifications::NotificationCenter;
use peers::Peers;
use peers::latest_revisions::LatestRevisions;
use schedule::{Backoff, RetryPolicy, Uptime};
use spec::ValidatedSpec;
use status::StatusRecorder;
pub use status::board::Board;
pub use status::lease_record::LeaseRecord;
use status::metrics_and_logs::Reporting;
pub(crate) use status::source_summary::of_resource as summarize_source;
use sync_sets::KnownSyncs;
pub use targets::{RemoteConnector, Targets};
use targets::{check_home, check_use, connect_target};

/// State that all Syncs of a daemon share. Each field has one writer.
pub struct Context {
    /// The home cluster, with the daemon's own identity: Syncs, their Secrets, Events, Leases.
    /// Written by `crates/cluster`: the store by watches and replies alone.
    pub cluster: Cluster,
    /// Repositories and helm. Mirrors are written by `crates/git`, under the lock of a repository.
    pub sources: CommitSources,
    /// Knowledge of Syncs about each other. Written by the methods of `Peers`.
    pub peers: Peers,
    /// Change windows. Written by `change_windows/`.
    windows: WindowCenter,
    /// The Syncs of the cluster, for SyncSets. Written by `manager.rs`.
    sync_sets: KnownSyncs,
    /// Channels through which Syncs report. Written by `status/`.
    pub reporting: Arc<Reporting>,
    /// Settings of the daemon. Written by [`Context::change`].
    settings: CurrentSettings,
    /// Namespace and local disk of the daemon. Set at the start.
    pub installation: Installation,
    /// Other clusters with objects of Syncs. Written by `targets/`.
    pub targets: Targets,
    /// The cluster as each impersonated ServiceAccount sees it, by user name. Written by
    /// [`Context::home_of`].
    identities: tokio::sync::Mutex<HashMap<String, Cluster>>,
    /// Limits on reads and verifications. Written by [`Context::verify_turn`] and by health checks.
    pacing: Pacing,
    /// Start and end of the daemon. Its end is written by the process that owns the sender.
    pub lifetime: Lifetime,
    /// Counters of dropped caches. Written by [`Context::drop_cache`], for tests.
    losses: CacheLosses,
}

/// Sources of commits and of rendered charts.
pub struct CommitSources {
    /// Local mirrors of the repositories.
    pub repositories: Repositories,
    /// Repositories that a kustomization may name by URL.
    pub allowed: AllowList,
    /// Renders charts.
    pub helm: Helm,
    /// Newest known revision of each repository and ref.
    heads: LatestRevisions,
}

/// Settings that can change while the daemon runs.
struct CurrentSettings {
    current: RwLock<Arc<Settings>>,
    /// Notified when the settings were replaced.
    reset: Notify,
}

/// Surroundings of the daemon.
pub struct Installation {
    /// Namespace of the daemon: only Syncs in it may act with the daemon's own rights.
    pub namespace: Box<str>,
    /// Folder of the local disk in which Syncs may name repositories, if any.
    disk: Option<PathBuf>,
}

impl Installation {
    /// True if resources of this namespace may use its Secrets as the daemon may: it is the
    /// daemon's own namespace, or this is a demonstration.
    fn is_own(&self, namespace: &str) -> bool {
        *self.namespace == *namespace || self.disk.is_some()
    }
}

/// Limits on work that all Syncs share.
struct Pacing {
    /// Time of the last paced verification of an object.
    verify: tokio::sync::Mutex<Instant>,
    /// Limits the concurrent reads of object statuses.
    reads: FairQueue,
}

/// Start and end of the daemon.
pub struct Lifetime {
    began: Instant,
    /// True once the daemon shuts down.
    pub ending: watch::Receiver<bool>,
    /// Time that work in progress gets at shutdown.
    grace: Duration,
}

/// Options of a new [`Context`].
pub struct ContextOptions {
    /// Mirrors of the repositories, and the repositories that a kustomization may name by URL.
    pub sources: (Repositories, AllowList),
    /// Renders charts.
    pub helm: Helm,
    /// Counters and gauges for Prometheus.
    pub metrics: Metrics,
    /// Liveness and readiness of this daemon.
    pub health: DaemonHealth,
    /// Settings of the daemon.
    pub settings: Settings,
    /// Namespace of the daemon.
    pub namespace: Box<str>,
    /// The Lease that this daemon holds, as namespace/name.
    pub held_by: Option<String>,
    /// Record in the Lease of the scope of a run without a Sync resource, if it is kept.
    pub notebook: Option<Arc<LeaseRecord>>,
    /// Folder of the local disk in which Syncs may name repositories: set only where the API server
    /// runs in this process and nothing else uses it.
    pub disk: Option<PathBuf>,
    /// True once the daemon shuts down.
    pub ending: watch::Receiver<bool>,
}

impl Context {
    /// Creates the shared state, with no Sync in it.
    pub fn new(cluster: Cluster, board: Board, parts: ContextOptions) -> Self {
        let metrics = parts.metrics.clone();
        parts.sources.0.report_waiting(move |count| metrics.git_waiting(count));
        let (held_by, notebook) = (parts.held_by, parts.notebook);
        let center = NotificationCenter::new(parts.settings.cluster_name.as_deref());
        let reporting = Reporting::new(
            cluster.clone(),
            (parts.metrics, parts.health, board),
            (held_by, notebook),
            center,
        );
        let (repositories, allowed) = parts.sources;
        Self {
            cluster,
            sources: CommitSources {
                repositories,
                allowed,
                helm: parts.helm,
                heads: LatestRevisions::default(),
            },
            peers: Peers::default(),
            windows: WindowCenter::new(),
            sync_sets: KnownSyncs::default(),
            reporting: Arc::new(reporting),
            settings: CurrentSettings {
                current: RwLock::new(Arc::new(parts.settings)),
                reset: Notify::new(),
            },
            installation: Installation { namespace: parts.namespace, disk: parts.disk },
            targets: Targets::default(),
            identities: tokio::sync::Mutex::default(),
            pacing: Pacing { verify: tokio::sync::Mutex::new(clock::now()), reads: FairQueue::new(READS) },
            lifetime: Lifetime { began: clock::now(), ending: parts.ending, grace: GRACE },
            losses: CacheLosses::default(),
        }
    }

    /// Returns the current settings.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this daemon may write; false if it shuts down before that.
    async fn leads(&self) -> bool {
        let mut ending = self.lifetime.ending.clone();
        tokio::select! {
            biased;
            () = self.cluster.terms().wait_until_leading() => true,
            _ = ending.wait_for(|ending| *ending) => false,
        }
    }

    /// Continues the records in the Lease: the next term has begun, and no other daemon held the
    /// Lease in between.
    pub fn continue_term(&self, leadership: &Leadership) {
        self.reporting.notebook.iter().for_each(|notebook| notebook.continue_term(leadership));
    }

    /// Drops the metrics and the page entries of all Syncs: another daemon serves them now.
    pub fn retire(&self) {
        for name in self.peers.names() {
            self.reporting.metrics.remove_sync(&name.to_string());
            self.reporting.board.remove(&name);
        }
    }

    /// Replaces the settings; values that are read only at the start keep their effect.
    pub fn change(&self, settings: Settings) {
        self.cluster.set_rate(settings.qps, settings.burst);
        self.targets.set_rate(settings.qps, settings.burst);
        *self.settings.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.settings.reset.notify_waiters();
    }

    /// Returns the back-off after failures.
    fn pauses(&self) -> RetryPolicy {
        let settings = self.settings();
        let cluster = Backoff::new(settings.retry_base, settings.retry_cap);
        RetryPolicy { cluster, manifest: settings.manifest_retry }
    }

    /// Checks that a Sync which names no ServiceAccount may act with the daemon's own rights.
    fn may_act_as_itself(&self, sync: &SyncName, valid_spec: &ValidatedSpec) -> Result<(), String> {
        let trusted = self.installation.namespace == sync.namespace
            || self.settings().daemon_identity_namespaces.contains(&sync.namespace);
        if trusted || valid_spec.service_account.is_some() {
            return Ok(());
        }
        Err(format!(
            "a Sync outside of the namespace {} may not use the permissions of the daemon: set spec.serviceAccountName to a ServiceAccount in {}",
            self.installation.namespace, sync.namespace
        ))
    }

    /// Returns the cluster in which the objects of a Sync live, with the identity that writes them.
    async fn target_of(
        &self,
        recorder: &StatusRecorder,
        valid_spec: &ValidatedSpec,
    ) -> Result<Cluster, ReconcileError> {
        let sync = recorder.name();
        let home = self.home_of(sync, valid_spec).await?;
        let Some(secret) = &valid_spec.cluster else { return check_home(recorder).map(|()| home) };
        check_use(self, sync, (secret, valid_spec.service_account.as_deref()), &home).await?;
        let data = inspect::secret(&self.cluster, &sync.namespace, &secret.name).await;
        let about = |error: ReconcileError| {
            let message = format!("spec.cluster: {}", error.message);
            ReconcileError { message, ..error }
        };
        let data = data.map_err(about)?;
        connect_target(self, recorder, secret, Arc::new(data)).await
    }

    /// Notifies all Syncs.
    fn wake_all(&self) {
        self.cluster.wake_all();
        self.targets.wake_all();
    }

    /// Returns the queue for reads of the statuses of a Sync's objects.
    fn reads_of(&self, sync: &SyncName) -> FairQueue {
        self.targets.reads_of(sync).unwrap_or_else(|| self.pacing.reads.clone())
    }

    /// Returns the home cluster with the identity of a Sync, which reads everything that the spec
    /// names.
    async fn home_of(&self, sync: &SyncName, valid_spec: &ValidatedSpec) -> Result<Cluster, ReconcileError> {
        let Some(account) = &valid_spec.service_account else { return Ok(self.cluster.clone()) };
        if self.installation.disk.is_some() {
            // In a demonstration every Sync has all rights.
            return Ok(self.cluster.clone());
        }
        let user = format!("system:serviceaccount:{}:{account}", sync.namespace);
        let mut identities = self.identities.lock().await;
        if let Some(known) = identities.get(&user) {
            return Ok(known.clone());
        }
        let connection =
            connect(Some(&user), self.settings().http2).await.map_err(|error| ReconcileError {
                cause: ErrorCause::ClusterUnreachable,
                message: error.to_string(),
                problems: Vec::new(),
                permanent: false,
            })?;
        let cluster = self.cluster.with_connection(connection);
        identities.insert(user, cluster.clone());
        Ok(cluster)
    }

    /// Lists all watched objects again, for each identity: the server has gone back to an earlier
    /// state.
    fn relist_all(self: &Arc<Self>) {
        self.cluster.relist_all();
        let this = self.clone();
        tokio::spawn(async move { this.identities.lock().await.values().for_each(Cluster::relist_all) });
    }

    /// Marks all objects as unverified, for each identity: another release of the server may answer
    /// an apply differently.
    fn distrust_all(self: &Arc<Self>) {
        self.cluster.mark_all_unverified();
        let this = self.clone();
        tokio::spawn(
            async move { this.identities.lock().await.values().for_each(Cluster::mark_all_unverified) },
        );
    }

    /// Drops a cache.
    pub fn drop_cache(self: &Arc<Self>, what: CacheKind) {
        match what {
            CacheKind::Objects => self.relist_all(),
            CacheKind::Trust => self.distrust_all(),
            CacheKind::Passes => self.losses.drop_passes(),
            CacheKind::Revisions => self.sources.heads.lose(),
            CacheKind::Kinds => {
                let cluster = self.cluster.clone();
                tokio::spawn(async move { cluster.discovery().reset().await });
            }
            CacheKind::Health => self.losses.drop_health(),
        }
    }

    fn now(&self) -> Uptime {
        clock::since(self.lifetime.began)
    }

    fn instant(&self, time: Uptime) -> Instant {
        self.lifetime.began + time
    }

    /// Waits until one more object may be verified.
    async fn verify_turn(&self) {
        let mut last = self.pacing.verify.lock().await;
        let pause = Duration::from_secs(1) / self.settings().verify_rate.max(1);
        tokio::time::sleep_until((*last + pause).into()).await;
        *last = clock::now();
    }
}

/// Syncs whose object statuses are read at the same time.
const READS: usize = 8;
/// Time that work in progress gets when the daemon shuts down.
const GRACE: Duration = Duration::from_secs(8);

/// Returns a random number between 0 and 1.
fn chance() -> f64 {
    (crate::chance::next() >> 11) as f64 / (1_u64 << 53) as f64
}
