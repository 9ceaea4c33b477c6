//! The object section of a Sync: objects grouped by kind, with pagination.

use std::collections::BTreeMap;

use super::badge;
use super::filter::{Filter, OBJECT_WORDS, OBJECTS_PER_PAGE, form, write_pagination};
use super::html::Html;
use super::routes::Link;
use crate::grammar::counted;
use crate::object::GroupKind;
use crate::report::board::{ObjectRow, ObjectState, SyncCard};

pub(super) fn write_section(html: &mut Html, card: &SyncCard, filter: &Filter) {
    let place = Link::sync(&card.name);
    html.open("section", &[("id", "objects")]);
    html.element("h2", &[], "Objects");
    form(html, &place, filter, "objects", &OBJECT_WORDS, &[]);
    html.open("div", &[("id", "rows"), ("data-part", "")]);
    kinds(html, card, &place, filter);
    let part = filter.paginate(card.objects.rows().filter(|row| filter.fits_object(row)), OBJECTS_PER_PAGE);
    let amiss = card.objects.rows().filter(ObjectRow::needs_attention).count();
    html.open("p", &[("class", "quiet")]);
    match filter.is_all() {
        true => html.text(&counted(part.total, "object")),
        false => html.text(&format!("{} of {}", part.total, counted(card.objects.len(), "object"))),
    }
    if amiss > 0 && filter.state != "attention" {
        html.text("; ");
        html.link(
            &place.clone().with_query(&[("state", "attention")]),
            &[],
            &format!("{amiss} not synced or unhealthy"),
        );
    }
    html.close();
    let mut last: Option<GroupKind> = None;
    for row in &part.rows {
        let kind = row.id.group_kind();
        if last.as_ref() != Some(&kind) {
            if last.is_some() {
                html.close();
                html.close();
            }
            group(html, &kind);
            last = Some(kind);
        }
        line(html, card, row);
    }
    if last.is_some() {
        html.close();
        html.close();
    }
    write_pagination(html, &place, filter, &part);
    html.close();
    html.close();
}

/// Writes the kinds, each with a link that filters by it.
fn kinds(html: &mut Html, card: &SyncCard, place: &Link, filter: &Filter) {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut last: Option<(GroupKind, usize)> = None;
    for row in card.objects.rows() {
        match &mut last {
            Some((kind, count)) if row.id.is_kind(&kind.group, &kind.kind) => *count += 1,
            _ => {
                counts.extend(last.take().map(|(kind, count)| (kind.to_string(), count)));
                last = Some((row.id.group_kind(), 1));
            }
        }
    }
    counts.extend(last.map(|(kind, count)| (kind.to_string(), count)));
    if counts.len() < 2 {
        return;
    }
    html.open("details", &[("id", "kinds"), ("class", "kinds")]);
    html.element("summary", &[], &counted(counts.len(), "kind"));
    html.open("ul", &[]);
    for (kind, count) in &counts {
        html.open("li", &[]);
        let of_kind = Filter { kind: kind.clone(), page: 1, ..filter.clone() };
        let current: &[(&'static str, &str)] = &[("aria-current", "true")];
        let current = if *kind == filter.kind { current } else { &[] };
        html.link(&of_kind.on_page(place.clone(), 1), current, kind);
        html.element("span", &[("class", "quiet")], &format!(" {count}"));
        html.close();
    }
    html.close();
    html.close();
}

/// Begins the table of a kind; the caller closes its body and the table.
fn group(html: &mut Html, kind: &GroupKind) {
    html.open("table", &[("class", "cards objects")]);
    html.open("caption", &[]);
    html.element("h3", &[], &kind.kind);
    if !kind.group.is_empty() {
        html.element("span", &[("class", "quiet")], &kind.group);
    }
    html.close();
    html.open("colgroup", &[]);
    for class in ["wide", "word", "word", "rest"] {
        html.void("col", &[("class", class)]);
    }
    html.close();
    html.open("thead", &[("class", "unseen")]);
    html.open("tr", &[]);
    for title in ["Object", "Sync status", "Health", "Source file"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
}

fn line(html: &mut Html, card: &SyncCard, row: &ObjectRow<'_>) {
    html.open("tr", &[]);
    html.open("th", &[("scope", "row")]);
    let name = match row.id.namespace() {
        Some(namespace) => format!("{namespace}/{}", row.id.name()),
        None => row.id.name().to_owned(),
    };
    html.link(&Link::object(&card.name, row.id), &[], &name);
    // Pending deletions are described above, all of them at once.
    let message = if row.state == ObjectState::PendingPrune { "" } else { row.message };
    for said in [message, row.health_message].into_iter().filter(|said| !said.is_empty()) {
        html.element("span", &[("class", "quiet below")], said);
    }
    html.close();
    html.open("td", &[]);
    badge::object(html, row.state, row.reason);
    html.close();
    html.open("td", &[]);
    badge::health(html, row.health);
    html.close();
    html.open("td", &[("class", "file")]);
    match row.origin {
        Some(origin) => html.element("code", &[], &origin.to_string()),
        None => html.element("span", &[("class", "quiet")], "no longer in Git"),
    }
    html.close();
    html.close();
}
