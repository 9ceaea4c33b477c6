//! Reads trees, Events and logs for viewers, and makes plans that they ask for.
//!
//! In: requests of the status page. Out: a tree or Events that all viewers of a Sync share for
//! [`shared_reads::MAX_AGE`], a plan that they share for [`PLAN_AGE`], or a log. Everything is read
//! with the rights of the Sync, within bounds, when somebody opens a page. Nothing is watched for a
//! tree.

mod event_reader;
mod live_objects;
mod log_reader;
mod next_plan;
#[cfg(test)]
mod plan_tests;
mod shared_reads;
mod tree_reader;
mod view_reads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::Context;
use crate::api::SyncName;
use crate::cluster::{ApiError, Cluster};
use crate::object::GroupKind;
use crate::report::live_tree::{EventList, LeftOut, LiveTree};
use crate::report::next_plan::NextPlan;
use crate::sanitize::sanitize;
use crate::serve::LiveRequest;
use crate::token_bucket::TokenBucket;
pub use live_objects::serve_live_objects;
use log_reader::MAX_LOGS;
pub(crate) use next_plan::HeldBackSyncs;
use next_plan::make_plan;
use shared_reads::SharedReads;
use view_reads::ViewReads;

/// Burst of lists for all viewers, and lists in a second after that.
const RATE: (u32, u32) = (192, 16);
/// Trees and lists of Events that are read at the same time, so that the memory is bounded.
const MAX_READS: usize = 2;
/// Lists of one read at the same time.
const SIDE_BY_SIDE: usize = 4;
/// Time limit of one read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The most objects of a list.
const MAX_LISTED: usize = 2000;
/// The most bytes of the responses of one read. Each list in progress may add one page.
const MAX_BYTES: usize = 32 << 20;

/// The longest time for which a plan is shown again.
const PLAN_AGE: Duration = Duration::from_secs(30);
/// Viewers who wait for plans at the same time. One plan is made at a time.
const MAX_PLAN_VIEWERS: usize = 32;

/// Serves the views of all Syncs.
pub(super) struct LiveViews {
    context: Arc<Context>,
    reads: ViewReads<LiveTree, EventList>,
    lists: TokenBucket,
    logs: Arc<Semaphore>,
    plans: SharedReads<NextPlan>,
    plan_viewers: Semaphore,
    plan_turn: Semaphore,
}

/// Bounds of one read that its lists share.
struct ReadBudget {
    bytes: AtomicUsize,
    deadline: Instant,
}

impl LiveViews {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            reads: ViewReads::new(MAX_READS),
            lists: TokenBucket::new(RATE),
            logs: Arc::new(Semaphore::new(MAX_LOGS)),
            plans: SharedReads::lasting(PLAN_AGE),
            plan_viewers: Semaphore::new(MAX_PLAN_VIEWERS),
            plan_turn: Semaphore::new(1),
        }
    }

    /// Answers a request. The requester may have disconnected.
    pub(super) async fn answer(&self, request: LiveRequest) {
        match request {
            // Objects have a limit of their own.
            LiveRequest::Object(wanted) => {
                let _ = wanted.answer.send(Err("objects are not read with trees".to_owned()));
            }
            LiveRequest::Tree { sync, answer } => {
                let _ = answer.send(self.tree(&sync).await);
            }
            LiveRequest::Events { sync, answer } => {
                let tree = tree_reader::read_tree(self, &sync);
                let read = |tree| event_reader::read_events(self, &sync, tree);
                let _ = answer.send(self.reads.events(&sync, tree, read).await);
            }
            LiveRequest::NextPlan { sync, answer } => {
                let _ = answer.send(self.next_plan(&sync).await);
            }
            LiveRequest::Log(request) => {
                let opened = log_reader::open_log(self, &request).await;
                let _ = request.answer.send(opened);
            }
        }
    }

    /// The plan of the newest revision of a Sync.
    async fn next_plan(&self, sync: &SyncName) -> Result<Arc<NextPlan>, String> {
        // It may have been resumed or released since the last plan.
        let Some(order) = self.context.reporting.held_back.get(sync) else {
            return Err("the Sync is neither suspended nor held: it takes up each commit".to_owned());
        };
        let Ok(_place) = self.plan_viewers.try_acquire() else {
            return Err("too many plans are asked for; try again in a moment".to_owned());
        };
        let in_turn = async {
            let _turn = self.plan_turn.acquire().await;
            make_plan(&self.context, sync, &order).await
        };
        self.plans.get(sync, in_turn).await
    }

    /// The tree of a Sync.
    async fn tree(&self, sync: &SyncName) -> Result<Arc<LiveTree>, String> {
        self.reads.tree(sync, tree_reader::read_tree(self, sync)).await
    }
}

impl ReadBudget {
    fn new() -> Self {
        Self { bytes: AtomicUsize::new(0), deadline: Instant::now() + READ_TIMEOUT }
    }

    fn left(&self) -> usize {
        MAX_BYTES.saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    fn spend(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Names a list that was not read, with the reason.
fn left_out(kind: &GroupKind, namespace: &str, failure: Option<&ApiError>) -> LeftOut {
    let reason = match failure {
        None => "was not read within the time limit".to_owned(),
        Some(failure) => match failure.code() {
            Some(403) => "may not be listed with the permissions of the Sync".to_owned(),
            Some(404 | 405) => "is not served any more".to_owned(),
            _ => format!("was not read: {}", sanitize(&failure.to_string())),
        },
    };
    LeftOut { kind: kind.to_string(), namespace: namespace.to_owned(), reason }
}

/// Names a list for which the rate limit has no room.
fn postponed(kind: &GroupKind, namespace: &str) -> LeftOut {
    let reason = "was not read, because there are too many reads at this moment: try again in some seconds";
    LeftOut { kind: kind.to_string(), namespace: namespace.to_owned(), reason: reason.to_owned() }
}

/// Names a list that was cut.
fn cut(kind: &GroupKind, namespace: &str) -> LeftOut {
    let reason = format!("has more objects than are read: at most {MAX_LISTED} in a namespace");
    LeftOut { kind: kind.to_string(), namespace: namespace.to_owned(), reason }
}

/// Returns once the kinds that the cluster serves are known.
async fn discovered(cluster: &Cluster) -> Result<(), String> {
    cluster.discovery().ensure().await.map_err(|failure| sanitize(&failure.to_string()))
}
