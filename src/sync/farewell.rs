//! What becomes of the objects of a Sync that is being deleted.
//!
//! In: a Sync with a deletion timestamp. Out: its objects are gone where it asks for that, in reverse order, and its
//! finalizer too; what may not be deleted, or takes too long, stays and is named.

use std::time::Instant;

use serde_json::Value;

use super::Context;
use super::carry_out::{Stop, Work, carry_out};
use super::ledger::Ledger;
use super::wish::Wish;
use crate::api::{DeletionPolicy, SyncName, SyncStatus};
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::plan::{Outcome, farewell};

/// Keeps a Sync until its objects are gone.
pub(crate) const FINALIZER: &str = "moorline.dev/delete";

/// Between two rounds of a deletion.
const ROUND: std::time::Duration = std::time::Duration::from_millis(500);

/// Deletes what is to be deleted, and lets the Sync go; true if that is to be tried again.
pub(crate) async fn leave(context: &Context, name: &SyncName, sync: &Value, wish: &Wish) -> bool {
    let finalizers: Vec<String> = sync
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| Some(one.as_str()?.to_owned()))
        .collect();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        return false;
    }
    if wish.deletion == DeletionPolicy::Delete && !wish.suspend {
        delete(context, name, sync, wish).await;
    }
    let others: Vec<String> = finalizers.into_iter().filter(|one| one != FINALIZER).collect();
    let version = sync.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    match context.cluster.write_finalizers(name, version, &others).await {
        Ok(()) => false,
        Err(failure) if failure.code() == Some(404) => false,
        Err(failure) => {
            tracing::warn!(sync = %name, %failure, "the finalizer could not be removed yet");
            true
        }
    }
}

async fn delete(context: &Context, name: &SyncName, sync: &Value, wish: &Wish) {
    let until = Instant::now() + wish.timeout;
    let status: SyncStatus = sync
        .get("status")
        .cloned()
        .and_then(|status| serde_json::from_value(status).ok())
        .unwrap_or_default();
    let scope = status.scope.unwrap_or_default();
    let need = super::scope::need_of(&scope);
    // Without an answer nothing is deleted, and the next round asks again.
    let _ = context.cluster.know().await;
    context.cluster.require(name, &need, wish.timeout).await;
    let (nothing, stop, ledger) = (DesiredSet::nothing(), Stop::default(), Ledger::default());
    let policy = wish.policy(None);
    let wake = context.cluster.wake(name);
    loop {
        let plan = context.cluster.observed(name, |observed| farewell(observed, &policy));
        let left: Vec<ObjectId> = plan.steps().map(|step| step.id.clone()).collect();
        let going = context.cluster.observed(name, |observed| {
            observed.iter().filter(|(_, seen)| seen.deleting).map(|(id, _)| id.clone()).collect::<Vec<_>>()
        });
        if left.is_empty() && going.is_empty() {
            return;
        }
        let cluster = &context.cluster;
        let work = Work {
            context,
            cluster,
            owner: name,
            desired: &nothing,
            conflicts: wish.conflicts,
            ledger: &ledger,
            stop: &stop,
        };
        for (id, outcome) in carry_out(&work, plan, Vec::new()).await {
            if let Outcome::Failed(why) = outcome {
                tracing::warn!(sync = %name, object = %id, reason = why.reason, "not deleted: {}", why.message);
            }
        }
        if Instant::now() > until {
            for id in left.iter().chain(&going) {
                tracing::warn!(sync = %name, object = %id, "stays: its deletion took longer than the timeout");
            }
            return;
        }
        let _ = tokio::time::timeout(ROUND, wake.notified()).await;
    }
}
