//! Finds ownership marks of other Syncs that do not count on objects of this Sync.
//!
//! In: desired objects that carry the mark of another Sync.
//! Out: the objects whose mark is ignored.
//!
//! A mark is ignored if it has no valid proof. It is also ignored if it is out of date: this Sync
//! has applied the object since, and the other Sync has rendered without it. A proof can be copied
//! back by anyone who has seen it, so it shows who owned the object at some time and not that the
//! other Sync still desires it. Fields that the other Sync did apply are still in the managed
//! fields.

use std::collections::BTreeSet;

use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::controller::Context;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::{Observed, Ownership};
use crate::proof::Proof;

/// An object that carries the mark of another Sync.
struct ForeignMark {
    id: ObjectId,
    sync: Box<str>,
    proof: Option<Box<Proof>>,
    /// True if this Sync has applied the object, which makes the other mark out of date.
    is_taken_over: bool,
}

/// Returns the desired objects on which the mark of another Sync is ignored.
pub(crate) fn ignored_marks(
    context: &Context,
    cluster: &Cluster,
    owner: &SyncName,
    desired: &DesiredSet,
) -> BTreeSet<ObjectId> {
    let named = |(id, seen): (&ObjectId, &Observed)| {
        let Ownership::OtherSync(sync) = &seen.ownership else { return None };
        let is_wanted = desired.get(id).is_some() && !seen.proven;
        let (proof, is_taken_over) = (seen.proof.clone(), seen.applied_by_us);
        is_wanted.then(|| ForeignMark { id: id.clone(), sync: sync.clone(), proof, is_taken_over })
    };
    let all: Vec<ForeignMark> =
        cluster.read_observed(owner, |observed| observed.iter().filter_map(named).collect());
    let is_believed = |ForeignMark { id, sync, proof, is_taken_over }: &ForeignMark| {
        let proven = SyncName::parse_owner(sync)
            .is_some_and(|named| cluster.notary().is_valid(&named, id, proof.as_deref()));
        // An object that this Sync has not applied yet is handed over by the other Sync; if both
        // Syncs acted, they would interfere with each other.
        proven && !(*is_taken_over && context.peers.has_released(owner, sync, id))
    };
    all.into_iter().filter(|named| !is_believed(named)).map(|named| named.id).collect()
}
