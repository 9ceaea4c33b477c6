//! Watches the Notifiers of the cluster, and writes their statuses.
//!
//! In: the watch on all Notifiers, and statuses to write.
//! Out: [`NotifierWatchEvent`]s. Without the CustomResourceDefinition the watch is asked for again
//! only after minutes.

use serde_json::{Map, Value, json};

use super::syncs::WatchGuard;
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{Inner, kinds};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;

/// Path of all Notifiers.
const NOTIFIERS: &str = "/apis/moorline.dev/v1alpha1/notifiers";

/// Event of the watch on Notifiers.
#[derive(Debug)]
pub enum NotifierWatchEvent {
    /// A new list begins.
    Begins,
    /// The current state of a Notifier.
    Seen(Box<Map<String, Value>>),
    /// A Notifier was deleted.
    Gone(Box<Map<String, Value>>),
    /// All existing Notifiers were reported.
    Listed,
    /// Notifiers cannot be watched.
    Broken(ApiError),
}

/// Requests about Notifiers.
#[derive(Clone, Copy)]
pub struct NotifierRequests<'a>(pub(super) &'a Inner);

impl NotifierRequests<'_> {
    /// Watches all Notifiers, until the guard is dropped.
    pub fn watch(&self, mut tell: impl FnMut(NotifierWatchEvent) + Send + 'static) -> WatchGuard {
        let target = WatchTarget {
            kind: GroupKind::new("moorline.dev", "Notifier"),
            namespace: None,
            patient: true,
            path: NOTIFIERS.to_owned(),
            selector: "labelSelector=".to_owned(),
            whole: true,
            watchable: true,
        };
        let sink = move |event| match event {
            WatchEvent::Begins => tell(NotifierWatchEvent::Begins),
            WatchEvent::Listed(_) => tell(NotifierWatchEvent::Listed),
            WatchEvent::Seen(object) => tell(NotifierWatchEvent::Seen(Box::new(object))),
            WatchEvent::Gone(object) => tell(NotifierWatchEvent::Gone(Box::new(object))),
            WatchEvent::Broken(failure) => tell(NotifierWatchEvent::Broken(failure)),
            // The watch on Syncs reports them, too.
            WatchEvent::Rewound | WatchEvent::Upgraded => {}
        };
        WatchGuard(tokio::spawn(follow(self.0.wire.clone(), target, sink)).abort_handle())
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
