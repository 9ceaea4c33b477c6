//! Detects a restored or upgraded API server, for a run that watches no Syncs.
//!
//! In: the namespace of the run, which hardly ever changes.
//! Out: [`SyncWatchEvent::Rewound`] and [`SyncWatchEvent::Upgraded`], as from the watch on Syncs.

use super::syncs::{Following, Told};
use super::watch::{Event, Target, follow};
use super::{Cluster, query};
use moorline_core::object::GroupKind;

impl Cluster {
    /// Reports that the server was set back to an earlier state or was upgraded, until the guard is
    /// dropped. Without the right to watch the namespace nothing is reported.
    pub fn follow_server(&self, namespace: &str, mut tell: impl FnMut(Told) + Send + 'static) -> Following {
        let target = Target {
            kind: GroupKind::new("", "Namespace"),
            namespace: None,
            patient: true,
            path: "/api/v1/namespaces".to_owned(),
            selector: format!("fieldSelector={}", query(&format!("metadata.name={namespace}"))),
            whole: true,
            watchable: true,
        };
        let sink = move |event| match event {
            Event::Rewound => tell(Told::Rewound),
            Event::Upgraded => tell(Told::Upgraded),
            Event::Begins | Event::Seen(_) | Event::Gone(_) | Event::Listed(_) | Event::Broken(_) => {}
        };
        Following(tokio::spawn(follow(self.0.wire.clone(), target, sink)).abort_handle())
    }
}
