//! Whether the mark of another Sync on an object of this one is believed.
//!
//! In: the objects that this Sync wants and that name another Sync. Out: those whose mark counts for nothing: no proof stands behind it,
//! and the other Sync is gone, does not want the object, or never applied what this Sync did. Where the other Sync wants the object or
//! has not rendered yet, its mark is believed.

use std::collections::BTreeSet;

use super::Context;
use super::gone::is_gone;
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
    /// It is as this Sync applied it, so that somebody has changed the mark since.
    is_edited: bool,
}

/// The wanted objects of which the mark of another Sync is not believed.
pub(super) async fn disbelieved(
    context: &Context,
    cluster: &Cluster,
    owner: &SyncName,
    desired: &DesiredSet,
) -> BTreeSet<ObjectId> {
    let named = |(id, seen): (&ObjectId, &Observed)| {
        let Mark::Sync(sync) = &seen.mark else { return None };
        let wanted = desired.get(id).filter(|_| !seen.proven)?;
        let is_edited = seen.applied_by_us && seen.recorded.is_some_and(|hash| wanted.is_recorded_as(&hash));
        Some(Named { id: id.clone(), sync: sync.clone(), proof: seen.proof.clone(), is_edited })
    };
    let all: Vec<Named> = cluster.observed(owner, |observed| observed.iter().filter_map(named).collect());
    let mut found = BTreeSet::new();
    for Named { id, sync, proof, is_edited } in all {
        let is_proven = sync.split_once('/').is_some_and(|(namespace, name)| {
            cluster.notary().is_valid(&SyncName::new(namespace, name), &id, proof.as_deref())
        });
        if is_proven {
            continue;
        }
        // Without an answer the mark is believed until the next pass.
        let counts_for_nothing = is_edited
            || context.registry.has_let_go(&sync, &id)
            || is_gone(context, &sync).await.unwrap_or_default();
        if counts_for_nothing {
            found.insert(id);
        }
    }
    found
}
