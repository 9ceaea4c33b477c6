//! Builds the history of a Sync: its last revisions, and the outcome of each.
//!
//! In: the previous status, and the result of a reconcile. Out: an entry for each revision that was
//! applied, refused or rolled back, newest first. An applied revision gets its entry at once, even
//! before its objects are healthy.

use std::time::Duration;

use super::{ErrorCause, ReadyVerdict, ReconcileInputs, RolledBackRevision, StatusInputs, recorded};
use crate::api::{ChangeCounts, HistoryEntry, MAX_HISTORY, Reason, SyncStatus, short_revision};

/// Results of a revision that is applied. They replace each other in one entry.
const APPLIED: [Reason; 5] =
    [Reason::Applied, Reason::Degraded, Reason::HealthUnknown, Reason::PruneHeld, Reason::Contested];

/// The most consecutive entries of one revision, so that an object that fails now and then does not
/// push out all others.
const MAX_IN_A_ROW: usize = 2;

/// Records the outcome of a revision; `is_new` if it was not applied before.
pub(super) fn record_history(
    status: &mut SyncStatus,
    pass: &ReconcileInputs<'_>,
    verdict: &ReadyVerdict,
    facts: &StatusInputs<'_>,
    is_new: bool,
) {
    if let Some(rejected) = facts.rejected.filter(|_| facts.hold.is_none()) {
        return note_rejection(status, rejected, facts);
    }
    if facts.suspended {
        return;
    }
    if verdict.applied {
        note_applied(status, pass, verdict, facts, is_new);
    }
    // An error of the repository or the spec says nothing about the commit, nor does a wait.
    let is_refused = facts.error.map_or(!verdict.applied, |error| {
        facts.about_revision
            && !matches!(error.cause, ErrorCause::ApprovalRequired | ErrorCause::WindowClosed)
    });
    if is_refused && !verdict.reconciling {
        note_refused(status, pass, verdict, facts);
    }
}

/// Records a revision whose objects are all applied.
fn note_applied(
    status: &mut SyncStatus,
    pass: &ReconcileInputs<'_>,
    verdict: &ReadyVerdict,
    facts: &StatusInputs<'_>,
    is_new: bool,
) {
    let is_told = |entry: &&mut HistoryEntry| entry.revision == pass.revision && is_applied(&entry.result);
    let is_at_rest = facts.error.is_none() && !verdict.reconciling;
    // Drift and pending deletions say nothing about the commit.
    let result = match is_at_rest && is_applied(&verdict.reason) {
        true => verdict.reason.clone(),
        false => Reason::Applied.to_string(),
    };
    match status.history.first_mut().filter(is_told) {
        Some(entry) => {
            entry.digest = recorded(pass);
            if is_at_rest {
                entry.result = result;
            }
        }
        // While a newer commit is refused, the older one that is held has its entry further down.
        None if facts.error.is_some() && !is_new => {}
        None => {
            let entry = new_entry(status, &pass.revision, facts);
            let (duration, digest) = (pass.duration.map(duration), recorded(pass));
            push(status, HistoryEntry { result, duration, digest, ..entry });
        }
    }
}

/// Records a revision that is refused, or some of whose objects are.
fn note_refused(
    status: &mut SyncStatus,
    pass: &ReconcileInputs<'_>,
    verdict: &ReadyVerdict,
    facts: &StatusInputs<'_>,
) {
    let revision = facts.refused.as_ref().unwrap_or(&pass.revision);
    // A retry with the same result would fill the history.
    let is_told = |last: &HistoryEntry| last.revision == *revision && last.result == verdict.reason;
    if !status.history.first().is_some_and(is_told) {
        let entry = new_entry(status, revision, facts);
        let (result, message) = (verdict.reason.clone(), verdict.message.clone());
        push(status, HistoryEntry { result, message, ..entry });
    }
}

/// Records that a revision was rolled back; this replaces its earlier outcomes.
fn note_rejection(status: &mut SyncStatus, rejected: &RolledBackRevision, facts: &StatusInputs<'_>) {
    let result = Reason::RolledBack.to_string();
    let is_told = |entry: &HistoryEntry| entry.revision == rejected.revision && entry.result == result;
    if status.history.iter().any(is_told) {
        return;
    }
    let entry = new_entry(status, &rejected.revision, facts);
    let known = status.history.iter().find(|entry| entry.revision == rejected.revision);
    let (duration, changes) = known.map(|it| (it.duration.clone(), it.changes)).unwrap_or_default();
    status.history.retain(|entry| entry.revision != rejected.revision);
    push(status, HistoryEntry { result, message: rejected.why.clone(), duration, changes, ..entry });
}

/// Adds changes to the newest entry of a revision; false if it has none.
pub fn add_changes(status: &mut SyncStatus, revision: &str, changes: ChangeCounts) -> bool {
    let entry = status.history.iter_mut().find(|entry| entry.revision == revision);
    entry.map(|entry| entry.changes += changes).is_some()
}

fn is_applied(result: &str) -> bool {
    APPLIED.iter().any(|reason| reason.to_string() == result)
}

/// A new entry for a revision, without an outcome.
fn new_entry(status: &SyncStatus, revision: &str, facts: &StatusInputs<'_>) -> HistoryEntry {
    let commit = facts.commits.iter().find(|commit| commit.revision == revision);
    let known = status.history.iter().find(|entry| entry.revision == revision);
    let (subject, author) = commit
        .map(|commit| (commit.subject.clone(), commit.author.clone()))
        .or_else(|| known.map(|entry| (entry.subject.clone(), entry.author.clone())))
        .unwrap_or_default();
    HistoryEntry {
        revision: revision.to_owned(),
        short: short_revision(revision),
        subject,
        author,
        time: facts.now.clone(),
        duration: None,
        result: String::new(),
        message: String::new(),
        changes: ChangeCounts::default(),
        digest: None,
    }
}

/// Adds an entry. If the revision has its share of entries, the one with the same result is
/// replaced.
fn push(status: &mut SyncStatus, mut entry: HistoryEntry) {
    let history = &mut status.history;
    let in_a_row = history.iter().take_while(|known| known.revision == entry.revision).count();
    if in_a_row >= MAX_IN_A_ROW {
        let same = history[..in_a_row].iter().position(|known| known.result == entry.result);
        let replaced = history.remove(same.unwrap_or_default());
        entry.changes += replaced.changes;
        entry.duration = replaced.duration.or(entry.duration);
    }
    history.insert(0, entry);
    history.truncate(MAX_HISTORY);
}

/// A duration in Kubernetes' format, without needless digits.
fn duration(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{}ms", took.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{}s", took.subsec_millis() / 100),
        seconds @ 60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        seconds => format!("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_short() {
        for (millis, expect) in
            [(0, "0ms"), (840, "840ms"), (1_250, "1.2s"), (61_900, "1m1s"), (3_723_000, "1h2m3s")]
        {
            assert_eq!(duration(Duration::from_millis(millis)), expect);
        }
    }
}
