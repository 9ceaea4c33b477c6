//! Reads live objects for the status page.
//!
//! In: a Sync and one of its objects. Out: the fields of the live object that may be shown: one
//! request for each view of an object, with the Sync's own identity, and no more often than
//! [`RATE`] allows for all viewers together. Objects that the page does not list are not read.
//! Trees, Events and logs are read by the files beside this one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::LiveViews;
use crate::controller::Context;
use crate::plan::preview;
use crate::report::board::{LiveDifference, LiveObject, redact_live};
use crate::serve::{LiveObjectRequest, LiveRequest};
use crate::token_bucket::TokenBucket;

/// Burst of reads, and reads in a second after that.
const RATE: (u32, u32) = (20, 3);
/// Most reads at the same time.
const SIDE_BY_SIDE: usize = 4;
/// Time limit of one read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves requests of the status page for what is in the cluster now.
pub async fn serve_live_objects(context: Arc<Context>, mut wanted: mpsc::Receiver<LiveRequest>) {
    let (allowance, turns) = (TokenBucket::new(RATE), Arc::new(Semaphore::new(SIDE_BY_SIDE)));
    let views = Arc::new(LiveViews::new(context.clone()));
    while let Some(wanted) = wanted.recv().await {
        let wanted = match wanted {
            LiveRequest::Object(wanted) => wanted,
            other => {
                let views = views.clone();
                tokio::spawn(async move { views.answer(other).await });
                continue;
            }
        };
        if !allowance.take() {
            let _ = wanted
                .answer
                .send(Err("too many requests for live objects; try again in a moment".to_owned()));
            continue;
        }
        let (context, turns) = (context.clone(), turns.clone());
        tokio::spawn(async move {
            let look = async {
                let _turn = turns.acquire().await;
                seen(&context, &wanted).await
            };
            let seen = timeout(READ_TIMEOUT, look).await;
            let late = || Err("the API server did not answer in time".to_owned());
            // The requester may have disconnected.
            let _ = wanted.answer.send(seen.unwrap_or_else(|_| late()));
        });
    }
    // The page has ended, and no request follows.
    std::future::pending().await
}

async fn seen(context: &Context, wanted: &LiveObjectRequest) -> Result<LiveObject, String> {
    let unknown = || "this daemon does not know the object now".to_owned();
    let (sync, id) = (&wanted.sync, &wanted.id);
    let is_listed = {
        let board = context.reporting.board.watch().borrow().clone();
        board.cards.get(sync).is_some_and(|card| card.objects.row(id).is_some())
    };
    let (set, cluster) = context.peers.view(sync).filter(|_| is_listed).ok_or_else(unknown)?;
    let object = set.get(id);
    let version = object.map(|object| &*object.version);
    let live = cluster.objects().read_whole(id, version).await.map_err(|failure| failure.to_string())?;
    let Some(live) = live else {
        return Ok(LiveObject { live: None, differences: Vec::new(), writers: Vec::new() });
    };
    let found = preview(&set, std::slice::from_ref(&live), sync).differences;
    let differs = |difference: crate::plan::Difference| LiveDifference {
        values: difference.values(id).map(|(live, wanted)| (live.cloned(), wanted.cloned())),
        path: difference.path,
    };
    let differences = found.into_values().flatten().map(differs).collect();
    let (shown, writers) = redact_live(id, object, live.body);
    Ok(LiveObject { live: Some(shown), differences, writers })
}
