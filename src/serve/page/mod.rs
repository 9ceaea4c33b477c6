//! The status page, as HTML and as JSON: renders the board for a path.
//!
//! In: a [`StatusBoard`], the requested path and query, the time. Out: a [`PageResponse`]. Nothing
//! here reads a clock, a file or the cluster; the content of a live object is passed in.

mod action_forms;
mod attention_links;
mod badge;
mod clusters;
mod commit;
mod dependency_graph;
mod diff_list;
mod filter;
mod html;
mod json;
mod json_tabs;
mod layout;
mod live_json;
mod live_route;
mod log_text;
mod logs;
mod next_commit;
mod next_plan;
mod object;
mod object_diff;
mod object_events;
mod object_list;
mod overview;
mod pending_deletions;
mod pending_revision;
mod plan;
mod pod;
mod relative_time;
mod routes;
mod settings;
mod sign_in;
mod sync;
mod sync_table;
mod tabs;
mod timeline;
mod tree;
mod yaml_view;

use jiff::Timestamp;

use crate::api::SyncName;
use crate::object::ObjectId;
use crate::report::board::{LiveObject, StatusBoard, SyncCard};
pub(crate) use action_forms::{MAX_REASON, is_workload};
pub use filter::Filter;
pub use layout::{ICON, SCRIPT, STYLE};
pub use live_json::{events_json, logs_json, not_read_json, pod_json, tree_json};
pub use live_route::LiveView;
pub(crate) use live_route::failing_log;
pub use log_text::LogText;
pub use logs::{LogContent, LogSelection, MAX_BYTES as MAX_LOG_BYTES, MAX_LINES as MAX_LOG_LINES, logs_page};
pub use next_plan::{next_plan_json, next_plan_page};
pub use object_events::events_page;
pub use pod::pod_page;
pub(crate) use routes::{Link, path_segments, query_value as form_value};
pub(crate) use sign_in::{SignInAction, sign_in_page};
pub use tabs::SyncTab;
pub use tree::tree_page;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// All Syncs.
    Overview,
    /// All clusters.
    Clusters,
    /// One Sync with its objects.
    Sync(SyncName),
    /// Another tab of a Sync.
    Tab(SyncName, SyncTab),
    /// One object of a Sync.
    Object(SyncName, ObjectId),
    /// A view of a Sync that is read while somebody looks.
    Live(SyncName, LiveView),
    /// The event stream with changes.
    Events,
    /// The style sheet.
    Style,
    /// The script.
    Script,
    /// The icon.
    Icon,
    /// An unknown path.
    NotFound,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Its target.
    pub route: Route,
    /// True for JSON, false for HTML.
    pub json: bool,
}

/// A live object that was read for a viewer, or the reason why it was not.
pub type ReadObject = (ObjectId, Result<LiveObject, String>);

/// Result of reading live objects for a viewer.
#[derive(Debug, Clone, Copy)]
pub enum LiveRead<'a> {
    /// The object of the page was read.
    Read(&'a LiveObject),
    /// It was not read, for this reason.
    NotRead(&'a str),
    /// The objects of a list.
    Several(&'a [ReadObject]),
    /// The viewer may not see its content, neither live nor in Git, for this reason.
    Hidden(&'a str),
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageResponse {
    /// HTTP status code.
    pub status: u16,
    /// The document.
    pub body: String,
    /// Version of its content; `None` if it is read for each request.
    pub version: Option<u64>,
}

/// The page that says why an action was not done.
pub(crate) fn refusal_page(board: &StatusBoard, back: &Link, why: &str) -> String {
    let mut html = layout::begin_page("Not done · Moorline", layout::LiveUpdates::Off);
    html.element("h1", &[], "Not done");
    html.element("p", &[], why);
    html.open("p", &[]);
    html.link(back, &[], "Back to the Sync");
    html.close();
    layout::end_page(html, board, None)
}

/// Parses a path.
pub fn parse_path(path: &str) -> PageRequest {
    let (path, json) = match path.strip_prefix("/api/v1") {
        Some(rest) => (rest, true),
        None => (path, false),
    };
    let parts = crate::serve::page::routes::path_segments(path).unwrap_or_default();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let route = match (words.as_slice(), json) {
        ([""], false) | (["syncs"], true) => Route::Overview,
        (["clusters"], _) => Route::Clusters,
        (["events"], false) => Route::Events,
        (["page.css"], false) => Route::Style,
        (["page.js"], false) => Route::Script,
        (["icon.svg"], false) => Route::Icon,
        (["syncs", namespace, name], _) => Route::Sync(SyncName::new(namespace, name)),
        (["syncs", namespace, name, segment], _) => match SyncTab::parse(segment) {
            Some(tab @ (SyncTab::Timeline | SyncTab::Diff | SyncTab::Plan | SyncTab::Settings)) => {
                Route::Tab(SyncName::new(namespace, name), tab)
            }
            Some(SyncTab::Objects | SyncTab::Tree | SyncTab::Events) | None => {
                live_route(namespace, name, &[segment])
            }
        },
        (["syncs", namespace, name, "objects", ..], _) => {
            match crate::serve::page::routes::parse_object_id(&parts[4..]) {
                Some(id) => Route::Object(SyncName::new(namespace, name), id),
                None => Route::NotFound,
            }
        }
        (["syncs", namespace, name, rest @ ..], _) => live_route(namespace, name, rest),
        _ => Route::NotFound,
    };
    PageRequest { route, json }
}

fn live_route(namespace: &str, name: &str, rest: &[&str]) -> Route {
    match LiveView::parse(rest) {
        Some(view) => Route::Live(SyncName::new(namespace, name), view),
        None => Route::NotFound,
    }
}

/// The version of the content of a path, which changes with the content. `None` if it is read for
/// each request.
pub fn version(board: &StatusBoard, route: &Route) -> Option<u64> {
    match route {
        Route::Overview | Route::Clusters => Some(board.version),
        Route::Sync(name) | Route::Tab(name, SyncTab::Timeline | SyncTab::Plan | SyncTab::Settings) => {
            board.cards.get(name).map(|card| sync_version(board, card))
        }
        Route::Tab(..)
        | Route::Object(..)
        | Route::Live(..)
        | Route::Events
        | Route::Style
        | Route::Script
        | Route::Icon
        | Route::NotFound => None,
    }
}

/// The version of a Sync's page, which also shows its dependencies and dependents: it changes when
/// one of them changes, appears or disappears.
fn sync_version(board: &StatusBoard, card: &SyncCard) -> u64 {
    let around = crate::serve::page::dependency_graph::related_syncs(board, card);
    around.into_iter().fold(0, |all, card| all.wrapping_mul(1_000_003).wrapping_add(card.version))
}

/// The Sync in the query of `/events`; `None` for all.
pub fn parse_event_source(query: &str) -> Option<SyncName> {
    let of = crate::serve::page::routes::query_value(query, "of")?;
    let (namespace, name) = of.split_once('/')?;
    Some(SyncName::new(namespace, name))
}

/// The objects of the page that are read from the cluster for a viewer; empty for most pages.
pub fn objects_to_read(board: &StatusBoard, route: &Route, query: &str) -> Vec<ObjectId> {
    match route {
        Route::Object(name, id) => {
            let is_listed = board.cards.get(name).is_some_and(|card| card.objects.row(id).is_some());
            is_listed.then(|| id.clone()).into_iter().collect()
        }
        Route::Tab(name, SyncTab::Diff) => {
            let card = board.cards.get(name);
            card.map(|card| diff_list::objects_to_read(card, &Filter::parse(query))).unwrap_or_default()
        }
        Route::Overview
        | Route::Clusters
        | Route::Sync(_)
        | Route::Tab(..)
        | Route::Live(..)
        | Route::Events
        | Route::Style
        | Route::Script
        | Route::Icon
        | Route::NotFound => Vec::new(),
    }
}

/// Renders the board for a request. `look` is given if [`objects_to_read`] names objects.
pub fn respond(
    board: &StatusBoard,
    asked: &PageRequest,
    query: &str,
    look: Option<LiveRead<'_>>,
    now: Timestamp,
) -> PageResponse {
    let version = version(board, &asked.route);
    let filter = Filter::parse(query);
    let found = match &asked.route {
        Route::Overview if asked.json => Some(json::all(board, &filter)),
        Route::Overview => Some(overview::page(board, query, now)),
        Route::Clusters if asked.json => Some(clusters::data(board, &filter)),
        Route::Clusters => Some(clusters::page(board, query, now)),
        Route::Tab(name, tab) => {
            board.cards.get(name).and_then(|card| tab_page(board, card, *tab, asked.json, query, look, now))
        }
        Route::Sync(name) => board.cards.get(name).map(|card| match asked.json {
            true => json::one(board, card, &filter),
            false => sync::page(board, card, query, now),
        }),
        Route::Object(name, id) => board.cards.get(name).and_then(|card| {
            let row = card.objects.row(id)?;
            Some(match asked.json {
                true => json::object(card, &row, look),
                false => object::page(board, card, &row, look, now),
            })
        }),
        Route::Live(..) | Route::Events | Route::Style | Route::Script | Route::Icon | Route::NotFound => {
            None
        }
    };
    match found {
        Some(body) => PageResponse { status: 200, body, version },
        None => PageResponse { status: 404, body: not_found(board, asked.json), version: None },
    }
}

/// The document for unknown paths.
pub fn not_found(board: &StatusBoard, json: bool) -> String {
    match json {
        true => json::not_found_document(),
        false => crate::serve::page::layout::not_found_page(board),
    }
}

/// Renders a tab of a Sync. `None` for a tab that is rendered elsewhere.
fn tab_page(
    board: &StatusBoard,
    card: &SyncCard,
    tab: SyncTab,
    json: bool,
    query: &str,
    look: Option<LiveRead<'_>>,
    now: Timestamp,
) -> Option<String> {
    Some(match (tab, json) {
        (SyncTab::Timeline, true) => json_tabs::timeline(card, query),
        (SyncTab::Timeline, false) => timeline::page(board, card, query, now),
        (SyncTab::Diff, true) => json_tabs::diff(card, &Filter::parse(query), look),
        (SyncTab::Diff, false) => diff_list::page(board, card, query, look, now),
        (SyncTab::Plan, true) => json_tabs::plan(card),
        (SyncTab::Plan, false) => plan::page(board, card, now),
        (SyncTab::Settings, true) => json_tabs::settings(card),
        (SyncTab::Settings, false) => settings::page(board, card, now),
        (SyncTab::Objects | SyncTab::Tree | SyncTab::Events, _) => return None,
    })
}
