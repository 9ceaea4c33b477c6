//! The page of one Sync: state and advice, objects, drift, history and dependencies.

use jiff::Timestamp;

use super::filter::Filter;
use super::html::Html;
use super::routes::Link;
use super::{badge, commit, drift, history};
use super::{dependency_graph, layout, object_list, overview, pending_deletions, relative_time};
use crate::api::{StatusProblem, current_reason};
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::count_unlisted;

/// The most characters of a message; longer than any message in a status.
const WHOLE: usize = 2000;

pub(super) fn page(board: &StatusBoard, card: &SyncCard, filter: &Filter, now: Timestamp) -> String {
    let name = card.name.to_string();
    let mut html = layout::begin_page(
        &format!("{name} · Moorline"),
        layout::LiveUpdates::Sync(&name, super::sync_version(board, card)),
    );
    let around = dependency_graph::related_syncs(board, card);
    crumbs(&mut html, card, None);
    head(&mut html, card);
    pending_deletions::write_section(&mut html, card);
    problems(&mut html, card);
    facts(&mut html, card, now);
    object_list::write_section(&mut html, card, filter);
    drift::write_section(&mut html, card, now);
    history::write_section(&mut html, card, now);
    if around.len() > 1 {
        layout::begin_section(&mut html, "order", "Dependencies");
        dependency_graph::draw(&mut html, board, &around, Some(&card.name));
        html.close();
    }
    conditions(&mut html, card, now);
    layout::end_page(html, board, Some(&Link::sync(&card.name).json()))
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

fn head(html: &mut Html, card: &SyncCard) {
    html.open("section", &[("id", "head"), ("data-part", ""), ("class", "verdict")]);
    html.open("h1", &[]);
    html.element("span", &[("class", "quiet")], &format!("{}/", card.name.namespace));
    html.text(&card.name.name);
    html.text(" ");
    badge::sync(html, card.state());
    html.close();
    overview::write_reason(html, card, WHOLE);
    html.close();
}

fn facts(html: &mut Html, card: &SyncCard, now: Timestamp) {
    let (subject, status) = (&card.source, &card.status);
    layout::begin_section(html, "facts", "Source");
    html.open("dl", &[("class", "facts")]);
    fact(html, "Repository");
    match Link::external(&subject.url) {
        Some(place) => html.link(&place, &[], &subject.url),
        None => html.text(&subject.url),
    }
    html.close();
    fact(html, "Path");
    let path = subject.path.trim_start_matches("./");
    html.text(if path.is_empty() { "the whole repository" } else { path });
    html.close();
    fact(html, "Reference");
    html.text(&subject.reference);
    html.close();
    let revisions = status.revision.clone().unwrap_or_default();
    let kept = revisions.held.as_ref().map(|held| held.revision.clone());
    let shown = [
        ("Applied", &revisions.applied, true),
        ("Latest", &revisions.seen, true),
        ("Attempted", &revisions.attempted, revisions.attempted != revisions.applied),
        ("Held", &kept, kept != revisions.attempted),
        ("Healthy", &revisions.healthy, true),
        ("Rolled back", &revisions.rejected, revisions.rejected.is_some()),
    ];
    for (title, revision, _) in shown.into_iter().filter(|(_, _, shown)| *shown) {
        fact(html, title);
        commit::write_revision(html, &subject.url, revision.as_deref().unwrap_or_default());
        html.close();
    }
    fact(html, "Objects");
    html.text(&overview::object_counts(card));
    html.close();
    fact(html, "Last change");
    match card.last_change() {
        Some(at) => relative_time::write_time(html, at.0, now),
        None => html.text("none yet"),
    }
    html.close();
    fact(html, "ServiceAccount");
    html.text(subject.service_account.as_deref().unwrap_or("the daemon's own ServiceAccount"));
    html.close();
    if !subject.interval.is_empty() {
        fact(html, "Poll interval");
        html.text(subject.interval.as_ref());
        html.close();
    }
    html.close();
    html.close();
}

/// Begins a fact; the caller closes it.
fn fact(html: &mut Html, title: &str) {
    html.element("dt", &[], title);
    html.open("dd", &[]);
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

/// Writes the conditions.
fn conditions(html: &mut Html, card: &SyncCard, now: Timestamp) {
    if card.status.conditions.is_empty() {
        return;
    }
    html.open("section", &[("id", "conditions"), ("data-part", "")]);
    html.open("details", &[("id", "all-conditions")]);
    html.element("summary", &[], "Conditions");
    html.open("table", &[("class", "cards")]);
    html.open("tbody", &[]);
    for condition in &card.status.conditions {
        html.open("tr", &[]);
        html.element("th", &[("scope", "row")], &condition.type_);
        html.element("td", &[("data-label", "Status")], &condition.status);
        html.element("td", &[("data-label", "Reason")], &condition.reason);
        html.element("td", &[("data-label", "Message")], &condition.message);
        html.open("td", &[("data-label", "Since")]);
        relative_time::write_time(html, condition.last_transition_time.0, now);
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
    html.close();
}
