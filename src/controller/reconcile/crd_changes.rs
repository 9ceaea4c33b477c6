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
use super::prepare::PreparedRevision;
use crate::cluster::{CrdChange, WatchRequirements};
use crate::controller::memory::SyncMemory;
use crate::controller::reconcile_errors::cluster_error;
use crate::desired::Scopes;
use crate::object::{GroupKind, ObjectId};
use crate::report::ReconcileError;

/// Processes the changes of CRDs that have been collected so far.
pub(crate) async fn heed_definitions(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
) -> Result<(), ReconcileError> {
    memory.crd_changes.extend(inputs.cluster().take_crd_changes(&inputs.owner));
    let moved =
        inputs.cluster().find_moved_kinds(&inputs.owner).await.map_err(|failure| cluster_error(&failure))?;
    memory.crd_changes.extend(moved);
    if memory.crd_changes.is_empty() {
        return Ok(());
    }
    // A new kind is requested only where it is missing, and then at once.
    memory.rediscover_at = None;
    let looks = memory.prepared.as_ref().is_some_and(PreparedRevision::looks_at_kinds);
    if looks || memory.crd_changes.values().any(|news| *news != CrdChange::Added) {
        inputs.cluster().discovery().refresh().await.map_err(|failure| cluster_error(&failure))?;
        doubt_redefined(inputs, memory).await;
    }
    memory.crd_changes.clear();
    Ok(())
}

async fn doubt_redefined(inputs: &ReconcileContext, memory: &mut SyncMemory) {
    let kinds = inputs.cluster().kinds();
    let changed = |(kind, plural): (&GroupKind, &str)| {
        memory.crd_changes.get(&*format!("{plural}.{}", kind.group)) == Some(&CrdChange::Changed)
    };
    let redefined: BTreeSet<GroupKind> = kinds
        .iter()
        .filter(|(kind, served)| changed((kind, &served.plural)))
        .map(|(kind, _)| kind.clone())
        .collect();
    inputs.cluster().discovery().forget_replica_paths(&redefined).await;
    memory.autoscaled_replicas.forget();
    // The new CRD may accept an object that the old one rejected.
    memory.retries.retain(|id, _| !redefined.contains(&id.group_kind()));
    let doubtful: Vec<ObjectId> = inputs.cluster().read_observed(&inputs.owner, |observed| {
        let ids = observed.iter().map(|(id, _)| id).filter(|id| redefined.contains(&id.group_kind()));
        ids.cloned().collect()
    });
    inputs.cluster().mark_unverified(&inputs.owner, &doubtful);
}

/// Watches CRDs, if a needed kind may be defined by one or a chart reads the served kinds.
pub(crate) fn follow_definitions(inputs: &ReconcileContext, need: &WatchRequirements, looks: bool) {
    let own = LazyCell::new(Scopes::builtin);
    // The API group of a custom resource has a dot.
    let defined = |kind: &GroupKind| kind.group.contains('.') && own.get(&kind.group, &kind.kind).is_none();
    inputs.cluster().set_crd_subscription(&inputs.owner, looks || need.kinds.iter().any(defined));
}
