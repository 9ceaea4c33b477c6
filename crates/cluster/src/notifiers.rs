//! Watches the Notifiers of the cluster, and writes their statuses.
//!
//! In: the watch on all Notifiers, and statuses to write.
//! Out: [`KindWatchEvent`]s.

use serde_json::Value;

use super::own_kinds::{patch_status, watch_target};
use super::syncs::WatchGuard;
use super::watch::kind_watch::{KindWatchEvent, watch_kind};
use super::{Cluster, Inner, kinds};
use crate::api_error::ApiError;

/// Requests about Notifiers.
#[derive(Clone, Copy)]
pub struct NotifierRequests<'a>(&'a Inner);

impl<'a> NotifierRequests<'a> {
    /// Creates the requests of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self(&cluster.0)
    }

    /// Watches all Notifiers, until the guard is dropped.
    pub fn watch(&self, tell: impl FnMut(KindWatchEvent) + Send + 'static) -> WatchGuard {
        watch_kind(self.0.wire.clone(), watch_target("Notifier", "notifiers", ""), tell)
    }

    /// Writes the status of a Notifier.
    ///
    /// # Guarantees
    ///
    /// Writes only to the Notifier with this uid.
    ///
    /// # Cancellation
    ///
    /// Dropping the future leaves open whether the status was written.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn write_status(
        &self,
        (namespace, name, uid): (&str, &str, &str),
        status: &Value,
    ) -> Result<(), ApiError> {
        let uri = format!(
            "/apis/moorline.dev/v1alpha1/namespaces/{namespace}/notifiers/{}/status",
            kinds::escape(name)
        );
        patch_status(self.0, uri, uid, status).await.map(drop)
    }
}
