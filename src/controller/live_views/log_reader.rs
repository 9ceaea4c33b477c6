//! Reads logs of containers of Pods that a Sync owns.
//!
//! In: a request. Out: the bytes as they arrive, within bounds. The Pod has to be in the tree of
//! the Sync, below one of its objects: no other Pod is read.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{LiveViews, READ_TIMEOUT};
use crate::cluster::viewer::{PodLog, open_pod_log};
use crate::sanitize::sanitize;
use crate::serve::LogRequest;

/// The most logs that are read at the same time.
pub(super) const MAX_LOGS: usize = 24;
/// The longest time for a log that is followed. A connection of the page lives little longer.
const MAX_FOLLOWED: Duration = Duration::from_secs(240);
/// Chunks that wait for a slow viewer.
const MAX_WAITING: usize = 8;

/// Opens a log.
pub(super) async fn open_log(
    views: &LiveViews,
    request: &LogRequest,
) -> Result<mpsc::Receiver<Vec<u8>>, String> {
    let (sync, pod) = (&request.sync, &request.pod);
    let tree = views.tree(sync).await?;
    let container = &request.options.container;
    let is_there =
        tree.pod(pod).is_some_and(|(_, pod)| pod.containers.iter().any(|known| *known.name == **container));
    let not_owned = || "the Sync owns no such Pod with such a container".to_owned();
    let (_, cluster) = views.context.peers.view(sync).filter(|_| is_there).ok_or_else(not_owned)?;
    let Ok(place) = views.logs.clone().try_acquire_owned() else {
        return Err(format!("{MAX_LOGS} logs are open already; try again later"));
    };
    let log = open_pod_log(&cluster, &pod.namespace, &pod.name, &request.options).await;
    let log = log.map_err(|failure| sanitize(&failure.to_string()))?;
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let limit = if request.options.follow { MAX_FOLLOWED } else { READ_TIMEOUT };
    tokio::spawn(async move {
        // At the limit the viewer sees the end, and opens the log again.
        let _ = timeout(limit, forward(log, sender)).await;
        drop(place);
    });
    Ok(receiver)
}

/// Forwards a log until it ends or the viewer leaves.
async fn forward(mut log: PodLog, viewer: mpsc::Sender<Vec<u8>>) {
    loop {
        let next = tokio::select! {
            next = log.next() => next,
            () = viewer.closed() => return,
        };
        let Some(Ok(bytes)) = next else { return };
        if viewer.send(bytes).await.is_err() {
            return;
        }
    }
}
