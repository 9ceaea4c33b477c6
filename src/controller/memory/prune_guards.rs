//! Finds objects that are pruned only by approval, for reasons other than their kind.
//!
//! In: observed objects that are no longer desired.
//! Out: objects whose deletion takes other objects with it, for kinds where a field decides that.
//! During a rollback also objects that may have existed before this Sync.
//!
//! Watches do not carry these facts, so each object is read once, and again when it has changed. An
//! object that cannot be read counts as guarded until it can.

use std::collections::BTreeMap;

use crate::api::SyncName;
use crate::cluster::{ApiError, Cluster};
use crate::controller::Context;
use crate::object::ObjectId;
use crate::observed::{Observed, Ownership};
use crate::plan::{PruneGuard, deletes_others, needs_body_check};

/// Version of an object as it was read: uid and resourceVersion.
type Version = (Box<str>, Box<str>);

/// Cache of guards by object.
#[derive(Debug, Default)]
pub(crate) struct PruneGuards {
    known: BTreeMap<ObjectId, (Version, Option<PruneGuard>)>,
    /// True if the cache was filled during a rollback.
    way_back: bool,
}

/// Inputs for reading guards.
#[derive(Clone, Copy)]
pub(crate) struct PruneGuardInputs<'a> {
    pub(crate) context: &'a Context,
    pub(crate) cluster: &'a Cluster,
    pub(crate) owner: &'a SyncName,
    /// True during a rollback: the newest commit was rolled back, and the held one is older.
    pub(crate) way_back: bool,
}

impl PruneGuards {
    /// Reads the guards that are missing or out of date.
    pub(crate) async fn look(&mut self, guards: PruneGuardInputs<'_>, is_wanted: impl Fn(&ObjectId) -> bool) {
        let PruneGuardInputs { cluster, owner, way_back, .. } = guards;
        let found: Vec<(ObjectId, Version)> = cluster.read_observed(owner, |observed| {
            let unwanted = observed.iter().filter(|(id, seen)| {
                let may_be_guarded = way_back || needs_body_check(&id.group_kind());
                seen.ownership == Ownership::Ours && !seen.deleting && may_be_guarded && !is_wanted(id)
            });
            let version = |(id, seen): (&ObjectId, &Observed)| {
                (id.clone(), (seen.uid.clone(), seen.resource_version.clone()))
            };
            unwanted.map(version).collect()
        });
        let mut before = std::mem::take(&mut self.known);
        if std::mem::replace(&mut self.way_back, way_back) != way_back {
            before.clear();
        }
        for (id, version) in found {
            let known = before.remove(&id).filter(|(read, _)| *read == version);
            let guard = match known {
                Some((_, guard)) => guard,
                None => match guards.of(&id).await {
                    Ok(guard) => guard,
                    Err(failure) => {
                        tracing::debug!(sync = %owner, object = %id, %failure, "could not check if the object may be pruned without approval");
                        // No object has this version, so it is read again.
                        let guard =
                            if way_back { PruneGuard::Preexisting } else { PruneGuard::CascadingDelete };
                        self.known.insert(id, (Version::default(), Some(guard)));
                        continue;
                    }
                },
            };
            self.known.insert(id, (version, guard));
        }
    }

    /// Returns the objects that need an approval, each with the reason.
    pub(crate) fn ids(&self) -> BTreeMap<ObjectId, PruneGuard> {
        self.known.iter().filter_map(|(id, (_, guard))| Some((id.clone(), (*guard)?))).collect()
    }
}

impl PruneGuardInputs<'_> {
    /// Returns the reason why this object needs an approval, if there is one.
    async fn of(&self, id: &ObjectId) -> Result<Option<PruneGuard>, ApiError> {
        let kind = id.group_kind();
        if needs_body_check(&kind) {
            self.context.settings.verify_turn().await;
            let live = self.cluster.objects().read_whole(id, None).await?;
            if live.is_some_and(|live| deletes_others(&kind, &live.body)) {
                return Ok(Some(PruneGuard::CascadingDelete));
            }
        }
        if self.way_back {
            self.context.settings.verify_turn().await;
            let was_there = self.cluster.may_predate_apply(id, self.owner).await?;
            return Ok(was_there.filter(|was_there| *was_there).map(|_| PruneGuard::Preexisting));
        }
        Ok(None)
    }
}
