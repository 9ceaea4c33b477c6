//! Whether a Sync that holds an object is gone.
//!
//! In: its name. Out: true if nobody serves it: not this daemon, not another one that serves other Syncs, and no run
//! without a Sync, which has a Lease instead.

use super::carry_out::Work;
use crate::api::SyncName;
use crate::cluster::Failure;

impl Work<'_> {
    /// True if it is certain that nobody goes by this name.
    pub(super) async fn is_gone(&self, sync: &str) -> Result<bool, Failure> {
        let Some((namespace, name)) = sync.split_once('/') else { return Ok(false) };
        if !self.context.registry.is_gone(sync) {
            return Ok(false);
        }
        let cluster = &self.context.cluster;
        let is_there = cluster.is_there(&SyncName::new(namespace, name)).await?;
        Ok(!is_there && !cluster.is_held(&format!("{namespace}/{RUN}{name}")).await?)
    }
}

/// What the Leases of runs without a Sync begin with.
pub(crate) const RUN: &str = "moorline-";
