//! Detects a restored or upgraded API server, for a run that watches no Syncs.
//!
//! In: the namespace of the run, which hardly ever changes.
//! Out: [`SyncWatchEvent::Rewound`] and [`SyncWatchEvent::Upgraded`], as from the watch on Syncs.

use super::syncs::{SyncWatchEvent, WatchGuard};
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{Cluster, query};
use moorline_core::object::GroupKind;

/// Reports that the server was set back to an earlier state or was upgraded, until the guard is
/// dropped. Without the right to watch the namespace nothing is reported.
pub fn watch_server(
    cluster: &Cluster,
    namespace: &str,
    mut tell: impl FnMut(SyncWatchEvent) + Send + 'static,
) -> WatchGuard {
    let target = WatchTarget {
        kind: GroupKind::new("", "Namespace"),
        namespace: None,
        patient: true,
        path: "/api/v1/namespaces".to_owned(),
        selector: format!("fieldSelector={}", query(&format!("metadata.name={namespace}"))),
        whole: true,
        watchable: true,
    };
    let sink = move |event| match event {
        WatchEvent::Rewound => tell(SyncWatchEvent::Rewound),
        WatchEvent::Upgraded => tell(SyncWatchEvent::Upgraded),
        WatchEvent::Begins
        | WatchEvent::Seen(_)
        | WatchEvent::Gone(_)
        | WatchEvent::Listed(_)
        | WatchEvent::Broken(_) => {}
    };
    WatchGuard(tokio::spawn(follow(cluster.0.wire.clone(), target, sink)).abort_handle())
}
