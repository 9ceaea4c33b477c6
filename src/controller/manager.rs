//! Starts and stops one worker task for each Sync of the cluster.
//!
//! In: the watch on Syncs, and calls of webhooks. Out: worker tasks that live as long as their
//! Syncs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Context;
use super::peers::claim_evidence;
use super::resource::run_worker;
use crate::api::SyncName;
use crate::chance;
use crate::cluster::{LatestSnapshot, SyncSnapshot, SyncText, SyncWatchEvent};
use crate::report::board::{DaemonRole, HOME_CLUSTER};
use crate::source::webhook_call::RepositoryNames;

/// Serves all Syncs until the daemon ends. Each call of a webhook lets the Syncs of its
/// repositories poll at once.
pub async fn run(context: Arc<Context>, mut called: mpsc::Receiver<RepositoryNames>) {
    let (send, mut events) = mpsc::unbounded_channel();
    let instance = context.settings().instance.clone();
    let _following = context.cluster.syncs().watch(instance.as_deref(), move |event| {
        // The receiver is dropped only when the daemon ends.
        let _ = send.send(event);
    });
    let _home = context.reporting.board.follow_cluster(HOME_CLUSTER, &context.cluster);
    let mut all = Manager {
        context: context.clone(),
        kept: HashMap::new(),
        leaving: HashMap::new(),
        tasks: JoinSet::new(),
        unplaced: HashMap::new(),
        is_home_unknown: false,
        listing: None,
        early: Some(Vec::new()),
        history: 0,
    };
    let mut ending = context.process.ending.clone();
    let mut beat = tokio::time::interval(BEAT);
    let mut sweep = tokio::time::interval_at(tokio::time::Instant::now() + SWEEP, SWEEP);
    loop {
        let mut next = None;
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => next = Some(event),
                None => break,
            },
            _ = all.tasks.join_next(), if !all.tasks.is_empty() => {}
            Some(called) = called.recv() => {
                let syncs = context.peers.request_polls(&called);
                let sets = context.sync_sets.request_polls(&called);
                context.reporting.notifications.pull_requests.call(&called);
                tracing::debug!(syncs, sets, repositories = ?called, "webhook received");
            }
            _ = beat.tick() => {
                context.reporting.health.beat();
                all.is_home_unknown = false;
            }
            _ = sweep.tick() => {
                let context = context.clone();
                chance::spawn_blocking_deterministic(move || context.sources.repositories.remove_unused());
            }
            _ = ending.wait_for(|ending| *ending) => break,
        }
        all.place_others(next.as_ref()).await;
        if let Some(event) = next {
            all.take(event);
        }
    }
    // Each worker finishes the work in progress, within the grace period of the context.
    all.kept.clear();
    let _ =
        tokio::time::timeout(context.process.grace, async { while all.tasks.join_next().await.is_some() {} })
            .await;
}

/// Interval of the daemon's sign of life.
pub(super) const BEAT: std::time::Duration = std::time::Duration::from_secs(10);

/// Interval at which unused mirrors are removed. The first run is not at the start: a Sync that
/// cannot be served for now, for example because a Secret is missing, needs its mirror later.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(600);

struct Manager {
    context: Arc<Context>,
    kept: HashMap<SyncName, WorkerHandle>,
    /// Deleted Syncs whose tasks may still run.
    leaving: HashMap<SyncName, watch::Sender<LatestSnapshot>>,
    tasks: JoinSet<()>,
    /// Syncs with objects in other clusters that wait for the id of the home cluster.
    unplaced: HashMap<SyncName, LatestSnapshot>,
    /// The id of the home cluster could not be read since the last beat.
    is_home_unknown: bool,
    /// Syncs that the current list has named so far; none outside of a list.
    listing: Option<BTreeSet<SyncName>>,
    /// Syncs of the first list, until it is complete: none of them may act before it knows its
    /// peers.
    early: Option<Vec<(SyncName, LatestSnapshot)>>,
    /// Counts how often the server has gone back to an earlier state.
    history: u64,
}

/// Handle to the worker of a Sync.
struct WorkerHandle {
    uid: Box<str>,
    seen: watch::Sender<LatestSnapshot>,
}

impl Manager {
    /// Reads the id of the home cluster before the first Sync with objects in another one is
    /// served, because its marks there contain that id; and serves those that have waited for it.
    async fn place_others(&mut self, next: Option<&SyncWatchEvent>) {
        let asks = next.is_some_and(|event| {
            let SyncWatchEvent::Seen(_, sync) = event else { return false };
            sync.get("spec").and_then(|spec| spec.get("cluster")).is_some_and(|it| !it.is_null())
        });
        if self.is_home_unknown || !asks && self.unplaced.is_empty() {
            return;
        }
        self.is_home_unknown = !self.context.targets.identify_home(&self.context.cluster).await;
        if !self.is_home_unknown {
            for (name, sync) in std::mem::take(&mut self.unplaced) {
                self.seen(name, sync);
            }
        }
    }

    fn take(&mut self, event: SyncWatchEvent) {
        match event {
            SyncWatchEvent::Begins => self.listing = Some(BTreeSet::new()),
            SyncWatchEvent::Seen(name, sync) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(name.clone());
                }
                let sync = Arc::new(SyncText::of(serde_json::Value::Object(*sync)));
                self.context.sync_sets.note_sync(&name, Some(&sync));
                self.seen(name, Some(SyncSnapshot { sync, history: self.history }));
            }
            SyncWatchEvent::Gone(name) => self.gone(&name),
            SyncWatchEvent::Listed => {
                let there = self.listing.take().unwrap_or_default();
                let lost: Vec<SyncName> =
                    self.kept.keys().filter(|name| !there.contains(*name)).cloned().collect();
                lost.iter().for_each(|name| self.gone(name));
                self.context.peers.retain_listed(&there);
                self.context.sync_sets.note_listed(&there);
                for (name, sync) in self.early.take().into_iter().flatten() {
                    self.seen(name, sync);
                }
                self.context.reporting.health.set_readiness(Ok(()));
                self.context.reporting.board.stand(DaemonRole::Serving);
                self.context.wake_all();
            }
            SyncWatchEvent::Rewound => {
                self.history += 1;
                self.context.relist_all();
            }
            SyncWatchEvent::Upgraded => self.context.distrust_all(),
            SyncWatchEvent::Broken(failure) => {
                let message = match failure.code() {
                    Some(404) => "the cluster does not serve Syncs: install the CustomResourceDefinition (moorline crd | kubectl apply --server-side -f -)".to_owned(),
                    _ => format!("Syncs cannot be listed: {failure}"),
                };
                tracing::warn!("{message}");
                // Known Syncs are still served.
                if self.kept.is_empty() {
                    self.context.reporting.health.set_readiness(Err(message));
                }
            }
        }
    }

    fn seen(&mut self, name: SyncName, sync: LatestSnapshot) {
        let value = sync.as_ref().map(|it| it.sync.read());
        let placed = match &value {
            Some(it) => self.context.targets.placed(&name, it),
            None => Some(name.clone()),
        };
        let Some(name) = placed else {
            self.unplaced.insert(name, sync);
            return;
        };
        let uid: Box<str> = value.as_ref().and_then(uid).unwrap_or_default().into();
        if self.kept.get(&name).is_some_and(|kept| kept.uid != uid) {
            // The Sync was deleted and created again, and the watch did not report the deletion.
            self.gone(&name);
        }
        self.context.cluster.notary().set_uid(&name, &uid);
        self.context.peers.add(&name);
        if !self.kept.contains_key(&name)
            && let Some(bytes) = value.as_ref().and_then(held_bytes)
        {
            self.context.sources.repositories.memory().reserve_kept(&name.to_string(), bytes);
        }
        if let Some(early) = &mut self.early {
            early.push((name, sync));
            return;
        }
        if let Some(kept) = self.kept.get(&name) {
            kept.seen.send_replace(sync);
            return;
        }
        let (send, receive) = watch::channel(sync);
        let (context, last) = (self.context.clone(), self.leaving.remove(&name));
        self.tasks.spawn(serve_sync(last, context, name.clone(), receive));
        self.kept.insert(name, WorkerHandle { uid, seen: send });
    }

    fn gone(&mut self, name: &SyncName) {
        self.context.sync_sets.note_sync(name, None);
        self.unplaced.remove(name);
        if let Some(kept) = self.kept.remove(name) {
            kept.seen.send_replace(None);
            self.leaving.retain(|_, left| !left.is_closed());
            self.leaving.insert(name.clone(), kept.seen);
        }
        if let Some(early) = &mut self.early {
            early.retain(|(known, _)| known != name);
        }
        self.context.cluster.notary().remove_uid(name);
        self.context.peers.remove(name);
        let memory = self.context.sources.repositories.memory();
        memory.release_holder(&name.to_string());
        memory.release_holder(&claim_evidence::holder(name));
        // Other Syncs may adopt its objects now.
        self.context.wake_all();
    }
}

fn uid(sync: &serde_json::Value) -> Option<&str> {
    sync.pointer("/metadata/uid")?.as_str()
}

/// Returns the bytes that the held revision took in memory, from the status.
fn held_bytes(sync: &serde_json::Value) -> Option<u64> {
    sync.pointer("/status/revision/held/bytes")?.as_u64()
}

/// Serves a Sync, once the previous task of its name has ended.
pub(super) async fn serve_sync(
    last: Option<watch::Sender<LatestSnapshot>>,
    context: Arc<Context>,
    name: SyncName,
    seen: watch::Receiver<LatestSnapshot>,
) {
    // Boxed: a future that is passed to another one is in its memory twice.
    after(last, Box::pin(keep_counted(context, name, seen))).await;
}

/// Runs the worker of a Sync, and drops its metrics when it has ended: until then the task may have
/// counted more.
async fn keep_counted(context: Arc<Context>, name: SyncName, seen: watch::Receiver<LatestSnapshot>) {
    run_worker(context.clone(), name.clone(), seen).await;
    if !*context.process.ending.borrow() {
        context.reporting.metrics.remove_sync(&name.to_string());
        context.reporting.board.remove(&name);
        context.reporting.lines.forget(&name);
    }
}

/// Runs `keep` once the previous task of the same name has ended: that task releases watches and
/// other things by name at its end.
async fn after(last: Option<watch::Sender<LatestSnapshot>>, keep: impl Future<Output = ()>) {
    if let Some(last) = last {
        last.closed().await;
    }
    keep.await;
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_sync_begins_when_the_last_one_of_its_name_has_ended() {
        let begun = std::cell::Cell::new(false);
        let (send, receive) = watch::channel(None);
        let mut task = Box::pin(after(Some(send), async { begun.set(true) }));
        assert!(task.as_mut().now_or_never().is_none());
        assert!(!begun.get());
        drop(receive);
        assert!(task.now_or_never().is_some());
        assert!(begun.get());
        assert!(after(None, async {}).now_or_never().is_some());
    }
}
