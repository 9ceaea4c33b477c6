//! Watches all objects of a kind of ours that a cluster may not serve.
//!
//! In: the collection. Out: [`KindWatchEvent`]s. Without the CustomResourceDefinition the watch is
//! asked for again only after minutes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::{WatchEvent, WatchTarget, follow};
use crate::api_client::ApiClient;
use crate::api_error::ApiError;
use crate::jitter::jitter;
use crate::syncs::WatchGuard;

/// Delay between attempts at a watch while the kind is not served: nothing waits for it.
const ABSENT: Duration = Duration::from_secs(600);

/// Event of the watch on a kind.
#[derive(Debug)]
pub enum KindWatchEvent {
    /// A new list begins.
    Begins,
    /// The current state of an object.
    Seen(Box<Map<String, Value>>),
    /// An object was deleted.
    Gone(Box<Map<String, Value>>),
    /// All existing objects were reported.
    Listed,
    /// The kind cannot be watched.
    Broken(ApiError),
}

/// Watches a collection, until the guard is dropped.
pub(crate) fn watch_kind(
    wire: ApiClient,
    target: WatchTarget,
    tell: impl FnMut(KindWatchEvent) + Send + 'static,
) -> WatchGuard {
    let tell = Arc::new(Mutex::new(tell));
    let watching = async move {
        loop {
            let (absent, tell) = (Arc::<Notify>::default(), tell.clone());
            let noted = absent.clone();
            let sink = move |event| {
                if matches!(&event, WatchEvent::Broken(failure) if failure.code() == Some(404)) {
                    noted.notify_one();
                }
                if let Some(event) = kind_event(event) {
                    tell.lock().unwrap_or_else(PoisonError::into_inner)(event);
                }
            };
            tokio::select! {
                () = follow(wire.clone(), target.clone(), sink) => {}
                () = absent.notified() => {}
            }
            tokio::time::sleep(jitter(ABSENT)).await;
        }
    };
    WatchGuard(tokio::spawn(watching).abort_handle())
}

fn kind_event(event: WatchEvent) -> Option<KindWatchEvent> {
    match event {
        WatchEvent::Begins => Some(KindWatchEvent::Begins),
        WatchEvent::Listed(_) => Some(KindWatchEvent::Listed),
        WatchEvent::Seen(object) => Some(KindWatchEvent::Seen(Box::new(object))),
        WatchEvent::Gone(object) => Some(KindWatchEvent::Gone(Box::new(object))),
        WatchEvent::Broken(failure) => Some(KindWatchEvent::Broken(failure)),
        // The watch on Syncs reports them, too.
        WatchEvent::Rewound | WatchEvent::Upgraded => None,
    }
}
