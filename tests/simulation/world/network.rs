//! Faults of the API server, to the Lease, and on the way to the server.
//!
//! In: a fault and its duration. Out: the world after it.

use std::time::Duration;

use serde_json::json;

use super::super::steps::nothing_arrives;
use super::{Dice, LEASE, NAMESPACE, Replica, THE_LEASE, World};

impl World {
    /// The replica that does not lead takes the Lease over, while the other stands still for so long and does not see it.
    pub(super) fn pass_lease_on(&mut self, time: Duration) {
        let holder = self.observer.holder();
        let names = self.replicas.iter().filter_map(Replica::process);
        let Some(next) = names.into_iter().find(|name| Some(name) != holder.as_ref()) else { return };
        self.hands += 1;
        let spec = json!({
            "holderIdentity": next, "renewTime": format!("2027-01-15T08:00:00.{:06}Z", self.hands), "leaseDurationSeconds": LEASE.0.as_secs(),
        });
        // Nobody may have led yet.
        if self.sandbox.merge(THE_LEASE, &json!({"spec": spec}), &next).is_ok() {
            self.observer.passed_on(&next, time);
        }
    }

    /// The requests of a replica are held up.
    pub(super) fn sever(&self, dice: &mut Dice) {
        let Some(line) = self.replicas[dice.below(2) as usize].line() else { return };
        let time = Duration::from_millis(2000 + dice.below(30_000));
        line.set_held(true);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            line.set_held(false);
        });
    }

    /// The API server cannot be reached for so long.
    pub(crate) async fn goes_away(&mut self, time: Duration) {
        self.sandbox.faults().set(nothing_arrives());
        self.sandbox.faults().cut_watches();
        tokio::time::sleep(time).await;
        self.sandbox.faults().set(self.rates);
    }

    /// The server forgets what changed, and ends its watches.
    pub(super) fn forget(&mut self) {
        // A watch that has come to the newest version would go on from there, and never hear of what was dropped before it.
        self.hands += 1;
        let tick = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tick"},
            "data": {"at": self.hands.to_string()}});
        let place = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        self.sandbox.apply(&place, &tick, "person").unwrap();
        self.sandbox.forget_changes();
        self.sandbox.faults().cut_watches();
    }
}
