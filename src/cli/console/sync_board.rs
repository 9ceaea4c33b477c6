//! Builds the board of a local console from the Syncs that the user may read.
//!
//! In: the list of Syncs and its changes. Out: a card for each, with what its spec and its status
//! say. A status names no object that is well, so the cards have no objects.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use crate::cluster::{Connection, OperatorError, SyncListEvent, SyncResource};
use crate::controller::summarize_source;
use crate::report::board::{DaemonRole, StatusBoard, SyncCard};

/// Pause before the list is read again, after an end of the watch and after a failure.
const AGAIN: Duration = Duration::from_secs(1);
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Follows the Syncs; never returns. Without the right to list all, those of the kubeconfig's
/// namespace are followed.
pub(super) async fn follow(
    connection: Connection,
    namespace: Option<String>,
    board: watch::Sender<Arc<StatusBoard>>,
) {
    let mut namespace = namespace;
    loop {
        let tell = |event| board.send_modify(|board| change(Arc::make_mut(board), event));
        let pause = match connection.follow_syncs(namespace.as_deref(), tell).await {
            Ok(()) => AGAIN,
            Err(OperatorError::Refused(_)) if namespace.is_none() => {
                namespace = Some(connection.namespace.to_string());
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "Syncs cannot be read");
                AFTER_FAILURE
            }
        };
        sleep(pause).await;
    }
}

/// Changes the board; a Sync that is as it was leaves it alone.
fn change(board: &mut StatusBoard, event: SyncListEvent) {
    board.set_role(DaemonRole::Serving);
    match event {
        SyncListEvent::Listed(all) => {
            let is_gone = |name: &&_| !all.iter().any(|sync| sync.name == **name);
            let gone: Vec<_> = board.cards.keys().filter(is_gone).cloned().collect();
            gone.iter().for_each(|name| board.remove(name));
            all.iter().for_each(|sync| put(board, sync));
        }
        SyncListEvent::Changed(sync) => put(board, &sync),
        SyncListEvent::Gone(name) => board.remove(&name),
    }
}

fn put(board: &mut StatusBoard, sync: &SyncResource) {
    let whole = serde_json::to_value(&sync.resource).unwrap_or_default();
    let source = Arc::new(summarize_source(&sync.name, &whole));
    let known = board.cards.get(&sync.name);
    if known.is_some_and(|card| *card.status == sync.status && card.source == source) {
        return;
    }
    board.update_card(SyncCard::of_resource(sync.name.clone(), source, sync.status.clone()));
}
