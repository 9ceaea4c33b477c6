//! What a changed definition makes doubtful.
//!
//! In: the outcomes of a pass. Out: objects of kinds whose definition was written in it, to be verified once more: the
//! server may read their fields in another way now, and tells nobody.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::pass::Subject;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::{GroupKind, ObjectId};
use crate::plan::Outcome;

impl Subject<'_> {
    /// Has the objects of redefined kinds verified, but for those that were written in this pass themselves.
    pub(super) fn doubt_redefined(&self, desired: &DesiredSet, outcomes: &BTreeMap<ObjectId, Outcome>) {
        let written = |outcome: &Outcome| matches!(outcome, Outcome::Updated(_) | Outcome::Adopted(_));
        let objects = outcomes.iter().filter(|(_, outcome)| written(outcome));
        let redefined: BTreeSet<GroupKind> =
            objects.filter_map(|(id, _)| defined(desired.get(id)?)).collect();
        if redefined.is_empty() {
            return;
        }
        let doubtful: Vec<ObjectId> = self.cluster.observed(self.owner, |observed| {
            let ids = observed.iter().map(|(id, _)| id).filter(|id| redefined.contains(&id.group_kind()));
            ids.filter(|id| !outcomes.contains_key(*id)).cloned().collect()
        });
        self.cluster.distrust(self.owner, &doubtful);
        self.cluster.wake(self.owner).notify_one();
    }
}

/// The kind that a definition is of.
fn defined(object: &DesiredObject) -> Option<GroupKind> {
    if !object.id.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let body = Value::Object(object.body());
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
}
