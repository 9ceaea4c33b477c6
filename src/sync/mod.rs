//! The daemon: every Sync is followed by a task of its own, and this is what they share.
//!
//! In: a cluster, repositories, settings. Out: a cluster that is as the repositories say. The way of one Sync is
//! `follow.rs` (when), `pass.rs` (what, in one sentence), `prepare.rs` (from a commit to objects) and `carry_out.rs`
//! (from a plan to writes); `schedule/` decides, and `memory.rs` is what a Sync remembers.

mod additions;
pub mod all;
mod asked;
mod awaited;
mod backends;
pub mod bases;
mod belief;
mod board;
mod carry_out;
mod changes;
mod claim_rights;
mod claims;
mod contact;
mod definitions;
mod dependencies;
mod desk;
mod event;
mod event_queue;
mod evidence;
mod farewell;
mod fights;
mod follow;
pub mod forget;
pub(crate) mod gone;
mod guarded;
mod handover;
mod heads;
mod hook_ends;
mod incomparable;
pub mod inspect;
mod keep;
pub mod keyring;
mod last_hooks;
mod leaving;
mod ledger;
mod lineage;
mod log_lines;
mod login;
mod look;
mod lose;
mod make_way;
mod memory;
mod namespaces;
mod neighbours;
mod notebook;
mod occupied;
mod orphans;
mod parting;
mod pass;
mod prepare;
mod receiving;
mod recreate;
mod refusal;
mod registry;
mod removed;
mod rendering;
mod restless;
mod rights;
mod rollout;
mod room;
mod scale;
pub mod schedule;
mod scope;
pub mod single;
mod subject;
mod survey;
mod tally;
pub mod through_terms;
mod tries;
mod unrendered;
mod values;
mod verify;
mod vitals;
mod waiting;
pub mod wish;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::api::SyncName;
use crate::clock;
use crate::cluster::lease::Leadership;
use crate::cluster::{Cluster, connect};
use crate::fair::Line;
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::report::Trouble;
use crate::serve::Health;
use crate::settings::Settings;
use crate::source::{AllowList, Repositories};
use bases::{Followed, Ground};
pub use board::Board;
use claim_rights::ClaimRights;
use dependencies::Dependencies;
use event::Allowances;
use heads::Heads;
use log_lines::Lines;
pub use look::look;
use lose::Losses;
pub use lose::Remembered;
use memory::Pauses;
use neighbours::Neighbours;
pub use notebook::Notebook;
pub use registry::Registry;
use rendering::Means;
use schedule::{Backoff, Time};
use wish::Wish;

/// What all Syncs of a daemon share.
pub struct Context {
    /// The cluster, as the daemon itself.
    pub cluster: Cluster,
    /// Where repositories are kept.
    pub repositories: Repositories,
    /// Which repositories a kustomization may name by their URLs.
    pub allowed: AllowList,
    /// What renders charts.
    pub helm: Helm,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether this daemon lives and is ready.
    pub health: Health,
    /// What may be set.
    settings: RwLock<Arc<Settings>>,
    /// Told when that has changed.
    reset: Notify,
    /// The namespace of the daemon: only Syncs in it may act with its rights.
    pub namespace: Box<str>,
    /// The Lease that this daemon holds, as namespace/name.
    pub held_by: Option<String>,
    /// Where a run without a Sync writes down its scope, if anywhere.
    notebook: Option<Arc<Notebook>>,
    /// Where Syncs may name repositories on the disk, if anywhere.
    disk: Option<PathBuf>,
    /// What is known of all Syncs, for who looks.
    pub board: Board,
    /// All Syncs.
    pub registry: Registry,
    neighbours: Neighbours,
    /// The rights by which claims count.
    claim_rights: ClaimRights,
    /// Which Syncs wait for which.
    dependencies: Dependencies,
    /// The newest revisions.
    heads: Heads,
    /// How many Events may still be written.
    events: Allowances,
    /// True once the daemon is asked to end.
    pub ending: watch::Receiver<bool>,
    /// How long what is under way may take then.
    grace: Duration,
    began: Instant,
    /// When the last object was verified of those that wait for their turn.
    verify: tokio::sync::Mutex<Instant>,
    /// Who may read statuses now.
    reads: Line,
    /// The cluster as service accounts see it.
    identities: tokio::sync::Mutex<HashMap<String, Cluster>>,
    losses: Losses,
    /// Which log lines were written of states that last.
    lines: Lines,
}

/// What a daemon begins with.
pub struct Parts {
    /// Where repositories are kept, and which ones a kustomization may name by their URLs.
    pub sources: (Repositories, AllowList),
    /// What renders charts.
    pub helm: Helm,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether this daemon lives and is ready.
    pub health: Health,
    /// What may be set.
    pub settings: Settings,
    /// The namespace of the daemon.
    pub namespace: Box<str>,
    /// The Lease that this daemon holds, as namespace/name.
    pub held_by: Option<String>,
    /// Where a run without a Sync writes down its scope, if anywhere.
    pub notebook: Option<Arc<Notebook>>,
    /// A folder of this machine's disk in which Syncs may name repositories: none, but where the API server is one of
    /// this process, which nobody else uses.
    pub disk: Option<PathBuf>,
    /// True once the daemon is asked to end.
    pub ending: watch::Receiver<bool>,
}

impl Context {
    /// Everything but the Syncs.
    pub fn new(cluster: Cluster, board: Board, parts: Parts) -> Self {
        let metrics = parts.metrics.clone();
        parts.sources.0.count_waiting(move |count| metrics.git_waiting(count));
        Self {
            cluster,
            grace: GRACE,
            began: clock::now(),
            verify: tokio::sync::Mutex::new(clock::now()),
            reads: Line::new(READS),
            identities: tokio::sync::Mutex::default(),
            losses: Losses::default(),
            lines: Lines::default(),
            registry: Registry::default(),
            neighbours: Neighbours::default(),
            claim_rights: ClaimRights::default(),
            dependencies: Dependencies::default(),
            heads: Heads::default(),
            events: Allowances::new(EVENTS),
            repositories: parts.sources.0,
            allowed: parts.sources.1,
            helm: parts.helm,
            metrics: parts.metrics,
            health: parts.health,
            settings: RwLock::new(Arc::new(parts.settings)),
            reset: Notify::new(),
            namespace: parts.namespace,
            held_by: parts.held_by,
            notebook: parts.notebook,
            disk: parts.disk,
            board,
            ending: parts.ending,
        }
    }

    /// What is set now.
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// By what it is decided which other repositories a Sync reads. What was seen within this time is new enough.
    fn ground<'a>(
        &'a self,
        sync: &'a SyncName,
        wish: &Wish,
        followed: &'a Followed,
        fresh: Duration,
    ) -> Ground<'a> {
        Ground {
            repositories: &self.repositories,
            heads: &self.heads,
            allowed: &self.allowed,
            followed,
            asker: &sync.namespace,
            sync: sync.to_string().into(),
            metrics: &self.metrics,
            pinned: wish.verify.is_some(),
            fresh,
        }
    }

    /// Waits until this daemon may write; false if it is asked to end before.
    async fn leads(&self) -> bool {
        let mut ending = self.ending.clone();
        tokio::select! {
            biased;
            () = self.cluster.terms().held() => true,
            _ = ending.wait_for(|ending| *ending) => false,
        }
    }

    /// The next term has begun, and nobody held the Lease in between.
    pub fn goes_on(&self, leadership: &Leadership) {
        self.notebook.iter().for_each(|notebook| notebook.goes_on(leadership));
    }

    /// Forgets what was counted and shown of the Syncs: another daemon serves them now.
    pub fn retire(&self) {
        for name in self.registry.names() {
            self.metrics.forget(&name.to_string());
            self.board.remove(&name);
        }
    }

    /// Goes by other settings from now on, as far as they are read more than once.
    pub fn change(&self, settings: Settings) {
        self.cluster.bound(settings.qps, settings.burst);
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        self.reset.notify_waiters();
    }

    /// The pauses after failures.
    fn pauses(&self) -> Pauses {
        let settings = self.settings();
        let cluster = Backoff::new(settings.retry_base, settings.retry_cap);
        Pauses { cluster, manifest: settings.manifest_retry }
    }

    /// Whether a Sync may act with the daemon's own rights, if it names no others.
    fn may_act_as_itself(&self, sync: &SyncName, wish: &Wish) -> Result<(), String> {
        let trusted = self.namespace == sync.namespace
            || self.settings().daemon_identity_namespaces.contains(&sync.namespace);
        if trusted || wish.service_account.is_some() {
            return Ok(());
        }
        Err(format!(
            "a Sync outside of the namespace {} does not act with the daemon's rights: write the name of a ServiceAccount in {} as spec.serviceAccountName",
            self.namespace, sync.namespace
        ))
    }

    /// The cluster as the identity of a Sync sees it.
    async fn cluster_of(&self, sync: &SyncName, wish: &Wish) -> Result<Cluster, Trouble> {
        let Some(account) = &wish.service_account else { return Ok(self.cluster.clone()) };
        if self.disk.is_some() {
            // In a demonstration everybody may do everything.
            return Ok(self.cluster.clone());
        }
        let user = format!("system:serviceaccount:{}:{account}", sync.namespace);
        let mut identities = self.identities.lock().await;
        if let Some(known) = identities.get(&user) {
            return Ok(known.clone());
        }
        let connection = connect(Some(&user)).await.map_err(|error| Trouble {
            reason: "ClusterUnreachable",
            message: error.to_string(),
            problems: Vec::new(),
            lasting: false,
        })?;
        let cluster = self.cluster.behind(connection);
        identities.insert(user, cluster.clone());
        Ok(cluster)
    }

    /// The server has gone back to an earlier state: what was seen of it is listed anew, as each identity sees it.
    fn begin_anew(self: &Arc<Self>) {
        self.cluster.begin_anew();
        let this = self.clone();
        tokio::spawn(async move { this.identities.lock().await.values().for_each(Cluster::begin_anew) });
    }

    /// The server is another release: what it was seen to make of an apply says nothing any more.
    fn distrust_all(self: &Arc<Self>) {
        self.cluster.distrust_all();
        let this = self.clone();
        tokio::spawn(async move { this.identities.lock().await.values().for_each(Cluster::distrust_all) });
    }

    /// What commits are prepared with, for this cluster.
    fn means<'a>(&'a self, cluster: &'a Cluster, ground: &'a Ground<'a>) -> Means<'a> {
        Means { cluster, helm: &self.helm, ground }
    }

    fn now(&self) -> Time {
        clock::since(self.began)
    }

    fn instant(&self, time: Time) -> Instant {
        self.began + time
    }

    /// Waits until one more object may be verified.
    async fn verify_turn(&self) {
        let mut last = self.verify.lock().await;
        let pause = Duration::from_secs(1) / self.settings().verify_rate.max(1);
        tokio::time::sleep_until((*last + pause).into()).await;
        *last = clock::now();
    }
}

/// Events of one namespace at once, and in a second after that: who creates hundreds of Syncs reads their statuses.
const EVENTS: (u32, u32) = (50, 5);
/// Syncs whose statuses are read at one time.
const READS: usize = 8;
/// How long what is under way may take when the daemon ends.
const GRACE: Duration = Duration::from_secs(8);

/// A number between 0 and 1.
fn chance() -> f64 {
    (crate::chance::next() >> 11) as f64 / (1_u64 << 53) as f64
}
