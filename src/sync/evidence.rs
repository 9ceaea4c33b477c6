//! Weighs the claim of another Sync on an object that would be deleted.
//!
//! In: a complete render of the other Sync, or the evidence of a failed one.
//! Out: the standing of its claim, if it has any.
//!
//! Objects that move between folders in one commit are not lost, and a broken Sync does not block
//! the others.

use std::sync::Arc;

use crate::api::SyncName;
use crate::object::ObjectId;
use crate::plan::ClaimStanding;
use crate::render::Contents;
use crate::source::{Memory, Share};

/// The objects that a Sync may desire of a commit that it could not render.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Nothing new: the commit changes none of the files that it reads, or has none for it.
    Nothing,
    /// The objects of plain files, as far as they can be read.
    Files(Contents),
    /// Any object; these are the files that could be read.
    Anything(Contents),
}

impl Evidence {
    /// Returns true if the files of the Sync may contain the object.
    pub(crate) fn may_hold(&self, id: &ObjectId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Files(contents) => contents.may_hold(id),
            Self::Anything(_) => true,
        }
    }

    /// Reserves shared memory for the texts; without free memory the evidence becomes `Anything`.
    pub(crate) fn kept(self, memory: &Memory, sync: &SyncName) -> (Self, Option<Arc<Share>>) {
        let bytes = match &self {
            Self::Nothing => 0,
            Self::Files(contents) | Self::Anything(contents) => contents.bytes(),
        };
        match memory.keep(&holder(sync), bytes) {
            Some(share) => (self, Some(share)),
            None => (Self::Anything(Contents::unsearched()), None),
        }
    }

    /// Returns true if the files contain the object, or its name in files that cannot be parsed.
    pub(crate) fn names(&self, id: &ObjectId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Files(contents) | Self::Anything(contents) => contents.names(id),
        }
    }
}

/// Returns the name under which the evidence of a Sync reserves memory.
pub(crate) fn holder(sync: &SyncName) -> String {
    format!("evidence of {sync}")
}

/// Right of a Sync to patch an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Yes,
    No,
    /// The API server did not answer.
    Unknown,
}

/// Relation of another Sync to one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) may_patch: Right,
    /// The object lives in the namespace of the Sync.
    pub(crate) is_at_home: bool,
}

impl Claimant {
    /// Returns the standing of a Sync whose files may contain the object but could not be rendered.
    pub(crate) fn may_hold(self) -> Option<ClaimStanding> {
        let counts = match self.may_patch {
            Right::Yes => true,
            Right::No => false,
            Right::Unknown => self.is_at_home,
        };
        counts.then_some(ClaimStanding::MayWant)
    }

    /// Returns the standing of a Sync that desires the object by a complete render.
    pub(crate) fn wants(self, takes: bool) -> Option<ClaimStanding> {
        match (self.may_patch, self.is_at_home) {
            (Right::Yes, _) if takes => Some(ClaimStanding::Takes),
            (Right::Yes, _) => Some(ClaimStanding::CannotTake),
            // The answer is still to come, and nothing is deleted before it.
            (Right::Unknown, _) => Some(ClaimStanding::CannotTake),
            (Right::No, true) => Some(ClaimStanding::WithoutRights),
            (Right::No, false) => None,
        }
    }
}

/// Returns the strongest of several claims. Syncs that desire the same object must settle that
/// between themselves first, so none of them can take it.
pub(crate) fn strongest<T>(mut claims: Vec<(T, ClaimStanding)>) -> Option<(T, ClaimStanding)> {
    let wants =
        |standing: &ClaimStanding| matches!(standing, ClaimStanding::Takes | ClaimStanding::CannotTake);
    let wanted = claims.iter().filter(|(_, standing)| wants(standing)).count();
    let place = |standing: ClaimStanding| {
        [
            ClaimStanding::Takes,
            ClaimStanding::CannotTake,
            ClaimStanding::MayWant,
            ClaimStanding::Named,
            ClaimStanding::WithoutRights,
            ClaimStanding::Overdue,
        ]
        .iter()
        .position(|one| *one == standing)
    };
    claims.sort_by_key(|(_, standing)| place(*standing));
    let (first, standing) = claims.into_iter().next()?;
    Some((first, if wanted > 1 { ClaimStanding::CannotTake } else { standing }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Options;
    use crate::tree::FileTree;

    #[test]
    fn texts_for_which_there_is_no_memory_are_not_kept() {
        let memory = Memory::new(Some(64 << 20));
        let text = format!("kind: [ # {}", "x".repeat(1000));
        let tree = FileTree::from_texts([("bad.yaml", text.as_str())]);
        let evidence = || Evidence::Files(Contents::of(&tree, &Options::default()));
        let (sync, id) = (SyncName::new("ops", "shop"), ObjectId::parse("/ConfigMap|shop/a").unwrap());
        let (kept, share) = evidence().kept(&memory, &sync);
        assert!(share.is_some() && !kept.may_hold(&id));
        drop(share);
        let _all = memory.keep("others", memory.most_kept()).unwrap();
        let (kept, share) = evidence().kept(&memory, &sync);
        assert!(share.is_none() && kept.may_hold(&id) && kept.names(&id));
    }

    const ALL: [Right; 3] = [Right::Yes, Right::No, Right::Unknown];

    #[test]
    fn a_failed_try_counts_only_with_the_right_to_patch() {
        let standings = |is_at_home| ALL.map(|may_patch| Claimant { may_patch, is_at_home }.may_hold());
        let waits = Some(ClaimStanding::MayWant);
        assert_eq!(standings(true), [waits, None, waits]);
        assert_eq!(standings(false), [waits, None, None]);
    }

    #[test]
    fn a_claim_without_the_right_to_patch_asks_at_home_and_is_nothing_elsewhere() {
        let standings =
            |is_at_home, takes| ALL.map(|may_patch| Claimant { may_patch, is_at_home }.wants(takes));
        let (takes, cannot) = (Some(ClaimStanding::Takes), Some(ClaimStanding::CannotTake));
        assert_eq!(standings(true, true), [takes, Some(ClaimStanding::WithoutRights), cannot]);
        assert_eq!(standings(false, true), [takes, None, cannot]);
        assert_eq!(standings(false, false), [cannot, None, cannot]);
    }

    #[test]
    fn two_that_want_one_object_get_it_from_nobody() {
        let claim = |all: &[(&'static str, ClaimStanding)]| strongest(all.to_vec());
        let (takes, cannot, may) = (ClaimStanding::Takes, ClaimStanding::CannotTake, ClaimStanding::MayWant);
        assert_eq!(claim(&[]), None);
        assert_eq!(claim(&[("a", takes)]), Some(("a", takes)));
        assert_eq!(claim(&[("a", takes), ("b", takes)]), Some(("a", cannot)));
        assert_eq!(claim(&[("a", cannot), ("b", takes)]), Some(("b", cannot)));
        assert_eq!(claim(&[("a", may), ("b", takes)]), Some(("b", takes)), "a render counts more");
        assert_eq!(claim(&[("a", ClaimStanding::WithoutRights), ("b", may)]), Some(("b", may)));
        let named = ClaimStanding::Named;
        assert_eq!(claim(&[("a", named), ("b", takes)]), Some(("b", takes)), "whoever was named");
        assert_eq!(claim(&[("a", named), ("b", cannot)]), Some(("b", cannot)));
        assert_eq!(claim(&[("a", ClaimStanding::WithoutRights), ("b", named)]), Some(("b", named)));
    }
}
