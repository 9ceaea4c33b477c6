//! The drift section: open and repaired changes by others, with manager, fields and time.

use jiff::Timestamp;

use super::html::Html;
use super::layout;
use super::relative_time::{write_time, write_time_text};
use super::routes::Link;
use crate::object::ObjectId;
use crate::report::board::{ObjectState, SyncCard};

/// Text in place of fields for a deleted object.
const DELETED: &str = "the whole object was deleted";

/// The most drifted objects that are listed.
const MAX_STANDING: usize = 50;

pub(super) fn write_section(html: &mut Html, card: &SyncCard, now: Timestamp) {
    let standing: Vec<_> = card.objects.rows().filter(|row| row.state == ObjectState::Drifted).collect();
    layout::begin_section(html, "drift", "Drift");
    if standing.is_empty() && card.repairs.is_empty() {
        html.element("p", &[("class", "quiet")], "None since this daemon started.");
        return html.close();
    }
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Object", "Fields", "Field manager", "Outcome"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for row in standing.iter().take(MAX_STANDING) {
        let (fields, manager, time) = row.drift.map_or((&[][..], None, None), |drift| {
            (drift.fields.as_slice(), drift.manager.as_deref(), drift.time.as_deref())
        });
        open_row(html, card, row.id, fields, (manager, time), now);
        html.text("not repaired: ");
        html.text(row.message);
        html.close();
        html.close();
    }
    for repair in card.repairs.iter() {
        let who = (repair.manager.as_deref(), repair.changed_at.as_deref());
        let fields = if repair.was_deleted { &[DELETED.to_owned()][..] } else { &repair.fields };
        open_row(html, card, &repair.id, fields, who, now);
        html.text(if repair.was_deleted { "recreated " } else { "repaired " });
        write_time(html, repair.repaired_at.0, now);
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}

/// Opens a row and writes all cells but the last one, which stays open.
fn open_row(
    html: &mut Html,
    card: &SyncCard,
    id: &ObjectId,
    fields: &[String],
    (manager, time): (Option<&str>, Option<&str>),
    now: Timestamp,
) {
    html.open("tr", &[]);
    html.open("th", &[("scope", "row")]);
    match card.objects.row(id) {
        Some(_) => html.link(&Link::object(&card.name, id), &[], &id.to_string()),
        None => html.text(&id.to_string()),
    }
    html.close();
    html.open("td", &[("data-label", "Fields")]);
    for field in fields {
        html.element("code", &[("class", "below")], field);
    }
    if fields.is_empty() {
        html.text("not known");
    }
    html.close();
    html.open("td", &[("data-label", "Field manager")]);
    html.text(manager.unwrap_or("an unknown field manager"));
    if let Some(time) = time {
        html.text(", ");
        write_time_text(html, time, now);
    }
    html.close();
    html.open("td", &[("data-label", "Outcome")]);
}
