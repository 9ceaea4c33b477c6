//! Checks if the owner of an object is gone, or will never release the object, and releases what
//! such an owner left.
//!
//! In: the name of the owning Sync.
//! Out: true if no Sync and no process uses that name, or if the owner has released an object that
//! it cannot see.
//!
//! A name is in use if this daemon serves the Sync, if another daemon does, or if a run without a
//! Sync holds the Lease of that name.

use serde_json::Value;

use super::ApplyContext;
use crate::api::{self, PROOF_ANNOTATION, SYNC_LABEL, SyncName};
use crate::cluster::{ApiError, ApplyResult};
use crate::controller::Context;
use crate::desired::DesiredObject;
use crate::proof::Proof;

/// Returns true if a Sync has released an object and will never remove its managed fields: the
/// label by which it would see the object was removed, or the object never was its own.
pub(crate) async fn has_owner_released(
    work: &ApplyContext<'_>,
    sync: &str,
    wanted: &DesiredObject,
) -> Result<bool, ApiError> {
    let Some(other) = SyncName::parse_owner(sync) else { return Ok(false) };
    if !work.context.peers.has_released(work.owner, sync, &wanted.id) {
        return Ok(false);
    }
    let live = work.cluster.objects().read_metadata(&wanted.id, &wanted.version).await?;
    Ok(live.is_some_and(|live| {
        let proof = live.annotation(PROOF_ANNOTATION).and_then(Proof::parse);
        let is_proven = work.cluster.notary().is_valid(&other, &wanted.id, proof.as_ref());
        !is_proven || live.label(SYNC_LABEL) != Some(&other.label())
    }))
}

/// Returns true if it is certain that no Sync and no run uses this name, which an object in the
/// cluster of `own` names as its owner. Nothing is certain about Syncs of other home clusters.
pub(crate) async fn is_owner_gone(context: &Context, own: &SyncName, sync: &str) -> Result<bool, ApiError> {
    let Some(other) = SyncName::parse_owner(sync) else { return Ok(false) };
    if !other.shares_target(own) || !context.peers.is_gone(own, sync) {
        return Ok(false);
    }
    let cluster = &context.cluster;
    let is_there = cluster.syncs().read_live(&other).await?.is_some();
    let lease = format!("{}/{RUN}{}", other.namespace, other.name);
    Ok(!is_there && !cluster.syncs().is_lease_held(&lease).await?)
}

/// Prefix of the Leases of runs without a Sync.
pub(crate) const RUN: &str = "moorline-";

/// Removes managed fields of a Sync that has released the object already, for example if it
/// ended between the two requests of a hand-over.
pub(crate) async fn release_others(work: &ApplyContext<'_>, wanted: &DesiredObject, applied: &ApplyResult) {
    let own = work.owner.owner();
    let is_free =
        |sync: &&str| **sync != *own && work.context.peers.has_released(work.owner, sync, &wanted.id);
    for sync in syncs_of(applied).filter(is_free) {
        // The next apply tries it again.
        if let Err(failure) = work.cluster.release_object(&wanted.id, &wanted.version, sync).await {
            tracing::debug!(sync = %work.owner, object = %wanted.id, %failure, "another Sync still owns fields of the object");
        }
    }
}

/// Returns the Syncs that have applied fields of the object. An empty apply releases no fields that
/// were written in another way.
pub(crate) fn syncs_of(applied: &ApplyResult) -> impl Iterator<Item = &str> {
    let entries = applied.object.metadata("managedFields").and_then(Value::as_array);
    let entries = entries.into_iter().flatten().filter(|entry| entry["operation"] == "Apply");
    entries.filter_map(|entry| entry["manager"].as_str()?.strip_prefix(api::MANAGER_PREFIX))
}
