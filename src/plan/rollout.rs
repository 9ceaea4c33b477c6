//! A turn begins when all that comes before it is well.
//!
//! In: how far the roll-out of a set is. Out: what waits, and for what. Only what Git has changed waits: a repair does not,
//! nor does anything once the roll-out has come to its end. What is no longer wanted goes when all that is wanted is there.

use std::collections::BTreeSet;

use super::{Action, Change, Decided, Hold, Policy, Step};
use crate::desired::{DesiredSet, Phase, Turn};
use crate::object::ObjectId;

/// How far a set has been rolled out, as long as it is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollout {
    /// Objects that are not well, or not known to be.
    pub unwell: BTreeSet<ObjectId>,
    /// Of these, those that have failed or take too long.
    pub degraded: BTreeSet<ObjectId>,
    /// Something of it has failed.
    pub failed: bool,
    /// Another set was rolled out before it.
    pub is_later: bool,
    /// Waves of objects that are no hooks do not wait for each other's health, only for hooks.
    pub only_hooks: bool,
}

/// What steps wait for because of what is not well.
#[derive(Debug)]
pub struct Awaits<'a> {
    desired: &'a DesiredSet,
    only_hooks: bool,
    failed: bool,
    /// What is not well, each with its turn.
    unwell: Vec<(Turn, ObjectId)>,
    /// What the first step waits for that does.
    waits: Option<ObjectId>,
}

impl<'a> Awaits<'a> {
    /// None where nothing waits.
    pub fn new(desired: &'a DesiredSet, rollout: Option<&Rollout>) -> Option<Self> {
        let rollout = rollout.filter(|_| desired.has_turns())?;
        let turn = |id: &ObjectId| Some((desired.get(id)?.switches.turn(), id.clone()));
        let mut unwell: Vec<_> = rollout.unwell.iter().filter_map(turn).collect();
        unwell.sort();
        let (only_hooks, failed) = (rollout.only_hooks, rollout.failed);
        Some(Self { desired, only_hooks, failed, unwell, waits: None })
    }

    /// An object was written, and how it is now is not known yet.
    pub fn written(&mut self, id: &ObjectId) {
        let Some(wanted) = self.desired.get(id) else { return };
        let entry = (wanted.switches.turn(), id.clone());
        if let Err(at) = self.unwell.binary_search(&entry) {
            self.unwell.insert(at, entry);
        }
    }

    /// What a step waits for. Asked in the order of the steps, so that the prunes come last.
    pub fn before(&mut self, step: &Step) -> Option<ObjectId> {
        let blocker = match &step.action {
            Action::Prune { .. } if self.desired.get(&step.id).is_some() => None,
            Action::Prune { .. } => self.waits.clone(),
            Action::Create | Action::Adopt { .. } | Action::Update(Change::Committed | Change::Again) => {
                self.first_before(&step.id)
            }
            Action::Update(Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::Moved)
            | Action::HandOver { .. } => None,
        };
        if self.waits.is_none() {
            self.waits.clone_from(&blocker);
        }
        blocker
    }

    fn first_before(&self, id: &ObjectId) -> Option<ObjectId> {
        let wanted = self.desired.get(id)?;
        let hook = wanted.switches.hook;
        if self.failed && hook.is_some_and(|hook| hook.on_failure) {
            return None;
        }
        let turn = wanted.switches.turn();
        let is_hook = |id: &ObjectId| self.desired.get(id).is_some_and(|it| it.switches.hook.is_some());
        let counts = |(first, blocker): &&(Turn, ObjectId)| {
            *first < turn && (!self.only_hooks || turn.phase == Phase::After || is_hook(blocker))
        };
        self.unwell.iter().find(counts).map(|(_, blocker)| blocker.clone())
    }
}

/// Holds every step whose turn has not come.
pub(super) fn hold_back(desired: &DesiredSet, policy: &Policy, decided: &mut Decided) {
    let Some(mut awaits) = Awaits::new(desired, policy.rollout.as_ref()) else { return };
    let is_prune = |step: &Step| matches!(step.action, Action::Prune { .. });
    // What is already held waits as well, and what is no longer wanted with it.
    let waits = |hold: &Hold| matches!(hold, Hold::Waits(_) | Hold::Runs);
    let held = decided.held.iter().find(|(id, hold)| desired.get(id).is_some() && waits(hold));
    awaits.waits = held.map(|(id, _)| id.clone());
    let (prunes, writes): (Vec<_>, Vec<_>) =
        std::mem::take(&mut decided.steps).into_iter().partition(|(_, step)| is_prune(step));
    for (turn, step) in writes.into_iter().chain(prunes) {
        match awaits.before(&step) {
            Some(blocker) => decided.held.push((step.id, Hold::Waits(blocker))),
            None => decided.steps.push((turn, step)),
        }
    }
}
