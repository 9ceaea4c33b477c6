//! Links from a Sync that needs attention to the page on which a person decides, so that the way
//! from the overview is short.
//!
//! In: a card. Out: links to the first object that is not well, to the log of its failing Pod, to
//! the diff of a hand edit, and to the plan that waits for approval.

use super::html::Html;
use super::live_route::LiveView;
use super::routes::Link;
use super::tabs::SyncTab;
use crate::api::ApprovalSubject;
use crate::report::board::{ObjectHealth, ObjectRow, ObjectState, SyncCard};

/// Writes the links of a Sync; nothing if there are none.
pub(super) fn write(html: &mut Html, card: &SyncCard) {
    let (name, first) = (&card.name, |fits: fn(&ObjectRow<'_>) -> bool| card.objects.rows().find(fits));
    let mut links = Vec::new();
    let is_broken = |row: &ObjectRow<'_>| row.state == ObjectState::Failed || is_unwell(row);
    if let Some(row) = first(is_broken) {
        links.push((Link::object(name, row.id), format!("Open {}", row.id)));
    }
    if first(is_unwell).is_some() {
        links.push((LiveView::FailingLog.link(name), "Log of the failing Pod".to_owned()));
    }
    if first(|row| row.state == ObjectState::Drifted).is_some() {
        links.push((Link::tab(name, SyncTab::Diff), "What was changed".to_owned()));
    }
    let is_revision = |of| of == ApprovalSubject::Revision;
    if card.status.approvals.iter().any(|asked| is_revision(asked.of)) {
        let plan = Link::tab(name, SyncTab::Plan).at("revision-waiting");
        links.push((plan, "Review the revision".to_owned()));
    }
    if card.status.approval.is_some() {
        let plan = Link::tab(name, SyncTab::Plan).at("waiting");
        links.push((plan, "Review the deletions".to_owned()));
    }
    if links.is_empty() {
        return;
    }
    html.open("p", &[("class", "next")]);
    for (at, (link, text)) in links.iter().enumerate() {
        html.text(if at > 0 { " · " } else { "" });
        html.link(link, &[], text);
    }
    html.close();
}

fn is_unwell(row: &ObjectRow<'_>) -> bool {
    matches!(row.health, ObjectHealth::Degraded | ObjectHealth::Unknown)
}
