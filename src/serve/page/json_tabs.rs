//! The JSON of the tabs of a Sync. The names of the fields are documented in docs/page.md.

use serde_json::{Value, json};

use super::LiveRead;
use super::diff_list::{diff_of, rows_of_page};
use super::filter::Filter;
use super::json::{line, text};
use super::next_commit::next_commit;
use super::object_diff::LineOrigin;
use super::plan::held_by_reason;
use super::timeline::{EntryContent, TimelineEntry, TimelineFilter, matching};
use crate::report::board::{ObjectRow, ObjectState, SyncCard};

/// `/api/v1/syncs/NAMESPACE/NAME/timeline`.
pub(super) fn timeline(card: &SyncCard, query: &str) -> String {
    let entries: Vec<Value> = matching(card, &TimelineFilter::parse(query)).iter().map(entry).collect();
    text(&json!({"entries": entries}))
}

/// One entry of a timeline.
pub(super) fn entry(entry: &TimelineEntry<'_>) -> Value {
    let mut whole = match entry.content {
        EntryContent::Revision(it) => json!({
            "text": it.message, "revision": it.revision, "subject": it.subject, "author": it.author,
            "changes": it.changes, "duration": it.duration,
        }),
        EntryContent::Activity(it) => json!({"text": it.text}),
        EntryContent::Repair(it) => json!({
            "text": format!("{} was {}", it.id, if it.was_deleted { "recreated" } else { "repaired" }),
            "object": it.id.to_string(), "fields": it.fields, "manager": it.manager,
            "changedAt": it.changed_at, "deleted": it.was_deleted,
        }),
    };
    whole["time"] = entry.time.to_string().into();
    whole["kind"] = entry.kind.word().into();
    whole["reason"] = entry.reason().into();
    whole
}

/// `/api/v1/syncs/NAMESPACE/NAME/diff`.
pub(super) fn diff(card: &SyncCard, filter: &Filter, look: Option<LiveRead<'_>>) -> String {
    let part = rows_of_page(card, filter);
    let objects: Vec<Value> = part.rows.iter().map(|row| object(card, row, look)).collect();
    text(&json!({"objects": objects, "page": part.page, "pages": part.pages}))
}

fn object(card: &SyncCard, row: &ObjectRow<'_>, look: Option<LiveRead<'_>>) -> Value {
    let mut whole = line(card, row);
    match diff_of(card, row, look) {
        Ok(diff) => {
            let lines = diff.lines.iter().map(|(origin, text)| format!("{}{text}", sign(*origin)));
            whole["diff"] = lines.collect();
            whole["hidden"] = diff.unplaced.into();
        }
        Err(why) => whole["notRead"] = why.into(),
    }
    whole
}

/// The sign before a line: as in a unified diff, `~` if Git does not set it, `!` for hidden values.
fn sign(origin: LineOrigin) -> char {
    match origin {
        LineOrigin::Both => ' ',
        LineOrigin::Live => '-',
        LineOrigin::Git => '+',
        LineOrigin::Server => '~',
        LineOrigin::Hidden => '!',
    }
}

/// `/api/v1/syncs/NAMESPACE/NAME/plan`.
pub(super) fn plan(card: &SyncCard) -> String {
    let held = held_by_reason(card).into_iter().map(|((state, reason), rows)| {
        let objects: Vec<Value> = rows.iter().map(|row| line(card, row)).collect();
        json!({"state": state.label(), "reason": reason, "objects": objects})
    });
    let waits = |row: &ObjectRow<'_>| row.state == ObjectState::PendingPrune;
    let deletes: Vec<Value> = card.objects.rows().filter(waits).map(|row| line(card, &row)).collect();
    let held: Vec<Value> = held.collect();
    let next = next_commit(card);
    text(&json!({
        "next": {"revision": next.revision, "plan": next.plan, "text": next.text},
        "revision": card.status.revision, "approval": card.status.approval, "approvals": card.status.approvals,
        "deletes": deletes, "held": held,
    }))
}

/// `/api/v1/syncs/NAMESPACE/NAME/settings`.
pub(super) fn settings(card: &SyncCard) -> String {
    let source = &card.source;
    let words = source.words.iter().map(|it| json!({"title": it.title, "text": it.text}));
    let depends_on: Vec<String> = source.depends_on.iter().map(ToString::to_string).collect();
    text(&json!({
        "repository": {"url": source.url, "path": source.path, "reference": source.reference},
        "interval": source.interval, "serviceAccount": source.service_account, "dependsOn": depends_on,
        "labels": source.labels, "words": words.collect::<Vec<_>>(), "conditions": card.status.conditions,
    }))
}
