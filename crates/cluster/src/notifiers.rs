//! Watches the Notifiers of the cluster, and writes their statuses.
//!
//! In: the watch on all Notifiers, and statuses to write.
//! Out: [`KindWatchEvent`]s.

use serde_json::{Value, json};

use super::syncs::WatchGuard;
use super::watch::WatchTarget;
use super::watch::kind_watch::{KindWatchEvent, watch_kind};
use super::{Cluster, Inner, kinds};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;

/// Path of all Notifiers.
const NOTIFIERS: &str = "/apis/moorline.dev/v1alpha1/notifiers";

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
        watch_kind(self.0.wire.clone(), target(), tell)
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
        let steps = json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]);
        let call = ApiRequest::new(RequestClass::Status, "patch", uri)
            .accept(METADATA)
            .content("application/json-patch+json", steps.to_string().into_bytes());
        self.0.status_limiter.send(&self.0.wire, call, None).await.map(drop)
    }
}

fn target() -> WatchTarget {
    WatchTarget {
        kind: GroupKind::new("moorline.dev", "Notifier"),
        namespace: None,
        patient: true,
        path: NOTIFIERS.to_owned(),
        selector: "labelSelector=".to_owned(),
        whole: true,
        watchable: true,
    }
}
