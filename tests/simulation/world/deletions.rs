//! People and deletions: a Sync is suspended during its deletion, and a person decides about its
//! objects.
//!
//! In: an action. Out: the world after it.

use std::time::Duration;

use moorline::api::{DELETION_ANNOTATION, format_deletion_answer};
use serde_json::{Value, json};

use super::super::observer::HEARD;
use super::{Dice, Id, PLACE, World};

/// So long one object holds a deletion up.
const HOLDS: Duration = HEARD.saturating_add(Duration::from_secs(20));

impl World {
    /// Somebody deletes a Sync with its objects, of which one has a finalizer, suspends it a moment later, and looks on until
    /// the finalizer is gone.
    pub(super) async fn suspend_in_deletion(&mut self, sync: usize, dice: &mut Dice) {
        *self.happened.entry("Sync: suspended while it is deleted").or_default() += 1;
        self.hold_up(sync, dice);
        self.charges[sync].wakes();
        self.order(sync);
        tokio::time::sleep(Duration::from_millis(dice.below(3000))).await;
        self.charges[sync].rests();
        self.order(sync);
        tokio::time::sleep(HOLDS + Duration::from_secs(10)).await;
    }

    /// One of its objects holds the deletion up, for longer than any daemon takes to hear of a suspension.
    fn hold_up(&mut self, sync: usize, dice: &mut Dice) {
        self.hands += 1;
        let ids: Vec<Id> = self.charges[sync].objects.keys().copied().collect();
        let (id, hand) = (*dice.of(&ids), format!("hand-{}", self.hands));
        self.observer.meddles(&id.name());
        self.said.writers.meddles(id);
        let finalizers = |all: Value| json!({"metadata": {"finalizers": all}});
        if self.sandbox.merge(&id.path(), &finalizers(json!(["example.com/hold"])), &hand).is_err() {
            return;
        }
        let sandbox = self.sandbox.clone();
        tokio::spawn(async move {
            tokio::time::sleep(HOLDS).await;
            let _ = sandbox.merge(&id.path(), &finalizers(Value::Null), &hand);
        });
    }

    /// Somebody answers a deletion that waits. Its objects stay where the Sync is to be there again.
    pub(crate) fn answer(&mut self, sync: usize) {
        let place = format!("{PLACE}/{}", self.charges[sync].name());
        let Some(live) = self.sandbox.get(&place) else { return };
        let conditions = live["status"]["conditions"].as_array();
        let is_held = conditions.into_iter().flatten().any(|it| it["reason"] == "DeletionHeld");
        let Some(generation) = live["metadata"]["generation"].as_i64().filter(|_| is_held) else { return };
        let answer = format_deletion_answer(self.charges[sync].answers(), generation);
        self.tell(sync);
        let patch = json!({"metadata": {"annotations": {DELETION_ANNOTATION: answer}}});
        let _ = self.sandbox.merge(&place, &patch, "person");
    }
}
