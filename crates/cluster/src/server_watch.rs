//! Detects a restored or upgraded API server, for a run that watches no Syncs; and follows outage
//! and version of a server.
//!
//! In: the namespace of the run, which hardly ever changes; results of requests.
//! Out: [`ServerEvent`]s, and [`ServerFacts`].

use jiff::Timestamp;

use super::syncs::WatchGuard;
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{Cluster, query};
use moorline_core::object::GroupKind;

/// News of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// It was set back to an earlier state.
    Rewound,
    /// It was upgraded or downgraded.
    Upgraded,
    /// Uid of the watched namespace; none if there is no such namespace.
    Namespace(Option<Box<str>>),
}

/// Reports the news of a server until the guard is dropped. Without the right to watch the
/// namespace nothing is reported.
pub fn watch_server(
    cluster: &Cluster,
    namespace: &str,
    mut tell: impl FnMut(ServerEvent) + Send + 'static,
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
    let mut is_listed = false;
    let sink = move |event| match event {
        WatchEvent::Rewound => tell(ServerEvent::Rewound),
        WatchEvent::Upgraded => tell(ServerEvent::Upgraded),
        WatchEvent::Begins => is_listed = false,
        WatchEvent::Seen(object) => {
            is_listed = true;
            let uid = object.get("metadata").and_then(|metadata| metadata.get("uid")?.as_str());
            tell(ServerEvent::Namespace(uid.map(Box::from)));
        }
        WatchEvent::Listed(_) if is_listed => {}
        WatchEvent::Gone(_) | WatchEvent::Listed(_) => tell(ServerEvent::Namespace(None)),
        WatchEvent::Broken(_) => {}
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
