//! Whether a revision is taken up, where signatures are asked for.
//!
//! In: a revision that was found. Out: the same, or why it is refused: nobody who is trusted has signed it, or it does not
//! follow from what is applied. What was taken up before is held meanwhile.

use std::sync::Arc;
use std::time::Instant;

use super::super::desk::Desk;
use super::Follower;
use crate::source::{Error, History, Keys, ObjectHash, Reference, Repository, Revision, Signed};

/// What is asked of a revision.
pub(super) struct Trust {
    asked: Option<(Signed, Arc<Keys>)>,
    reference: Reference,
    /// What was found good before.
    good: Option<Revision>,
    /// The revision that is applied, if this daemon has applied it.
    applied: Option<Revision>,
    /// Where else that is written down.
    told: Desk,
}

impl Follower {
    /// What is asked of the next revision.
    pub(super) fn trust(&self, keys: Option<Arc<Keys>>) -> Trust {
        let signed = self.order.wish.verify.as_ref().map(|(signed, _)| *signed);
        Trust {
            asked: signed.zip(keys),
            reference: self.order.wish.reference.clone(),
            good: self.revision.clone(),
            applied: self.applied.clone(),
            told: self.told.clone(),
        }
    }
}

impl Trust {
    /// Gives the revision if it may be taken up.
    pub(super) async fn check(
        self,
        repository: &Repository,
        revision: Revision,
        by: Instant,
    ) -> Result<Revision, Error> {
        let Some((signed, keys)) = self.asked.as_ref().filter(|_| self.good.as_ref() != Some(&revision))
        else {
            return Ok(revision);
        };
        repository.verify(&revision, *signed, keys, by).await?;
        let Some(before) = self.before(&revision).filter(|before| *before != revision.commit) else {
            return Ok(revision);
        };
        let (told, now) = (before.to_string().into(), revision.to_string().into());
        match repository.history(before, revision.commit, by).await? {
            History::Forward => Ok(revision),
            History::Rewritten => Err(Error::Rewritten { before: told, now }),
            History::Unknown => Err(Error::Unproven { before: told, now }),
        }
    }

    /// The commit that this one has to follow from. What a server calls its main branch is its own word, so that no other
    /// name of it excuses anything; of two tags of a range neither has to follow from the other.
    fn before(&self, now: &Revision) -> Option<ObjectHash> {
        let applied = self.applied.as_ref();
        match &self.reference {
            Reference::Head | Reference::Branch(_) | Reference::Tag(_) => {
                applied.map(|applied| applied.commit).or_else(|| self.told.applied_commit())
            }
            Reference::Semver(_) => match applied {
                Some(applied) => (applied.name == now.name).then_some(applied.commit),
                None => self.told.last_applied(now).map(|applied| applied.commit),
            },
            Reference::Commit(_) => None,
        }
    }
}
