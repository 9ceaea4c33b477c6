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
pub mod console;
mod credentials;
mod current_settings;
mod definition_update;
pub mod deletion;
pub mod inspect;
pub mod key_manager;
pub mod lease_terms;
mod live_views;
pub mod manager;
mod memory;
pub(crate) mod notifications;
mod peers;
mod process;
pub mod reconcile;
mod reconcile_errors;
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

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::cluster::lease::Leadership;
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::report::ReconcileError;
use crate::serve::DaemonHealth;
use crate::settings::Settings;
use crate::source::{AllowList, Repositories};
pub use cache_losses::CacheKind;
use cache_losses::CacheLosses;
use change_windows::WindowCenter;
use credentials::read_secret;
use current_settings::CurrentSettings;
pub use live_views::serve_live_objects;
pub use memory::verification_times::until_turn;
use notifications::NotificationCenter;
use peers::Peers;
use peers::latest_revisions::LatestRevisions;
pub use process::Process;
use schedule::{Backoff, RetryPolicy, Uptime};
use spec::ValidatedSpec;
use status::StatusRecorder;
pub use status::board::Board;
pub use status::lease_record::LeaseRecord;
use status::metrics_and_logs::Reporting;
pub(crate) use status::source_summary::of_resource as summarize_source;
use sync_sets::NamespacedSyncs;
pub use targets::{RemoteConnector, Targets};
use targets::{check_home, check_use, connect_target};

/// State that all Syncs of a daemon share. Each field has one writer.
pub struct Context {
    /// The home cluster, with the daemon's own identity: Syncs, their Secrets, Events, Leases.
    /// Written by `crates/cluster`: the store by watches and replies alone.
    pub cluster: Cluster,
    /// Clusters as Syncs use them: the home cluster as their ServiceAccounts see it, and other
    /// clusters. Written by `targets/`.
    pub targets: Targets,
    /// Repositories and helm. Mirrors are written by `crates/git`, under the lock of a repository.
    pub sources: CommitSources,
    /// Knowledge of Syncs about each other. Written by the methods of `Peers`.
    pub peers: Peers,
    /// Change windows. Written by `change_windows/`.
    windows: WindowCenter,
    /// Syncs of each namespace, for SyncSets. Written by `manager.rs`.
    sync_sets: NamespacedSyncs,
    /// Channels through which Syncs report. Written by `status/`.
    pub reporting: Arc<Reporting>,
    /// Settings of the daemon, and the pace that they set. Written by [`Context::change`].
    settings: CurrentSettings,
    /// Namespace and local disk of the daemon, its start and its end. Set at the start; the end is
    /// written by the process that owns the sender.
    pub process: Process,
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
            targets: Targets::default(),
            sources: CommitSources {
                repositories,
                allowed,
                helm: parts.helm,
                heads: LatestRevisions::default(),
            },
            peers: Peers::default(),
            windows: WindowCenter::new(),
            sync_sets: NamespacedSyncs::default(),
            reporting: Arc::new(reporting),
            settings: CurrentSettings::new(parts.settings),
            process: Process::new(parts.namespace, parts.disk, parts.ending),
            losses: CacheLosses::default(),
        }
    }

    /// Returns the current settings.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.newest()
    }

    /// Waits until this daemon may write; false if it shuts down before that.
    async fn leads(&self) -> bool {
        let mut ending = self.process.ending.clone();
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
        self.settings.replace(settings);
    }

    /// Returns the back-off after failures.
    fn pauses(&self) -> RetryPolicy {
        let settings = self.settings();
        let cluster = Backoff::new(settings.retry_base, settings.retry_cap);
        RetryPolicy { cluster, manifest: settings.manifest_retry }
    }

    /// Checks that a Sync which names no ServiceAccount may act with the daemon's own rights.
    fn may_act_as_itself(&self, sync: &SyncName, valid_spec: &ValidatedSpec) -> Result<(), String> {
        let trusted = self.process.namespace == sync.namespace
            || self.settings().daemon_identity_namespaces.contains(&sync.namespace);
        if trusted || valid_spec.service_account.is_some() {
            return Ok(());
        }
        Err(format!(
            "a Sync outside of the namespace {} may not use the permissions of the daemon: set spec.serviceAccountName to a ServiceAccount in {}",
            self.process.namespace, sync.namespace
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
        let data = read_secret(&self.cluster, &sync.namespace, &secret.name).await;
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

    /// Returns the home cluster with the identity of a Sync, which reads everything that the spec
    /// names.
    async fn home_of(&self, sync: &SyncName, valid_spec: &ValidatedSpec) -> Result<Cluster, ReconcileError> {
        let Some(account) = &valid_spec.service_account else { return Ok(self.cluster.clone()) };
        if self.process.disk().is_some() {
            // In a demonstration every Sync has all rights.
            return Ok(self.cluster.clone());
        }
        let user = format!("system:serviceaccount:{}:{account}", sync.namespace);
        self.targets.impersonate(&self.cluster, user, self.settings().http2).await
    }

    /// Lists all watched objects again, for each identity: the server has gone back to an earlier
    /// state.
    fn relist_all(self: &Arc<Self>) {
        self.cluster.relist_all();
        let this = self.clone();
        tokio::spawn(async move { this.targets.for_each_identity(Cluster::relist_all).await });
    }

    /// Marks all objects as unverified, for each identity: another release of the server may answer
    /// an apply differently.
    fn distrust_all(self: &Arc<Self>) {
        self.cluster.mark_all_unverified();
        let this = self.clone();
        tokio::spawn(async move { this.targets.for_each_identity(Cluster::mark_all_unverified).await });
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
        self.process.uptime()
    }
}

/// Returns a random number between 0 and 1.
fn chance() -> f64 {
    (crate::chance::next() >> 11) as f64 / (1_u64 << 53) as f64
}
