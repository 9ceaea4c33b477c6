//! The diff of a Sync: each object that differs from Git, with one unified diff.
//!
//! In: a card, and the live objects that were read for this viewer. Out: a page with a few objects
//! at a time, because each of them costs a request. Pending deletions are listed without a request.

use jiff::Timestamp;

use super::filter::{Filter, FilteredPage, write_pagination};
use super::html::Html;
use super::object_diff::{ObjectDiff, object_diff};
use super::relative_time::write_time_text;
use super::routes::Link;
use super::tabs::SyncTab;
use super::{LiveRead, badge, layout, sync};
use crate::grammar::counted;
use crate::object::ObjectId;
use crate::report::board::{LiveObject, ObjectRow, ObjectState, RedactedBody, StatusBoard, SyncCard};

/// The number of objects on a page.
pub(super) const PER_PAGE: usize = 10;
/// The most pending deletions that are listed.
const MAX_NAMED: usize = 50;

/// Objects that differ from Git or could not be applied.
fn differing(card: &SyncCard) -> Vec<ObjectRow<'_>> {
    let differs = |row: &ObjectRow<'_>| {
        row.origin.is_some()
            && matches!(row.state, ObjectState::Drifted | ObjectState::Failed | ObjectState::Held)
    };
    let mut rows: Vec<ObjectRow<'_>> = card.objects.rows().filter(differs).collect();
    rows.sort_by_key(|row| (row.state != ObjectState::Drifted, row.state));
    rows
}

/// One page of the differing objects that match a filter.
pub(super) fn rows_of_page<'a>(card: &'a SyncCard, filter: &Filter) -> FilteredPage<ObjectRow<'a>> {
    let fitting = differing(card).into_iter().filter(|row| filter.fits_object(row));
    filter.paginate(fitting, PER_PAGE)
}

/// The objects whose live form a page shows.
pub(super) fn objects_to_read(card: &SyncCard, filter: &Filter) -> Vec<ObjectId> {
    rows_of_page(card, filter).rows.into_iter().map(|row| row.id.clone()).collect()
}

/// The diff of an object of the page, or the reason why there is none.
pub(super) fn diff_of(
    card: &SyncCard,
    row: &ObjectRow<'_>,
    look: Option<LiveRead<'_>>,
) -> Result<ObjectDiff, String> {
    let seen = read_of(row.id, look)?;
    let wanted = card.objects.wanted(row.id).ok_or("It is no longer in Git.")?;
    let missing = || "The object does not exist in the cluster.".to_owned();
    object_diff(&RedactedBody::wanted(wanted), seen).ok_or_else(missing)
}

fn read_of<'a>(id: &ObjectId, look: Option<LiveRead<'a>>) -> Result<&'a LiveObject, String> {
    let unread = || "It was not read.".to_owned();
    match look {
        Some(LiveRead::Several(all)) => match all.iter().find(|(known, _)| known == id) {
            Some((_, Ok(seen))) => Ok(seen),
            Some((_, Err(why))) => Err(format!("It was not read: {why}")),
            None => Err(unread()),
        },
        Some(LiveRead::Read(seen)) => Ok(seen),
        Some(LiveRead::NotRead(why) | LiveRead::Hidden(why)) => Err(format!("It was not read: {why}")),
        None => Err(unread()),
    }
}

pub(super) fn page(
    board: &StatusBoard,
    card: &SyncCard,
    query: &str,
    look: Option<LiveRead<'_>>,
    now: Timestamp,
) -> String {
    let mut html = sync::begin_read_page(board, card, SyncTab::Diff, now);
    let filter = Filter::parse(query);
    let (part, place) = (rows_of_page(card, &filter), Link::tab(&card.name, SyncTab::Diff));
    let all = differing(card).len();
    layout::begin_section(&mut html, "difference", "Diff");
    if all > 0 && part.rows.is_empty() {
        html.open("p", &[("class", "quiet")]);
        html.text(&format!(
            "{} not as in Git, and the filter matches none of them. ",
            counted(all, "object")
        ));
        html.link(&place, &[], "Show all");
        html.close();
    } else if all == 0 {
        html.element(
            "p",
            &[("class", "quiet")],
            "No object in Git differs from the cluster, as far as this daemon knows.",
        );
    } else {
        html.element(
            "p",
            &[("class", "quiet")],
            &format!("{} not as in Git. The live objects were read for this view.", counted(all, "object")),
        );
        legend(&mut html);
    }
    for (at, row) in part.rows.iter().enumerate() {
        write_object(&mut html, card, (at, row), look, now);
    }
    write_pagination(&mut html, &place, &filter, &part);
    html.close();
    pending(&mut html, card);
    sync::end_page(html, board, card, SyncTab::Diff)
}

/// Explains the signs and colours.
pub(super) fn legend(html: &mut Html) {
    html.open("p", &[("class", "legend")]);
    html.element("del", &[], "- live");
    html.text(" ");
    html.element("ins", &[], "+ in Git");
    html.text(" ");
    html.element("span", &[("class", "server")], "set by the server or by others, not in Git");
    html.close();
}

fn write_object(
    html: &mut Html,
    card: &SyncCard,
    (at, row): (usize, &ObjectRow<'_>),
    look: Option<LiveRead<'_>>,
    now: Timestamp,
) {
    let name = row.id.to_string();
    html.open("article", &[("class", "told")]);
    html.open("h3", &[]);
    badge::object(html, row.state, "");
    html.text(" ");
    html.link(&Link::object(&card.name, row.id), &[], &name);
    html.close();
    html.open("p", &[]);
    html.element("b", &[], row.reason);
    html.text(": ");
    html.text(row.message);
    if let Some(drift) = row.drift {
        html.text(" Changed by ");
        html.text(drift.manager.as_deref().unwrap_or("an unknown field manager"));
        if let Some(time) = &drift.time {
            html.text(", ");
            write_time_text(html, time, now);
        }
        html.text(".");
    }
    html.close();
    match diff_of(card, row, look) {
        Ok(diff) if diff.is_equal() => {
            html.element("p", &[("class", "quiet")], "All fields that Git sets match the live object.");
        }
        Ok(diff) => diff.write(html, &format!("diff-{at}"), &format!("Diff of {name}")),
        Err(why) => html.element("p", &[("class", "quiet")], &why),
    }
    html.close();
}

/// Lists the objects that wait to be deleted.
fn pending(html: &mut Html, card: &SyncCard) {
    let rows: Vec<_> = card.objects.rows().filter(|row| row.state == ObjectState::PendingPrune).collect();
    if rows.is_empty() {
        return;
    }
    layout::begin_section(html, "pending", "Pending deletions");
    html.open("p", &[]);
    html.text(&format!("{} removed from Git and waiting to be deleted. The ", counted(rows.len(), "object")));
    html.link(&Link::tab(&card.name, SyncTab::Plan), &[], "plan");
    html.text(" has the reason.");
    html.close();
    html.open("ul", &[("class", "named")]);
    for row in rows.iter().take(MAX_NAMED) {
        html.open("li", &[]);
        html.link(&Link::object(&card.name, row.id), &[], &row.id.to_string());
        html.close();
    }
    html.close();
    if rows.len() > MAX_NAMED {
        html.element("p", &[], &format!("and {} more", rows.len() - MAX_NAMED));
    }
    html.close();
}
