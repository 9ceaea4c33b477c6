//! What became of the last revisions.
//!
//! In: the status as it was, and what a pass came to. Out: its history, in which a revision that was given up is marked.

use super::{Facts, PassFacts, Rejected, Verdict};
use crate::api::{HistoryEntry, MAX_HISTORY, Reason, SyncStatus};

/// Notes what became of a revision.
pub(super) fn note_history(
    status: &mut SyncStatus,
    pass: &PassFacts<'_>,
    verdict: &Verdict,
    facts: &Facts<'_>,
) {
    if let Some(rejected) = facts.rejected {
        return note_rejection(status, rejected, facts);
    }
    let revision = facts.refused.as_ref().unwrap_or(&pass.revision);
    // Drift says nothing about the commit.
    let is_drift = verdict.applied && verdict.reason == Reason::FieldsDiffer.to_string();
    let result = if is_drift { Reason::Applied.to_string() } else { verdict.reason.clone() };
    // Trying again is no new event.
    let told = status.history.first().is_some_and(|last| last.revision == *revision && last.result == result);
    // What a person or the repository keeps from us says nothing about the commit.
    let of_revision = !facts.suspended && (facts.trouble.is_none() || facts.of_revision);
    if of_revision && !told && !verdict.reconciling {
        // How the objects of a revision are may change to and fro; what became of it is told once.
        let by_health = |result: &str| {
            [Reason::Degraded, Reason::HealthUnknown].iter().any(|it| it.to_string() == result)
        };
        let first = status.history.first().filter(|last| last.revision == *revision);
        let changed = first.is_some_and(|last| by_health(&last.result) || by_health(&result));
        if changed {
            status.history.remove(0);
        }
        let entry = HistoryEntry {
            revision: revision.clone(),
            time: facts.now.clone(),
            result,
            message: if verdict.applied && facts.trouble.is_none() {
                String::new()
            } else {
                verdict.message.clone()
            },
        };
        status.history.insert(0, entry);
        status.history.truncate(MAX_HISTORY);
    }
}

/// Notes that a revision was given up: that is what became of it.
fn note_rejection(status: &mut SyncStatus, rejected: &Rejected, facts: &Facts<'_>) {
    let result = Reason::RolledBack.to_string();
    let is_told = |entry: &HistoryEntry| entry.revision == rejected.revision && entry.result == result;
    if status.history.iter().any(is_told) {
        return;
    }
    status.history.retain(|entry| entry.revision != rejected.revision);
    let (revision, message) = (rejected.revision.clone(), rejected.why.clone());
    status.history.insert(0, HistoryEntry { revision, time: facts.now.clone(), result, message });
    status.history.truncate(MAX_HISTORY);
}
