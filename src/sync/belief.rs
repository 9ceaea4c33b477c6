//! Whether the mark of another Sync on an object of this one is believed.
//!
//! In: the objects that this Sync wants and that name another Sync. Out: those whose mark counts for nothing: no proof stands behind it, or
//! one of before: this Sync has applied the object since, and the other has rendered without it. A proof that was seen once can be
//! written again; it says whose the object was, and not that it is still wanted. What the other Sync did apply is still in the managed
//! fields.

use std::collections::BTreeSet;

use super::Context;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::{Mark, Observed};
use crate::proof::Proof;

/// An object that names another Sync.
struct Named {
    id: ObjectId,
    sync: Box<str>,
    proof: Option<Box<Proof>>,
    /// This Sync has applied it, so that the mark of the other is of before.
    is_taken_over: bool,
}

/// The wanted objects of which the mark of another Sync is not believed.
pub(super) fn disbelieved(
    context: &Context,
    cluster: &Cluster,
    owner: &SyncName,
    desired: &DesiredSet,
) -> BTreeSet<ObjectId> {
    let named = |(id, seen): (&ObjectId, &Observed)| {
        let Mark::Sync(sync) = &seen.mark else { return None };
        let is_wanted = desired.get(id).is_some() && !seen.proven;
        let (proof, is_taken_over) = (seen.proof.clone(), seen.applied_by_us);
        is_wanted.then(|| Named { id: id.clone(), sync: sync.clone(), proof, is_taken_over })
    };
    let all: Vec<Named> = cluster.observed(owner, |observed| observed.iter().filter_map(named).collect());
    let is_believed = |Named { id, sync, proof, is_taken_over }: &Named| {
        let proven = sync.split_once('/').is_some_and(|(namespace, name)| {
            cluster.notary().is_valid(&SyncName::new(namespace, name), id, proof.as_deref())
        });
        // What this Sync has not applied yet is handed over by the other; two at a time would be in each other's way.
        proven && !(*is_taken_over && context.registry.has_let_go(sync, id))
    };
    all.into_iter().filter(|named| !is_believed(named)).map(|named| named.id).collect()
}
