//! The remote bases that a Sync goes by, and whether they have moved.
//!
//! In: what the last render named, whether it was complete or not. Out: at each look, whether one of them stands for another commit now.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::join_all;

use super::{Base, Ground};
use crate::report::Trouble;

/// What the last render named; those who look at it and those who render share it.
#[derive(Debug, Clone, Default)]
pub struct Followed(Arc<Mutex<Vec<Base>>>);

impl Followed {
    pub(in crate::sync) fn set(&self, bases: Vec<Base>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bases;
    }

    /// True if one of them stands for another commit than the last render has read.
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
