//! Runs one worker for each SyncSet of the cluster.
//!
//! In: the watch on SyncSets. Out: worker tasks that live as long as their sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::super::Context;
use super::super::definition_update::update_definition;
use super::set_worker::run_set;
use crate::api::{SyncName, sync_set_definition};
use crate::cluster::{KindWatchEvent, SyncSetRequests, name_of};

/// The worker of a set.
struct SetTask {
    uid: Box<str>,
    newest: watch::Sender<Arc<Value>>,
    task: AbortHandle,
}

impl Drop for SetTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows the SyncSets without end.
pub(super) async fn keep_sync_sets(context: &Arc<Context>) {
    let (send, mut events) = mpsc::unbounded_channel();
    let instance = context.settings().instance.clone();
    let _watching = SyncSetRequests::new(&context.cluster).watch(instance.as_deref(), move |event| {
        // The receiver is dropped only with this function.
        let _ = send.send(event);
    });
    let mut sets: BTreeMap<SyncName, SetTask> = BTreeMap::new();
    let (mut listing, mut is_defined, mut is_refused) = (None, false, false);
    while let Some(event) = events.recv().await {
        match event {
            KindWatchEvent::Begins => listing = Some(BTreeSet::new()),
            KindWatchEvent::Seen(object) => {
                let Some(name) = name_of(&object) else { continue };
                if let Some(listing) = &mut listing {
                    listing.insert(name.clone());
                }
                take_up(context, &mut sets, name, Value::Object(*object));
            }
            KindWatchEvent::Gone(object) => {
                name_of(&object).and_then(|name| sets.remove(&name));
            }
            KindWatchEvent::Listed => {
                is_refused = false;
                if let Some(there) = listing.take() {
                    sets.retain(|name, _| there.contains(name));
                }
                if !std::mem::replace(&mut is_defined, true) {
                    update_definition(&context.cluster, sync_set_definition()).await;
                }
            }
            KindWatchEvent::Broken(failure) => {
                tracing::debug!(%failure, "SyncSets cannot be watched");
                if failure.code() == Some(403) && !std::mem::replace(&mut is_refused, true) {
                    tracing::warn!(
                        %failure,
                        "list and watch on syncsets.moorline.dev is missing: no SyncSet is served"
                    );
                }
            }
        }
    }
}

fn take_up(context: &Arc<Context>, sets: &mut BTreeMap<SyncName, SetTask>, name: SyncName, set: Value) {
    let uid = set.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().into();
    let set = Arc::new(set);
    if let Some(known) = sets.get(&name).filter(|known| known.uid == uid && !known.task.is_finished()) {
        known.newest.send_replace(set);
        return;
    }
    let (newest, snapshots) = watch::channel(set);
    let task = tokio::spawn(run_set(context.clone(), name.clone(), snapshots)).abort_handle();
    sets.insert(name, SetTask { uid, newest, task });
}
