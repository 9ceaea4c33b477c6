//! Relations of two commits of a shared repository.
//!
//! In: two known commits.
//! Out: a [`History`], determined once for all callers.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::super::error::Error;
use super::super::mirror::{FAR, NEAR};
use super::super::revision::{History, ObjectHash};
use super::{FileStore, JobNeed, Repository};
use moorline_runtime::clock;

impl Repository {
    /// Relates two commits. It may fetch up to 200 commits of history, which are not kept. The
    /// result is cached, because many Syncs ask for the same pair.
    pub async fn history(&self, old: ObjectHash, new: ObjectHash, by: Instant) -> Result<History, Error> {
        self.related(old, new, NEAR, by).await
    }

    /// Relates two commits when the answer is required: fetches as much history as necessary,
    /// within bounds.
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
        let pair = (old, new);
        if let Some(known) =
            self.shared.related.lock().unwrap_or_else(PoisonError::into_inner).of(pair, depths)
        {
            return Ok(known);
        }
        let asked = self.run(JobNeed::Server, by, move |state| match &mut state.place {
            FileStore::Mirrored(mirror) => mirror.history((old, new), depths, by),
            FileStore::Local(local) => local.history(old, new),
            // A registry has no history.
            FileStore::Artifacts(_) => Ok(History::Unknown),
            FileStore::Unopened(_) => Err(Error::Stopped),
        });
        let history = asked.await?;
        self.shared.related.lock().unwrap_or_else(PoisonError::into_inner).learn(pair, depths, history);
        Ok(history)
    }
}

/// The last relations.
#[derive(Debug, Default)]
pub(super) struct RelationCache(VecDeque<CachedRelation>);

#[derive(Debug)]
struct CachedRelation {
    pair: (ObjectHash, ObjectHash),
    history: History,
    /// Depth of the search.
    depth: Option<u32>,
    at: Instant,
}

/// Maximum number of cached relations.
const MAX_ANSWERS: usize = 16;
/// Time until a search without a result is repeated: it may have been expensive.
const PATIENCE: Duration = Duration::from_secs(600);

impl RelationCache {
    fn of(&self, pair: (ObjectHash, ObjectHash), depths: &[u32]) -> Option<History> {
        let known = self.0.iter().find(|answer| answer.pair == pair)?;
        let stands = known.history != History::Unknown
            || known.depth >= depths.last().copied() && clock::since(known.at) < PATIENCE;
        stands.then_some(known.history)
    }

    fn learn(&mut self, pair: (ObjectHash, ObjectHash), depths: &[u32], history: History) {
        self.0.retain(|answer| answer.pair != pair);
        self.0.push_front(CachedRelation { pair, history, depth: depths.last().copied(), at: clock::now() });
        self.0.truncate(MAX_ANSWERS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_found_out_is_not_asked_again_at_once() {
        let id = |digit: &str| ObjectHash::parse(&digit.repeat(40)).unwrap();
        let pair = |old: &str, new: &str| (id(old), id(new));
        let mut related = RelationCache::default();
        related.learn(pair("a", "b"), NEAR, History::Unknown);
        assert_eq!(related.of(pair("a", "b"), NEAR), Some(History::Unknown));
        assert_eq!(related.of(pair("a", "b"), FAR), None, "nobody has looked so far");
        related.learn(pair("a", "b"), FAR, History::Unknown);
        assert_eq!(related.of(pair("a", "b"), FAR), Some(History::Unknown));
        related.0[0].at = clock::now().checked_sub(PATIENCE).unwrap();
        assert_eq!(related.of(pair("a", "b"), FAR), None);
        related.learn(pair("c", "d"), NEAR, History::Forward);
        related.0[0].at = clock::now().checked_sub(PATIENCE).unwrap();
        assert_eq!(related.of(pair("c", "d"), FAR), Some(History::Forward), "what is proven stays so");
        (0..MAX_ANSWERS)
            .for_each(|at| related.learn(pair("e", &at.to_string()[..1]), NEAR, History::Forward));
        assert!(related.0.len() <= MAX_ANSWERS);
    }
}
