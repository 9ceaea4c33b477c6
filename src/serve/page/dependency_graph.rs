//! Draws the dependencies between Syncs.
//!
//! In: some Syncs of the board. Out: a picture with dependencies to the left; each Sync is a link,
//! and a list has the same content for screen readers. Large graphs have only the list.

use std::collections::{BTreeMap, BTreeSet};

use super::badge::sync_style;
use super::html::Html;
use super::layout;
use super::routes::{Link, query_value};
use crate::api::SyncName;
use crate::report::board::{StatusBoard, SyncCard};

/// The most Syncs that are drawn.
const MAX_DRAWN: usize = 60;
/// The size of a Sync in the picture.
const SIZE: (usize, usize) = (196, 44);
/// The size of a grid cell, including the gap.
const ROOM: (usize, usize) = (252, 60);
/// The most characters of a name that fit.
const MAX_NAME: usize = 22;

/// All direct and indirect dependencies and dependents of a Sync, and the Sync itself.
pub(super) fn related_syncs<'a>(board: &'a StatusBoard, card: &'a SyncCard) -> Vec<&'a SyncCard> {
    let mut found = BTreeMap::from([(&card.name, card)]);
    for upwards in [true, false] {
        let mut next = vec![card];
        let mut seen = BTreeSet::from([&card.name]);
        while let Some(card) = next.pop() {
            let beside: Vec<&SyncCard> = match upwards {
                true => card
                    .source
                    .depends_on
                    .iter()
                    .filter_map(|name| board.cards.get(name))
                    .map(|it| &**it)
                    .collect(),
                false => board.dependents(&card.name).map(|it| &**it).collect(),
            };
            for other in beside {
                if seen.len() <= MAX_DRAWN && seen.insert(&other.name) {
                    found.insert(&other.name, other);
                    next.push(other);
                }
            }
        }
    }
    found.into_values().collect()
}

/// Size of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zoom(usize);

impl Zoom {
    /// All steps, as in the query, with their label and the size in tenths.
    const ALL: [(usize, &'static str, usize); 3] = [(1, "Small", 6), (2, "Normal", 10), (3, "Large", 16)];

    pub(super) fn parse(query: &str) -> Self {
        let asked = query_value(query, "zoom").and_then(|step| step.parse().ok());
        Self(asked.filter(|step| Self::ALL.iter().any(|(known, ..)| known == step)).unwrap_or(2))
    }

    fn tenths(self) -> usize {
        Self::ALL.into_iter().find(|(step, ..)| *step == self.0).map_or(10, |(_, _, tenths)| tenths)
    }
}

/// Writes the section with the graph of these Syncs; `place` is the page with this zoom.
pub(super) fn write_section(
    html: &mut Html,
    board: &StatusBoard,
    cards: &[&SyncCard],
    current: Option<&SyncName>,
    (place, zoom): (&Link, Zoom),
) {
    let needed: BTreeSet<&SyncName> = board.cards.values().flat_map(|card| &card.source.depends_on).collect();
    let linked = |card: &&&SyncCard| !card.source.depends_on.is_empty() || needed.contains(&card.name);
    let cards: Vec<&SyncCard> = cards.iter().filter(linked).copied().collect();
    layout::begin_section(html, "order", "Dependencies");
    if cards.len() <= MAX_DRAWN {
        html.open("nav", &[("class", "zoom"), ("aria-label", "Size of the graph")]);
        for (step, label, _) in Zoom::ALL {
            let marked: &[(&'static str, &str)] = &[("aria-current", "true")];
            let place = place.clone().with_query(&[("zoom", &step.to_string())]).at("order");
            html.link(&place, if Zoom(step) == zoom { marked } else { &[] }, label);
            html.text(" ");
        }
        html.close();
        picture(html, &cards, current, zoom);
    }
    html.open("ul", &[("class", if cards.len() <= MAX_DRAWN { "unseen" } else { "named" })]);
    for card in cards.iter().filter(|card| !card.source.depends_on.is_empty()).take(MAX_DRAWN) {
        let first: Vec<String> = card.source.depends_on.iter().map(ToString::to_string).collect();
        html.element("li", &[], &format!("{} depends on {}", card.name, first.join(", ")));
    }
    html.close();
    html.close();
}

fn picture(html: &mut Html, cards: &[&SyncCard], current: Option<&SyncName>, zoom: Zoom) {
    let places = places(cards);
    let (columns, lines) = places
        .values()
        .fold((0, 0), |(columns, lines), (column, line)| (columns.max(column + 1), lines.max(line + 1)));
    let (width, height) = (columns * ROOM.0, lines * ROOM.1);
    let size = |length: usize| (length * zoom.tenths() / 10).to_string();
    let (view, w, h) = (format!("0 0 {width} {height}"), size(width), size(height));
    html.open(
        "div",
        &[("class", "picture"), ("tabindex", "0"), ("role", "group"), ("aria-label", "Dependency graph")],
    );
    html.open("svg", &[("viewBox", &view), ("width", &w), ("height", &h)]);
    let left = |column: usize| column * ROOM.0 + 4;
    let top = |line: usize| line * ROOM.1 + 8;
    for card in cards {
        let Some((column, line)) = places.get(&card.name) else { continue };
        let (x, y) = (left(*column), top(*line) + SIZE.1 / 2);
        for (from_column, from_line) in card.source.depends_on.iter().filter_map(|name| places.get(name)) {
            let (from_x, from_y) = (left(*from_column) + SIZE.0, top(*from_line) + SIZE.1 / 2);
            let middle = (from_x + x) / 2;
            let way = format!("M{from_x} {from_y}C{middle} {from_y} {middle} {y} {x} {y}");
            html.element("path", &[("class", "edge"), ("d", &way)], "");
        }
    }
    for card in cards {
        let Some((column, line)) = places.get(&card.name) else { continue };
        node(html, card, (left(*column), top(*line)), current == Some(&card.name));
    }
    html.close();
    html.close();
}

fn node(html: &mut Html, card: &SyncCard, (x, y): (usize, usize), current: bool) {
    let (class, sign) = sync_style(card.state());
    let class = format!("node {class}{}", if current { " current" } else { "" });
    let text = |number: usize| number.to_string();
    let label = format!("{}: {}", card.name, card.state().title());
    html.open_link(&Link::sync(&card.name), &[("aria-label", &label)]);
    html.element("title", &[], &label);
    let (left, up, wide, high) = (text(x), text(y), text(SIZE.0), text(SIZE.1));
    html.element(
        "rect",
        &[("class", &class), ("x", &left), ("y", &up), ("width", &wide), ("height", &high), ("rx", "6")],
        "",
    );
    let name: String = match card.name.name.chars().nth(MAX_NAME) {
        Some(_) => card.name.name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
        None => card.name.name.to_string(),
    };
    html.element("text", &[("x", &text(x + 12)), ("y", &text(y + 19))], &name);
    let below = format!("{sign} {}", card.state().title());
    html.element("text", &[("class", "small"), ("x", &text(x + 12)), ("y", &text(y + 35))], &below);
    html.close();
}

/// The grid position of each Sync: one column to the right of all its dependencies. The number of
/// rounds is limited, because of cycles.
fn places(cards: &[&SyncCard]) -> BTreeMap<SyncName, (usize, usize)> {
    let mut columns: BTreeMap<&SyncName, usize> = cards.iter().map(|card| (&card.name, 0)).collect();
    for _ in 0..cards.len() {
        let mut moved = false;
        for card in cards {
            let before = card.source.depends_on.iter().filter_map(|name| columns.get(name)).max();
            let column = before.map_or(0, |before| before + 1).min(cards.len() - 1);
            moved |= columns.insert(&card.name, column).is_some_and(|last| last != column);
        }
        if !moved {
            break;
        }
    }
    let mut lines = BTreeMap::<usize, usize>::new();
    let place = |(name, column): (&SyncName, usize)| {
        let line = lines.entry(column).or_default();
        *line += 1;
        (name.clone(), (column, *line - 1))
    };
    columns.into_iter().map(place).collect()
}
