//! Which rights a Sync lacks, all at once.
//!
//! In: what could not be seen and what could not be written. Out: one line for each right, in the words of a Role.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::{Failure, Kinds};
use crate::object::{GroupKind, ObjectId};
use crate::plan::Outcome;

/// What is said of the rights that are missing; nothing where none are.
pub(crate) fn rights(
    blind: &[(GroupKind, Failure)],
    outcomes: &BTreeMap<ObjectId, Outcome>,
    kinds: &Kinds,
) -> Vec<String> {
    let resource = |kind: &GroupKind| {
        let plural = kinds.get(kind).map_or_else(|| kind.kind.to_lowercase(), |it| it.plural.to_string());
        match &*kind.group {
            "" => plural,
            group => format!("{plural}.{group}"),
        }
    };
    let unseen = blind.iter().filter(|(_, failure)| failure.code() == Some(403));
    let mut lines: BTreeSet<String> =
        unseen.map(|(kind, _)| format!("list and watch {}", resource(kind))).collect();
    for (id, outcome) in outcomes {
        if matches!(outcome, Outcome::Failed(why) if why.reason == "Forbidden") {
            let place = id.namespace().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            lines.insert(format!("get, create, patch and delete {}{place}", resource(&id.group_kind())));
        }
    }
    lines.into_iter().collect()
}
