//! Chapters about a spec that is refused, and about drift that is only reported.
//!
//! In: a Sync whose newest spec cannot be applied, or that reports drift. Out: whether everything that stops or narrows counts
//! at once.

use std::time::Duration;

use super::super::super::charge::Unfit;
use super::super::{Act, Dice, World};
use super::{LONG, OVER_BUDGET, SOON};

/// The places of the modes in which drift stays.
const REPORT: usize = 1;

impl World {
    /// A spec that is refused suspends the Sync, reports drift, switches pruning off, or narrows nothing.
    pub(super) async fn refused_spec_narrows(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        let narrowing = dice.below(4);
        let mut left_out = Vec::new();
        if narrowing == 2 {
            self.grows(sync).await?;
            left_out = self.removes(sync, OVER_BUDGET);
        }
        self.waits(Duration::from_secs(60)).await?;
        let charge = &mut self.charges[sync];
        charge.unfit = Some(*dice.of(&[Unfit::PathMissing, Unfit::Invalid]));
        match narrowing {
            0 => charge.suspended = true,
            1 => charge.drift = REPORT,
            2 => charge.prunes = false,
            _ => {}
        }
        self.order(sync);
        self.waits(Duration::from_secs(60)).await?;
        self.meddles_with(sync, dice);
        // By then the controllers of the server have reacted to the edits.
        self.waits(Duration::from_secs(10)).await?;
        let (versions, is_repaired) = (self.versions(sync), self.difference().is_none());
        for _ in 0..4 {
            self.approve(sync);
            self.waits(LONG / 4).await?;
        }
        match narrowing {
            0 | 1 if is_repaired || self.versions(sync) != versions => {
                Err("objects are written although the refused spec suspends the Sync or reports drift".into())
            }
            2 => self.are_there(&left_out, "the refused spec switches pruning off"),
            0 | 1 => Ok(()),
            _ => self.is_reached(SOON).await,
        }
    }

    /// An object is deleted by hand while drift is reported or ignored. It is made again by another commit, and not before.
    pub(super) async fn deleted_in_report(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        self.charges[sync].drift = *dice.of(&[REPORT, REPORT + 1]);
        self.order(sync);
        self.waits(Duration::from_secs(60)).await?;
        let id = self.one_of(sync, dice);
        let by_hand = |world: &mut Self| {
            world.observer.meddles(&id.name());
            world.said.writers.meddles(id);
            // It is there: nothing else is going on.
            let _ = world.sandbox.delete(&id.path());
        };
        by_hand(self);
        for restarts in [false, true] {
            if restarts {
                self.restarts();
            }
            self.waits(LONG / 2).await?;
            if self.is_there(id) {
                return Err(format!("{} was deleted by hand, and is made anew in Report mode", id.path()));
            }
        }
        let is_ready = self.status_at(sync, "/conditions/0/status").as_deref() == Some("True");
        if is_ready && self.charges[sync].drift == REPORT {
            return Err("it is ready beside an object that is deleted".into());
        }
        let other = *self.charges[sync].objects.keys().find(|other| **other != id).unwrap_or(&id);
        self.charges[sync].commits(Act::Change);
        self.changes(sync, other);
        self.is_reached(SOON).await
    }
}
