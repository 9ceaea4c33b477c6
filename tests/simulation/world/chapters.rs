//! The chapters at the end of a story: one thing stays broken, and all rules must hold in spite of
//! that.
//!
//! In: an idle world. Out: the first broken rule. Each chapter runs without other faults, so that
//! its rules are exact. The seed of a story selects some of the chapters.

mod keeping;
mod narrowing;
mod telling;
mod waiting;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::story::{check, comes_to_rest};
use super::super::unrelated;
use super::{Dice, Id, PLACE, Replica, SYNCS, World};

/// Between two looks at the cluster.
const LOOK: Duration = Duration::from_secs(1);
/// The time that a daemon may take for something, in a world without other faults.
pub(crate) const SOON: Duration = Duration::from_secs(120);
/// The time for which nothing may happen.
const LONG: Duration = Duration::from_secs(600);

/// More than a Sync deletes without approval.
const OVER_BUDGET: usize = 16;

/// A chapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chapter {
    BrokenForEver,
    CrashBeforeBroken,
    PruneWhileRefused,
    ApprovalBeforeRefusal,
    RefusedSpecNarrows,
    ServerAway,
    DeletedInReport,
    DenialLifted,
    BesideBroken,
    HookRuns,
    IsTold,
    HeldByHand,
}

impl Chapter {
    /// Every chapter.
    pub(crate) const ALL: [Self; 12] = [
        Self::BrokenForEver,
        Self::CrashBeforeBroken,
        Self::PruneWhileRefused,
        Self::ApprovalBeforeRefusal,
        Self::RefusedSpecNarrows,
        Self::ServerAway,
        Self::DeletedInReport,
        Self::DenialLifted,
        Self::BesideBroken,
        Self::HookRuns,
        Self::IsTold,
        Self::HeldByHand,
    ];

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::BrokenForEver => "end: a commit broken for ever",
            Self::CrashBeforeBroken => "end: crash, then broken",
            Self::PruneWhileRefused => "end: prune while refused",
            Self::ApprovalBeforeRefusal => "end: approved, then refused",
            Self::RefusedSpecNarrows => "end: refused spec narrows",
            Self::ServerAway => "end: API server away",
            Self::DeletedInReport => "end: deleted in Report mode",
            Self::DenialLifted => "end: denial lifted",
            Self::BesideBroken => "end: beside a broken Sync",
            Self::HookRuns => "end: a hook runs",
            Self::IsTold => "end: what happened is told",
            Self::HeldByHand => "end: held by a person",
        }
    }
}

/// The chapters that a story tells: so many different ones.
pub(crate) fn draw(dice: &mut Dice, many: usize) -> Vec<Chapter> {
    let mut left = Chapter::ALL.to_vec();
    (0..many.min(left.len())).map(|_| left.swap_remove(dice.below(left.len() as u64) as usize)).collect()
}

impl World {
    /// Tells a chapter about one Sync.
    pub(crate) async fn tell_chapter(&mut self, chapter: Chapter, dice: &mut Dice) -> Result<(), String> {
        *self.happened.entry(chapter.word()).or_default() += 1;
        let sync = dice.below(SYNCS as u64) as usize;
        let told = match chapter {
            Chapter::BrokenForEver => self.broken_for_ever(sync, dice).await,
            Chapter::CrashBeforeBroken => self.crash_before_broken(sync, dice).await,
            Chapter::PruneWhileRefused => self.prune_while_refused(sync).await,
            Chapter::ApprovalBeforeRefusal => self.approval_before_refusal(sync).await,
            Chapter::RefusedSpecNarrows => self.refused_spec_narrows(sync, dice).await,
            Chapter::ServerAway => self.server_away(sync, dice).await,
            Chapter::DeletedInReport => self.deleted_in_report(sync, dice).await,
            Chapter::DenialLifted => self.denial_lifted(sync).await,
            Chapter::BesideBroken => unrelated::beside_broken(self, sync, dice).await,
            Chapter::HookRuns => self.hook_runs(sync, dice).await,
            Chapter::IsTold => self.is_told(sync, dice).await,
            Chapter::HeldByHand => self.held_by_hand(sync, dice).await,
        };
        told.map_err(|wrong| format!("{chapter:?} of Sync {sync}: {wrong}\n{}", self.statuses()))
    }

    /// Waits for so long, and checks the rules of every moment.
    pub(crate) async fn waits(&mut self, time: Duration) -> Result<(), String> {
        sleep(time).await;
        self.keep_running();
        check(self)
    }

    /// Waits until the cluster is as the repository says.
    pub(crate) async fn is_reached(&mut self, within: Duration) -> Result<(), String> {
        let since = Instant::now();
        while let Some(difference) = self.difference() {
            if since.elapsed() > within {
                return Err(format!("it is not reached in {within:?}: {difference}"));
            }
            self.waits(LOOK).await?;
        }
        Ok(())
    }

    /// Waits until these objects are gone.
    async fn are_gone(&mut self, ids: &[Id], within: Duration) -> Result<(), String> {
        let since = Instant::now();
        while let Some(id) = ids.iter().find(|id| self.is_there(**id)) {
            if since.elapsed() > within {
                return Err(format!("{} is not pruned in {within:?}", id.path()));
            }
            self.waits(LOOK).await?;
        }
        Ok(())
    }

    /// The first of these objects that is gone.
    pub(crate) fn are_there(&self, ids: &[Id], why: &str) -> Result<(), String> {
        match ids.iter().find(|id| !self.is_there(**id)) {
            Some(id) => Err(format!("{} is gone: {why}", id.path())),
            None => Ok(()),
        }
    }

    fn is_there(&self, id: Id) -> bool {
        self.sandbox.revision(&id.path()).is_some()
    }

    /// The versions of all objects of a Sync; none of one that is not there.
    fn versions(&self, sync: usize) -> Vec<(Id, Option<u64>)> {
        let version = |id: &Id| (*id, self.sandbox.revision(&id.path()));
        self.charges[sync].objects.keys().map(version).collect()
    }

    /// A Sync has so many objects that more than its budget can be left out, and some stay.
    async fn grows(&mut self, sync: usize) -> Result<(), String> {
        self.stamp += 1;
        while self.charges[sync].objects.len() < OVER_BUDGET + 4 {
            self.charges[sync].add(self.stamp);
        }
        self.commits_to(sync);
        self.is_reached(SOON).await
    }

    /// Leaves the first objects of a Sync out of the newest commit.
    pub(crate) fn removes(&mut self, sync: usize, many: usize) -> Vec<Id> {
        let charge = &mut self.charges[sync];
        let ids: Vec<Id> = charge.objects.keys().copied().take(many).collect();
        charge.objects.retain(|id, _| !ids.contains(id));
        self.commits_to(sync);
        ids
    }

    /// Every object of a Sync is changed by the newest commit.
    fn changes_all(&mut self, sync: usize) {
        self.stamp += 1;
        self.charges[sync].changes_all(self.stamp);
        self.commits_to(sync);
    }

    /// One object of a Sync is changed by the newest commit.
    pub(crate) fn changes(&mut self, sync: usize, id: Id) {
        self.stamp += 1;
        self.charges[sync].objects.insert(id, self.stamp);
        self.commits_to(sync);
    }

    /// One of the objects of a Sync.
    pub(crate) fn one_of(&self, sync: usize, dice: &mut Dice) -> Id {
        let ids: Vec<Id> = self.charges[sync].objects.keys().copied().collect();
        *dice.of(&ids)
    }

    /// The folder of a Sync is committed, and somebody asks it to look.
    pub(crate) fn commits_to(&mut self, sync: usize) {
        self.file(sync);
        self.publish(false);
        self.nudge(sync);
    }

    /// Returns the value in the status of a Sync at this place.
    fn status_at(&self, sync: usize, pointer: &str) -> Option<String> {
        let live = self.sandbox.get(&format!("{PLACE}/{}", self.charges[sync].name()))?;
        live["status"].pointer(pointer)?.as_str().map(str::to_owned)
    }

    /// The newest commit.
    fn head(&self) -> Option<String> {
        self.books.head()
    }

    /// Every daemon crashes, and others begin.
    fn restarts(&mut self) {
        self.crash_all();
        self.keep_running();
    }

    /// Nothing is left to do.
    pub(crate) async fn rests(&mut self) -> Result<(), String> {
        comes_to_rest(self, Instant::now()).await
    }

    /// The names of the processes that run.
    fn processes(&self) -> Vec<String> {
        self.replicas.iter().filter_map(Replica::process).collect()
    }
}
