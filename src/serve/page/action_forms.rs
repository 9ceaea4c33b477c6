//! Forms of the actions that a viewer may take on a Sync.
//!
//! In: a card, and the viewer of the board. Out: one form for each action. They work without the
//! script; each carries the token of the session, and what was shown when it was sent.

use super::html::Html;
use super::layout;
use super::routes::Link;
use crate::api::{HistoryEntry, short_revision};
use crate::object::ObjectId;
use crate::report::board::{BoardViewer, StatusBoard, SyncCard, SyncState};

/// Kinds with Pods that a restart replaces.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// The most characters of a reason.
pub(crate) const MAX_REASON: usize = 200;

/// Writes the actions on a Sync; nothing if there is none.
pub(super) fn write_sections(html: &mut Html, board: &StatusBoard, card: &SyncCard) {
    let Some(viewer) = acting(board, card) else { return };
    let held = card.status.revision.as_ref().and_then(|revision| revision.chosen.as_ref());
    let released = held.map(|held| held.revision.as_str()).filter(|_| viewer.may("rollback"));
    if viewer.may("sync") || viewer.may("suspend") || released.is_some() {
        write_buttons(html, card, viewer, released);
    }
    if viewer.may("rollback") {
        write_rollback(html, card, viewer);
    }
}

fn write_buttons(html: &mut Html, card: &SyncCard, viewer: &BoardViewer, released: Option<&str>) {
    layout::begin_section(html, "actions", "Actions");
    html.open("div", &[("class", "actions")]);
    if viewer.may("sync") {
        button(html, card, viewer, ("sync", "Sync now"), None);
        if card.status.objects.is_some_and(|counts| counts.failed > 0) || card.state() == SyncState::Failing {
            button(html, card, viewer, ("retry", "Retry what was refused"), None);
        }
    }
    if viewer.may("suspend") {
        match card.state() == SyncState::Suspended {
            true => button(html, card, viewer, ("resume", "Resume"), None),
            false => button(html, card, viewer, ("suspend", "Suspend"), None),
        }
    }
    if let Some(held) = released {
        button(html, card, viewer, ("release", "Release from the revision"), Some(("revision", held)));
    }
    html.close();
    html.close();
}

/// Writes the approval of what waits, by its hash, if the viewer may give it.
pub(super) fn write_approval(
    html: &mut Html,
    (board, card): (&StatusBoard, &SyncCard),
    text: &str,
    hash: &str,
) {
    if let Some(viewer) = acting(board, card).filter(|viewer| viewer.may("approve")) {
        html.open("div", &[("class", "actions")]);
        button(html, card, viewer, ("approve", text), Some(("hash", hash)));
        html.close();
    }
}

/// Writes the restart of a workload, if the viewer may do that.
pub(super) fn write_restart(html: &mut Html, board: &StatusBoard, card: &SyncCard, id: &ObjectId) {
    let Some(viewer) = acting(board, card).filter(|viewer| viewer.restarts && is_workload(id)) else {
        return;
    };
    html.open("section", &[("id", "actions")]);
    html.element("h2", &[], "Actions");
    html.open("div", &[("class", "actions")]);
    button(html, card, viewer, ("restart", "Restart its Pods"), Some(("object", id.as_str())));
    html.close();
    html.close();
}

/// The viewer of a Sync that can be acted on: one with a resource.
fn acting<'a>(board: &'a StatusBoard, card: &SyncCard) -> Option<&'a BoardViewer> {
    board.viewer.as_deref().filter(|_| card.source.is_resource)
}

/// True if the Pods of the object can be restarted.
pub(crate) fn is_workload(id: &ObjectId) -> bool {
    id.group() == "apps" && WORKLOADS.contains(&id.kind())
}

/// The roll-back is not replaced by live updates: a person may be writing the reason.
fn write_rollback(html: &mut Html, card: &SyncCard, viewer: &BoardViewer) {
    let applied = card.status.revision.as_ref().and_then(|revision| revision.applied.as_deref());
    let mut shown: Vec<&HistoryEntry> = Vec::new();
    for entry in &card.status.history {
        let is_known = shown.iter().any(|known| known.revision == entry.revision);
        if !is_known && Some(&*entry.revision) != applied {
            shown.push(entry);
        }
    }
    if shown.is_empty() {
        return;
    }
    html.open("section", &[("id", "roll-back")]);
    html.open("details", &[]);
    html.element("summary", &[], "Roll back");
    begin_form(html, card, viewer, "rollback");
    html.open("label", &[]);
    html.text("Revision ");
    html.open("select", &[("name", "revision"), ("required", "")]);
    for entry in shown {
        let text = format!("{} {} ({})", short_revision(&entry.revision), entry.subject, entry.result);
        html.element("option", &[("value", &entry.revision)], &text);
    }
    html.close();
    html.close();
    html.open("label", &[]);
    html.text("Reason ");
    let most = MAX_REASON.to_string();
    html.void("input", &[("name", "reason"), ("required", ""), ("maxlength", &most)]);
    html.close();
    html.element("button", &[("type", "submit")], "Roll back");
    html.close();
    html.close();
    html.close();
}

/// Writes a form that is one button.
fn button(
    html: &mut Html,
    card: &SyncCard,
    viewer: &BoardViewer,
    (action, text): (&str, &str),
    shown: Option<(&'static str, &str)>,
) {
    begin_form(html, card, viewer, action);
    if let Some((name, value)) = shown {
        html.void("input", &[("type", "hidden"), ("name", name), ("value", value)]);
    }
    html.element("button", &[("type", "submit")], text);
    html.close();
}

fn begin_form(html: &mut Html, card: &SyncCard, viewer: &BoardViewer, action: &str) {
    let place = Link::action(&card.name, action);
    html.open("form", &[("method", "post"), ("action", place.as_str())]);
    html.void("input", &[("type", "hidden"), ("name", "csrf"), ("value", &viewer.token)]);
}
