//! The status page, as HTML and as JSON: renders the board for a path.
//!
//! In: a [`StatusBoard`], the requested path and query, the time. Out: a [`PageResponse`]. Nothing
//! here reads a clock, a file or the cluster; the content of a live object is passed in.

mod all;
mod badge;
mod changes;
mod commit;
mod drift;
mod filter;
mod frame;
mod graph;
mod history;
mod html;
mod json;
mod list;
mod moment;
mod object;
mod one;
mod place;
mod waiting;

use jiff::Timestamp;

use crate::api::SyncName;
use crate::object::ObjectId;
use crate::report::board::{Card, Seen, StatusBoard};
use filter::Filter;
pub use frame::{ICON, SCRIPT, STYLE};

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// All Syncs.
    All,
    /// One Sync.
    Sync(SyncName),
    /// One object of a Sync.
    Object(SyncName, ObjectId),
    /// The event stream with changes.
    Events,
    /// The style sheet.
    Style,
    /// The script.
    Script,
    /// The icon.
    Icon,
    /// An unknown path.
    Nowhere,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its target.
    pub route: Route,
    /// True for JSON, false for HTML.
    pub json: bool,
}

/// Result of reading a live object for a viewer.
#[derive(Debug, Clone, Copy)]
pub enum Look<'a> {
    /// It was read.
    Read(&'a Seen),
    /// It was not read, for this reason.
    NotRead(&'a str),
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// The document.
    pub body: String,
    /// Version of its content; `None` if it is read for each request.
    pub version: Option<u64>,
}

/// Parses a path.
pub fn asked(path: &str) -> Asked {
    let (path, json) = match path.strip_prefix("/api/v1") {
        Some(rest) => (rest, true),
        None => (path, false),
    };
    let parts = place::parts(path).unwrap_or_default();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let route = match (words.as_slice(), json) {
        ([""], false) | (["syncs"], true) => Route::All,
        (["events"], false) => Route::Events,
        (["page.css"], false) => Route::Style,
        (["page.js"], false) => Route::Script,
        (["icon.svg"], false) => Route::Icon,
        (["syncs", namespace, name], _) => Route::Sync(SyncName::new(namespace, name)),
        (["syncs", namespace, name, "objects", ..], _) => match place::object_of(&parts[4..]) {
            Some(id) => Route::Object(SyncName::new(namespace, name), id),
            None => Route::Nowhere,
        },
        _ => Route::Nowhere,
    };
    Asked { route, json }
}

/// The version of the content of a path, which changes with the content. `None` if it is read for
/// each request.
pub fn version(board: &StatusBoard, route: &Route) -> Option<u64> {
    match route {
        Route::All => Some(board.version),
        Route::Sync(name) => board.cards.get(name).map(|card| sync_version(board, card)),
        Route::Object(..) | Route::Events | Route::Style | Route::Script | Route::Icon | Route::Nowhere => {
            None
        }
    }
}

/// The version of a Sync's page, which also shows its dependencies and dependents: it changes when
/// one of them changes, appears or disappears.
fn sync_version(board: &StatusBoard, card: &Card) -> u64 {
    let around = graph::around(board, card);
    around.into_iter().fold(0, |all, card| all.wrapping_mul(1_000_003).wrapping_add(card.version))
}

/// The Sync in the query of `/events`; `None` for all.
pub fn subject(query: &str) -> Option<SyncName> {
    let of = place::query(query, "of")?;
    let (namespace, name) = of.split_once('/')?;
    Some(SyncName::new(namespace, name))
}

/// Renders the board for a request. `look` is given for objects only.
pub fn answer(
    board: &StatusBoard,
    asked: &Asked,
    query: &str,
    look: Option<Look<'_>>,
    now: Timestamp,
) -> Answer {
    let version = version(board, &asked.route);
    let filter = Filter::read(query);
    let found = match &asked.route {
        Route::All if asked.json => Some(json::all(board, &filter)),
        Route::All => Some(all::page(board, &filter, now)),
        Route::Sync(name) => board.cards.get(name).map(|card| match asked.json {
            true => json::one(board, card, &filter),
            false => one::page(board, card, &filter, now),
        }),
        Route::Object(name, id) => board.cards.get(name).and_then(|card| {
            let row = card.objects.row(id)?;
            Some(match asked.json {
                true => json::object(card, &row, look),
                false => object::page(board, card, &row, look, now),
            })
        }),
        Route::Events | Route::Style | Route::Script | Route::Icon | Route::Nowhere => None,
    };
    match found {
        Some(body) => Answer { status: 200, body, version },
        None if asked.json => Answer { status: 404, body: json::nothing(), version: None },
        None => Answer { status: 404, body: frame::nothing(board), version: None },
    }
}
