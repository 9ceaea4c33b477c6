//! Requests of viewers for the state of the cluster at this moment.
//!
//! In: a view. Out: a message for the task that reads with the rights of the Sync, and its answer.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::status_page::LiveObjectRequest;
use crate::api::SyncName;
use crate::cluster::viewer::LogOptions;
use crate::report::live_tree::{EventList, LiveTree, PodName};
use crate::report::next_plan::NextPlan;

/// A read for a viewer.
#[derive(Debug)]
pub enum LiveRequest {
    /// One object of a Sync.
    Object(LiveObjectRequest),
    /// The objects of a Sync with what they own.
    Tree {
        /// The Sync.
        sync: SyncName,
        /// Receives the tree, or the reason why there is none.
        answer: oneshot::Sender<Result<Arc<LiveTree>, String>>,
    },
    /// The Events about a Sync, its objects and what they own.
    Events {
        /// The Sync.
        sync: SyncName,
        /// Receives the Events, or the reason why there are none.
        answer: oneshot::Sender<Result<Arc<EventList>, String>>,
    },
    /// The plan of the newest revision of a Sync that is suspended or held.
    NextPlan {
        /// The Sync.
        sync: SyncName,
        /// Receives the plan, or the reason why there is none.
        answer: oneshot::Sender<Result<Arc<NextPlan>, String>>,
    },
    /// The log of a container.
    Log(LogRequest),
}

/// A request for the log of a container.
#[derive(Debug)]
pub struct LogRequest {
    /// The Sync.
    pub sync: SyncName,
    /// A Pod that the Sync owns.
    pub pod: PodName,
    /// The container, and the part of its log.
    pub options: LogOptions,
    /// Receives the bytes as they arrive, or the reason why there are none.
    pub answer: oneshot::Sender<Result<mpsc::Receiver<Vec<u8>>, String>>,
}
