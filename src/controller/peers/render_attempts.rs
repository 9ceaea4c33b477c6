//! Failed attempts of Syncs to render a commit.
//!
//! In: the evidence of a Sync's files, and the commits in which these files were the same. Out:
//! true if the Sync may claim an object that another Sync is about to prune.

use std::sync::Arc;
use std::time::Instant;

use super::claim_evidence::Evidence;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::object::ObjectId;
use crate::source::{MemoryShare, ObjectHash};

/// Failed attempt of a Sync to render a commit.
#[derive(Clone)]
pub(crate) struct FailedAttempt {
    pub(crate) commit: ObjectHash,
    pub(crate) evidence: Arc<Evidence>,
    /// Reservation of the memory that the evidence takes.
    #[expect(dead_code, reason = "the memory is given back when it is dropped")]
    pub(crate) memory: Option<Arc<MemoryShare>>,
    /// Hash of all files that the Sync reads, if it is known.
    pub(crate) files: Option<FilesHash>,
    /// Earlier failed commits in which these files were the same.
    pub(crate) same_in: Vec<ObjectHash>,
    /// A later render of the commit cannot improve the evidence.
    pub(crate) is_final: bool,
    /// The cluster with the identity of the Sync; none if it has no access.
    pub(crate) cluster: Option<Cluster>,
}

/// Hash of all files that a Sync reads.
pub(crate) type FilesHash = [u8; 32];

/// Most commits with the same files that are remembered.
const MAX_SAME: usize = 64;

impl FailedAttempt {
    /// Adds the commits with the same files from the previous attempt.
    pub(crate) fn after(mut self, last: Option<&Self>) -> Self {
        let is_same =
            |last: &&Self| self.files.is_some() && last.files == self.files && last.commit != self.commit;
        if let Some(last) = last.filter(is_same) {
            self.same_in =
                std::iter::once(last.commit).chain(last.same_in.iter().copied()).take(MAX_SAME).collect();
        }
        self
    }

    /// True if the Sync may claim an object that another Sync claimed last in the commit `left`. If
    /// the files of this Sync were the same in that commit, it may claim the object only if they
    /// contain the object, or its name in files that cannot be parsed.
    pub(crate) fn may_hold(&self, id: &ObjectId, left: Option<&ObjectHash>) -> bool {
        match left.is_some_and(|left| self.same_in.contains(left)) {
            true => self.evidence.names(id),
            false => self.evidence.may_hold(id),
        }
    }
}

impl std::fmt::Debug for FailedAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {:?}", self.commit, self.evidence)
    }
}

/// A Sync that has not rendered a commit.
#[derive(Debug)]
pub(crate) enum LaggingPeer {
    /// It has not tried yet, and is waited for until this time.
    Untried(SyncName, Instant),
    /// It has tried, and failed.
    Failed(SyncName, FailedAttempt),
}

impl LaggingPeer {
    /// Returns the name of the Sync.
    pub(crate) fn sync(&self) -> &SyncName {
        match self {
            Self::Untried(sync, _) | Self::Failed(sync, _) => sync,
        }
    }
}
