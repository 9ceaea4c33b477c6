//! Discovery of an API server: its kinds, its version, and the replicas paths of its kinds.
//!
//! In: requests of one identity. Out: the results of the last run, shared by all callers. They are
//! fetched again on request, because kinds come and go.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::kinds::Kinds;
use super::label_discovery::LabelDiscovery;
use super::replicas::ReplicaPathCache;
use crate::api_client::ApiClient;
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_engine::desired::ReplicaPaths;
use moorline_runtime::clock;

/// Discovery results of one API server, as one identity sees them.
pub struct Discovery {
    wire: ApiClient,
    kinds: Mutex<Arc<Kinds>>,
    /// Time of the last run.
    last: tokio::sync::Mutex<Option<Instant>>,
    /// Valid while the kinds are unchanged.
    replica_paths: ReplicaPathCache,
    pub(super) labels: LabelDiscovery,
    /// The server's version, once it was requested.
    version: Mutex<Option<Box<str>>>,
}

impl Discovery {
    pub(super) fn new(wire: ApiClient) -> Self {
        Self {
            wire,
            kinds: Mutex::default(),
            last: tokio::sync::Mutex::default(),
            replica_paths: ReplicaPathCache::default(),
            labels: LabelDiscovery::default(),
            version: Mutex::default(),
        }
    }

    /// Returns the kinds of the last run.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs discovery unless it was run before.
    pub async fn ensure(&self) -> Result<(), ApiError> {
        let mut last = self.last.lock().await;
        if last.is_none() {
            let begun = clock::now();
            self.fetch().await?;
            *last = Some(begun);
        }
        Ok(())
    }

    /// Runs discovery; true if the kinds have changed. Concurrent callers share the next response.
    pub async fn refresh(&self) -> Result<bool, ApiError> {
        let (asked, before) = (clock::now(), self.kinds());
        let mut last = self.last.lock().await;
        if last.is_none_or(|last| last < asked) {
            let begun = clock::now();
            self.fetch().await?;
            *last = Some(begun);
        }
        Ok(before != self.kinds())
    }

    /// Drops the cached results, so that they are fetched again when needed.
    pub async fn reset(&self) {
        *self.last.lock().await = None;
        self.replica_paths.lock().await.clear();
        self.labels.reset().await;
    }

    async fn fetch(&self) -> Result<(), ApiError> {
        let found = Kinds::discover(&self.wire).await?;
        let mut replica_paths = self.replica_paths.lock().await;
        let mut known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if **known != found {
            *known = Arc::new(found);
            replica_paths.clear();
        }
        Ok(())
    }

    /// Returns the replicas paths of these kinds and versions, if they can be scaled.
    pub async fn replica_paths(
        &self,
        wanted: BTreeSet<(GroupKind, Box<str>)>,
    ) -> Result<ReplicaPaths, ApiError> {
        self.replica_paths.find(&self.wire, &self.kinds(), wanted).await
    }

    /// Forgets the replicas paths of these kinds; their definitions are read again when needed.
    pub async fn forget_replica_paths(&self, kinds: &BTreeSet<GroupKind>) {
        self.replica_paths.lock().await.retain(|kind, _| !kinds.contains(kind));
    }

    /// Returns the server's version, such as `v1.33.4`, which is read once; none if the server does
    /// not report one.
    pub async fn server_version(&self) -> Result<Option<Box<str>>, ApiError> {
        let known = self.version.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let found = self.wire.release().await?;
        self.version.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        Ok(found)
    }

    /// True if this is a sandbox on this machine, which serves no other daemon.
    pub async fn is_sandbox(&self) -> bool {
        self.wire.is_sandbox().await
    }

    /// Drops the cached version after an upgrade.
    pub(super) fn forget_server_version(&self) {
        self.version.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.wire.complaints.note_upgrade();
    }
}
