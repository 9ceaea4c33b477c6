//! Work of the daemon for people on the console: access reviews, and the writes of their actions.
//!
//! In: questions about rights, and actions that Kubernetes has granted to a person. Out: decisions
//! of the API server; a guarded patch, an Event and a line of the journal for each action. What is
//! done for a person beyond the person's own rights is listed in docs/console-rights.md.

pub mod acts;
mod decision_cache;
mod restart;
pub mod reviews;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::Context;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::desired::DesiredSet;
use crate::report::board::StatusBoard;
use crate::serve::actions::ActionRequest;
use crate::serve::viewer::AccessRequest;

/// Finds the objects of a Sync, and the cluster with its identity.
pub type IdentityOf = dyn Fn(&SyncName) -> Option<(Arc<DesiredSet>, Cluster)> + Send + Sync;

/// Handles of the console's work.
#[derive(Clone)]
pub struct ConsoleWork {
    /// The cluster, with the daemon's own identity.
    pub cluster: Cluster,
    /// The Syncs that this daemon serves.
    pub board: watch::Receiver<Arc<StatusBoard>>,
    /// Finds the identity of a Sync.
    pub identity: Arc<IdentityOf>,
}

impl ConsoleWork {
    /// The work of a daemon.
    pub fn of_daemon(context: &Arc<Context>) -> Self {
        let (cluster, board) = (context.cluster.clone(), context.reporting.board.watch());
        let context = context.clone();
        Self { cluster, board, identity: Arc::new(move |sync| context.peers.view(sync)) }
    }
}

/// Serves the console until the channels are closed; then it waits for ever.
pub async fn serve_console_work(
    work: ConsoleWork,
    questions: mpsc::Receiver<AccessRequest>,
    actions: mpsc::Receiver<ActionRequest>,
) {
    let cluster = work.cluster.clone();
    let ask = move |asked: reviews::Asked| {
        let cluster = cluster.clone();
        async move { reviews::review(&cluster, &asked).await }
    };
    tokio::join!(reviews::answer_questions(ask, questions), acts::serve_actions(work, actions));
    std::future::pending().await
}
