//! Inventory scope of a Sync, the kinds and namespaces in which it may own objects: as recorded in
//! the status, as needed by the watches, and as left after a reconcile.

use std::collections::BTreeSet;

use super::prepare::PreparedRevision;
use crate::api::Scope;
use crate::cluster::{Kinds, WatchRequirements};
use crate::controller::memory::SyncMemory;
use crate::desired::DesiredSet;
use crate::object::GroupKind;
use crate::observed::ObservedSet;

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
