//! Weighs the claim of another Sync on an object that would be deleted.
//!
//! In: a complete render of the other Sync, or the evidence of a failed one.
//! Out: the state of its claim, if it has one.
//!
//! Objects that move between folders in one commit are not lost, and a broken Sync does not block
//! the others.

use std::sync::Arc;

use crate::api::SyncName;
use crate::object::ObjectId;
use crate::plan::ClaimState;
use crate::render::FolderContents;
use crate::source::{Memory, MemoryShare};

/// The objects that a Sync may desire of a commit that it could not render.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Nothing new: the commit changes none of the files that it reads, or has none for it.
    Nothing,
    /// The objects of plain files, as far as they can be read.
    Files(FolderContents),
    /// Any object; these are the files that could be read.
    Anything(FolderContents),
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
    pub(crate) fn kept(self, memory: &Memory, sync: &SyncName) -> (Self, Option<Arc<MemoryShare>>) {
        let bytes = match &self {
            Self::Nothing => 0,
            Self::Files(contents) | Self::Anything(contents) => contents.bytes(),
        };
        match memory.take_kept(&holder(sync), bytes) {
            Some(share) => (self, Some(share)),
            None => (Self::Anything(FolderContents::unsearched()), None),
        }
    }

    /// Returns true if the files contain the object, or its name in files that cannot be parsed.
    pub(crate) fn names(&self, id: &ObjectId) -> bool {
        match self {
            Self::Nothing => false,
            Self::Files(contents) | Self::Anything(contents) => contents.mentions(id),
        }
    }
}

/// Returns the name under which the evidence of a Sync reserves memory.
pub(crate) fn holder(sync: &SyncName) -> String {
    format!("evidence of {sync}")
}

/// Right of a Sync to patch an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchRight {
    Yes,
    No,
    /// The API server did not answer.
    Unknown,
}

/// Relation of another Sync to one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) may_patch: PatchRight,
    /// The object lives in the namespace of the Sync.
    pub(crate) is_at_home: bool,
}

impl Claimant {
    /// Returns the claim state of a Sync whose files may contain the object but could not be
    /// rendered.
    pub(crate) fn may_hold(self) -> Option<ClaimState> {
        let counts = match self.may_patch {
            PatchRight::Yes => true,
            PatchRight::No => false,
            PatchRight::Unknown => self.is_at_home,
        };
        counts.then_some(ClaimState::Possible)
    }

    /// Returns the claim state of a Sync whose complete render contains the object.
    pub(crate) fn wants(self, takes: bool) -> Option<ClaimState> {
        match (self.may_patch, self.is_at_home) {
            (PatchRight::Yes, _) if takes => Some(ClaimState::WillAdopt),
            (PatchRight::Yes, _) => Some(ClaimState::CannotAdopt),
            // The answer is still to come, and nothing is deleted before it.
            (PatchRight::Unknown, _) => Some(ClaimState::CannotAdopt),
            (PatchRight::No, true) => Some(ClaimState::WithoutRights),
            (PatchRight::No, false) => None,
        }
    }
}

/// Returns the strongest of several claims. If several Syncs desire the object, none of them can
/// adopt it: first all but one must stop desiring it.
pub(crate) fn strongest<T>(mut claims: Vec<(T, ClaimState)>) -> Option<(T, ClaimState)> {
    let wants = |standing: &ClaimState| matches!(standing, ClaimState::WillAdopt | ClaimState::CannotAdopt);
    let wanted = claims.iter().filter(|(_, standing)| wants(standing)).count();
    let place = |standing: ClaimState| {
        [
            ClaimState::WillAdopt,
            ClaimState::CannotAdopt,
            ClaimState::Possible,
            ClaimState::MoveTarget,
            ClaimState::WithoutRights,
            ClaimState::Overdue,
        ]
        .iter()
        .position(|one| *one == standing)
    };
    claims.sort_by_key(|(_, standing)| place(*standing));
    let (first, standing) = claims.into_iter().next()?;
    Some((first, if wanted > 1 { ClaimState::CannotAdopt } else { standing }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::RenderOptions;
    use crate::tree::FileTree;

    #[test]
    fn texts_for_which_there_is_no_memory_are_not_kept() {
        let memory = Memory::new(Some(64 << 20));
        let text = format!("kind: [ # {}", "x".repeat(1000));
        let tree = FileTree::from_texts([("bad.yaml", text.as_str())]);
        let evidence = || Evidence::Files(FolderContents::from_tree(&tree, &RenderOptions::default()));
        let (sync, id) = (SyncName::new("ops", "shop"), ObjectId::parse("/ConfigMap|shop/a").unwrap());
        let (kept, share) = evidence().kept(&memory, &sync);
        assert!(share.is_some() && !kept.may_hold(&id));
        drop(share);
        let _all = memory.take_kept("others", memory.most_kept()).unwrap();
        let (kept, share) = evidence().kept(&memory, &sync);
        assert!(share.is_none() && kept.may_hold(&id) && kept.names(&id));
    }

    const ALL: [PatchRight; 3] = [PatchRight::Yes, PatchRight::No, PatchRight::Unknown];

    #[test]
    fn a_failed_try_counts_only_with_the_right_to_patch() {
        let standings = |is_at_home| ALL.map(|may_patch| Claimant { may_patch, is_at_home }.may_hold());
        let waits = Some(ClaimState::Possible);
        assert_eq!(standings(true), [waits, None, waits]);
        assert_eq!(standings(false), [waits, None, None]);
    }

    #[test]
    fn a_claim_without_the_right_to_patch_asks_at_home_and_is_nothing_elsewhere() {
        let standings =
            |is_at_home, takes| ALL.map(|may_patch| Claimant { may_patch, is_at_home }.wants(takes));
        let (takes, cannot) = (Some(ClaimState::WillAdopt), Some(ClaimState::CannotAdopt));
        assert_eq!(standings(true, true), [takes, Some(ClaimState::WithoutRights), cannot]);
        assert_eq!(standings(false, true), [takes, None, cannot]);
        assert_eq!(standings(false, false), [cannot, None, cannot]);
    }

    #[test]
    fn two_that_want_one_object_get_it_from_nobody() {
        let claim = |all: &[(&'static str, ClaimState)]| strongest(all.to_vec());
        let (takes, cannot, may) = (ClaimState::WillAdopt, ClaimState::CannotAdopt, ClaimState::Possible);
        assert_eq!(claim(&[]), None);
        assert_eq!(claim(&[("a", takes)]), Some(("a", takes)));
        assert_eq!(claim(&[("a", takes), ("b", takes)]), Some(("a", cannot)));
        assert_eq!(claim(&[("a", cannot), ("b", takes)]), Some(("b", cannot)));
        assert_eq!(claim(&[("a", may), ("b", takes)]), Some(("b", takes)), "a render counts more");
        assert_eq!(claim(&[("a", ClaimState::WithoutRights), ("b", may)]), Some(("b", may)));
        let named = ClaimState::MoveTarget;
        assert_eq!(claim(&[("a", named), ("b", takes)]), Some(("b", takes)), "whoever was named");
        assert_eq!(claim(&[("a", named), ("b", cannot)]), Some(("b", cannot)));
        assert_eq!(claim(&[("a", ClaimState::WithoutRights), ("b", named)]), Some(("b", named)));
    }
}
