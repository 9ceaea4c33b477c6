//! How two commits of a shared repository are related.
//!
//! In: two commits that were seen. Out: [`History`], asked once for all who want to know it.

use std::sync::PoisonError;
use std::time::Instant;

use super::super::error::Error;
use super::super::mirror::{FAR, NEAR};
use super::super::revision::{History, ObjectHash};
use super::{Place, Repository};

impl Repository {
    /// How two commits are related. It may fetch up to 200 commits of history, which are not kept. Many Syncs ask the
    /// same one after the other.
    pub async fn history(&self, old: ObjectHash, new: ObjectHash, by: Instant) -> Result<History, Error> {
        self.related(old, new, NEAR, by).await
    }

    /// The same where it has to be known: as much of the history is fetched as it takes, within bounds.
    pub async fn whole_history(
        &self,
        old: ObjectHash,
        new: ObjectHash,
        by: Instant,
    ) -> Result<History, Error> {
        self.related(old, new, FAR, by).await
    }

    async fn related(
        &self,
        old: ObjectHash,
        new: ObjectHash,
        depths: &'static [u32],
        by: Instant,
    ) -> Result<History, Error> {
        let known = *self.shared.related.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, history)) = known.filter(|(of, _)| *of == (old, new)) {
            return Ok(history);
        }
        let asked = self.run(by, move |state| match &mut state.place {
            Place::Mirrored(mirror) => mirror.history((old, new), depths, by),
            Place::Local(local) => local.history(old, new),
            Place::Unopened(_) => Err(Error::Stopped),
        });
        let history = asked.await?;
        if history != History::Unknown {
            *self.shared.related.lock().unwrap_or_else(PoisonError::into_inner) = Some(((old, new), history));
        }
        Ok(history)
    }
}
