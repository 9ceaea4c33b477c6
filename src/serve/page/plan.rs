//! The plan of a Sync: what the next commit would do, what is held and why, and what an approval
//! would let go.
//!
//! In: a card. Out: the next commit, the pending deletions with their hash and the commands, and
//! the objects that are not as in Git by reason. The approval section has the id `waiting`: actions
//! go there.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::badge;
use super::html::Html;
use super::routes::Link;
use super::tabs::SyncTab;
use super::{layout, next_commit, pending_deletions, pending_revision, sync};
use crate::grammar::counted;
use crate::report::board::{ObjectRow, ObjectState, StatusBoard, SyncCard};

/// The most objects that are listed for a reason.
const MAX_NAMED: usize = 50;

pub(super) fn page(board: &StatusBoard, card: &SyncCard, now: Timestamp) -> String {
    let mut html = sync::begin_page(board, card, SyncTab::Plan, now);
    next_commit::write_section(&mut html, card);
    pending_deletions::write_section(&mut html, board, card);
    pending_revision::write_section(&mut html, board, card);
    held(&mut html, card);
    sync::end_page(html, board, card, SyncTab::Plan)
}

/// The objects that are not as in Git, by state and reason. Pending deletions are left out.
pub(super) fn held_by_reason(card: &SyncCard) -> BTreeMap<(ObjectState, &'static str), Vec<ObjectRow<'_>>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    let is_held =
        |row: &ObjectRow<'_>| !matches!(row.state, ObjectState::Committed | ObjectState::PendingPrune);
    for row in card.objects.rows().filter(is_held) {
        all.entry((row.state, row.reason)).or_default().push(row);
    }
    all
}

fn held(html: &mut Html, card: &SyncCard) {
    layout::begin_section(html, "held", "Held");
    let all = held_by_reason(card);
    if all.is_empty() {
        html.element("p", &[("class", "quiet")], "No object is held.");
        return html.close();
    }
    for ((state, reason), rows) in &all {
        html.open("article", &[("class", "told")]);
        html.open("h3", &[]);
        badge::object(html, *state, "");
        html.text(&format!(" {reason}: {}", counted(rows.len(), "object")));
        html.close();
        html.open("ul", &[("class", "named")]);
        let mut last = "";
        for row in rows.iter().take(MAX_NAMED) {
            html.open("li", &[]);
            html.link(&Link::object(&card.name, row.id), &[], &row.id.to_string());
            // Equal messages are written once.
            if row.message != last {
                html.element("span", &[("class", "quiet below")], row.message);
                last = row.message;
            }
            html.close();
        }
        html.close();
        if rows.len() > MAX_NAMED {
            let state = state.label().to_lowercase();
            let all = Link::sync(&card.name).with_query(&[("state", &state)]);
            html.open("p", &[]);
            html.link(&all, &[], &format!("and {} more", rows.len() - MAX_NAMED));
            html.close();
        }
        html.close();
    }
    html.close();
}
