//! The frame of a Sync's tabs (breadcrumbs, state, revision, navigation), and its first tab.
//!
//! In: a card and a tab. Out: the beginning and the end of its page; the tab of the objects, with
//! pending deletions, problems and dependencies, as a whole.

use jiff::Timestamp;

use super::filter::Filter;
use super::html::Html;
use super::layout::LiveUpdates;
use super::routes::Link;
use super::tabs::{self, SyncTab};
use super::{action_forms, badge, commit, timeline};
use super::{
    dependency_graph, layout, object_list, overview, pending_deletions, pending_revision, relative_time,
};
use crate::api::{HistoryEntry, StatusProblem, current_reason};
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::count_unlisted;

/// The most characters of a message; longer than any message in a status.
const WHOLE: usize = 2000;

pub(super) fn page(board: &StatusBoard, card: &SyncCard, query: &str, now: Timestamp) -> String {
    let mut html = begin_page(board, card, SyncTab::Objects, now);
    let around = dependency_graph::related_syncs(board, card);
    pending_deletions::write_summary(&mut html, board, card);
    pending_revision::write_section(&mut html, board, card);
    problems(&mut html, card);
    object_list::write_section(&mut html, card, &Filter::parse(query));
    timeline::write_latest(&mut html, card, now);
    if around.len() > 1 {
        let (place, zoom) = (Link::sync(&card.name), dependency_graph::Zoom::parse(query));
        dependency_graph::write_section(&mut html, board, &around, Some(&card.name), (&place, zoom));
    }
    end_page(html, board, card, SyncTab::Objects)
}

/// Begins the page of a tab that the script keeps up to date.
pub(super) fn begin_page(board: &StatusBoard, card: &SyncCard, tab: SyncTab, now: Timestamp) -> Html {
    let name = card.name.to_string();
    begin_tab((board, card), tab, LiveUpdates::Sync(&name, super::sync_version(board, card)), now)
}

/// Begins the page of a tab whose content was read for this viewer.
pub(super) fn begin_read_page(board: &StatusBoard, card: &SyncCard, tab: SyncTab, now: Timestamp) -> Html {
    let name = card.name.to_string();
    begin_tab((board, card), tab, LiveUpdates::NotifyOnly(&name, super::sync_version(board, card)), now)
}

fn begin_tab(
    (board, card): (&StatusBoard, &SyncCard),
    tab: SyncTab,
    live: LiveUpdates<'_>,
    now: Timestamp,
) -> Html {
    let title = match tab {
        SyncTab::Objects => format!("{} · Moorline", card.name),
        tab => format!("{} · {} · Moorline", card.name, tab.title()),
    };
    let mut html = layout::begin_page(&title, live);
    crumbs(&mut html, card, None);
    head(&mut html, card, now);
    action_forms::write_sections(&mut html, board, card);
    tabs::write_nav(&mut html, card, tab);
    html
}

/// Ends the page of a tab.
pub(super) fn end_page(html: Html, board: &StatusBoard, card: &SyncCard, tab: SyncTab) -> String {
    layout::end_page(html, board, Some(&Link::tab(&card.name, tab).json()))
}

/// Writes the breadcrumbs.
pub(super) fn crumbs(html: &mut Html, card: &SyncCard, object: Option<&str>) {
    html.open("nav", &[("class", "crumbs"), ("aria-label", "Breadcrumb")]);
    html.link(&Link::overview(), &[], "All Syncs");
    html.element("span", &[("aria-hidden", "true")], " / ");
    match object {
        Some(object) => {
            html.link(&Link::sync(&card.name), &[], &card.name.to_string());
            html.element("span", &[("aria-hidden", "true")], " / ");
            html.element("span", &[("aria-current", "page")], object);
        }
        None => html.element("span", &[("aria-current", "page")], &card.name.to_string()),
    }
    html.close();
}

fn head(html: &mut Html, card: &SyncCard, now: Timestamp) {
    html.open("section", &[("id", "head"), ("data-part", ""), ("class", "verdict")]);
    html.open("h1", &[]);
    html.element("span", &[("class", "quiet")], &format!("{}/", card.name.namespace));
    html.text(&card.name.name);
    html.text(" ");
    badge::sync(html, card.state());
    html.close();
    overview::write_reason(html, card, WHOLE);
    revisions(html, card, now);
    html.close();
}

/// Writes the revisions of the Sync: the applied one, and those that differ from it.
fn revisions(html: &mut Html, card: &SyncCard, now: Timestamp) {
    let revisions = card.status.revision.clone().unwrap_or_default();
    let held = revisions.held.as_ref().map(|held| held.revision.clone());
    let (applied, seen) = (&revisions.applied, &revisions.seen);
    let is_other = |revision: &Option<String>| revision.is_some() && revision != applied;
    let shown = [
        ("Applied", applied, true),
        ("Latest", seen, is_other(seen)),
        ("Attempted", &revisions.attempted, is_other(&revisions.attempted) && revisions.attempted != *seen),
        ("Held", &held, is_other(&held)),
        ("Healthy", &revisions.healthy, is_other(&revisions.healthy)),
        ("Rolled back", &revisions.rejected, revisions.rejected.is_some()),
    ];
    html.open("dl", &[("class", "revisions")]);
    for (title, revision, _) in shown.into_iter().filter(|(_, _, shown)| *shown) {
        let revision = revision.as_deref().unwrap_or_default();
        html.element("dt", &[], title);
        html.open("dd", &[]);
        commit::write_revision(html, &card.source.url, revision);
        let known = |entry: &&HistoryEntry| entry.revision == revision;
        if let Some(entry) = card.status.history.iter().find(known) {
            html.text(" ");
            html.text(&timeline::subject_and_author(entry));
            html.element("span", &[("class", "quiet")], ", ");
            relative_time::write_time(html, entry.time.0, now);
        }
        html.close();
    }
    html.close();
}

fn problems(html: &mut Html, card: &SyncCard) {
    // Pending approvals are described above.
    let waits = |problem: &StatusProblem| {
        card.status.approval.is_some()
            && ["PruneBudgetExceeded", "Protected", "BlocksPendingPrune"]
                .contains(&current_reason(&problem.reason))
    };
    let shown: Vec<&StatusProblem> = card.status.problems.iter().filter(|it| !waits(it)).collect();
    if shown.is_empty() {
        return;
    }
    layout::begin_section(html, "problems", "Problems");
    html.open("ul", &[("class", "problems")]);
    for problem in shown {
        html.open("li", &[]);
        html.element("b", &[], &problem.reason);
        html.text(" ");
        if let Some(object) = &problem.object {
            object_named(html, card, object);
            html.text(" ");
        }
        if let Some(file) = &problem.file {
            html.element("code", &[], file);
        }
        html.element("p", &[], &problem.message);
        html.close();
    }
    html.close();
    let more = count_unlisted(&card.status);
    if more > 0 {
        html.element("p", &[], &format!("and {more} more"));
    }
    html.close();
}

/// Writes an object by its text in the status, with a link if the object is known.
fn object_named(html: &mut Html, card: &SyncCard, text: &str) {
    match card.objects.rows().find(|row| row.id.to_string() == text) {
        Some(row) => html.link(&Link::object(&card.name, row.id), &[], text),
        None => html.text(text),
    }
}
