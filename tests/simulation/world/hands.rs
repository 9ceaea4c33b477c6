//! Actions of people: on the folders, on the specs of Syncs, and to live objects.
//!
//! In: an action, and random numbers for it. Out: the world after it.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::steps::silence;
use super::World;
use super::{Act, Dice, Id, OBJECTS, Replica, STAMP, objects};

impl World {
    /// Somebody commits to the folder of a Sync.
    pub(super) fn edit(&mut self, act: Act, sync: usize, dice: &mut Dice) {
        self.stamp += 1;
        let (stamp, charge) = (self.stamp, &mut self.charges[sync]);
        charge.commits(act);
        let ids: Vec<Id> = charge.objects.keys().copied().collect();
        match act {
            Act::Add => charge.add(stamp),
            Act::Remove if ids.len() > OBJECTS - 8 => {
                for _ in 0..=dice.below(3) {
                    charge.objects.remove(dice.of(&ids));
                }
            }
            Act::Bad | Act::Empty => {}
            _ => {
                for _ in 0..=dice.below(4) {
                    charge.objects.insert(*dice.of(&ids), stamp);
                }
            }
        }
    }

    /// Somebody changes every object of a Sync, and takes that back while it is being applied: by a server of which few replies
    /// and few events arrive.
    pub(super) async fn take_back(&mut self, sync: usize, dice: &mut Dice) {
        let before = self.charges[sync].holding();
        self.stamp += 1;
        self.charges[sync].commits(Act::TakeBack);
        self.charges[sync].changes_all(self.stamp);
        self.file(sync);
        self.publish(false);
        self.nudge(sync);
        self.sandbox.faults().set(silence(self.rates));
        tokio::time::sleep(Duration::from_millis(dice.below(4000))).await;
        self.charges[sync].holds_again(&before);
        self.file(sync);
        self.publish(false);
        self.nudge(sync);
        self.sandbox.faults().set(self.rates);
    }

    /// Some objects go from one Sync to another, with one commit; some are changed by it.
    pub(super) fn transfer(&mut self, from: usize, to: usize, dice: &mut Dice) {
        self.stamp += 1;
        let ids: Vec<Id> = self.charges[from].objects.keys().copied().collect();
        for _ in 0..=dice.below(3) {
            let id = dice.of(&ids);
            // A Sync without objects has nothing that could be edited.
            if self.charges[from].objects.len() <= OBJECTS / 2 {
                break;
            }
            let Some(stamp) = self.charges[from].objects.remove(id) else { continue };
            let stamp = if dice.below(2) == 0 { self.stamp } else { stamp };
            self.charges[to].objects.insert(*id, stamp);
        }
        [from, to].into_iter().for_each(|sync| self.charges[sync].commits(Act::Move));
    }

    /// Some objects go from one Sync to another, and both folders are committed.
    pub(crate) fn gives(&mut self, from: usize, to: usize, dice: &mut Dice) {
        self.transfer(from, to, dice);
        [from, to].into_iter().for_each(|sync| self.file(sync));
        self.publish(false);
        [from, to].into_iter().for_each(|sync| self.nudge(sync));
    }

    /// Some objects go to a Sync whose folder cannot be read by the same commit.
    pub(crate) fn leaves_to_broken(&mut self, from: usize, broken: usize, dice: &mut Dice) -> Vec<Id> {
        let before: Vec<Id> = self.charges[from].objects.keys().copied().collect();
        self.transfer(from, broken, dice);
        self.charges[broken].commits(Act::Bad);
        [from, broken].into_iter().for_each(|sync| self.file(sync));
        self.publish(false);
        [from, broken].into_iter().for_each(|sync| self.nudge(sync));
        let left = |id: &Id| !self.charges[from].objects.contains_key(id);
        before.into_iter().filter(left).collect()
    }

    /// Somebody changes a live object; each time it is somebody else.
    pub(super) fn meddle(&mut self, act: Act, sync: usize, dice: &mut Dice) {
        self.hands += 1;
        let ids: Vec<Id> = self.charges[sync].objects.keys().copied().collect();
        let id = *dice.of(&ids);
        let (path, hand) = (id.path(), format!("hand-{}", self.hands));
        self.observer.meddles(&id.name());
        self.said.writers.meddles(id);
        let annotation = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
        let patch = match act {
            Act::EditByHand if dice.below(2) == 0 => annotation(STAMP, "by hand".into()),
            Act::EditByHand => objects::spoiled(id.1),
            Act::RemoveByHand => annotation(STAMP, Value::Null),
            Act::Relabel => json!({"metadata": {"labels": {"moorline.dev/sync": Value::Null}}}),
            Act::DeleteByHand => {
                // It may be gone already.
                let _ = self.sandbox.delete(&path);
                return;
            }
            _ => annotation("example.com/extra", hand.as_str().into()),
        };
        let _ = self.sandbox.merge(&path, &patch, &hand);
    }

    /// Every daemon crashes.
    pub(crate) fn crash_all(&mut self) {
        self.replicas.iter_mut().for_each(Replica::crash);
    }

    /// Somebody deletes an object of a Sync, and changes others.
    pub(crate) fn meddles_with(&mut self, sync: usize, dice: &mut Dice) {
        for act in [Act::DeleteByHand, Act::EditByHand, Act::RemoveByHand] {
            self.meddle(act, sync, dice);
        }
    }

    /// Somebody wants something else of a Sync.
    pub(super) fn ask_otherwise(&mut self, act: Act, sync: usize) {
        self.stamp += 1;
        let stamp = self.stamp;
        self.charges[sync].ask_otherwise(act, stamp);
        if act == Act::Path {
            self.past.forget();
            self.said.forget();
            self.held.moves(&self.charges[sync].name());
            // To anyone who hears of the other folder before he sees the commit, it is as it was.
            let charge = &self.charges[sync];
            let before = self.books.objects(&charge.folder());
            self.observer.tell(sync, before.clone(), before.unwrap_or_default(), (true, charge.prunes()));
            self.file(sync);
            self.publish(false);
        }
        self.order(sync);
    }
}
