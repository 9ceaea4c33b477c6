//! Summarises the changes that a reconcile made, as counts and as Event notes.
//!
//! In: the result of a reconcile, the outcome of one object, or two statuses.
//! Out: [`ChangeCounts`] and notes of Events.

use super::StatusState;
use super::event_queue::Note;
use super::events::repair;
use super::reconcile_result::ReconcileResult;
use crate::api::{ChangeCounts, EventReason, HistoryEntry, PendingApproval, Reason, SyncStatus};
use crate::grammar;
use crate::object::ObjectId;
use crate::plan::{Change, Outcome};
use crate::report::board::MAX_ACTIVITIES;

/// Most objects that a note about deletions names.
const MAX_NAMED: usize = 5;

/// Counts the objects that a reconcile changed.
pub(crate) fn changes(report: &ReconcileResult) -> ChangeCounts {
    let mut all = ChangeCounts::default();
    report.outcomes.iter().for_each(|(id, outcome)| all += change(outcome, report.restored.contains(id)));
    all
}

/// Counts the change of one object; `is_restored` if another actor had deleted it.
pub(crate) fn change(outcome: &Outcome, is_restored: bool) -> ChangeCounts {
    let mut one = ChangeCounts::default();
    match outcome {
        Outcome::Created if is_restored => one.repaired = 1,
        Outcome::Created => one.created = 1,
        Outcome::Adopted(_) | Outcome::Recreated => one.changed = 1,
        Outcome::Updated(Change::Committed | Change::RerunHook) => one.changed = 1,
        Outcome::Updated(_) => one.repaired = 1,
        Outcome::Pruned { .. } => one.pruned = 1,
        Outcome::Kept | Outcome::HandedOver(_) | Outcome::Held(_) | Outcome::Failed(_) => {}
    }
    one
}

/// Returns a note for each object that was repaired or created again, and one for all deletions.
pub(crate) fn notes(report: &ReconcileResult) -> Vec<Note> {
    let namespace = report.restored_namespace.iter().map(|name| restored(&format!("Namespace {name}")));
    let objects = report.outcomes.iter();
    let repairs = objects.filter_map(|(id, outcome)| repair_note(id, outcome, report.restored.contains(id)));
    namespace.chain(repairs).chain(pruned(report)).collect()
}

/// Returns the note about a repair; `is_restored` if another actor had deleted the object.
pub(crate) fn repair_note(id: &ObjectId, outcome: &Outcome, is_restored: bool) -> Option<Note> {
    if is_restored {
        return Some(restored(&id.to_string()));
    }
    repair(id, outcome).map(|text| note(EventReason::DriftRepaired, text))
}

/// Returns the note about an approval that a person gave.
pub(crate) fn approval_note(asked: &PendingApproval) -> Note {
    let what = match &asked.revision {
        Some(revision) => revision.clone(),
        None => format!("the deletion of {}", grammar::counted(asked.pruned, "object")),
    };
    note(EventReason::Approved, format!("approved {what} (approval {})", asked.hash))
}

/// Returns the note about a revision that is now applied, if it changed the desired set. A commit
/// that changes nothing for this Sync is only in the history.
pub(crate) fn applied_note(before: &SyncStatus, next: &SyncStatus) -> Option<Note> {
    let now = next.revision.as_ref()?;
    let applied = now.applied.as_ref()?;
    let last = before.revision.as_ref();
    let is_new = last.and_then(|last| last.applied.as_ref()) != Some(applied);
    let is_other = now.applied_digest != last.and_then(|last| last.applied_digest.clone());
    let entry = next.history.iter().find(|entry| entry.revision == *applied)?;
    let reason = Reason::Applied.to_string();
    (is_new && is_other).then(|| Note { reason, text: applied_text(entry) })
}

fn applied_text(entry: &HistoryEntry) -> String {
    let subject = if entry.subject.is_empty() { String::new() } else { format!(": \"{}\"", entry.subject) };
    let author = if entry.author.is_empty() { String::new() } else { format!(" by {}", entry.author) };
    let took = entry.duration.iter().map(|took| format!(" in {took}")).collect::<String>();
    format!("{} is applied{took} ({}){subject}{author}", entry.short, entry.changes)
}

fn pruned(report: &ReconcileResult) -> Option<Note> {
    let gone = report.outcomes.iter().filter(|(_, it)| matches!(it, Outcome::Pruned { .. }));
    let gone: Vec<String> = gone.map(|(id, _)| id.to_string()).collect();
    let more = gone.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = gone.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let text = format!("no longer in Git, and deleted: {named}{more}");
    (!gone.is_empty()).then(|| note(EventReason::Pruned, text))
}

fn restored(object: &str) -> Note {
    note(EventReason::DriftRepaired, format!("{object}: was deleted outside of Git, created again"))
}

fn note(reason: EventReason, text: String) -> Note {
    Note { reason: reason.to_string(), text }
}

/// Adds notes to the Events and to the timeline of the page.
pub(super) fn add_notes(state: &mut StatusState, notes: Vec<Note>) {
    notes.iter().take(MAX_ACTIVITIES).for_each(|note| state.posting.happened(note));
    notes.into_iter().for_each(|note| state.queue.add(note));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ObjectId {
        ObjectId::new("", "ConfigMap", "shop", name).unwrap()
    }

    #[test]
    fn changes_are_counted_and_listed_by_their_kind() {
        let outcomes = [
            ("a", Outcome::Created),
            ("b", Outcome::Created),
            ("c", Outcome::Updated(Change::Committed)),
            ("d", Outcome::Updated(Change::MaybeDrifted)),
            ("e", Outcome::Recreated),
            ("f", Outcome::Kept),
        ];
        let gone = (0..7).map(|at| (id(&format!("old-{at}")), Outcome::Pruned { gone: true }));
        let report = ReconcileResult {
            outcomes: outcomes.into_iter().map(|(name, it)| (id(name), it)).chain(gone).collect(),
            restored: [id("b")].into(),
            restored_namespace: Some("shop".into()),
            ..ReconcileResult::default()
        };
        let expect = ChangeCounts { created: 1, changed: 2, pruned: 7, repaired: 2 };
        assert_eq!(changes(&report), expect);
        assert_eq!(expect.to_string(), "1 created, 2 changed, 7 pruned, 2 repaired");
        assert_eq!(ChangeCounts::default().to_string(), "nothing changed");
        let told: Vec<String> =
            notes(&report).into_iter().map(|note| format!("{}: {}", note.reason, note.text)).collect();
        let old: Vec<String> = (0..5).map(|at| id(&format!("old-{at}")).to_string()).collect();
        assert_eq!(
            told,
            [
                "DriftRepaired: Namespace shop: was deleted outside of Git, created again".to_owned(),
                "DriftRepaired: ConfigMap shop/b: was deleted outside of Git, created again".to_owned(),
                "DriftRepaired: ConfigMap shop/d: changed by an unknown manager".to_owned(),
                format!("Pruned: no longer in Git, and deleted: {} and 2 more", old.join(", ")),
            ]
        );
        let asked = PendingApproval { hash: "abc".into(), pruned: 1, ..PendingApproval::default() };
        assert!(approval_note(&asked).text.contains("the deletion of 1 object (approval abc"));
    }

    #[test]
    fn a_revision_that_changes_the_desired_set_is_noted_once() {
        let at = |revision: &str, digest: &str, subject: &str| {
            let entry = serde_json::json!({"revision": revision, "short": revision, "subject": subject, "author": "Ada",
                "time": "2026-01-01T00:00:00Z", "result": "Applied", "duration": "1.2s", "changes": {"created": 3}});
            let revision = serde_json::json!({"applied": revision, "appliedDigest": digest});
            let whole = serde_json::json!({"revision": revision, "history": [entry]});
            serde_json::from_value::<SyncStatus>(whole).unwrap()
        };
        let told = |before: &SyncStatus, next: &SyncStatus| applied_note(before, next).map(|note| note.text);
        let (first, second) = (at("main@1", "a", "Open"), at("main@2", "b", ""));
        let expect = "main@1 is applied in 1.2s (3 created): \"Open\" by Ada";
        assert_eq!(told(&SyncStatus::default(), &first).as_deref(), Some(expect));
        assert_eq!(told(&first, &first), None);
        assert_eq!(told(&first, &second).as_deref(), Some("main@2 is applied in 1.2s (3 created) by Ada"));
        assert_eq!(told(&first, &at("main@2", "a", "No change")), None);
        assert_eq!(told(&first, &SyncStatus::default()), None);
    }
}
