//! The drift section: open and repaired changes by others, with manager, fields and time.

use jiff::Timestamp;

use super::frame;
use super::html::Html;
use super::moment::{moment, moment_of};
use super::place::Place;
use crate::object::ObjectId;
use crate::report::board::{Card, ObjectState};

/// Text in place of fields for a deleted object.
const DELETED: &str = "all of it: the object was deleted";

/// The most drifted objects that are listed.
const MAX_STANDING: usize = 50;

pub(super) fn part(html: &mut Html, card: &Card, now: Timestamp) {
    let standing: Vec<_> = card.objects.rows().filter(|row| row.state == ObjectState::Drifted).collect();
    frame::part(html, "drift", "Edits by hand");
    if standing.is_empty() && card.repairs.is_empty() {
        html.element("p", &[("class", "quiet")], "None since this daemon began.");
        return html.close();
    }
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Object", "Fields", "Who", "Outcome"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for row in standing.iter().take(MAX_STANDING) {
        let (fields, manager, time) = row.drift.map_or((&[][..], None, None), |drift| {
            (drift.fields.as_slice(), drift.manager.as_deref(), drift.time.as_deref())
        });
        begin(html, card, row.id, fields, (manager, time), now);
        html.text("stands: ");
        html.text(row.message);
        html.close();
        html.close();
    }
    for repair in card.repairs.iter() {
        let who = (repair.manager.as_deref(), repair.changed.as_deref());
        let fields = if repair.was_deleted { &[DELETED.to_owned()][..] } else { &repair.fields };
        begin(html, card, &repair.id, fields, who, now);
        html.text(if repair.was_deleted { "created again " } else { "repaired " });
        moment(html, repair.at.0, now);
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}

/// Opens a row and writes all cells but the last one, which stays open.
fn begin(
    html: &mut Html,
    card: &Card,
    id: &ObjectId,
    fields: &[String],
    (manager, time): (Option<&str>, Option<&str>),
    now: Timestamp,
) {
    html.open("tr", &[]);
    html.open("th", &[("scope", "row")]);
    match card.objects.row(id) {
        Some(_) => html.link(&Place::object(&card.name, id), &[], &id.to_string()),
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
    html.open("td", &[("data-label", "Who")]);
    html.text(manager.unwrap_or("somebody who left no name"));
    if let Some(time) = time {
        html.text(", ");
        moment_of(html, time, now);
    }
    html.close();
    html.open("td", &[("data-label", "Outcome")]);
}
