//! Whether a Sync that holds an object is gone, or will never release it.
//!
//! In: its name. Out: true if nobody serves it: not this daemon, not another one that serves other Syncs, and no run
//! without a Sync, which has a Lease instead; or if it has let go of an object that it cannot see.

use super::Context;
use super::carry_out::Work;
use crate::api::{PROOF_ANNOTATION, SYNC_LABEL, SyncName};
use crate::cluster::Failure;
use crate::desired::DesiredObject;
use crate::proof::Proof;

impl Work<'_> {
    /// True if it is certain that nobody goes by this name.
    pub(super) async fn is_gone(&self, sync: &str) -> Result<bool, Failure> {
        is_gone(self.context, sync).await
    }

    /// True if a Sync has let go of an object and will never release it: somebody has taken off the label by which it
    /// would see it, or it never was that Sync's, whatever the managed fields say.
    pub(super) async fn has_lost(&self, sync: &str, wanted: &DesiredObject) -> Result<bool, Failure> {
        let Some((namespace, name)) = sync.split_once('/') else { return Ok(false) };
        if !self.context.registry.has_let_go(sync, &wanted.id) {
            return Ok(false);
        }
        let other = SyncName::new(namespace, name);
        let live = self.cluster.metadata(&wanted.id, &wanted.version).await?;
        Ok(live.is_some_and(|live| {
            let proof = live.annotation(PROOF_ANNOTATION).and_then(Proof::parse);
            let is_proven = self.cluster.notary().is_valid(&other, &wanted.id, proof.as_ref());
            !is_proven || live.label(SYNC_LABEL) != Some(&other.label())
        }))
    }
}

/// True if it is certain that no Sync and no run goes by this name.
pub(super) async fn is_gone(context: &Context, sync: &str) -> Result<bool, Failure> {
    let Some((namespace, name)) = sync.split_once('/') else { return Ok(false) };
    if !context.registry.is_gone(sync) {
        return Ok(false);
    }
    let cluster = &context.cluster;
    let is_there = cluster.standing(&SyncName::new(namespace, name)).await?.is_some();
    Ok(!is_there && !cluster.is_held(&format!("{namespace}/{RUN}{name}")).await?)
}

/// What the Leases of runs without a Sync begin with.
pub(crate) const RUN: &str = "moorline-";
