//! Whether the API server is still the one that it was, for a run that watches no Syncs.
//!
//! In: the namespace of the run, which hardly ever changes. Out: [`Told::Rewound`] and [`Told::Upgraded`], as the watch
//! on Syncs tells them.

use super::syncs::{Following, Told};
use super::watch::{Event, Target, follow};
use super::{Cluster, query};
use moorline_core::object::GroupKind;

impl Cluster {
    /// Tells when the server has gone back to an earlier state or is another release, until the guard is dropped. Where
    /// the namespace may not be watched nothing is told.
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
