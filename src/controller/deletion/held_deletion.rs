//! Waits while a deletion is held: only the status is written, with the objects that are left.
//!
//! In: a Sync whose deletion is held.
//! Out: the objects that stay.
//!
//! The wait ends when a person can no longer answer, because the namespace or the CRD of Syncs is
//! being deleted. It also ends when nothing is left to decide, because all objects are gone. Every
//! other end is a change of the Sync, for which the caller waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::decision::HeldReason;
use super::orphans::Orphans;
use super::status_texts;
use super::{DeletionContext, DeletionRequest};
use crate::cluster::{Cluster, NamespaceState, WatchGuard};
use crate::object::ObjectId;

/// Pause between two failed attempts to list the objects that are left.
const AGAIN: Duration = Duration::from_secs(10);

/// Waits as long as a person may still answer.
pub(super) async fn wait(
    going: &DeletionContext<'_>,
    leaving: &DeletionRequest,
    pause: HeldReason,
) -> Orphans {
    let (context, name) = (going.context, going.resource_recorder.name());
    context.peers.cancel_departure(name);
    let wake = context.cluster.changed_notify(name);
    let ends = TerminationWatch::default();
    let _watches = ends.follow(&context.cluster, &name.namespace, &wake);
    loop {
        let cluster = going.known(leaving).await;
        if let Some(why) = ends.why() {
            return Orphans::all(cluster.as_ref(), name, why);
        }
        let left: Option<Vec<ObjectId>> = cluster.as_ref().map(|cluster| going.left(cluster));
        if left.as_ref().is_some_and(Vec::is_empty) && !going.has_last_hooks() {
            return Orphans::default();
        }
        going.report_status(status_texts::held(name, pause, left.as_deref()));
        // A Sync with a ServiceAccount of its own sees the objects through watches of its own.
        let objects = cluster.as_ref().unwrap_or(&context.cluster).changed_notify(name);
        tokio::select! {
            () = wake.notified() => {}
            () = objects.notified() => {}
            () = tokio::time::sleep(AGAIN), if left.is_none() => {}
        }
    }
}

/// The reason for the end of the namespace or of the CRD of Syncs, once one is noticed.
#[derive(Default)]
struct TerminationWatch(Arc<Mutex<Option<&'static str>>>);

impl TerminationWatch {
    fn why(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches both until the guards are dropped.
    fn follow(&self, cluster: &Cluster, namespace: &str, wake: &Arc<Notify>) -> [WatchGuard; 2] {
        let tell = |why: &'static str| {
            let (ends, wake) = (self.0.clone(), wake.clone());
            move |state| {
                if state != NamespaceState::Active {
                    *ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    wake.notify_one();
                }
            }
        };
        [
            cluster.objects().watch_namespace(namespace, tell("NamespaceTerminating")),
            cluster.objects().watch_sync_crd(tell("DefinitionTerminating")),
        ]
    }
}
