//! All Syncs of the cluster: which there are, each kept by a task of its own.
//!
//! In: the watch on Syncs, and what webhooks call about. Out: tasks that begin and end with them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::keep::{Seen, Sighting, keep};
use super::{Context, evidence};
use crate::api::SyncName;
use crate::chance;
use crate::cluster::Told;
use crate::report::board::Stance;
use crate::serve::hooks::Called;

/// Follows all Syncs until the daemon ends. Whatever is `called` has those look that it is about.
pub async fn run(context: Arc<Context>, mut called: mpsc::Receiver<Called>) {
    let (send, mut told) = mpsc::unbounded_channel();
    let instance = context.settings().instance.clone();
    let _following = context.cluster.follow_syncs(instance.as_deref(), move |event| {
        // Nobody listens any more only when the daemon ends.
        let _ = send.send(event);
    });
    let mut all = All {
        context: context.clone(),
        kept: HashMap::new(),
        leaving: HashMap::new(),
        tasks: JoinSet::new(),
        listing: None,
        early: Some(Vec::new()),
        history: 0,
    };
    let mut ending = context.ending.clone();
    let mut beat = tokio::time::interval(BEAT);
    let mut sweep = tokio::time::interval_at(tokio::time::Instant::now() + SWEEP, SWEEP);
    loop {
        tokio::select! {
            event = told.recv() => match event {
                Some(event) => all.take(event),
                None => break,
            },
            _ = all.tasks.join_next(), if !all.tasks.is_empty() => {}
            Some(called) = called.recv() => {
                let syncs = context.neighbours.called(&called);
                tracing::debug!(syncs, repositories = ?called, "a webhook has called");
            }
            _ = beat.tick() => context.health.beat(),
            _ = sweep.tick() => {
                let context = context.clone();
                chance::aside(move || context.repositories.remove_unused());
            }
            _ = ending.wait_for(|ending| *ending) => break,
        }
    }
    // Each lets what is under way come to its end, within the grace that the context gives.
    all.kept.clear();
    let _ =
        tokio::time::timeout(context.grace, async { while all.tasks.join_next().await.is_some() {} }).await;
}

/// How often the daemon says that it lives.
pub(super) const BEAT: std::time::Duration = std::time::Duration::from_secs(10);

/// How often mirrors are looked for that no Sync uses any more. Not at once: a Sync that cannot be followed for now, as
/// for want of a Secret, is to find its mirror again.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(600);

struct All {
    context: Arc<Context>,
    kept: HashMap<SyncName, Kept>,
    /// Those that are gone, whose tasks may not have ended.
    leaving: HashMap<SyncName, watch::Sender<Seen>>,
    tasks: JoinSet<()>,
    /// What was told since the beginning, as long as not everything was.
    listing: Option<BTreeSet<SyncName>>,
    /// Syncs that were told before all were, at the first time: none of them acts before it knows its neighbours.
    early: Option<Vec<(SyncName, Seen)>>,
    /// How often the server has gone back to an earlier state.
    history: u64,
}

/// A Sync that is kept.
struct Kept {
    uid: Box<str>,
    seen: watch::Sender<Seen>,
}

impl All {
    fn take(&mut self, event: Told) {
        match event {
            Told::Begins => self.listing = Some(BTreeSet::new()),
            Told::Seen(name, sync) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(name.clone());
                }
                let sync = Arc::new(serde_json::Value::Object(*sync));
                self.seen(name, Some(Sighting { sync, history: self.history }));
            }
            Told::Gone(name) => self.gone(&name),
            Told::Listed => {
                let there = self.listing.take().unwrap_or_default();
                let lost: Vec<SyncName> =
                    self.kept.keys().filter(|name| !there.contains(*name)).cloned().collect();
                lost.iter().for_each(|name| self.gone(name));
                self.context.registry.only(&there);
                for (name, sync) in self.early.take().into_iter().flatten() {
                    self.seen(name, sync);
                }
                self.context.health.ready(Ok(()));
                self.context.board.stand(Stance::Serves);
                self.context.cluster.wake_all();
            }
            Told::Rewound => {
                self.history += 1;
                self.context.begin_anew();
            }
            Told::Upgraded => self.context.distrust_all(),
            Told::Broken(failure) => {
                let message = match failure.code() {
                    Some(404) => "the cluster has no Syncs: install their definition (moorline crd | kubectl apply --server-side -f -)".to_owned(),
                    _ => format!("Syncs cannot be seen: {failure}"),
                };
                tracing::warn!("{message}");
                // Those that are known are followed on.
                if self.kept.is_empty() {
                    self.context.health.ready(Err(message));
                }
            }
        }
    }

    fn seen(&mut self, name: SyncName, sync: Seen) {
        let uid: Box<str> = sync.as_ref().and_then(|it| uid(&it.sync)).unwrap_or_default().into();
        if self.kept.get(&name).is_some_and(|kept| kept.uid != uid) {
            // The one that was known is gone; nobody saw it go.
            self.gone(&name);
        }
        self.context.registry.add(&name);
        self.context.cluster.notary().knows(&name, &uid);
        self.context.neighbours.add(&name);
        self.context.dependencies.add(&name);
        if !self.kept.contains_key(&name)
            && let Some(bytes) = sync.as_ref().and_then(|it| held_bytes(&it.sync))
        {
            self.context.repositories.memory().reserve(&name.to_string(), bytes);
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
        self.tasks.spawn(after(last, keep_counted(context, name.clone(), receive)));
        self.kept.insert(name, Kept { uid, seen: send });
    }

    fn gone(&mut self, name: &SyncName) {
        if let Some(kept) = self.kept.remove(name) {
            kept.seen.send_replace(None);
            self.leaving.retain(|_, left| !left.is_closed());
            self.leaving.insert(name.clone(), kept.seen);
        }
        if let Some(early) = &mut self.early {
            early.retain(|(known, _)| known != name);
        }
        self.context.cluster.notary().forgets(name);
        let held = self.context.registry.remove(name);
        self.context.neighbours.wake(&held);
        self.context.claim_rights.forget(name);
        self.context.neighbours.remove(name);
        let memory = self.context.repositories.memory();
        memory.release(&name.to_string());
        memory.release(&evidence::holder(name));
        self.context.dependencies.remove(name);
        // What it applied may be taken over now.
        self.context.cluster.wake_all();
    }
}

fn uid(sync: &serde_json::Value) -> Option<&str> {
    sync.pointer("/metadata/uid")?.as_str()
}

/// The memory of the revision that was kept before.
fn held_bytes(sync: &serde_json::Value) -> Option<u64> {
    sync.pointer("/status/revision/held/bytes")?.as_u64()
}

/// Keeps a Sync, and forgets what was counted of it when it is gone: until then its task may have counted on.
async fn keep_counted(context: Arc<Context>, name: SyncName, seen: watch::Receiver<Seen>) {
    keep(context.clone(), name.clone(), seen).await;
    if !*context.ending.borrow() {
        context.metrics.forget(&name.to_string());
        context.board.remove(&name);
        context.lines.forget(&name);
    }
}

/// Keeps a Sync once the task of the last one of its name has ended: what that one gives back at its end, such as
/// watches, goes by the name.
async fn after(last: Option<watch::Sender<Seen>>, keep: impl Future<Output = ()>) {
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
