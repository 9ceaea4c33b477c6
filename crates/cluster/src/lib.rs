//! Client of one API server: watches objects as metadata, and writes them by server-side apply.
//!
//! In: a connection as one identity.
//! Out: a [`Cluster`]. Each identity has a `Cluster` of its own, and knows only the objects that it
//! may see.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input never causes a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod answer;
mod apply;
mod complaints;
mod connect;
mod definitions;
mod foreign;
mod gate;
mod heartbeat;
mod jitter;
pub mod key_secret;
mod kinds;
pub mod lease;
mod live;
mod live_set;
mod newest;
mod notary;
mod operator;
mod own_definition;
mod page;
mod rate;
mod replicas;
mod residents;
mod reviews;
mod scalers;
mod server;
mod statuses;
mod stop;
mod store;
mod sweep;
mod syncs;
mod values;
mod version;
mod watch;
mod watches;
mod whole;
mod wire;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use answer::{
    Answer, Cause, Refusal, Remedy, Uncalled, WEBHOOK_FAILED, answer, is_denial, lacks_own, table as answers,
    uncalled,
};
pub use apply::{Applied, Force};
pub use connect::{ConnectError, Connection, connect};
pub use definitions::{AllNews, News};

pub use foreign::Foreign;
pub use heartbeat::Heartbeat;
pub use jitter::jitter;
pub use kinds::{Kinds, Served};
pub use live::NamespaceState;
pub use notary::Notary;
pub use operator::{OperatorError, Seen};
pub use own_definition::Definition;
pub use residents::Inside;
pub use scalers::Scaled;
pub use statuses::Beneath;
pub use stop::Stop;
pub use syncs::{Following, SecretData, Standing, Told, version};
pub use values::{Texts, ValuesTold};
pub use watch::POLL;
pub use watches::Need;
pub use wire::Failure;

use complaints::Complaints;
use definitions::Definitions;
use gate::Gate;
use lease::{Permit, Terms};
use moorline_api::SyncName;
use moorline_core::object::{GroupKind, ObjectId};
use moorline_engine::desired::SCALERS;
use moorline_engine::observed::ObservedSet;
use moorline_metrics::Metrics;
use moorline_runtime::clock;
use moorline_settings::Settings;
use newest::Written;
use rate::Rate;
use replicas::Defined;
use scalers::Scalers;
use stop::Together;
use store::Store;
use sweep::Sweep;
use watches::Watches;
use wire::Wire;

/// Maximum number of concurrent status writes.
const STATUSES: usize = 8;

/// One API server, as seen by one identity; cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>, Option<Arc<Together>>, Option<Permit>);

struct Inner {
    wire: Wire,
    limits: Limits,
    notary: Notary,
    gate: Gate,
    /// Limits status writes separately, so that they never wait for object writes.
    desk: Gate,
    kinds: Mutex<Arc<Kinds>>,
    /// Time of the last discovery.
    discovery: tokio::sync::Mutex<Option<Instant>>,
    store: Store,
    watches: Watches,
    scalers: Scalers,
    definitions: Definitions,
    /// Replicas paths by kind, valid while discovery is unchanged.
    defined: tokio::sync::Mutex<Defined>,
    sweep: Sweep,
    /// The server's version, once it was requested.
    version: Mutex<Option<Box<str>>>,
    /// Set once responses without managedFields were logged.
    is_hidden: AtomicBool,
}

/// Limits of the writes: of one identity, and of all together.
#[derive(Clone)]
struct Limits {
    concurrency: usize,
    rate: Arc<Rate>,
}

impl Cluster {
    /// Connects to a cluster, with the write limits of the settings.
    pub fn new(
        connection: Connection,
        metrics: Metrics,
        terms: impl Into<Terms>,
        settings: &Settings,
    ) -> Self {
        let open = settings.watch_timeout_min..=settings.watch_timeout_max;
        let wire = Wire {
            client: connection.client,
            metrics,
            terms: terms.into(),
            timeout: settings.request_timeout,
            open,
            written: Written::default(),
            complaints: Complaints::default(),
            is_local: connection.is_local,
        };
        let rate = Arc::new(Rate::new(settings.qps, settings.burst));
        Self::with(wire, Limits { concurrency: settings.concurrency, rate }, Notary::default())
    }

    /// Returns the same cluster as another identity. Each identity has its own limit of concurrent
    /// writes, so that none waits for slow responses of another.
    pub fn behind(&self, connection: Connection) -> Self {
        let wire = Wire { client: connection.client, ..self.0.wire.clone() };
        Self::with(wire, self.0.limits.clone(), self.0.notary.clone())
    }

    fn with(wire: Wire, limits: Limits, notary: Notary) -> Self {
        let store = Store::new(notary.clone());
        let gate = |most| Gate::new(most, limits.rate.clone(), wire.metrics.clone());
        let inner = Arc::new(Inner {
            gate: gate(limits.concurrency),
            desk: gate(STATUSES),
            limits,
            notary,
            watches: Watches::new(wire.clone(), store.clone()),
            scalers: Scalers::new(wire.clone(), store.clone()),
            definitions: Definitions::new(wire.clone(), store.clone()),
            defined: tokio::sync::Mutex::default(),
            wire,
            kinds: Mutex::default(),
            discovery: tokio::sync::Mutex::default(),
            sweep: Sweep::default(),
            version: Mutex::default(),
            is_hidden: AtomicBool::new(false),
            store,
        });
        Self(inner, None, None)
    }

    /// Returns the same cluster for a group of writes. Once `stop` is set, the group is not started
    /// any more.
    pub fn until(&self, stop: &Stop) -> Self {
        Self(self.0.clone(), Some(Arc::new(Together::new(stop))), self.2.clone())
    }

    /// Returns the same cluster for writes decided in the current term: none is sent in a later
    /// one.
    pub fn of_this_term(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), Some(self.terms().current()))
    }

    /// Returns the same cluster for writes that are valid in any term.
    pub fn of_any_term(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), None)
    }

    /// True if this daemon may write now.
    pub fn may_write(&self) -> bool {
        self.terms().current().may_write()
    }

    /// Returns the terms in which this daemon may write.
    pub fn terms(&self) -> &Terms {
        &self.0.wire.terms
    }

    /// Returns the ownership proofs, shared by all identities.
    pub fn notary(&self) -> &Notary {
        &self.0.notary
    }

    /// Returns the kinds of the last discovery.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.0.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs discovery unless it was run before.
    pub async fn know(&self) -> Result<(), Failure> {
        let mut last = self.0.discovery.lock().await;
        if last.is_none() {
            let begun = clock::now();
            self.ask().await?;
            *last = Some(begun);
        }
        Ok(())
    }

    /// Runs discovery; true if the kinds have changed. Concurrent callers share the next response.
    pub async fn discover(&self) -> Result<bool, Failure> {
        let (asked, before) = (clock::now(), self.kinds());
        let mut last = self.0.discovery.lock().await;
        if last.is_none_or(|last| last < asked) {
            let begun = clock::now();
            self.ask().await?;
            *last = Some(begun);
        }
        Ok(before != self.kinds())
    }

    /// Drops the cached discovery results, so that they are fetched again when needed.
    pub async fn lose_kinds(&self) {
        *self.0.discovery.lock().await = None;
        self.0.defined.lock().await.clear();
        self.0.sweep.lose().await;
    }

    async fn ask(&self) -> Result<bool, Failure> {
        let found = Kinds::discover(&self.0.wire).await?;
        let mut defined = self.0.defined.lock().await;
        let mut known = self.0.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = **known != found;
        if changed {
            *known = Arc::new(found);
            defined.clear();
        }
        Ok(changed)
    }

    /// Notified when something changed that concerns a Sync.
    pub fn wake(&self, owner: &SyncName) -> Arc<tokio::sync::Notify> {
        self.0.store.wake(owner)
    }

    /// Notified when objects of a Sync were written, by any manager.
    pub fn stir(&self, owner: &SyncName) -> Arc<tokio::sync::Notify> {
        self.0.store.stir(owner)
    }

    /// Takes the objects of a Sync that were written since the last call.
    pub fn stirred(&self, owner: &SyncName) -> BTreeSet<ObjectId> {
        self.0.store.stirred(owner)
    }

    /// Watches everything that a Sync needs, and waits until it is listed. Returns the kinds that
    /// could not be listed.
    pub async fn require(
        &self,
        owner: &SyncName,
        need: &Need,
        within: Duration,
    ) -> Vec<(GroupKind, Failure)> {
        self.0.sweep.note(owner, &need.kinds).await;
        let (watches, kinds) = (&self.0.watches, self.kinds());
        watches.require(owner, need, &kinds);
        let blind = watches.listed(owner, need, within).await;
        // Without the right to list the whole cluster, the namespaces in use may be allowed.
        let forbidden = blind.iter().any(|(_, failure)| failure.code() == Some(403));
        match forbidden && watches.require(owner, need, &kinds) {
            true => watches.listed(owner, need, within).await,
            false => blind,
        }
    }

    /// Finds the kinds with objects that carry the label of a Sync, by listing every kind that is
    /// not watched. The flag is true if all kinds may be listed. Concurrent callers share the next
    /// run.
    pub async fn sweep(&self, owner: &SyncName) -> Result<(BTreeSet<GroupKind>, bool), Failure> {
        let watched = self.0.watches.kinds();
        self.0.sweep.kinds(&self.0.wire, &self.kinds(), watched, owner).await
    }

    /// Has these objects verified again, although no change was seen.
    pub fn distrust(&self, owner: &SyncName, ids: &[ObjectId]) {
        self.0.store.distrust(owner, ids);
    }

    /// Has all objects verified again.
    pub fn distrust_all(&self) {
        self.forget_version();
        self.0.store.distrust_all();
    }

    /// Sets the limit of writes per second, for all identities.
    pub fn bound(&self, per_second: u32, burst: u32) {
        self.0.limits.rate.set(per_second, burst);
    }

    /// Notifies all Syncs.
    pub fn wake_all(&self) {
        self.0.store.wake_all();
    }

    /// Lists everything again after the server was set back to an earlier state, where known
    /// objects may not exist any more.
    pub fn begin_anew(&self) {
        self.0.watches.begin_anew(&self.kinds());
        self.0.scalers.begin_anew();
        self.0.definitions.begin_anew();
    }

    /// Returns the autoscaled objects in these namespaces, once all autoscalers were read. The Sync
    /// is notified when that may have changed; without namespaces there is no notification and no
    /// cost.
    pub async fn scaled(&self, owner: &SyncName, namespaces: &BTreeSet<Box<str>>) -> Scaled {
        self.0.scalers.require(owner, namespaces, &self.kinds());
        self.0.scalers.targets(namespaces).await
    }

    /// Returns an autoscaler of this object, or one whose target is not known yet.
    pub fn scaler_of(&self, id: &ObjectId) -> Option<ObjectId> {
        self.0.scalers.of(id)
    }

    /// True if the last discovery has every kind of autoscaler.
    pub fn knows_all_scalers(&self) -> bool {
        let kinds = self.kinds();
        SCALERS.iter().all(|(group, kind)| kinds.get(&GroupKind::new(group, kind)).is_some())
    }

    /// Reads the autoscalers of a namespace, in case that the watches are behind.
    pub async fn look_for_scalers(&self, namespace: &str) -> Result<(), Failure> {
        self.0.scalers.look(namespace).await
    }

    /// Subscribes a Sync to changes of CustomResourceDefinitions, or unsubscribes it.
    pub fn follow_definitions(&self, owner: &SyncName, wanted: bool) {
        self.0.definitions.require(owner, wanted);
    }

    /// Takes the changes of CustomResourceDefinitions since the last call.
    pub fn definition_news(&self, owner: &SyncName) -> AllNews {
        self.0.definitions.news(owner)
    }

    /// Runs discovery if a watched kind of a Sync is not found at its path any more. Returns the
    /// kinds that have moved, as changed definitions.
    pub async fn find_misplaced(&self, owner: &SyncName) -> Result<AllNews, Failure> {
        if !self.0.watches.is_misplaced(owner, &self.kinds()) {
            return Ok(AllNews::new());
        }
        self.discover().await?;
        let kinds = self.kinds();
        let moved = self.0.watches.moved(owner, &kinds).into_iter();
        let names = moved.filter_map(|kind| Some(format!("{}.{}", kinds.get(&kind)?.plural, kind.group)));
        Ok(names.map(|name| (name.into(), News::Changed)).collect())
    }

    /// Stops the watches that serve only this Sync.
    pub fn forget(&self, owner: &SyncName) {
        self.0.watches.release(owner);
        self.0.scalers.release(owner);
        self.0.definitions.require(owner, false);
    }

    /// Reads the observed objects of a Sync. Blocks all events while it runs, so be quick.
    pub fn observed<T>(&self, owner: &SyncName, read: impl FnOnce(&ObservedSet) -> T) -> T {
        let unlisted = self.0.watches.unlisted(owner, &self.kinds());
        self.0.store.read(owner, unlisted, read)
    }
}

/// Encodes a query parameter.
fn query(text: &str) -> String {
    kinds::escape(text)
}
