//! Client of one API server: watches objects as metadata, and writes them by server-side apply.
//!
//! In: a connection as one identity.
//! Out: a [`Cluster`]. Each identity has a `Cluster` of its own, and knows only the objects that it
//! may see.
//!
//! # Guarantees
//!
//! A function that reads writes nothing. Functions that write say so, and have sections of their
//! own. Every request has a deadline.
//!
//! # Cancellation
//!
//! A read ends with its future: its request is dropped, and what other callers share stays.
//!
//! # Errors
//!
//! Requests fail with an [`ApiError`]: the answer of the server, or why there is none. An object
//! that does not exist is `None`, not an error.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Input never causes a panic; tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod access_review;
mod api_client;
mod api_error;
mod apply;
mod autoscalers;
mod busy_server;
mod cancellation;
mod change_log;
pub mod change_windows;
mod connect;
mod contained_objects;
mod crd_install;
mod crd_watch;
mod discovery;
mod error_table;
mod evidence;
mod heartbeat;
pub mod identity_checks;
mod jitter;
pub mod key_secret;
mod kinds;
mod kubeconfig;
mod label_discovery;
pub mod lease;
mod live_objects;
mod lookups;
mod manifests;
mod notary;
mod notifiers;
mod object_requests;
mod outage_log;
mod own_kinds;
mod pagination;
mod rate_limit;
pub mod remote;
mod replicas;
mod rewind_detection;
#[cfg(test)]
mod scripted_server;
mod server_watch;
mod service_accounts;
mod shared_watches;
mod statuses;
mod store;
mod substitution_sources;
mod sync_client;
mod sync_sets;
mod syncs;
mod third_party;
mod transport;
pub mod viewer;
mod watch;
mod watches;
mod whole_objects;
mod write_limiter;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use crate::access_review::AccessReviews;
pub use crate::api_error::{ApiError, ApiStatus, StatusCause};
pub use crate::autoscalers::{AutoscaledObjects, Autoscalers};
pub use crate::busy_server::while_busy;
pub use crate::cancellation::CancelFlag;
pub use crate::contained_objects::{ContainerContent, find_contained_object};
pub use crate::crd_install::{CrdComparison, CrdInstallResult, compare_definitions, install_crd};
pub use crate::crd_watch::{CrdChange, CrdChanges};
pub use crate::discovery::Discovery;
pub use crate::error_table::{
    ErrorClass, RetryWhen, UnreachableWebhook, classify_error, is_missing_own_permission, table as answers,
    unreachable_webhook,
};
pub use crate::evidence::judge_evidence;
pub use crate::live_objects::live_objects;
pub use crate::lookups::{Lookup, ServerInfo};
pub use crate::manifests::{ManifestChange, apply_manifest};
pub use crate::object_requests::{NamespaceState, ObjectRequests};
pub use crate::server_watch::{ServerEvent, ServerFacts, follow_server, watch_server};
pub use crate::service_accounts::{AccountMetadata, AccountToken, ServiceAccounts};
pub use crate::shared_watches::SharedWatch;
pub use crate::substitution_sources::{SubstitutionSources, SubstitutionValues, ValuesWatchEvent};
pub use crate::sync_client::{OperatorError, SyncListEvent, SyncResource};
pub use crate::third_party::ThirdPartyKind;
pub use apply::{ApplyResult, Force};
pub use connect::{ConnectError, Connection, KubeconfigContexts, connect};
pub use heartbeat::{Heartbeat, LeaseState};
pub use jitter::jitter;
pub use kinds::{Kinds, ServedKind};
pub use notary::Notary;
pub use notifiers::NotifierRequests;
pub use statuses::{StatusReads, WorkloadChildren};
pub use sync_sets::SyncSetRequests;
pub use syncs::{
    LatestSnapshot, LiveSync, SecretData, SyncRequests, SyncSnapshot, SyncText, SyncWatchEvent, WatchGuard,
    name_of, version,
};
pub use watch::{POLL, kind_watch::KindWatchEvent};
pub use watches::WatchRequirements;

use crate::api_client::ApiClient;
use crate::cancellation::WriteGroup;
use crate::change_log::ChangeLog;
use crate::crd_watch::CrdWatch;
use crate::kinds::escape as query;
use crate::outage_log::OutageLog;
use crate::rate_limit::{Limits, RateLimit};
use crate::rewind_detection::WriteHistory;
use crate::shared_watches::SharedWatches;
use crate::write_limiter::WriteLimiter;
use lease::{Terms, WritePermit};
use moorline_api::SyncName;
use moorline_core::object::{GroupKind, ObjectId};
use moorline_engine::observed::ObservedSet;
use moorline_journal::Entry;
use moorline_metrics::Metrics;
use moorline_settings::Settings;
use store::Store;
use watches::Watches;

/// Maximum number of concurrent status writes.
const STATUSES: usize = 8;

/// One API server, as seen by one identity; cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>, Option<Arc<WriteGroup>>, Option<WritePermit>, Option<Arc<Entry>>);

struct Inner {
    wire: ApiClient,
    limits: Limits,
    notary: Notary,
    /// Journal of the writes.
    changes: ChangeLog,
    gate: WriteLimiter,
    /// Limits status writes separately, so that they never wait for object writes.
    status_limiter: WriteLimiter,
    discovery: Discovery,
    store: Store,
    watches: Watches,
    /// Watches of single ConfigMaps and Secrets.
    shared_watches: SharedWatches,
    scalers: Autoscalers,
    definitions: CrdWatch,
    /// Set once responses without managedFields were logged.
    is_hidden: AtomicBool,
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
        let wire = ApiClient {
            client: connection.client,
            metrics,
            terms: terms.into(),
            timeout: settings.request_timeout,
            open,
            write_history: WriteHistory::default(),
            complaints: OutageLog::default(),
            is_local: connection.is_local,
        };
        let rate = Arc::new(RateLimit::new(settings.qps, settings.burst));
        let limits = Limits { concurrency: settings.concurrency, rate };
        Self::with(wire, limits, Notary::default(), ChangeLog::default())
    }

    /// Returns the same cluster as another identity. Each identity has its own limit of concurrent
    /// writes, so that none waits for slow responses of another.
    pub fn with_connection(&self, connection: Connection) -> Self {
        let wire = ApiClient { client: connection.client, ..self.0.wire.clone() };
        Self::with(wire, self.0.limits.clone(), self.0.notary.clone(), self.0.changes.clone())
    }

    fn with(wire: ApiClient, limits: Limits, notary: Notary, changes: ChangeLog) -> Self {
        let store = Store::new(notary.clone());
        let gate = |most| WriteLimiter::new(most, limits.rate.clone(), wire.metrics.clone());
        let inner = Arc::new(Inner {
            gate: gate(limits.concurrency),
            status_limiter: gate(STATUSES),
            limits,
            notary,
            changes,
            watches: Watches::new(wire.clone(), store.clone()),
            shared_watches: SharedWatches::default(),
            scalers: Autoscalers::new(wire.clone(), store.clone()),
            definitions: CrdWatch::new(wire.clone(), store.clone()),
            discovery: Discovery::new(wire.clone()),
            wire,
            is_hidden: AtomicBool::new(false),
            store,
        });
        Self(inner, None, None, None)
    }

    /// Returns the same cluster for a group of writes, which is not started once `stop` is set.
    pub fn cancelled_by(&self, stop: &CancelFlag) -> Self {
        Self(self.0.clone(), Some(Arc::new(WriteGroup::new(stop))), self.2.clone(), self.3.clone())
    }

    /// Returns the same cluster for writes decided in the current term. A later term sends none.
    pub fn in_current_term(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), Some(self.terms().current()), self.3.clone())
    }

    /// Returns the same cluster for writes that are valid in any term.
    pub fn in_any_term(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), None, self.3.clone())
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

    /// Returns the access reviews of this identity.
    pub fn access_reviews(&self) -> AccessReviews<'_> {
        AccessReviews(&self.0)
    }

    /// Returns the requests about single objects.
    pub fn objects(&self) -> ObjectRequests<'_> {
        ObjectRequests(self)
    }

    /// Returns the reads of whole objects, for their health.
    pub fn status_reads(&self) -> StatusReads<'_> {
        StatusReads(self)
    }

    /// Returns the ConfigMaps and Secrets with substitution values.
    pub fn substitution_sources(&self) -> SubstitutionSources<'_> {
        SubstitutionSources(&self.0)
    }

    /// Returns the requests about Syncs.
    pub fn syncs(&self) -> SyncRequests<'_> {
        SyncRequests(&self.0)
    }

    /// Returns the discovery results of the API server.
    pub fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }

    /// Returns the kinds of the last discovery.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.0.discovery.kinds()
    }

    /// Notified when something changed that concerns a Sync.
    pub fn changed_notify(&self, owner: &SyncName) -> Arc<tokio::sync::Notify> {
        self.0.store.changed_notify(owner)
    }

    /// Notified when objects of a Sync were written, by any manager.
    pub fn written_notify(&self, owner: &SyncName) -> Arc<tokio::sync::Notify> {
        self.0.store.written_notify(owner)
    }

    /// Takes the objects of a Sync that were written since the last call.
    pub fn take_written(&self, owner: &SyncName) -> BTreeSet<ObjectId> {
        self.0.store.take_written(owner)
    }

    /// Watches everything that a Sync needs, and waits until it is listed. Returns the kinds that
    /// could not be listed.
    pub async fn ensure_watches(
        &self,
        owner: &SyncName,
        need: &WatchRequirements,
        within: Duration,
    ) -> Vec<(GroupKind, ApiError)> {
        self.0.discovery.labels.note(owner, &need.kinds).await;
        self.0.watches.ensure(owner, need, &self.kinds(), within).await
    }

    /// Finds the kinds with objects that carry the label of a Sync, by listing every kind that is
    /// not watched. The flag is true if all kinds may be listed. Concurrent callers share the next
    /// run.
    pub async fn discover_labelled_kinds(
        &self,
        owner: &SyncName,
    ) -> Result<(BTreeSet<GroupKind>, bool), ApiError> {
        let watched = self.0.watches.kinds();
        self.0.discovery.labels.kinds(&self.0.wire, &self.kinds(), watched, owner).await
    }

    /// Sets the limit of writes per second, for all identities.
    pub fn set_rate(&self, per_second: u32, burst: u32) {
        self.0.limits.rate.set(per_second, burst);
    }

    /// Notifies all Syncs.
    pub fn wake_all(&self) {
        self.0.store.wake_all();
    }

    /// Lists everything again after the server was set back to an earlier state, where known
    /// objects may not exist any more.
    pub fn relist_all(&self) {
        self.0.watches.restart(&self.kinds());
        self.0.scalers.restart();
        self.0.definitions.restart();
    }

    /// Returns the autoscaled objects in these namespaces, once all autoscalers were read. The Sync
    /// is notified when that may have changed; without namespaces there is no notification and no
    /// cost.
    pub async fn autoscaled_objects(
        &self,
        owner: &SyncName,
        namespaces: &BTreeSet<Box<str>>,
    ) -> AutoscaledObjects {
        self.0.scalers.require(owner, namespaces, &self.kinds());
        self.0.scalers.targets(namespaces).await
    }

    /// Returns the watched autoscalers.
    pub fn autoscalers(&self) -> &Autoscalers {
        &self.0.scalers
    }

    /// Subscribes a Sync to changes of CustomResourceDefinitions, or unsubscribes it.
    pub fn set_crd_subscription(&self, owner: &SyncName, wanted: bool) {
        self.0.definitions.require(owner, wanted);
    }

    /// Takes the changes of CustomResourceDefinitions since the last call.
    pub fn take_crd_changes(&self, owner: &SyncName) -> CrdChanges {
        self.0.definitions.news(owner)
    }

    /// Runs discovery if a watched kind of a Sync is not found at its path any more. Returns the
    /// kinds that have moved, as changed definitions.
    pub async fn find_moved_kinds(&self, owner: &SyncName) -> Result<CrdChanges, ApiError> {
        if !self.0.watches.is_misplaced(owner, &self.kinds()) {
            return Ok(CrdChanges::new());
        }
        self.0.discovery.refresh().await?;
        let kinds = self.kinds();
        let moved = self.0.watches.moved(owner, &kinds).into_iter();
        let names = moved.filter_map(|kind| Some(format!("{}.{}", kinds.get(&kind)?.plural, kind.group)));
        Ok(names.map(|name| (name.into(), CrdChange::Changed)).collect())
    }

    /// Stops the watches that serve only this Sync.
    pub fn release_watches(&self, owner: &SyncName) {
        self.0.watches.release(owner);
        self.0.scalers.release(owner);
        self.0.definitions.require(owner, false);
    }

    /// Reads the observed objects of a Sync. Blocks all events while it runs, so be quick.
    pub fn read_observed<T>(&self, owner: &SyncName, read: impl FnOnce(&ObservedSet) -> T) -> T {
        let unlisted = self.0.watches.unlisted(owner, &self.kinds());
        self.0.store.read(owner, unlisted, read)
    }
}
