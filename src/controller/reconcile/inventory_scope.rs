//! Inventory scope of a Sync, the kinds and namespaces in which it may own objects: as recorded in
//! the status, as needed by the watches, and as left after a reconcile.
//!
//! In: the scope of a reconcile.
//! Out: the recorded scope; nothing is applied in a scope before the API server has its record. A
//! run without a Sync records it in its Lease.

use std::collections::BTreeSet;

use super::ReconcileContext;
use super::prepare::PreparedRevision;
use crate::api::Scope;
use crate::cluster::{Kinds, WatchRequirements};
use crate::controller::memory::SyncMemory;
use crate::controller::status::StatusRecorder;
use crate::controller::status::lease_record::LeaseRecord;
use crate::desired::DesiredSet;
use crate::object::GroupKind;
use crate::observed::ObservedSet;
use crate::report::{ErrorCause, ReconcileError};

/// Parses the kinds of a scope.
fn kinds(scope: &Scope) -> BTreeSet<GroupKind> {
    let kind = |text: &String| match text.split_once('.') {
        Some((kind, group)) => GroupKind::new(group, kind),
        None => GroupKind::new("", text),
    };
    scope.kinds.iter().map(kind).collect()
}

/// Returns the watches that a scope needs.
pub(crate) fn watches_of_scope(scope: &Scope) -> WatchRequirements {
    WatchRequirements {
        kinds: kinds(scope),
        namespaces: scope.namespaces.iter().map(|one| one.as_str().into()).collect(),
    }
}

/// Returns the scope that the watches cover.
pub(crate) fn scope(need: &WatchRequirements) -> Scope {
    Scope {
        kinds: need.kinds.iter().map(ToString::to_string).collect(),
        namespaces: need.namespaces.iter().map(ToString::to_string).collect(),
    }
}

/// Returns the watches for all desired objects, and for the earlier inventory.
pub(crate) fn needed_watches(prepared: &PreparedRevision, memory: &SyncMemory) -> WatchRequirements {
    let mut need = WatchRequirements {
        kinds: memory.inventory_kinds.clone(),
        namespaces: memory.inventory_namespaces.clone(),
    };
    for object in prepared.desired.objects() {
        let kind = object.id.group_kind();
        if !need.kinds.contains(&kind) {
            need.kinds.insert(kind);
        }
        if let Some(namespace) = object.id.namespace().filter(|one| !need.namespaces.contains(*one)) {
            need.namespaces.insert(namespace.into());
        }
    }
    need
}

/// Returns the watches that are still needed: for desired objects, and for existing ones that are
/// no longer desired.
pub(crate) fn remaining_watches(
    need: WatchRequirements,
    desired: &DesiredSet,
    observed: &ObservedSet,
    kinds: &Kinds,
) -> WatchRequirements {
    let is_hidden = |kind: &GroupKind| !observed.is_kind_listed(kind) || kinds.is_stale(&kind.group);
    let hides = need.kinds.iter().any(is_hidden);
    let there: BTreeSet<GroupKind> = observed.iter().map(|(id, _)| id.group_kind()).collect();
    let wanted: BTreeSet<GroupKind> = desired.objects().iter().map(|object| object.id.group_kind()).collect();
    let listed = |kind: &GroupKind| wanted.contains(kind) || there.contains(kind) || is_hidden(kind);
    let used: BTreeSet<&str> = observed.iter().filter_map(|(id, _)| id.namespace()).collect();
    let used = |namespace: &str| {
        hides
            || used.contains(namespace)
            || desired.objects().iter().any(|object| object.id.namespace() == Some(namespace))
    };
    WatchRequirements {
        kinds: need.kinds.into_iter().filter(listed).collect(),
        namespaces: need.namespaces.into_iter().filter(|one| used(one)).collect(),
    }
}

/// Returns the recorded scope: the kinds and namespaces in which the Sync may own objects.
pub(super) fn written_scope(inputs: &ReconcileContext) -> Option<Scope> {
    let notebook = inputs.context.reporting.notebook.as_deref();
    let written = inputs
        .resource_recorder
        .as_ref()
        .map_or_else(|| notebook.and_then(LeaseRecord::scope), StatusRecorder::scope);
    // An empty record is treated as a missing one.
    written.filter(|scope| !scope.kinds.is_empty())
}

/// Records the scope before anything is applied in it.
pub(super) async fn record_scope(inputs: &ReconcileContext, scope: Scope) -> Result<(), ReconcileError> {
    match (inputs.resource_recorder.as_ref(), &inputs.context.reporting.notebook) {
        (Some(resource_recorder), _) => {
            let is_written = resource_recorder.record(scope, inputs.valid_spec().timeout).await;
            return if is_written { Ok(()) } else { Err(unwritten()) };
        }
        (None, Some(notebook)) => notebook.record(scope).await,
        (None, None) => {}
    }
    Ok(())
}

/// Returns the error of a status that could not be written: nothing is applied before its scope is
/// recorded.
pub(super) fn unwritten() -> ReconcileError {
    let message =
        "the kinds and namespaces about to be applied could not be recorded in the status".to_owned();
    ReconcileError { cause: ErrorCause::StatusUnwritable, message, problems: Vec::new(), permanent: false }
}
