//! Chapters about a server that does not answer, and about a denial that a person has lifted.
//!
//! In: an API server that is away, or that refuses an object. Out: success if the daemon continues
//! as soon as it can.

use std::time::Duration;

use moorline::sandbox::FaultRates;
use tokio::time::Instant;

use super::super::{Dice, SYNCS, World};
use super::{Id, LOOK, SOON};
use serde_json::json;

/// The cluster is as the repository says so long after the API server has come back.
const BACK: Duration = Duration::from_secs(10);

impl World {
    /// The API server is away for ten minutes. People edit objects and commit meanwhile. The same processes go on, and no other
    /// object is written.
    pub(super) async fn server_away(&mut self, sync: usize, dice: &mut Dice) -> Result<(), String> {
        // A process that looks at everything again takes off what a former owner has left on an object: that is a write.
        let is_clean = |(id, _): &(Id, Option<u64>)| self.has_one_owner(*id);
        let before: Vec<_> = (0..SYNCS).flat_map(|sync| self.versions(sync)).filter(is_clean).collect();
        let processes = self.processes();
        self.goes_away(Duration::from_secs(dice.below(300))).await;
        let mut touched = vec![self.one_of(sync, dice), self.one_of(sync, dice)];
        for id in &touched {
            let patch = super::super::objects::spoiled(id.1);
            self.observer.meddles(&id.name());
            self.said.writers.meddles(*id);
            let _ = self.sandbox.merge(&id.path(), &patch, "hand");
        }
        if dice.below(2) == 0 {
            let other = (sync + 1) % SYNCS;
            let id = self.one_of(other, dice);
            touched.push(id);
            self.changes(other, id);
        }
        self.goes_away(Duration::from_secs(600)).await;
        let back = Instant::now();
        while let Some(difference) = self.difference() {
            if back.elapsed() > BACK {
                return Err(format!("it is not reached {BACK:?} after the API server is back: {difference}"));
            }
            self.waits(LOOK).await?;
        }
        self.rests().await?;
        if self.processes() != processes {
            return Err("a process has ended because the API server was away".into());
        }
        let is_same = |(id, version): &&(Id, Option<u64>)| self.sandbox.revision(&id.path()) == *version;
        match before.iter().filter(|(id, _)| !touched.contains(id)).find(|it| !is_same(it)) {
            Some((id, _)) => Err(format!("{} was written, and nobody has changed it", id.path())),
            None => Ok(()),
        }
    }

    /// True if one Sync alone has an entry in the `managedFields` of an object.
    fn has_one_owner(&self, id: Id) -> bool {
        let live = self.sandbox.get(&id.path()).unwrap_or_default();
        let entries = live["metadata"]["managedFields"].as_array();
        let names = entries.into_iter().flatten().filter_map(|entry| entry["manager"].as_str());
        names.filter(|name| name.starts_with("moorline/")).count() <= 1
    }

    /// The server refuses an object, what it refuses is gone, and nobody hears of that. A person's request tries it again at
    /// once.
    pub(super) async fn denial_lifted(&mut self, sync: usize) -> Result<(), String> {
        // A ConfigMap or a Secret can be immutable.
        let Some(id) = self.charges[sync].objects.keys().find(|id| id.1 % 8 < 2).copied() else {
            return Ok(());
        };
        self.observer.meddles(&id.name());
        self.said.writers.meddles(id);
        let _ = self.sandbox.merge(&id.path(), &json!({"immutable": true}), "hand");
        self.changes(sync, id);
        self.waits(Duration::from_secs(60)).await?;
        if self.difference().is_none() {
            return Err(format!("{} is immutable, and was changed", id.path()));
        }
        self.sandbox.faults().set(FaultRates { dropped: 1000, ..FaultRates::default() });
        let _ = self.sandbox.delete(&id.path());
        self.waits(LOOK).await?;
        self.sandbox.faults().set(FaultRates::default());
        self.waits(Duration::from_secs(30)).await?;
        self.nudge(sync);
        self.is_reached(BACK).await?;
        self.waits(SOON).await
    }
}
