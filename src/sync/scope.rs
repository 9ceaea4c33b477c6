//! Where a Sync may own objects, as its status says it and as the watches need it.

use std::collections::BTreeSet;

use crate::api::Scope;
use crate::cluster::Need;
use crate::object::GroupKind;

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
