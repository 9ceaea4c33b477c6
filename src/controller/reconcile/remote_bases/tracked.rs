//! Remote bases of a Sync, and the check for newer commits.
//!
//! In: the bases that the last render named, complete or not.
//! Out: at each poll, true if one of them resolves to another commit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::join_all;

use super::{RemoteBase, RemoteBaseContext};
use crate::report::ReconcileError;

/// The remote bases of the last render, shared between the poller and the renderer.
#[derive(Debug, Clone, Default)]
pub struct TrackedBases(Arc<Mutex<Vec<RemoteBase>>>);

impl TrackedBases {
    pub(in crate::controller) fn set(&self, bases: Vec<RemoteBase>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bases;
    }

    /// Returns true if a base resolves to another commit than the one that was rendered.
    pub(crate) async fn have_moved(
        &self,
        ground: &RemoteBaseContext<'_>,
        by: Instant,
    ) -> Result<bool, ReconcileError> {
        let bases = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let looks = bases.iter().map(async |base| match base.look(ground, by).await {
            Ok(revision) => Ok(revision.commit != base.revision.commit),
            Err(error) => Err(base.trouble(error)),
        });
        let found = join_all(looks).await.into_iter().collect::<Result<Vec<bool>, ReconcileError>>()?;
        Ok(found.contains(&true))
    }
}
