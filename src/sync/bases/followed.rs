//! Remote bases of a Sync, and the check for newer commits.
//!
//! In: the bases that the last render named, complete or not.
//! Out: at each poll, true if one of them resolves to another commit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::join_all;

use super::{Base, Ground};
use crate::report::Trouble;

/// The remote bases of the last render, shared between the poller and the renderer.
#[derive(Debug, Clone, Default)]
pub struct Followed(Arc<Mutex<Vec<Base>>>);

impl Followed {
    pub(in crate::sync) fn set(&self, bases: Vec<Base>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bases;
    }

    /// Returns true if a base resolves to another commit than the one that was rendered.
    pub(crate) async fn have_moved(&self, ground: &Ground<'_>, by: Instant) -> Result<bool, Trouble> {
        let bases = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let looks = bases.iter().map(async |base| match base.look(ground, by).await {
            Ok(revision) => Ok(revision.commit != base.revision.commit),
            Err(error) => Err(base.trouble(error)),
        });
        let found = join_all(looks).await.into_iter().collect::<Result<Vec<bool>, Trouble>>()?;
        Ok(found.contains(&true))
    }
}
