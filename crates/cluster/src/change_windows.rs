//! Watches the change windows of the cluster, and writes their statuses.
//!
//! In: the watch on one of the two kinds, and statuses to write.
//! Out: [`WindowWatchEvent`]s. A kind that the server does not serve has no windows; that is said
//! only on evidence of discovery, because a server that has just started answers 404 for a moment.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::jitter::jitter;
use super::own_kinds::{GROUP, patch_status, watch_target};
use super::syncs::WatchGuard;
use super::watch::{WatchEvent, follow};
use super::{Cluster, kinds};
use crate::api_error::ApiError;
use moorline_core::object::GroupKind;
use moorline_runtime::clock;

/// Delay between attempts at a watch while the kind is not served.
const ABSENT: Duration = Duration::from_secs(600);
/// Interval of the check if discovery has found the kind since; it makes no request.
const SERVED_LOOK: Duration = Duration::from_secs(2);
/// Delays between attempts at a watch that should work: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Kind of change windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// ChangeWindow.
    Cluster,
    /// NamespaceChangeWindow.
    Namespace,
}

impl WindowKind {
    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "ChangeWindow",
            Self::Namespace => "NamespaceChangeWindow",
        }
    }

    /// Returns the plural of the kind.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "changewindows",
            Self::Namespace => "namespacechangewindows",
        }
    }
}

/// Event of a watch on windows.
#[derive(Debug)]
pub enum WindowWatchEvent {
    /// A new list begins.
    Begins,
    /// The current state of a window.
    Seen(Box<Map<String, Value>>),
    /// A window was deleted.
    Gone(Box<Map<String, Value>>),
    /// All existing windows were reported.
    Listed,
    /// The server does not serve the kind.
    Absent,
    /// Windows cannot be watched.
    Broken(ApiError),
}

/// Requests about change windows.
#[derive(Clone, Copy)]
pub struct WindowRequests<'a>(&'a Cluster);

impl<'a> WindowRequests<'a> {
    /// Creates the requests of a cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self(cluster)
    }

    /// Watches all windows of a kind, until the guard is dropped.
    pub fn watch(&self, kind: WindowKind, tell: impl FnMut(WindowWatchEvent) + Send + 'static) -> WatchGuard {
        let (cluster, tell) = (self.0.clone(), Arc::new(Mutex::new(tell)));
        let watching = async move {
            let mut pause = PAUSES.0;
            loop {
                let (refused, told) = (Arc::<Notify>::default(), tell.clone());
                let noted = refused.clone();
                let listed = Arc::new(Mutex::new(false));
                let is_listed = listed.clone();
                let sink = move |event| {
                    let event = match event {
                        WatchEvent::Begins => WindowWatchEvent::Begins,
                        WatchEvent::Listed(_) => {
                            *is_listed.lock().unwrap_or_else(PoisonError::into_inner) = true;
                            WindowWatchEvent::Listed
                        }
                        WatchEvent::Seen(object) => WindowWatchEvent::Seen(Box::new(object)),
                        WatchEvent::Gone(object) => WindowWatchEvent::Gone(Box::new(object)),
                        WatchEvent::Broken(failure) => {
                            if matches!(failure.code(), Some(403 | 404)) {
                                noted.notify_one();
                            }
                            WindowWatchEvent::Broken(failure)
                        }
                        // The watch on Syncs reports them, too.
                        WatchEvent::Rewound | WatchEvent::Upgraded => return,
                    };
                    told.lock().unwrap_or_else(PoisonError::into_inner)(event);
                };
                tokio::select! {
                    () = follow(cluster.0.wire.clone(), watch_target(kind.name(), kind.plural(), ""), sink) => {}
                    () = refused.notified() => {}
                }
                if lacks(&cluster, kind).await {
                    tell.lock().unwrap_or_else(PoisonError::into_inner)(WindowWatchEvent::Absent);
                    wait_until_served(&cluster, kind).await;
                    continue;
                }
                if *listed.lock().unwrap_or_else(PoisonError::into_inner) {
                    pause = PAUSES.0;
                }
                tokio::time::sleep(jitter(pause)).await;
                pause = (2 * pause).min(PAUSES.1);
            }
        };
        WatchGuard(tokio::spawn(watching).abort_handle())
    }

    /// Writes the status of a window; `namespace` is none for a ChangeWindow.
    ///
    /// # Guarantees
    ///
    /// Writes only to the window with this uid.
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
        kind: WindowKind,
        (namespace, name, uid): (Option<&str>, &str, &str),
        status: &Value,
    ) -> Result<(), ApiError> {
        let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let (plural, name) = (kind.plural(), kinds::escape(name));
        let uri = format!("/apis/{GROUP}/v1alpha1/{place}{plural}/{name}/status");
        patch_status(&self.0.0, uri, uid, status).await.map(drop)
    }
}

/// True if discovery shows that the server serves Syncs and not this kind.
async fn lacks(cluster: &Cluster, kind: WindowKind) -> bool {
    let discovery = cluster.discovery();
    let serves = |kind: &str| cluster.kinds().get(&GroupKind::new(GROUP, kind)).is_some();
    if discovery.ensure().await.is_err() {
        return false;
    }
    // An older result may be from before the definitions were installed, or deleted.
    if (!serves("Sync") || serves(kind.name())) && discovery.refresh().await.is_err() {
        return false;
    }
    serves("Sync") && !serves(kind.name()) && !cluster.kinds().is_stale(GROUP)
}

/// Waits until discovery has found the kind, or for a long time.
async fn wait_until_served(cluster: &Cluster, kind: WindowKind) {
    let begun = clock::now();
    let kind = GroupKind::new(GROUP, kind.name());
    let long = jitter(ABSENT);
    while clock::since(begun) < long && cluster.kinds().get(&kind).is_none() {
        tokio::time::sleep(SERVED_LOOK).await;
    }
}
