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

use super::super::orphans::Orphans;
use super::mandate::Pause;
use super::{Going, Leaving, told};
use crate::cluster::{Cluster, Following, NamespaceState};
use crate::object::ObjectId;

/// Pause between two failed attempts to list the objects that are left.
const AGAIN: Duration = Duration::from_secs(10);

/// Waits as long as a person may still answer.
pub(super) async fn wait(going: &Going<'_>, leaving: &Leaving, pause: Pause) -> Orphans {
    let (context, name) = (going.context, going.desk.name());
    context.dependencies.stays(name);
    let wake = context.cluster.wake(name);
    let ends = Ends::default();
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
        going.tell(told::held(name, pause, left.as_deref()));
        // A Sync with a ServiceAccount of its own sees the objects through watches of its own.
        let objects = cluster.as_ref().unwrap_or(&context.cluster).wake(name);
        tokio::select! {
            () = wake.notified() => {}
            () = objects.notified() => {}
            () = tokio::time::sleep(AGAIN), if left.is_none() => {}
        }
    }
}

/// The reason for the end of the namespace or of the CRD of Syncs, once one is noticed.
#[derive(Default)]
struct Ends(Arc<Mutex<Option<&'static str>>>);

impl Ends {
    fn why(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches both until the guards are dropped.
    fn follow(&self, cluster: &Cluster, namespace: &str, wake: &Arc<Notify>) -> [Following; 2] {
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
            cluster.follow_namespace(namespace, tell("NamespaceTerminating")),
            cluster.follow_definition_of_syncs(tell("DefinitionTerminating")),
        ]
    }
}
