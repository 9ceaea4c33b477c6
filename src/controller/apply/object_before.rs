//! Decides if an apply changed the object.
//!
//! In: the object as the cache had it before the apply, and the reply. Out: true if nothing was
//! changed. A newer version alone says little: another manager may have written at the same time,
//! and a new proof is no change of what Git sets.

use super::ApplyContext;
use crate::api::{PROOF_ANNOTATION, SyncName};
use crate::cluster::ApplyResult;
use crate::fields::{FieldPath, FieldSet};
use crate::object::ObjectId;
use crate::observed::{ManagedEntry, Observed};
use crate::plan::Change;

/// State of an object before an apply, as far as the reply is compared with it.
pub(super) struct ObjectBefore {
    version: Box<str>,
    /// Our managed fields entry, if the apply verifies an object to which another manager wrote.
    own_entry: Option<ManagedEntry>,
    /// Our fields, if the proof is missing or was made with an old key and the apply is the
    /// verification that follows every start.
    unproven_fields: Option<FieldSet>,
}

impl ObjectBefore {
    /// Reads the cache.
    pub(super) fn read(work: &ApplyContext<'_>, id: &ObjectId, change: &Change) -> Self {
        let is_unverified = *change == Change::Unverified;
        let proof = is_unverified.then(|| work.cluster.notary().prove(work.owner, id)).flatten();
        work.cluster.read_observed(work.owner, |set| {
            let seen = set.get(id);
            let baseline = seen.and_then(|seen| seen.baseline.as_ref());
            let own_entry = baseline.filter(|_| matches!(change, Change::MaybeDrifted));
            let unproven =
                seen.filter(|seen| proof.as_ref().is_some_and(|proof| seen.proof.as_deref() != Some(proof)));
            Self {
                version: seen.map(|seen| seen.resource_version.clone()).unwrap_or_default(),
                own_entry: own_entry.and_then(|baseline| baseline.own_entry.clone()),
                unproven_fields: unproven.and_then(Observed::owned_fields),
            }
        })
    }

    /// True if the apply left the object as it was.
    pub(super) fn is_same(&self, applied: &ApplyResult, owner: &SyncName) -> bool {
        applied.version == self.version
            || self.own_entry.as_ref().is_some_and(|own| is_entry_unchanged(own, applied, owner))
            || self.unproven_fields.as_ref().is_some_and(|fields| is_only_proven(fields, applied, owner))
    }
}

/// True if an apply left our entry unchanged, including its time. Then the apply changed nothing,
/// and a newer version comes from a concurrent write of another manager.
fn is_entry_unchanged(own: &ManagedEntry, applied: &ApplyResult, owner: &SyncName) -> bool {
    let now = Observed::from_apply(&applied.object, owner).baseline.and_then(|baseline| baseline.own_entry);
    now.is_some_and(|now| (now.digest, &now.time) == (own.digest, &own.time))
}

/// True if an apply changed none of our fields except the proof: the object was in sync.
fn is_only_proven(before: &FieldSet, applied: &ApplyResult, owner: &SyncName) -> bool {
    let Some(now) = Observed::first_seen(&applied.object, owner).owned_fields() else {
        return false;
    };
    let proof = FieldPath::of_fields(&["metadata", "annotations", PROOF_ANNOTATION]);
    before.minus(&now).is_empty() && now.minus(before).owned_paths().iter().all(|path| *path == proof)
}
