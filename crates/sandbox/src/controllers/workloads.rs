//! Workloads that become ready after a delay, without a node that runs them.
//!
//! In: Deployments, StatefulSets, DaemonSets and Jobs as they are written.
//! Out: their statuses: first in progress, and after the configured time ready or complete.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::garbage_collector::stored_target;
use crate::state::ServerState;
use crate::store::{Key, StoredObject};

const HOMES: [&str; 4] = ["apps/deployments", "apps/statefulsets", "apps/daemonsets", "batch/jobs"];
const MANAGER: &str = "kube-controller-manager";

/// Controllers of workloads.
pub(super) struct Workloads {
    after: Duration,
    /// Revision up to which all changes were handled.
    seen: u64,
    /// Workloads in progress: their generation, and the time at which they become ready.
    due: BTreeMap<(&'static str, Key), (i64, Instant)>,
}

impl Workloads {
    pub(super) fn new(after: Duration) -> Self {
        Self { after, seen: 0, due: BTreeMap::new() }
    }

    /// Writes the statuses that are due; returns the time of the next one.
    pub(super) fn work(&mut self, state: &mut ServerState) -> Option<Instant> {
        for home in HOMES {
            for stored in self.news(state, home) {
                self.begin(state, home, &stored);
            }
        }
        self.seen = state.store.revision();
        let now = Instant::now();
        let due: Vec<_> =
            self.due.iter().filter(|(_, (_, at))| *at <= now).map(|(it, _)| it.clone()).collect();
        for (home, key) in due {
            self.due.remove(&(home, key.clone()));
            write(state, home, key, true);
        }
        self.due.values().map(|(_, at)| *at).min()
    }

    fn news(&self, state: &ServerState, home: &str) -> Vec<std::sync::Arc<StoredObject>> {
        match state.store.changes(home, self.seen) {
            Ok(changes) => {
                changes.filter(|change| !change.deleted).map(|change| change.new.clone()).collect()
            }
            Err(_) => state.store.all(home, None).cloned().collect(),
        }
    }

    fn begin(&mut self, state: &mut ServerState, home: &'static str, stored: &StoredObject) {
        let body = stored.body();
        let generation = body["metadata"]["generation"].as_i64().unwrap_or_default();
        let place = (home, stored.key.clone());
        let is_known = self.due.get(&place).is_some_and(|(known, _)| *known == generation);
        let is_done = match home {
            "batch/jobs" => body["status"]["conditions"].is_array(),
            _ => body["status"]["observedGeneration"] == generation && is_ready(&body),
        };
        if is_known || is_done || state.store.get(home, &stored.key).is_none() {
            return;
        }
        self.due.insert(place, (generation, Instant::now() + self.after));
        if !self.after.is_zero() {
            write(state, home, stored.key.clone(), false);
        }
    }
}

fn is_ready(body: &Value) -> bool {
    let count = |value: &Value| value.as_i64().unwrap_or_default();
    match body["spec"].get("replicas") {
        Some(replicas) => count(&body["status"]["readyReplicas"]) == count(replicas),
        None => count(&body["status"]["numberReady"]) == 1,
    }
}

fn write(state: &mut ServerState, home: &'static str, key: Key, ready: bool) {
    let Some(target) = stored_target(state, home, key) else { return };
    let Some(stored) = state.store.get(home, &target.key) else { return };
    let (body, now) = (stored.body(), state.clock.text());
    state.write_status(&target, MANAGER, |status| {
        *status = match home {
            "apps/deployments" => deployment(&body, ready, &now),
            "apps/statefulsets" => stateful_set(&body, ready),
            "apps/daemonsets" => daemon_set(&body, ready),
            _ => job(&body, ready, &now),
        };
    });
}

fn deployment(body: &Value, ready: bool, now: &str) -> Value {
    let replicas = body["spec"]["replicas"].as_i64().unwrap_or(1);
    let (available, progressing) = match ready {
        true => (
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            ("NewReplicaSetAvailable", "has successfully progressed."),
        ),
        false => (
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
            ("ReplicaSetUpdated", "is progressing."),
        ),
    };
    let name = body["metadata"]["name"].as_str().unwrap_or_default();
    let since = |kind: &str, status: &str| {
        let known = body["status"]["conditions"].as_array().into_iter().flatten();
        let same = known.into_iter().find(|one| one["type"] == kind && one["status"] == status);
        same.map_or(Value::from(now), |one| one["lastTransitionTime"].clone())
    };
    let mut status = json!({
        "observedGeneration": body["metadata"]["generation"],
        "conditions": [
            {"type": "Available", "status": available.0, "reason": available.1, "message": available.2,
                "lastUpdateTime": now, "lastTransitionTime": since("Available", available.0)},
            {"type": "Progressing", "status": "True", "reason": progressing.0,
                "message": format!("Deployment {name:?} {}", progressing.1),
                "lastUpdateTime": now, "lastTransitionTime": since("Progressing", "True")},
        ],
    });
    if replicas > 0 {
        status["replicas"] = replicas.into();
        status["updatedReplicas"] = replicas.into();
        match ready {
            true => {
                status["readyReplicas"] = replicas.into();
                status["availableReplicas"] = replicas.into();
            }
            false => status["unavailableReplicas"] = replicas.into(),
        }
    }
    status
}

fn stateful_set(body: &Value, ready: bool) -> Value {
    let replicas = body["spec"]["replicas"].as_i64().unwrap_or(1);
    let revision = format!("{}-1", body["metadata"]["name"].as_str().unwrap_or_default());
    let mut status = json!({
        "observedGeneration": body["metadata"]["generation"], "replicas": replicas, "collisionCount": 0,
        "availableReplicas": if ready { replicas } else { 0 },
        "currentRevision": revision, "updateRevision": revision,
    });
    if ready && replicas > 0 {
        for field in ["readyReplicas", "currentReplicas", "updatedReplicas"] {
            status[field] = replicas.into();
        }
    }
    status
}

/// Status as on a cluster with one node.
fn daemon_set(body: &Value, ready: bool) -> Value {
    let mut status = json!({
        "observedGeneration": body["metadata"]["generation"], "desiredNumberScheduled": 1,
        "currentNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": i64::from(ready),
        "updatedNumberScheduled": 1,
    });
    status[if ready { "numberAvailable" } else { "numberUnavailable" }] = 1.into();
    status
}

fn job(body: &Value, ready: bool, now: &str) -> Value {
    let completions = body["spec"]["completions"].as_i64().unwrap_or(1);
    if !ready {
        let active = body["spec"]["parallelism"].as_i64().unwrap_or(1).min(completions);
        return json!({"active": active, "startTime": now, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}});
    }
    let start = body["status"].get("startTime").cloned().unwrap_or(Value::from(now));
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods", "lastProbeTime": now, "lastTransitionTime": now})
    };
    json!({
        "succeeded": completions, "startTime": start, "completionTime": now, "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {}, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    })
}
