//! Kubernetes Events about a Sync.
//!
//! In: what happened. Out: an Event as the API server takes it. Events are for people who look; nothing reads them.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::pass::Report;
use crate::api::SyncName;
use crate::plan::{Change, Outcome};

/// The most bytes of a note that the API server takes.
const MAX_NOTE: usize = 1000;

/// So many Events, and so many more every second.
#[derive(Debug)]
pub(crate) struct Allowance {
    burst: f64,
    rate: f64,
    left: Mutex<(f64, Instant)>,
}

impl Allowance {
    pub(crate) fn new((burst, rate): (u32, u32)) -> Self {
        let burst = f64::from(burst);
        Self { burst, rate: f64::from(rate), left: Mutex::new((burst, Instant::now())) }
    }

    /// True if one more may be written.
    pub(crate) fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(left.1).as_secs_f64() * self.rate;
        *left = ((left.0 + gained).min(self.burst), now);
        let allowed = left.0 >= 1.0;
        if allowed {
            left.0 -= 1.0;
        }
        allowed
    }
}

/// An Event about a Sync.
pub(crate) fn event(sync: &SyncName, uid: &str, type_: &str, reason: &str, note: &str) -> Value {
    let note = note.char_indices().take_while(|(at, char)| at + char.len_utf8() <= MAX_NOTE);
    let note: String = note.map(|(_, char)| char).collect();
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": format!("{}-", sync.name), "namespace": &*sync.namespace},
        "regarding": {
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "namespace": &*sync.namespace, "name": &*sync.name, "uid": uid,
        },
        "type": type_, "reason": reason, "note": note, "action": "Sync",
        "reportingController": "moorline.dev/moorline", "reportingInstance": "moorline",
        "eventTime": time(),
    })
}

/// The time in microseconds, as Events have it.
fn time() -> String {
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
    format!("{now:.6}")
}

/// What a pass repaired, and who had changed it.
pub(crate) fn repairs(report: &Report) -> impl Iterator<Item = String> {
    report.outcomes.iter().filter_map(|(id, outcome)| match outcome {
        Outcome::Updated(Change::Drifted(drift)) => {
            Some(format!("{id}: {} changed by {}", drift.fields.join(", "), drift.author()))
        }
        _ => None,
    })
}
