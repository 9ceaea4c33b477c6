//! Where a Sync may own objects: as its status says it, as the watches need it, and as what is wanted and what is there
//! come to.

use std::collections::BTreeSet;

use super::memory::Memory;
use super::prepare::Prepared;
use crate::api::Scope;
use crate::cluster::{Kinds, Need};
use crate::desired::DesiredSet;
use crate::object::GroupKind;
use crate::observed::ObservedSet;

/// The kinds of a scope.
fn kinds(scope: &Scope) -> BTreeSet<GroupKind> {
    let kind = |text: &String| match text.split_once('.') {
        Some((kind, group)) => GroupKind::new(group, kind),
        None => GroupKind::new("", text),
    };
    scope.kinds.iter().map(kind).collect()
}

/// What has to be seen of a scope.
pub(crate) fn need_of(scope: &Scope) -> Need {
    Need { kinds: kinds(scope), namespaces: scope.namespaces.iter().map(|one| one.as_str().into()).collect() }
}

/// A scope that says what is needed.
pub(crate) fn scope(need: &Need) -> Scope {
    Scope {
        kinds: need.kinds.iter().map(ToString::to_string).collect(),
        namespaces: need.namespaces.iter().map(ToString::to_string).collect(),
    }
}

/// What has to be seen: all that is wanted, and all that may have been before.
pub(super) fn need(prepared: &Prepared, memory: &Memory) -> Need {
    let mut need = Need { kinds: memory.kinds.clone(), namespaces: memory.places.clone() };
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

/// What still has to be seen: what is wanted, and what is there although it is not.
pub(super) fn remaining(need: Need, desired: &DesiredSet, observed: &ObservedSet, kinds: &Kinds) -> Need {
    let is_hidden = |kind: &GroupKind| !observed.lists(kind) || kinds.is_stale(&kind.group);
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
    Need {
        kinds: need.kinds.into_iter().filter(listed).collect(),
        namespaces: need.namespaces.into_iter().filter(|one| used(one)).collect(),
    }
}
