//! Reacts to changed CustomResourceDefinitions.
//!
//! In: changes of CustomResourceDefinitions.
//! Out: discovery is refreshed, and objects of changed kinds are verified or retried.
//!
//! The server may read the fields of such objects differently now, and sends no watch event for
//! that.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::ReconcileContext;
use super::prepare::{PreparedRevision, cluster_error};
use crate::cluster::{CrdChange, WatchRequirements};
use crate::controller::memory::SyncMemory;
use crate::desired::Scopes;
use crate::object::{GroupKind, ObjectId};
use crate::report::ReconcileError;

impl ReconcileContext<'_> {
    /// Processes the changes of CRDs that have been collected so far.
    pub(crate) async fn heed_definitions(&self, memory: &mut SyncMemory) -> Result<(), ReconcileError> {
        memory.definitions.extend(self.cluster.take_crd_changes(self.owner));
        let moved =
            self.cluster.find_moved_kinds(self.owner).await.map_err(|failure| cluster_error(&failure))?;
        memory.definitions.extend(moved);
        if memory.definitions.is_empty() {
            return Ok(());
        }
        // A new kind is requested only where it is missing, and then at once.
        memory.rediscover_at = None;
        let looks = memory.prepared.as_ref().is_some_and(PreparedRevision::looks_at_kinds);
        if looks || memory.definitions.values().any(|news| *news != CrdChange::Added) {
            self.cluster.refresh_discovery().await.map_err(|failure| cluster_error(&failure))?;
            self.doubt_redefined(memory).await;
        }
        memory.definitions.clear();
        Ok(())
    }

    async fn doubt_redefined(&self, memory: &mut SyncMemory) {
        let kinds = self.cluster.kinds();
        let changed = |(kind, plural): (&GroupKind, &str)| {
            memory.definitions.get(&*format!("{plural}.{}", kind.group)) == Some(&CrdChange::Changed)
        };
        let redefined: BTreeSet<GroupKind> = kinds
            .iter()
            .filter(|(kind, served)| changed((kind, &served.plural)))
            .map(|(kind, _)| kind.clone())
            .collect();
        self.cluster.forget_replicas_paths(&redefined).await;
        memory.scaling.forget();
        // The new CRD may accept an object that the old one rejected.
        memory.failing.retain(|id, _| !redefined.contains(&id.group_kind()));
        let doubtful: Vec<ObjectId> = self.cluster.read_observed(self.owner, |observed| {
            let ids = observed.iter().map(|(id, _)| id).filter(|id| redefined.contains(&id.group_kind()));
            ids.cloned().collect()
        });
        self.cluster.mark_unverified(self.owner, &doubtful);
    }

    /// Watches CRDs, if a needed kind may be defined by one or a chart reads the served kinds.
    pub(crate) fn follow_definitions(&self, need: &WatchRequirements, looks: bool) {
        let own = LazyCell::new(Scopes::builtin);
        // The API group of a custom resource has a dot.
        let defined =
            |kind: &GroupKind| kind.group.contains('.') && own.get(&kind.group, &kind.kind).is_none();
        self.cluster.set_crd_subscription(self.owner, looks || need.kinds.iter().any(defined));
    }
}
