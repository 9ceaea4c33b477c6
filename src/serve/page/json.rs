//! The JSON of the pages, for programs. The names of the fields are documented in docs/page.md.

use serde_json::{Value, json};

use super::filter::{Filter, OBJECTS_PER_PAGE};
use super::json_tabs::entry;
use super::routes::Link;
use super::{LiveRead, timeline};
use crate::api::Reason;
use crate::diff::diff;
use crate::report::board::{DaemonRole, HIDDEN, ObjectRow, RedactedBody, StatusBoard, SyncCard, advice};

/// `/api/v1/syncs`.
pub(super) fn all(board: &StatusBoard, filter: &Filter) -> String {
    let (stance, leader) = match &board.role {
        DaemonRole::Starting => ("Starts", None),
        DaemonRole::Standby(leader) => ("StandsBy", leader.as_deref()),
        DaemonRole::Serving => ("Serves", None),
    };
    let syncs: Vec<Value> = match board.role {
        DaemonRole::Serving => {
            board.cards.values().filter(|card| filter.fits(card)).map(|card| short(card)).collect()
        }
        DaemonRole::Starting | DaemonRole::Standby(_) => Vec::new(),
    };
    text(&json!({"version": board.version, "stance": stance, "leader": leader, "syncs": syncs}))
}

/// `/api/v1/syncs/NAMESPACE/NAME`.
pub(super) fn one(board: &StatusBoard, card: &SyncCard, filter: &Filter) -> String {
    let mut whole = short(card);
    let status = &*card.status;
    let (reason, _) = card.ready_reason();
    let part = filter.paginate(card.objects.rows().filter(|row| filter.fits_object(row)), OBJECTS_PER_PAGE);
    let rows: Vec<Value> = part.rows.iter().map(|row| line(card, row)).collect();
    let repairs = card.repairs.iter().map(|repair| {
        json!({
            "time": repair.repaired_at, "object": repair.id.to_string(), "fields": repair.fields,
            "manager": repair.manager, "changedAt": repair.changed_at, "deleted": repair.was_deleted,
        })
    });
    let entries: Vec<Value> = timeline::entries(card).iter().map(entry).collect();
    let dependents: Vec<String> = board.dependents(&card.name).map(|it| it.name.to_string()).collect();
    let more = json!({
        "advice": Reason::parse(reason).and_then(|reason| advice(reason, &card.name)),
        "conditions": status.conditions,
        "problems": status.problems,
        "approval": status.approval,
        "approvals": status.approvals,
        "history": status.history,
        "repairs": repairs.collect::<Vec<_>>(),
        "timeline": entries,
        "dependents": dependents,
        "interval": card.source.interval,
        "serviceAccount": card.source.service_account,
        "objects": rows, "fitting": part.total, "page": part.page, "pages": part.pages,
    });
    if let (Value::Object(whole), Value::Object(more)) = (&mut whole, more) {
        whole.extend(more);
    }
    text(&whole)
}

/// `/api/v1/syncs/NAMESPACE/NAME/objects/GROUP/KIND/NAMESPACE/NAME`.
pub(super) fn object(card: &SyncCard, row: &ObjectRow<'_>, look: Option<LiveRead<'_>>) -> String {
    let mut whole = line(card, row);
    whole["wanted"] = shown(card.objects.wanted(row.id).map(RedactedBody::wanted).as_ref());
    match look {
        Some(LiveRead::Read(seen)) => {
            whole["live"] = shown(seen.live.as_ref());
            let difference = seen.differences.iter().map(|one| match &one.values {
                Some((live, wanted)) => {
                    let lines = diff(live.as_ref(), wanted.as_ref());
                    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                    json!({"path": one.path, "live": live, "wanted": wanted, "diff": lines})
                }
                None => json!({"path": one.path, "hidden": HIDDEN}),
            });
            whole["differences"] = difference.collect();
            let writer = seen.writers.iter().map(
                |writer| json!({"manager": writer.manager, "time": writer.time, "subresource": writer.subresource}),
            );
            whole["writers"] = writer.collect();
        }
        Some(LiveRead::NotRead(why) | LiveRead::Hidden(why)) => whole["notRead"] = why.into(),
        Some(LiveRead::Several(_)) | None => {}
    }
    text(&whole)
}

/// The document for unknown paths.
pub(super) fn not_found_document() -> String {
    text(&json!({"error": "there is no such Sync or object"}))
}

fn short(card: &SyncCard) -> Value {
    let (reason, message) = card.ready_reason();
    let depends_on: Vec<String> = card.source.depends_on.iter().map(ToString::to_string).collect();
    json!({
        "namespace": card.name.namespace, "name": card.name.name,
        "cluster": card.cluster(), "state": card.state().label(), "reason": reason, "message": message,
        "repository": {
            "url": card.source.url, "path": card.source.path, "reference": card.source.reference,
        },
        "revision": card.status.revision,
        "counts": card.status.objects,
        "lastChange": card.last_change(),
        "dependsOn": depends_on,
        "page": Link::sync(&card.name).as_str(),
    })
}

pub(super) fn line(card: &SyncCard, row: &ObjectRow<'_>) -> Value {
    let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    json!({
        "group": row.id.group(), "kind": row.id.kind(),
        "namespace": row.id.namespace(), "name": row.id.name(),
        "state": row.state.label(), "done": row.done,
        "reason": or_null(row.reason), "message": or_null(row.message),
        "fields": row.drift.map(|drift| &drift.fields), "manager": row.drift.and_then(|drift| drift.manager.as_ref()),
        "health": row.health.label(), "healthMessage": or_null(row.health_message),
        "file": row.origin.map(ToString::to_string),
        "page": Link::object(&card.name, row.id).as_str(),
    })
}

fn shown(shown: Option<&RedactedBody>) -> Value {
    match shown {
        Some(RedactedBody { body, omission: "" }) => json!({"body": body}),
        Some(RedactedBody { body, omission: left_out }) => json!({"body": body, "leftOut": left_out}),
        None => Value::Null,
    }
}

pub(super) fn text(value: &Value) -> String {
    let mut text = value.to_string();
    text.push('\n');
    text
}
