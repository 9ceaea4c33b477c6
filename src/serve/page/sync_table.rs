//! The table of all Syncs: filtered, sorted, grouped and paged; and the favourites of a browser.
//!
//! In: a board and a filter. Out: tables. Favourites are kept by the browser, whose script names
//! them in the query `fav`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::filter::{Choice, Filter, SYNCS_PER_PAGE, form, sync_states, write_pagination};
use super::html::Html;
use super::routes::{Link, query_values};
use super::{badge, commit, layout, overview, relative_time};
use crate::api::SyncName;
use crate::grammar::counted;
use crate::report::board::{StatusBoard, SyncCard};

/// The most favourites that are shown.
const MAX_FAVOURITES: usize = 50;
/// The most labels to group by.
const MAX_LABELS: usize = 20;
/// Prefix of a group by a label.
const LABEL: &str = "label:";
/// The titles of the columns, each with the word that sorts by it.
const COLUMNS: [(&str, &str); 6] = [
    ("Sync", "name"),
    ("State", "state"),
    ("Applied", ""),
    ("Objects", ""),
    ("Healthy", ""),
    ("Last change", "changed"),
];

/// Writes the Syncs that the query names, if it names any.
pub(super) fn write_favourites(html: &mut Html, board: &StatusBoard, query: &str, now: Timestamp) {
    let named = query_values(query, "fav").into_iter().take(MAX_FAVOURITES).collect::<BTreeSet<_>>();
    let known = |name: &String| {
        let (namespace, name) = name.split_once('/')?;
        board.cards.get(&SyncName::new(namespace, name)).map(|card| &**card)
    };
    let mut cards: Vec<&SyncCard> = named.iter().filter_map(known).collect();
    if cards.is_empty() {
        return;
    }
    cards.sort_by_key(|card| card.state());
    layout::begin_section(html, "favourites", "Favourites");
    begin_table(html, &Filter::default(), "Favourite Syncs", false);
    html.open("tbody", &[]);
    cards.iter().for_each(|card| row(html, card, now));
    html.close();
    html.close();
    html.close();
}

/// Writes all Syncs that match.
pub(super) fn write_section(html: &mut Html, board: &StatusBoard, filter: &Filter, now: Timestamp) {
    html.open("section", &[("id", "syncs")]);
    html.element("h2", &[], "Syncs");
    form(html, &Link::overview(), filter, "Syncs", &sync_states(), &choices(board, filter));
    html.open("div", &[("id", "rows"), ("data-part", "")]);
    let mut fitting: Vec<(Option<String>, &SyncCard)> = board
        .cards
        .values()
        .filter(|card| filter.fits(card))
        .map(|card| (group_of(card, &filter.group), &**card))
        .collect();
    sort(&mut fitting, &filter.sort);
    let summaries = summaries(&fitting);
    let part = filter.paginate(fitting.into_iter(), SYNCS_PER_PAGE);
    html.open("p", &[("class", "quiet")]);
    if part.rows.is_empty() && !board.cards.is_empty() {
        html.text("No Sync matches the filter.");
    } else if !filter.is_all() {
        html.text(&format!("{} of {}", part.total, counted(board.cards.len(), "Sync")));
    }
    html.close();
    if !part.rows.is_empty() {
        begin_table(html, filter, "Matching Syncs", true);
        rows(html, &part.rows, &summaries, now);
        html.close();
    }
    write_pagination(html, &Link::overview(), filter, &part);
    html.close();
    html.close();
}

/// Choices of order and groups.
fn choices<'a>(board: &StatusBoard, filter: &'a Filter) -> [Choice<'a>; 2] {
    let text = |value: &str, label: &str| (value.to_owned(), label.to_owned());
    let orders = vec![text("", "state"), text("name", "name"), text("changed", "last change")];
    let mut keys = BTreeMap::<&str, usize>::new();
    for key in board.cards.values().flat_map(|card| card.source.labels.keys()) {
        *keys.entry(key).or_default() += 1;
    }
    let mut keys: Vec<(&str, usize)> = keys.into_iter().collect();
    keys.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let labels = keys.into_iter().take(MAX_LABELS);
    let labels = labels.map(|(key, _)| (format!("{LABEL}{key}"), format!("label {key}")));
    let groups =
        ["", "namespace", "cluster", "state"].map(|it| text(it, if it.is_empty() { "none" } else { it }));
    let groups = groups.into_iter().chain(labels).collect();
    let sort = if filter.sort == "state" { "" } else { &filter.sort };
    [
        Choice { name: "sort", label: "Sort by", chosen: sort, options: orders },
        Choice { name: "group", label: "Group by", chosen: &filter.group, options: groups },
    ]
}

/// The group of a Sync; `None` without grouping.
fn group_of(card: &SyncCard, group: &str) -> Option<String> {
    match group {
        "namespace" => Some(card.name.namespace.to_string()),
        "cluster" => Some(card.cluster().to_owned()),
        "state" => Some(card.state().title().to_owned()),
        _ => {
            let key = group.strip_prefix(LABEL).filter(|key| !key.is_empty())?;
            let value = card.source.labels.get(key).map_or("not set", |value| value);
            Some(format!("{key}: {value}"))
        }
    }
}

/// Sorts by group, and then by the chosen order; names decide between equals.
fn sort(rows: &mut [(Option<String>, &SyncCard)], order: &str) {
    match order {
        "name" => {}
        "changed" => rows.sort_by_key(|(_, card)| std::cmp::Reverse(card.last_change().map(|at| at.0))),
        _ => rows.sort_by_key(|(_, card)| card.state()),
    }
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
}

/// A sentence about each group, over all pages.
fn summaries(rows: &[(Option<String>, &SyncCard)]) -> BTreeMap<String, String> {
    let mut counts = BTreeMap::<&String, (usize, usize)>::new();
    for (group, card) in rows {
        let Some(group) = group else { continue };
        let (all, amiss) = counts.entry(group).or_default();
        (*all, *amiss) = (*all + 1, *amiss + usize::from(card.state().needs_attention()));
    }
    let sentence = |all, amiss| match amiss {
        0 => counted(all, "Sync"),
        1 => format!("{}, 1 needs attention", counted(all, "Sync")),
        amiss => format!("{}, {amiss} need attention", counted(all, "Sync")),
    };
    counts.into_iter().map(|(group, (all, amiss))| (group.clone(), sentence(all, amiss))).collect()
}

/// Begins a table with its head; the caller writes the bodies and closes it.
fn begin_table(html: &mut Html, filter: &Filter, caption: &str, sorts: bool) {
    html.open("table", &[("class", "cards syncs")]);
    html.element("caption", &[("class", "unseen")], caption);
    html.open("colgroup", &[]);
    for class in ["name", "state", "revision", "count", "short", "time"] {
        html.void("col", &[("class", class)]);
    }
    html.close();
    html.open("thead", &[]);
    html.open("tr", &[]);
    let order = if filter.sort.is_empty() { "state" } else { &filter.sort };
    for (title, word) in COLUMNS {
        let is_sorted = sorts && word == order;
        let direction = if word == "changed" { "descending" } else { "ascending" };
        let attributes: [(&'static str, &str); 2] = [("scope", "col"), ("aria-sort", direction)];
        html.open("th", &attributes[..1 + usize::from(is_sorted)]);
        match sorts && !word.is_empty() {
            true => {
                let by = Filter { sort: word.to_owned(), page: 1, ..filter.clone() };
                html.link(&by.on_page(Link::overview(), 1).at("syncs"), &[], title);
            }
            false => html.text(title),
        }
        html.close();
    }
    html.close();
    html.close();
}

fn rows(
    html: &mut Html,
    rows: &[(Option<String>, &SyncCard)],
    summaries: &BTreeMap<String, String>,
    now: Timestamp,
) {
    let mut last: Option<&Option<String>> = None;
    for (group, card) in rows {
        if last != Some(group) {
            if last.is_some() {
                html.close();
            }
            html.open("tbody", &[]);
            if let Some(group) = group {
                html.open("tr", &[("class", "group")]);
                html.open("th", &[("scope", "rowgroup"), ("colspan", "6")]);
                html.element("b", &[], group);
                let summary = summaries.get(group).map_or("", |summary| summary);
                html.element("span", &[("class", "quiet")], &format!(" {summary}"));
                html.close();
                html.close();
            }
            last = Some(group);
        }
        row(html, card, now);
    }
    html.close();
}

fn row(html: &mut Html, card: &SyncCard, now: Timestamp) {
    let name = card.name.to_string();
    html.open("tr", &[("data-sync", &name)]);
    html.open("th", &[("scope", "row")]);
    html.link(&Link::sync(&card.name), &[], &name);
    html.element("span", &[("class", "quiet below")], &follows(card));
    html.close();
    html.open("td", &[("class", "state")]);
    badge::sync(html, card.state());
    html.close();
    html.open("td", &[("data-label", "Applied")]);
    let revisions = card.status.revision.as_ref();
    let applied = revisions.and_then(|revision| revision.applied.as_deref()).unwrap_or_default();
    commit::write_revision(html, &card.source.url, applied);
    html.close();
    html.open("td", &[("data-label", "Objects")]);
    html.text(&overview::object_counts(card));
    html.close();
    html.open("td", &[("data-label", "Healthy")]);
    html.text(match card.condition("Healthy").map(|healthy| healthy.status.as_str()) {
        Some("True") => "yes",
        Some("False") => "no",
        Some(_) => "unknown",
        None => "–",
    });
    html.close();
    html.open("td", &[("data-label", "Last change")]);
    match card.last_change() {
        Some(at) => relative_time::write_time(html, at.0, now),
        None => html.text("–"),
    }
    html.close();
    html.close();
}

fn follows(card: &SyncCard) -> String {
    let subject = &card.source;
    let path = subject.path.trim_start_matches("./");
    let place = subject.cluster.as_deref().map(|cluster| format!(" in {cluster}")).unwrap_or_default();
    format!("{} {path}{place}", subject.url.trim_start_matches("https://"))
}
