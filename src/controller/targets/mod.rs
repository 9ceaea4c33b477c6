//! The clusters in which Syncs have their objects: others than the home cluster, and that one as
//! ServiceAccounts see it (`home_access.rs`).
//!
//! In: `spec.cluster` of a Sync, and the data of the Secret that it names.
//! Out: one [`Cluster`] for each Secret, shared by its Syncs. It has a connection, watches, limits
//! and a queue of its own; nothing of it is used for another cluster, and the home identity is
//! never used for it. A Secret with other data gets a new connection.

mod attempts;
mod home_access;
mod identity;
mod kubeconfig;
mod target_secret;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Context;
use super::reconcile_errors::cluster_error;
use super::spec::TargetSecret;
use super::status::StatusRecorder;
use super::status::board::{Board, FollowedCluster};
use crate::api::SyncName;
use crate::clock;
use crate::cluster::identity_checks::{begin_identity_check, end_identity_check, is_observed_in, proven_uid};
use crate::cluster::remote::{RemoteAccess, is_same_cluster, remote_cluster};
use crate::cluster::{
    ApiError, Cluster, Connection, SecretData, ServerEvent, WatchGuard, WatchRequirements, watch_server,
};
use crate::fair_queue::FairQueue;
use crate::object::ObjectId;
use crate::report::board::cluster_name;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::OutboundClient;
use attempts::Attempts;
use home_access::HomeAccess;
use identity::{Confirmation, IDENTITY_NAMESPACE, check_id, read_id, unread};
use kubeconfig::read_access;
use target_secret::{mark_of, secret_of};

/// Maximum number of Syncs of another cluster whose object statuses are read at the same time.
const READS: usize = 4;
/// Time for which the permission of a ServiceAccount to use a Secret is valid.
const FRESH: Duration = Duration::from_secs(60);
/// Maximum number of permissions that are kept.
const MAX_PERMISSIONS: usize = 4096;

/// Creates the connection to another cluster; tests replace it.
pub type RemoteConnector = Box<dyn Fn(&RemoteAccess) -> Result<Connection, String> + Send + Sync>;

/// The clusters with objects of Syncs: the home cluster and all others.
#[derive(Default)]
pub struct Targets {
    home: HomeAccess,
    state: Mutex<TargetState>,
    /// Attempts to connect, one at a time for each cluster.
    attempts: Attempts,
    connector: OnceLock<RemoteConnector>,
}

#[derive(Default)]
struct TargetState {
    /// Id of the home cluster, once read.
    home_id: Option<Box<str>>,
    /// Clusters by their marks.
    known: HashMap<Box<str>, Target>,
    /// Times at which a ServiceAccount was allowed to read the Secret of a mark.
    permitted: HashMap<(Box<str>, Box<str>), Instant>,
}

/// One other cluster.
struct Target {
    access: RemoteAccess,
    cluster: Cluster,
    /// Its id when it was connected.
    id: Box<str>,
    confirmation: Arc<Confirmation>,
    reads: FairQueue,
    /// Syncs that have their objects there.
    syncs: BTreeSet<SyncName>,
    #[expect(dead_code, reason = "the watch ends when it is dropped")]
    server: WatchGuard,
    #[expect(dead_code, reason = "the row of the page ends when it is dropped")]
    row: Option<FollowedCluster>,
}

impl Targets {
    fn lock(&self) -> MutexGuard<'_, TargetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects in another way from now on, for tests. Only the first call counts.
    pub fn connect_by(&self, connector: RemoteConnector) {
        let _ = self.connector.set(connector);
    }

    /// Returns the name of a Sync with the mark of its cluster; `None` while the id of the home
    /// cluster has to be read for that.
    pub(super) fn placed(&self, name: &SyncName, sync: &Value) -> Option<SyncName> {
        let Some(secret) = secret_of(sync) else { return Some(name.clone()) };
        let home = self.lock().home_id.clone()?;
        Some(name.in_target(&mark_of(&home, &name.namespace, &secret)))
    }

    /// Reads the id of the home cluster, once; false if that fails.
    pub(super) async fn identify_home(&self, cluster: &Cluster) -> bool {
        if self.lock().home_id.is_some() {
            return true;
        }
        let found = read_id(cluster).await.ok();
        if found.is_none() {
            tracing::warn!(
                "Syncs with spec.cluster wait: the uid of the namespace {IDENTITY_NAMESPACE} cannot be read"
            );
        }
        let mut state = self.lock();
        state.home_id = state.home_id.take().or(found);
        state.home_id.is_some()
    }

    /// Returns the home cluster as a user sees it, and connects as that user the first time.
    pub(super) async fn impersonate(
        &self,
        home: &Cluster,
        user: String,
        http2: bool,
    ) -> Result<Cluster, ReconcileError> {
        self.home.impersonate(home, user, http2).await
    }

    /// Runs a function for the home cluster as each impersonated user sees it.
    pub(super) async fn for_each_identity(&self, act: impl Fn(&Cluster)) {
        self.home.for_each(act).await;
    }

    /// Returns the queue for reads of statuses in the cluster of a Sync.
    pub(super) fn reads_of(&self, sync: &SyncName) -> FairQueue {
        let state = self.lock();
        let other = sync.target().and_then(|mark| state.known.get(mark));
        other.map_or(&self.home.reads, |target| &target.reads).clone()
    }

    /// Removes a Sync; a cluster without Syncs is left.
    pub(super) fn release(&self, sync: &SyncName) {
        let Some(mark) = sync.target() else { return };
        let mut state = self.lock();
        let Some(target) = state.known.get_mut(mark) else { return };
        target.syncs.remove(sync);
        if target.syncs.is_empty() {
            state.known.remove(mark);
        }
    }

    /// Notifies all Syncs with objects in other clusters.
    pub(super) fn wake_all(&self) {
        self.clusters().iter().for_each(Cluster::wake_all);
    }

    /// Sets the limit of writes per second, for each cluster.
    pub(super) fn set_rate(&self, per_second: u32, burst: u32) {
        self.clusters().iter().for_each(|cluster| cluster.set_rate(per_second, burst));
    }

    fn clusters(&self) -> Vec<Cluster> {
        self.lock().known.values().map(|target| target.cluster.clone()).collect()
    }

    /// Checks before a write that the cluster of a Sync is still the one that was connected, and
    /// that its connection was not replaced.
    pub(super) async fn confirm(&self, sync: &SyncName, cluster: &Cluster) -> Result<(), ApiError> {
        if sync.target().is_none() {
            return Ok(());
        }
        match self.confirmation(sync, cluster) {
            Some((id, confirmation)) => confirmation.check(cluster, &id).await,
            None => Err(ApiError::Unreachable("the access to its cluster was replaced".into())),
        }
    }

    /// Checks that what is observed in these places is of the cluster of the Sync. Its own objects
    /// are a proof of that, otherwise the cluster is asked.
    pub(super) async fn confirm_observed(
        &self,
        (sync, cluster): (&SyncName, &Cluster),
        need: &WatchRequirements,
    ) -> Result<(), ApiError> {
        let known = self.confirmation(sync, cluster).filter(|(_, known)| !known.is_doubted());
        match known.is_some() && is_observed_in(cluster, sync, need) {
            true => Ok(()),
            false => self.confirm(sync, cluster).await,
        }
    }

    /// Returns the uid that an apply of this object has to name, so that no other cluster can carry
    /// it out; none if the cluster has to be asked before the write.
    pub(super) fn named_uid(&self, sync: &SyncName, cluster: &Cluster, id: &ObjectId) -> Option<Box<str>> {
        self.confirmation(sync, cluster).filter(|(_, known)| !known.is_doubted())?;
        proven_uid(cluster, sync, id)
    }

    /// Asks the cluster of a Sync again before its next write.
    pub(super) fn doubt(&self, sync: &SyncName, cluster: &Cluster) {
        self.confirmation(sync, cluster).iter().for_each(|(_, confirmation)| confirmation.doubt());
    }

    /// Returns the id of another cluster and its last check, while it has this connection.
    fn confirmation(&self, sync: &SyncName, cluster: &Cluster) -> Option<(Box<str>, Arc<Confirmation>)> {
        let state = self.lock();
        let target = state.known.get(sync.target()?)?;
        is_same_cluster(&target.cluster, cluster).then(|| (target.id.clone(), target.confirmation.clone()))
    }

    /// Returns the cluster behind this access with its id, if it is connected.
    fn known(&self, sync: &SyncName, mark: &str, access: &RemoteAccess) -> Option<(Cluster, Box<str>)> {
        let mut state = self.lock();
        let target = state.known.get_mut(mark).filter(|target| target.access == *access)?;
        target.syncs.insert(sync.clone());
        Some((target.cluster.clone(), target.id.clone()))
    }

    /// Adds a cluster, or replaces the connection to it. Another task may have been faster.
    fn add(
        &self,
        sync: &SyncName,
        mark: &str,
        access: RemoteAccess,
        (cluster, id): (Cluster, Box<str>),
        (board, name): (&Board, &str),
    ) -> (Cluster, Box<str>) {
        if let Some(known) = self.known(sync, mark, &access) {
            return known;
        }
        let confirmation = Arc::<Confirmation>::default();
        let (of_watch, doubted, own) = (cluster.clone(), confirmation.clone(), id.clone());
        let server = watch_server(&cluster, IDENTITY_NAMESPACE, move |event| match event {
            ServerEvent::Rewound => of_watch.relist_all(),
            ServerEvent::Upgraded => of_watch.mark_all_unverified(),
            ServerEvent::Namespace(uid) if uid.as_ref() == Some(&own) => {}
            ServerEvent::Namespace(_) => doubted.doubt(),
        });
        let mut state = self.lock();
        let mut syncs = state.known.remove(mark).map(|before| before.syncs).unwrap_or_default();
        syncs.insert(sync.clone());
        let row = board.follow_cluster(name, &cluster);
        let reads = FairQueue::new(READS);
        let found = (cluster.clone(), id.clone());
        let target = Target { access, cluster, id, confirmation, reads, syncs, server, row };
        state.known.insert(mark.into(), target);
        found
    }

    fn is_permitted(&self, key: &(Box<str>, Box<str>)) -> bool {
        self.lock().permitted.get(key).is_some_and(|at| clock::since(*at) < FRESH)
    }

    fn permit(&self, key: (Box<str>, Box<str>)) {
        let mut state = self.lock();
        if state.permitted.len() >= MAX_PERMISSIONS {
            state.permitted.clear();
        }
        state.permitted.insert(key, clock::now());
    }
}

fn failure(cause: ErrorCause, message: String) -> ReconcileError {
    ReconcileError { cause, message, problems: Vec::new(), permanent: false }
}

/// True if the objects of a Sync are in another cluster, also if `spec.cluster` was removed.
pub(super) fn is_remote(recorder: &StatusRecorder) -> bool {
    recorder.name().target().is_some() || recorder.target_uid().is_some()
}

/// Refuses a Sync whose `spec.cluster` was removed: its objects are in the other cluster.
pub(super) fn check_home(recorder: &StatusRecorder) -> Result<(), ReconcileError> {
    match is_remote(recorder) {
        false => Ok(()),
        true => Err(failure(ErrorCause::SpecInvalid, CHANGED.to_owned())),
    }
}

/// Message about another `spec.cluster` than before.
const CHANGED: &str = "spec.cluster: it cannot be changed; create another Sync for another cluster";

/// Checks that a Sync may use the Secret of another cluster: its ServiceAccount can read the
/// Secret. `home` is the home cluster as that account sees it.
///
/// # Errors
///
/// A refusal also if `spec.cluster` is another one than before: objects would be left in the old
/// cluster.
pub(super) async fn check_use(
    context: &Context,
    sync: &SyncName,
    (secret, account): (&TargetSecret, Option<&str>),
    home: &Cluster,
) -> Result<(), ReconcileError> {
    let id = context.targets.lock().home_id.clone();
    let mark = id.map(|id| mark_of(&id, &sync.namespace, secret));
    if mark.is_none() || mark.as_deref() != sync.target() {
        return Err(failure(ErrorCause::SpecInvalid, CHANGED.to_owned()));
    }
    let is_own = context.process.is_own(&sync.namespace);
    let (Some(account), false) = (account, is_own) else { return Ok(()) };
    let key = (mark.unwrap_or_default().into_boxed_str(), Box::from(account));
    if context.targets.is_permitted(&key) {
        return Ok(());
    }
    match home.access_reviews().may_get_secret(&sync.namespace, &secret.name).await {
        Ok(true) => context.targets.permit(key),
        Ok(false) => {
            let message = format!(
                "spec.cluster: the ServiceAccount {account} of this Sync may not get the Secret {}; allow it with a Role",
                secret.name
            );
            return Err(failure(ErrorCause::SecretNotAllowed, message));
        }
        Err(error) => return Err(cluster_error(&error)),
    }
    Ok(())
}

/// Returns the cluster that the data of a Secret give access to. A new access is used only after
/// the id of the cluster was read.
///
/// # Errors
///
/// A refusal if it is another cluster than the one that the status names.
pub(super) async fn connect_target(
    context: &Context,
    recorder: &StatusRecorder,
    secret: &TargetSecret,
    data: Arc<SecretData>,
) -> Result<Cluster, ReconcileError> {
    let sync = recorder.name();
    let invalid = |why: String| unusable(secret, &why);
    let Some(mark) = sync.target() else { return Err(invalid("the Sync has no mark".to_owned())) };
    let access =
        read_access(&data.data, secret.key.as_deref()).map_err(|error| invalid(error.to_string()))?;
    drop(data);
    let (cluster, id) = match context.targets.known(sync, mark, &access) {
        Some(known) => known,
        None => {
            let anew = || connect_anew(context, sync, (secret, mark), access.clone());
            let attempt = context.targets.attempts.share(mark, &access, anew).await?;
            match attempt {
                Some(found) => found,
                // Another Sync has connected meanwhile.
                None => match context.targets.known(sync, mark, &access) {
                    Some(known) => known,
                    None => connect_anew(context, sync, (secret, mark), access).await?,
                },
            }
        }
    };
    check_id(recorder, &secret.name, &id).await.map(|()| cluster)
}

/// Connects to a cluster, and reads its id.
async fn connect_anew(
    context: &Context,
    sync: &SyncName,
    (secret, mark): (&TargetSecret, &str),
    access: RemoteAccess,
) -> Result<(Cluster, Box<str>), ReconcileError> {
    let invalid = |why: String| unusable(secret, &why);
    let connection = match context.targets.connector.get() {
        Some(connector) => connector(&access).map_err(invalid)?,
        None => {
            let rules = OutboundClient::new(&context.sources.repositories);
            let check = Arc::new(move |host: &str, port: u16| rules.addresses(host, port));
            Connection::to_remote(&access, check, context.settings().http2)
                .map_err(|error| invalid(error.to_string()))?
        }
    };
    let place = format!("{}/{}", sync.namespace, secret.name);
    let cluster = remote_cluster(&context.cluster, connection, &context.settings(), &place);
    let check = begin_identity_check(&cluster);
    let id = read_id(&cluster).await.map_err(|failure| unread(&secret.name, &failure))?;
    end_identity_check(&cluster, check);
    let name = cluster_name(&sync.namespace, &secret.name, secret.key.as_deref());
    Ok(context.targets.add(sync, mark, access, (cluster, id), (&context.reporting.board, &name)))
}

fn unusable(secret: &TargetSecret, why: &str) -> ReconcileError {
    failure(INVALID, format!("spec.cluster: the Secret {} cannot be used: {why}", secret.name))
}

/// Cause of a Secret that gives no access to another cluster.
const INVALID: ErrorCause = ErrorCause::Input("KubeconfigInvalid");

#[cfg(test)]
mod cluster_set_tests;
#[cfg(test)]
mod named_write_tests;
#[cfg(test)]
pub(super) mod tests;
