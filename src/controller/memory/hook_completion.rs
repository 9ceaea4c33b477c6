//! Completion of hooks that are neither Jobs nor Pods.
//!
//! In: the statuses that were read, and the hooks that were applied.
//! Out: [`CompletedObjects`] with these hooks.
//!
//! Metadata do not show such a completion, so it is recorded when a status is read: a hook that is
//! deleted a moment later must not run again. A hook that reports no status is complete once it
//! exists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::api::{SPEC_HASH_ANNOTATION, SpecHash};
use crate::controller::reconcile::policy_inputs::CompletedObjects;
use crate::desired::{DesiredObject, DesiredSet};
use crate::object::{Object, ObjectId};
use crate::observed::{Observed, ObservedSet, Ownership, runs_to_completion};

/// Statuses of the hooks of a Sync, as they were read last.
#[derive(Debug, Default, Clone)]
pub(crate) struct HookStatuses {
    runs: BTreeMap<ObjectId, HookRun>,
    /// Hooks that never report a status.
    silent: BTreeSet<ObjectId>,
}

/// One run of a hook, as it was read.
#[derive(Debug, Clone)]
struct HookRun {
    hash: SpecHash,
    uid: Box<str>,
    /// Result of the run: true if it succeeded, `None` while it is running.
    ended_well: Option<bool>,
}

impl HookStatuses {
    /// Records the status of a hook. A hook that is being deleted says nothing about its result.
    pub(crate) fn read(&mut self, object: &Object, ended_well: Option<bool>) {
        let uid = object.metadata("uid").and_then(Value::as_str).unwrap_or_default();
        let hash = object.annotation(SPEC_HASH_ANNOTATION).and_then(SpecHash::parse);
        let (Some(hash), false) = (hash, is_going(&object.body)) else { return };
        self.runs.insert(object.id.clone(), HookRun { hash, uid: uid.into(), ended_well });
    }

    /// Forgets the statuses of hooks that start again.
    pub(crate) fn restart<'a>(&mut self, ids: impl Iterator<Item = &'a ObjectId>) {
        ids.for_each(|id| {
            self.runs.remove(id);
        });
    }

    /// Keeps only these hooks, and records the ones that report no status.
    pub(crate) fn are(&mut self, hooks: &BTreeSet<&ObjectId>, silent: BTreeSet<ObjectId>) {
        self.runs.retain(|id, _| hooks.contains(id));
        self.silent = silent;
    }

    /// Returns the hash and the result of the current or the last run, if it is known.
    fn ended_well(&self, hook: &DesiredObject, seen: Option<&Observed>) -> Option<(SpecHash, Option<bool>)> {
        if seen.is_some() && self.silent.contains(&hook.id) {
            return Some((
                seen.and_then(|seen| seen.recorded_hash).or_else(|| hook.recorded_hash())?,
                Some(true),
            ));
        }
        let run = self.runs.get(&hook.id)?;
        let is_it = match seen {
            Some(seen) => seen.uid == run.uid && seen.recorded_hash.is_none_or(|hash| hash == run.hash),
            None => hook.is_recorded_as(&run.hash),
        };
        is_it.then_some((run.hash, run.ended_well))
    }
}

impl CompletedObjects {
    /// Records the results of hooks from their last known statuses.
    pub(crate) fn see_hooks(&mut self, desired: &DesiredSet, observed: &ObservedSet, read: &HookStatuses) {
        let hooks = desired
            .objects()
            .iter()
            .filter(|it| it.annotations.hook.is_some() && !runs_to_completion(&it.id));
        for hook in hooks {
            let (id, seen) = (&hook.id, observed.get(&hook.id));
            let is_ours = |seen: &Observed| {
                let is_wanted = seen.recorded_hash.is_some_and(|hash| hook.is_recorded_as(&hash));
                is_wanted && seen.ownership == Ownership::Ours && seen.applied_by_us && !seen.deleting
            };
            if seen.is_some_and(|seen| !is_ours(seen)) {
                continue;
            }
            match read.ended_well(hook, seen) {
                Some((hash, Some(well))) => {
                    self.finished.insert(id.clone(), hash);
                    match well {
                        true => self.failed.remove(id),
                        false => self.failed.insert(id.clone()),
                    };
                }
                // Someone has started the failed hook again.
                Some((_, None)) if seen.is_some() && self.failed.remove(id) => {
                    self.finished.remove(id);
                }
                Some((_, None)) | None => {}
            }
        }
    }
}

fn is_going(body: &Map<String, Value>) -> bool {
    body.get("metadata").and_then(|it| it.get("deletionTimestamp")).is_some_and(|time| !time.is_null())
}
