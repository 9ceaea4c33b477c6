//! Chapters about the revision that is held while the newest commit cannot be applied.
//!
//! In: a Sync whose newest commit cannot be rendered. Out: whether the held revision is reached and stays, and whether nothing is
//! deleted without an approval that was given after the refusal.

use std::time::Duration;

use moorline::api::HOLD_REVISION_ANNOTATION;
use moorline::controller::CacheKind;
use moorline::sandbox::FaultRates;
use serde_json::json;
use tokio::time::sleep;

use super::super::{Act, Dice, World};
use super::{LONG, OVER_BUDGET, PLACE, SOON};

impl World {
    /// The newest commit is broken for ever. Objects are edited and deleted by hand, once beside a daemon that runs, once
    /// while none does, and once after something that is remembered was lost.
    pub(super) async fn broken_for_ever(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        self.breaks(sync);
        self.waits(Duration::from_secs(60)).await?;
        for round in 0..3 {
            match round {
                1 => self.crash_all(),
                2 => self.forgets(dice),
                _ => {}
            }
            self.meddles_with(sync, dice);
            self.is_reached(SOON).await?;
            self.rests().await?;
        }
        Ok(())
    }

    /// A good commit begins to be applied, every daemon crashes, and a broken commit follows. The good commit is held, if the
    /// status names it.
    pub(super) async fn crash_before_broken(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        let before = self.charges[sync].holding();
        let slow = FaultRates { latency: 1000, longest: Duration::from_secs(1), ..FaultRates::default() };
        self.sandbox.faults().set(slow);
        self.changes_all(sync);
        let begun = self.head();
        sleep(Duration::from_millis(dice.below(4000))).await;
        self.crash_all();
        self.sandbox.faults().set(FaultRates::default());
        if self.held.of(&self.charges[sync].name()) != begun {
            self.charges[sync].holds_again(&before);
        }
        // The folder holds what was committed; only a file that cannot be read comes with it.
        self.breaks(sync);
        self.keep_running();
        self.is_reached(SOON).await?;
        self.forgets(dice);
        self.meddles_with(sync, dice);
        self.is_reached(SOON).await?;
        self.rests().await
    }

    /// Objects are left out while pruning is off, the next commit is broken, and pruning is switched on again.
    pub(super) async fn prune_while_refused(&mut self, sync: usize) -> Result<(), String> {
        self.charges[sync].prunes = false;
        self.order(sync);
        self.waits(Duration::from_secs(10)).await?;
        let left_out = self.removes(sync, 3);
        self.waits(Duration::from_secs(60)).await?;
        self.breaks(sync);
        self.waits(Duration::from_secs(30)).await?;
        self.charges[sync].prunes = true;
        self.order(sync);
        self.waits(LONG).await?;
        self.are_there(&left_out, "the newest commit is refused, and nobody has approved")?;
        self.approve(sync);
        self.are_gone(&left_out, SOON).await
    }

    /// A person approves deletions while no daemon runs, and a broken commit follows before one does.
    pub(super) async fn approval_before_refusal(&mut self, sync: usize) -> Result<(), String> {
        self.grows(sync).await?;
        let left_out = self.removes(sync, OVER_BUDGET);
        self.waits(Duration::from_secs(60)).await?;
        self.are_there(&left_out, "it is over budget, and nobody has approved")?;
        self.crash_all();
        self.approve(sync);
        self.breaks(sync);
        self.keep_running();
        self.waits(LONG).await?;
        self.are_there(&left_out, "the approval was given before the newest commit was refused")?;
        self.approve(sync);
        self.are_gone(&left_out, SOON).await
    }

    /// A person holds the Sync at its revision, and other commits follow. Nothing else is applied, also by daemons that begin
    /// or have lost what they remember, until the Sync is released.
    pub(super) async fn held_by_hand(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        let name = self.charges[sync].name();
        let Some(commit) = self.held.of(&name) else { return Ok(()) };
        let (before, mut newest) = (self.charges[sync].holding(), self.charges[sync].holding());
        let place = format!("{PLACE}/{name}");
        let hold =
            |commit: Option<&str>| json!({"metadata": {"annotations": {HOLD_REVISION_ANNOTATION: commit}}});
        self.sandbox.merge(&place, &hold(Some(&commit)), "person").map_err(|error| format!("{error:?}"))?;
        self.waits(Duration::from_secs(10)).await?;
        for round in 0..3 {
            self.charges[sync].holds_again(&newest);
            self.changes_all(sync);
            newest = self.charges[sync].holding();
            self.charges[sync].holds_again(&before);
            match round {
                1 => self.crash_all(),
                2 => self.forgets(dice),
                _ => {}
            }
            self.keep_running();
            self.meddles_with(sync, dice);
            self.waits(Duration::from_secs(60)).await?;
            self.is_reached(SOON).await?;
            if self.held.of(&name).as_ref() != Some(&commit) {
                return Err(format!("{:?} is held, and not {commit}", self.held.of(&name)));
            }
        }
        self.sandbox.merge(&place, &hold(None), "person").map_err(|error| format!("{error:?}"))?;
        self.charges[sync].holds_again(&newest);
        self.is_reached(SOON).await
    }

    /// Something that is only remembered is lost.
    fn forgets(&mut self, dice: &mut Dice) {
        let what = CacheKind::ALL[dice.below(CacheKind::ALL.len() as u64) as usize];
        self.replicas.iter().for_each(|replica| replica.lose(what));
        if dice.below(2) == 0 {
            self.replicas.iter().for_each(super::Replica::lose_mirrors);
        }
    }

    /// The newest commit to the folder of a Sync cannot be read.
    pub(crate) fn breaks(&mut self, sync: usize) {
        self.charges[sync].commits(Act::Bad);
        self.commits_to(sync);
    }
}
