//! Which objects that nobody wants any more take others with them.
//!
//! In: what is seen and not wanted, of the kinds of which that hangs on a field. Out: those that may go only by approval. Watches
//! carry no such fields, so that each is read once, and again when it has changed; one that cannot be read counts as
//! guarded, until it can.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::object::ObjectId;
use crate::observed::Mark;
use crate::plan::{may_take_more, takes_more};

/// An object as it was read: its uid and its version.
type Version = (Box<str>, Box<str>);

/// What is known of such objects.
#[derive(Debug, Default)]
pub(crate) struct Guarded(BTreeMap<ObjectId, (Version, bool)>);

impl Guarded {
    /// Reads those that are not known as they are now.
    pub(crate) async fn look(
        &mut self,
        context: &Context,
        cluster: &Cluster,
        owner: &SyncName,
        is_wanted: impl Fn(&ObjectId) -> bool,
    ) {
        let found: Vec<(ObjectId, Version)> = cluster.observed(owner, |observed| {
            let unwanted = observed.iter().filter(|(id, seen)| {
                seen.mark == Mark::Ours && !seen.deleting && may_take_more(&id.group_kind()) && !is_wanted(id)
            });
            let version = |(id, seen): (&ObjectId, &crate::observed::Observed)| {
                (id.clone(), (seen.uid.clone(), seen.resource_version.clone()))
            };
            unwanted.map(version).collect()
        });
        let mut before = std::mem::take(&mut self.0);
        for (id, version) in found {
            let known = before.remove(&id).filter(|(read, _)| *read == version);
            let takes = match known {
                Some((_, takes)) => takes,
                None => {
                    context.verify_turn().await;
                    match cluster.whole(&id, None).await {
                        Ok(live) => live.is_some_and(|live| takes_more(&id.group_kind(), &live.body)),
                        Err(failure) => {
                            tracing::debug!(sync = %owner, object = %id, %failure, "what it takes with it is not known");
                            // No version is this one, so that it is read again.
                            self.0.insert(id, (Version::default(), true));
                            continue;
                        }
                    }
                }
            };
            self.0.insert(id, (version, takes));
        }
    }

    /// Those that may go only by approval.
    pub(crate) fn ids(&self) -> BTreeSet<ObjectId> {
        self.0.iter().filter(|(_, (_, takes))| *takes).map(|(id, _)| id.clone()).collect()
    }
}
