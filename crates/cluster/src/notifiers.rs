//! Watches the Notifiers of the cluster, and writes their statuses.
//!
//! In: the watch on all Notifiers, and statuses to write.
//! Out: [`NotifierWatchEvent`]s. Without the CustomResourceDefinition the watch is asked for again
//! only after minutes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::jitter::jitter;
use super::syncs::WatchGuard;
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{Cluster, Inner, kinds};
use crate::api_client::{ApiRequest, METADATA};
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_metrics::RequestClass;

/// Delay between attempts at a watch while the kind is not served: nothing waits for it.
const ABSENT: Duration = Duration::from_secs(600);
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
pub struct NotifierRequests<'a>(&'a Inner);

impl<'a> NotifierRequests<'a> {
    /// Creates the requests of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self(&cluster.0)
    }

    /// Watches all Notifiers, until the guard is dropped.
    pub fn watch(&self, tell: impl FnMut(NotifierWatchEvent) + Send + 'static) -> WatchGuard {
        let (wire, tell) = (self.0.wire.clone(), Arc::new(Mutex::new(tell)));
        let watching = async move {
            loop {
                let (absent, tell) = (Arc::<Notify>::default(), tell.clone());
                let noted = absent.clone();
                let sink = move |event| {
                    if matches!(&event, WatchEvent::Broken(failure) if failure.code() == Some(404)) {
                        noted.notify_one();
                    }
                    if let Some(event) = notifier_event(event) {
                        tell.lock().unwrap_or_else(PoisonError::into_inner)(event);
                    }
                };
                tokio::select! {
                    () = follow(wire.clone(), target(), sink) => {}
                    () = absent.notified() => {}
                }
                tokio::time::sleep(jitter(ABSENT)).await;
            }
        };
        WatchGuard(tokio::spawn(watching).abort_handle())
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

fn notifier_event(event: WatchEvent) -> Option<NotifierWatchEvent> {
    match event {
        WatchEvent::Begins => Some(NotifierWatchEvent::Begins),
        WatchEvent::Listed(_) => Some(NotifierWatchEvent::Listed),
        WatchEvent::Seen(object) => Some(NotifierWatchEvent::Seen(Box::new(object))),
        WatchEvent::Gone(object) => Some(NotifierWatchEvent::Gone(Box::new(object))),
        WatchEvent::Broken(failure) => Some(NotifierWatchEvent::Broken(failure)),
        // The watch on Syncs reports them, too.
        WatchEvent::Rewound | WatchEvent::Upgraded => None,
    }
}
