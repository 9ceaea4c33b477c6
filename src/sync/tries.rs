//! The tries of Syncs to render a commit that failed.
//!
//! In: the evidence of a Sync's files, the commits in which those were the same. Out: whether it may want an object that
//! another Sync is about to prune.

use std::sync::Arc;

use super::evidence::Evidence;
use crate::cluster::Cluster;
use crate::object::ObjectId;
use crate::source::{ObjectHash, Share};

/// A try of a Sync to render a commit, which failed.
#[derive(Clone)]
pub(crate) struct Tried {
    pub(crate) commit: ObjectHash,
    pub(crate) evidence: Arc<Evidence>,
    /// The memory of the evidence.
    #[expect(dead_code, reason = "the memory is given back when it is dropped")]
    pub(crate) memory: Option<Arc<Share>>,
    /// Stands for all files that the Sync reads, where that is known.
    pub(crate) files: Option<FilesHash>,
    /// Commits that it tried before, in which these files were the same.
    pub(crate) same_in: Vec<ObjectHash>,
    /// No later render can say more.
    pub(crate) is_final: bool,
    /// The cluster as the Sync sees it; none where it sees none.
    pub(crate) cluster: Option<Cluster>,
}

/// Stands for all files that a Sync reads.
pub(crate) type FilesHash = [u8; 32];

/// So many commits are remembered in which the files of a Sync were the same.
const MAX_SAME: usize = 64;

impl Tried {
    /// The same, after another try.
    pub(crate) fn after(mut self, last: Option<&Self>) -> Self {
        let is_same =
            |last: &&Self| self.files.is_some() && last.files == self.files && last.commit != self.commit;
        if let Some(last) = last.filter(is_same) {
            self.same_in =
                std::iter::once(last.commit).chain(last.same_in.iter().copied()).take(MAX_SAME).collect();
        }
        self
    }

    /// True if the Sync may want an object that another Sync wanted in the commit `left`, and wants no more. Files that were the
    /// same in that commit may have got the object before, and then they name it.
    pub(crate) fn may_hold(&self, id: &ObjectId, left: Option<&ObjectHash>) -> bool {
        match left.is_some_and(|left| self.same_in.contains(left)) {
            true => self.evidence.names(id),
            false => self.evidence.may_hold(id),
        }
    }
}

impl std::fmt::Debug for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.commit, self.evidence)
    }
}
