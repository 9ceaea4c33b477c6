//! Detects a restored or upgraded API server, for a run that watches no Syncs; and follows outage
//! and version of a server.
//!
//! In: the namespace of the run, which hardly ever changes; results of requests.
//! Out: [`SyncWatchEvent::Rewound`] and [`SyncWatchEvent::Upgraded`], as from the watch on Syncs;
//! [`ServerFacts`].

use jiff::Timestamp;

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

/// Version and outage of an API server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Version, such as `v1.33.4`; `None` while it is not known.
    pub release: Option<Box<str>>,
    /// Time since which the server has not answered; `None` while it answers.
    pub silent_since: Option<Timestamp>,
}

/// Reports the facts of a server, at once and when they change, until the guard is dropped. The
/// version is read at the start, after each outage and after an upgrade; nothing else is requested.
pub fn follow_server(cluster: &Cluster, mut tell: impl FnMut(ServerFacts) + Send + 'static) -> WatchGuard {
    let wire = cluster.0.wire.clone();
    let following = async move {
        let mut news = wire.complaints.news();
        let (mut facts, mut read) = (ServerFacts::default(), None);
        loop {
            let now = *news.borrow_and_update();
            facts.silent_since = now.silent_since;
            if now.silent_since.is_some() {
                read = None;
            } else if read != Some(now.upgrades) {
                if let Ok(Some(release)) = wire.release().await {
                    facts.release = Some(release);
                }
                read = Some(now.upgrades);
                // The read itself may have begun an outage.
                if news.has_changed().unwrap_or_default() {
                    continue;
                }
            }
            tell(facts.clone());
            if news.changed().await.is_err() {
                return;
            }
        }
    };
    WatchGuard(tokio::spawn(following).abort_handle())
}
