//! Whether a revision is taken up, where signatures are asked for.
//!
//! In: a revision that was found. Out: the same, or why it is refused: nobody who is trusted has signed it, or it does not
//! follow from what was taken up before. That is held meanwhile, if it is still to be trusted.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::super::desk::Desk;
use super::super::wish::Wish;
use super::Follower;
use crate::source::{Error, History, Keys, Reference, Repository, Revision, Signed};

/// What is asked of a revision.
pub(super) struct Trust {
    asked: Option<(Signed, Arc<Keys>)>,
    reference: Reference,
    source: Box<str>,
    /// What was found good before, with these keys.
    good: Option<Revision>,
    /// What was taken up last, with whatever keys, if this daemon has done that.
    last: Option<Revision>,
    /// Where else that is written down.
    told: Desk,
}

/// The repository and the ref in one word, for a status: what was seen of another is no measure.
pub(super) fn source_id(wish: &Wish) -> Box<str> {
    let hash = Sha256::digest(format!("{}\n{}", wish.address, wish.reference));
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl Follower {
    /// What is asked of the next revision.
    pub(super) fn trust(&self) -> Trust {
        let signed = self.order.wish.verify.as_ref().map(|(signed, _)| *signed);
        Trust {
            asked: signed.zip(self.order.keys.clone()),
            reference: self.order.wish.reference.clone(),
            source: source_id(&self.order.wish),
            good: self.revision.clone(),
            last: self.last.clone(),
            told: self.told.clone(),
        }
    }
}

impl Trust {
    /// Gives the revision if it may be taken up. If not, and nothing is held yet, gives beside the error what was taken up
    /// before and is still to be trusted.
    pub(super) async fn check(
        self,
        repository: &Repository,
        found: Revision,
        by: Instant,
    ) -> (Result<Revision, Error>, Option<Revision>) {
        let Some((signed, keys)) = &self.asked else { return (Ok(found), None) };
        if self.good.as_ref() == Some(&found) {
            return (Ok(found), None);
        }
        let refused = match repository.verify(&found, *signed, keys, by).await {
            Ok(()) => self.follows(repository, &found, by).await.err(),
            Err(error) => Some(error),
        };
        match refused {
            None => (Ok(found), None),
            Some(error) if error.is_distrust() && self.good.is_none() => {
                let held = self.held(repository, (*signed, keys), by).await;
                (Err(error), held)
            }
            Some(error) => (Err(error), None),
        }
    }

    /// What was taken up last, also by the daemon before this one.
    fn before(&self) -> Option<Revision> {
        self.last.clone().or_else(|| self.told.last_seen(&self.source, &self.reference))
    }

    /// Makes sure that a revision comes after the one before. What a server calls its main branch is its own word, so that
    /// no other name of it excuses anything. Of two tags of a range neither has to follow from the other, but versions go up
    /// only.
    async fn follows(&self, repository: &Repository, now: &Revision, by: Instant) -> Result<(), Error> {
        let before = self.before().filter(|before| before.commit != now.commit);
        let Some(before) = before.filter(|_| !matches!(self.reference, Reference::Commit(_))) else {
            return Ok(());
        };
        let is_range = matches!(self.reference, Reference::Semver(_));
        match now.compare_versions(&before).filter(|_| is_range) {
            Some(Ordering::Greater) => return Ok(()),
            Some(Ordering::Less) => {
                let (before, now) = (before.to_string().into(), now.to_string().into());
                return Err(Error::Lowered { before, now });
            }
            Some(Ordering::Equal) | None => {}
        }
        let (told, new) = (before.commit.to_string().into(), now.to_string().into());
        match repository.whole_history(before.commit, now.commit, by).await? {
            History::Forward => Ok(()),
            History::Rewritten => Err(Error::Rewritten { before: told, now: new }),
            History::Unknown => Err(Error::Unproven { before: told, now: new }),
        }
    }

    /// What was taken up before, if somebody who is trusted now has signed it.
    async fn held(
        &self,
        repository: &Repository,
        (signed, keys): (Signed, &Arc<Keys>),
        by: Instant,
    ) -> Option<Revision> {
        let before = self.before()?;
        repository.verify(&before, signed, keys, by).await.ok()?;
        Some(before)
    }
}
