//! One Sync without its resource: what `moorline run --url` follows.
//!
//! In: a wish from the command line. Out: log lines. The engine is the one of all Syncs.

use std::sync::Arc;

use tokio::sync::watch;

use super::Context;
use super::follow::{Order, Told, follow};
use super::wish::Wish;
use crate::api::SyncName;
use crate::plan::Outcome;
use crate::source::{Repository, Watch};

/// Follows one Sync until the daemon ends.
pub async fn run(context: Arc<Context>, owner: SyncName, wish: Wish, repository: Repository) {
    let local = wish.address.local_path().map(Watch::new).and_then(|watch| {
        // Polling goes on beside it, so that without a watch a commit is only seen later.
        watch.inspect_err(|error| tracing::warn!(%error, "commits are seen by polling only")).ok()
    });
    let order = Order { wish: Arc::new(wish), repository, approved: None, nudge: 0, generation: 0 };
    let (send, receive) = watch::channel(order);
    let nudges = async {
        match &local {
            Some(local) => loop {
                local.changed().await;
                send.send_modify(|order| order.nudge += 1);
            },
            None => std::future::pending().await,
        }
    };
    let name = owner.clone();
    tokio::select! {
        () = follow(context, owner, receive, |told| log(&name, told)) => {}
        () = nudges => {}
    }
}

fn log(sync: &SyncName, told: Told) {
    match told {
        Told::Seen(Ok(revision)) => tracing::debug!(%sync, %revision, "seen"),
        Told::Seen(Err(trouble)) => {
            tracing::warn!(%sync, reason = trouble.reason, "{}", trouble.message);
        }
        Told::Verified(_, Outcome::Kept) => {}
        Told::Verified(id, outcome) => tracing::info!(%sync, object = %id, "{}", outcome.verb()),
        Told::Passed(report) => {
            if let Some(trouble) = &report.trouble {
                tracing::warn!(%sync, reason = trouble.reason, "{}", trouble.message);
                trouble.problems.iter().skip(1).for_each(|problem| tracing::warn!(%sync, "{problem}"));
                return;
            }
            for (id, outcome) in &report.outcomes {
                match outcome {
                    Outcome::Failed(why) => {
                        tracing::warn!(%sync, object = %id, reason = why.reason, "failed: {}", why.message);
                    }
                    Outcome::Held(hold) => tracing::info!(%sync, object = %id, "held: {hold}"),
                    other => tracing::info!(%sync, object = %id, "{}", other.verb()),
                }
            }
            let revision = report.revision.as_ref().map(ToString::to_string).unwrap_or_default();
            tracing::info!(%sync, revision, objects = report.desired, kept = report.kept, "passed");
        }
    }
}
