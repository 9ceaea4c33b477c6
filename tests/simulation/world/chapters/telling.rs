//! Chapters about a hook that runs, and about the account that a Sync gives of what happened.
//!
//! In: a commit with a hook, or commits and edits by hand. Out: whether the hook is waited for and reported as progress, and whether the
//! history and the Events name what happened.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::objects::{STAMP, hooks, spoiled};
use super::super::{Act, Dice, Id, World};
use super::{LOOK, PLACE, SOON};

/// So often it is looked while a hook runs.
const LOOKS: u32 = 6;

impl World {
    /// A hook runs for a minute before anything else of a commit is written. Daemons may crash meanwhile.
    pub(super) async fn hook_runs(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        self.charges[sync].hook = Some(self.stamp + 1);
        self.charges[sync].commits(Act::Change);
        self.changes_all(sync);
        let stamp = self.stamp.to_string();
        let place = format!("{}/{}", hooks(), self.charges[sync].hook_name());
        let mut looks = SOON.as_secs();
        while self.sandbox.revision(&place).is_none() {
            looks = looks.checked_sub(1).ok_or("the hook does not begin")?;
            self.waits(LOOK).await?;
        }
        let crashes = dice.below(u64::from(LOOKS) * 2);
        for look in 0..LOOKS {
            if u64::from(look) == crashes {
                self.restarts();
            }
            self.waits(Duration::from_secs(30)).await?;
            let reason = self.status_at(sync, "/conditions/0/reason").unwrap_or_default();
            if reason != "Progressing" {
                return Err(format!("a hook that runs is told as {reason}"));
            }
            let is_new = |id: &&Id| {
                let live = self.sandbox.get(&id.path()).unwrap_or_default();
                live["metadata"]["annotations"][STAMP] == stamp
            };
            if let Some(id) = self.charges[sync].objects.keys().find(is_new) {
                return Err(format!("{} is written before the hook has ended", id.path()));
            }
        }
        let status = json!({"phase": "Succeeded"});
        let ended = self.sandbox.merge(&format!("{place}/status"), &json!({"status": status}), "hand");
        ended.map_err(|refused| format!("the hook cannot end: {refused:?}"))?;
        self.is_reached(SOON).await?;
        self.rests().await?;
        match self.status_at(sync, "/conditions/0/status").as_deref() {
            Some("True") => Ok(()),
            other => Err(format!("the hook has ended, and Ready is {other:?}")),
        }
    }

    /// A commit is applied, an object is deleted by hand and another one is edited. The history and the Events tell of it, also
    /// after a restart.
    pub(super) async fn is_told(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        let (id, other) = (self.one_of(sync, dice), self.one_of(sync, dice));
        self.charges[sync].commits(Act::Change);
        self.changes(sync, id);
        self.is_reached(SOON).await?;
        self.rests().await?;
        let head = self.head().unwrap_or_default();
        self.observer.meddles(&id.name());
        self.said.writers.meddles(id);
        let _ = self.sandbox.delete(&id.path());
        self.is_reached(SOON).await?;
        self.observer.meddles(&other.name());
        self.said.writers.meddles(other);
        let _ = self.sandbox.merge(&other.path(), &spoiled(other.1), "hand");
        self.is_reached(SOON).await?;
        self.rests().await?;
        let short = head.get(..8).unwrap_or_default();
        let deleted = format!("/{}: was deleted outside of Git, created again", id.name());
        let edited = format!("/{}: ", other.name());
        for (reason, part) in [("Applied", short), ("DriftRepaired", &*deleted), ("DriftRepaired", &*edited)]
        {
            if !self.observer.has_told(reason, part) {
                return Err(format!("no Event {reason} tells of {part}"));
            }
        }
        for restarts in [false, true] {
            if restarts {
                self.restarts();
                self.rests().await?;
            }
            let place = format!("{PLACE}/{}", self.charges[sync].name());
            let history = self.sandbox.get(&place).map(|mut it| it["status"]["history"].take());
            let newest = history.and_then(|history| history.get(0).cloned()).unwrap_or_default();
            let text = |field: &str| newest[field].as_str().unwrap_or_default().to_owned();
            let is_of_head = text("revision").ends_with(&head) && !head.is_empty();
            if !is_of_head
                || [text("subject"), text("result")] != ["a step", "Applied"]
                || newest["time"] == Value::Null
            {
                return Err(format!("the history does not tell of {head}, but of {newest}"));
            }
        }
        Ok(())
    }
}
