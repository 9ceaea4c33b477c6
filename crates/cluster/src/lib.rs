//! The cluster: what is asked of its API server, and what it tells.
//!
//! In: a connection and who we are. Out: [`Cluster`], through which the daemon sees objects (as metadata, by
//! watches) and writes them (by server-side apply). Each identity has a `Cluster` of its own; what it may not see
//! it does not know.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
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

/// Statuses that are written at one time.
const STATUSES: usize = 8;

/// One API server, as one user sees it; cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>, Option<Arc<Together>>, Option<Permit>);

struct Inner {
    wire: Wire,
    limits: Limits,
    notary: Notary,
    gate: Gate,
    /// Statuses wait for each other, never for objects.
    desk: Gate,
    kinds: Mutex<Arc<Kinds>>,
    /// When the server was asked last.
    discovery: tokio::sync::Mutex<Option<Instant>>,
    store: Store,
    watches: Watches,
    scalers: Scalers,
    definitions: Definitions,
    /// Where kinds keep their replicas, as long as the server's kinds are the same.
    defined: tokio::sync::Mutex<Defined>,
    sweep: Sweep,
    /// The server's version, once it was asked for.
    version: Mutex<Option<Box<str>>>,
    /// Answers came without the managed fields, which was said.
    is_hidden: AtomicBool,
}

/// What bounds the writes of one user, and of all together.
#[derive(Clone)]
struct Limits {
    concurrency: usize,
    rate: Arc<Rate>,
}

impl Cluster {
    /// The cluster behind a connection, which is written to within the bounds of the settings.
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

    /// The same cluster behind another connection, as another user: each has its own share of what may be under way,
    /// so that none waits for another's slow answers.
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

    /// The same cluster for writes that belong together, of which the first is not sent any more once `stop` says so.
    pub fn until(&self, stop: &Stop) -> Self {
        Self(self.0.clone(), Some(Arc::new(Together::new(stop))), self.2.clone())
    }

    /// The same cluster for writes that are decided in the current term: none of them is sent in a later one.
    pub fn of_this_term(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), Some(self.terms().current()))
    }

    /// The same cluster for writes that are decided in whatever term they are sent.
    pub fn of_any_term(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), None)
    }

    /// True if this daemon may write now.
    pub fn may_write(&self) -> bool {
        self.terms().current().may_write()
    }

    /// The terms in which this daemon may write.
    pub fn terms(&self) -> &Terms {
        &self.0.wire.terms
    }

    /// The proofs of ownership, shared by all identities.
    pub fn notary(&self) -> &Notary {
        &self.0.notary
    }

    /// What was learnt last about the server's kinds.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.0.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the server for its kinds, if nobody has yet.
    pub async fn know(&self) -> Result<(), Failure> {
        let mut last = self.0.discovery.lock().await;
        if last.is_none() {
            let begun = clock::now();
            self.ask().await?;
            *last = Some(begun);
        }
        Ok(())
    }

    /// Asks the server for its kinds; true if something is new. Those who ask while it is asked share the next answer.
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

    /// Has the server asked for its kinds when they are needed next, and found out again what was seen of them.
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

    /// Wakes when something changed that a Sync may care about.
    pub fn wake(&self, owner: &SyncName) -> Arc<tokio::sync::Notify> {
        self.0.store.wake(owner)
    }

    /// Wakes when objects of a Sync were written, by whomever.
    pub fn stir(&self, owner: &SyncName) -> Arc<tokio::sync::Notify> {
        self.0.store.stir(owner)
    }

    /// The objects of a Sync that were written since this was asked last.
    pub fn stirred(&self, owner: &SyncName) -> BTreeSet<ObjectId> {
        self.0.store.stirred(owner)
    }

    /// Sees to it that everything a Sync needs is watched, and waits until it was listed. What could not be is told.
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
        // Where the whole cluster may not be seen, the namespaces in use may.
        let forbidden = blind.iter().any(|(_, failure)| failure.code() == Some(403));
        match forbidden && watches.require(owner, need, &kinds) {
            true => watches.listed(owner, need, within).await,
            false => blind,
        }
    }

    /// The kinds of which there are objects with the label of a Sync, found by listing every kind that is not
    /// watched anyway, and whether all kinds may be listed. Those who ask while it runs share the next one.
    pub async fn sweep(&self, owner: &SyncName) -> Result<(BTreeSet<GroupKind>, bool), Failure> {
        let watched = self.0.watches.kinds();
        self.0.sweep.kinds(&self.0.wire, &self.kinds(), watched, owner).await
    }

    /// Has these objects verified once more, although nothing was seen to happen to them.
    pub fn distrust(&self, owner: &SyncName, ids: &[ObjectId]) {
        self.0.store.distrust(owner, ids);
    }

    /// Has all objects verified once more.
    pub fn distrust_all(&self) {
        self.forget_version();
        self.0.store.distrust_all();
    }

    /// Writes at most so often from now on, as whomever.
    pub fn bound(&self, per_second: u32, burst: u32) {
        self.0.limits.rate.set(per_second, burst);
    }

    /// Wakes all Syncs.
    pub fn wake_all(&self) {
        self.0.store.wake_all();
    }

    /// The server has gone back to an earlier state, so that what was seen may be no more: all is listed anew.
    pub fn begin_anew(&self) {
        self.0.watches.begin_anew(&self.kinds());
        self.0.scalers.begin_anew();
        self.0.definitions.begin_anew();
    }

    /// The objects in these namespaces that others scale, once all who do were read. A Sync that
    /// asks is woken when that may have changed; one that asks about no namespace is not, and costs nothing.
    pub async fn scaled(&self, owner: &SyncName, namespaces: &BTreeSet<Box<str>>) -> Scaled {
        self.0.scalers.require(owner, namespaces, &self.kinds());
        self.0.scalers.targets(namespaces).await
    }

    /// Somebody who scales this object, or of whom nobody knows yet what it scales.
    pub fn scaler_of(&self, id: &ObjectId) -> Option<ObjectId> {
        self.0.scalers.of(id)
    }

    /// True if the server serves every kind of objects that scale others, as it was asked last.
    pub fn knows_all_scalers(&self) -> bool {
        let kinds = self.kinds();
        SCALERS.iter().all(|(group, kind)| kinds.get(&GroupKind::new(group, kind)).is_some())
    }

    /// Asks for what scales others in a namespace, in case that its watches are behind.
    pub async fn look_for_scalers(&self, namespace: &str) -> Result<(), Failure> {
        self.0.scalers.look(namespace).await
    }

    /// Has a Sync woken when something becomes of CustomResourceDefinitions, or no longer.
    pub fn follow_definitions(&self, owner: &SyncName, wanted: bool) {
        self.0.definitions.require(owner, wanted);
    }

    /// What has become of CustomResourceDefinitions since this was asked last.
    pub fn definition_news(&self, owner: &SyncName) -> AllNews {
        self.0.definitions.news(owner)
    }

    /// Asks the server for its kinds if one of a Sync is not served where it was, and gives those that are elsewhere now, as
    /// definitions that have changed.
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

    /// Watches nothing more for this Sync alone.
    pub fn forget(&self, owner: &SyncName) {
        self.0.watches.release(owner);
        self.0.scalers.release(owner);
        self.0.definitions.require(owner, false);
    }

    /// Reads what is known of a Sync's objects. Nothing else is seen while it is read, so be quick.
    pub fn observed<T>(&self, owner: &SyncName, read: impl FnOnce(&ObservedSet) -> T) -> T {
        let unlisted = self.0.watches.unlisted(owner, &self.kinds());
        self.0.store.read(owner, unlisted, read)
    }
}

/// A text as a part of a query.
fn query(text: &str) -> String {
    kinds::escape(text)
}
