//! The timeline of one Sync: its revisions, and the repairs, prunes, approvals and refusals between
//! them.
//!
//! In: a card. Out: a table, newest row first. Revisions come from the status; the rest is known
//! only since the daemon started.

use jiff::Timestamp;

use super::commit;
use super::html::Html;
use super::layout;
use super::relative_time::write_time;
use crate::api::HistoryEntry;
use crate::report::board::{Activity, SyncCard};

/// One row of the timeline.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimelineRow<'a> {
    /// A revision that was applied, refused or rolled back.
    Revision(&'a HistoryEntry),
    /// Any other activity.
    Activity(&'a Activity),
}

impl TimelineRow<'_> {
    /// The time of the row.
    pub(super) fn time(&self) -> Timestamp {
        match self {
            Self::Revision(entry) => entry.time.0,
            Self::Activity(happening) => happening.time.0,
        }
    }

    fn outcome(&self) -> &str {
        match self {
            Self::Revision(entry) => &entry.result,
            Self::Activity(happening) => &happening.reason,
        }
    }
}

/// The rows of the timeline, newest first.
pub(super) fn rows(card: &SyncCard) -> Vec<TimelineRow<'_>> {
    let revisions = card.status.history.iter().map(TimelineRow::Revision);
    let mut rows: Vec<TimelineRow<'_>> =
        card.activities.iter().map(TimelineRow::Activity).chain(revisions).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time()));
    rows
}

pub(super) fn write_section(html: &mut Html, card: &SyncCard, now: Timestamp) {
    layout::begin_section(html, "history", "History");
    let rows = rows(card);
    if rows.is_empty() {
        html.element("p", &[("class", "quiet")], "Nothing yet.");
        return html.close();
    }
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Event", "Outcome", "Time"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for row in rows {
        html.open("tr", &[]);
        html.open("th", &[("scope", "row")]);
        match row {
            TimelineRow::Revision(entry) => revision(html, card, entry),
            TimelineRow::Activity(happening) => html.text(&happening.text),
        }
        html.close();
        html.open("td", &[("data-label", "Outcome")]);
        outcome(html, row.outcome());
        if let TimelineRow::Revision(entry) = row {
            below(html, &done(entry));
            below(html, &entry.message);
        }
        html.close();
        html.open("td", &[("data-label", "Time")]);
        write_time(html, row.time(), now);
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}

/// Writes a commit with its subject and author.
fn revision(html: &mut Html, card: &SyncCard, entry: &HistoryEntry) {
    commit::write_revision(html, &card.source.url, &entry.revision);
    let words = [&entry.subject, &entry.author].map(String::as_str);
    let words: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
    below(html, &words.join(" — "));
}

/// The changes for a revision, and the duration.
fn done(entry: &HistoryEntry) -> String {
    let changes = (!entry.changes.is_empty()).then(|| entry.changes.to_string());
    let took = entry.duration.as_ref().map(|took| format!("in {took}"));
    changes.into_iter().chain(took).collect::<Vec<_>>().join(" ")
}

fn below(html: &mut Html, text: &str) {
    if !text.is_empty() {
        html.element("span", &[("class", "quiet below")], text);
    }
}

fn outcome(html: &mut Html, word: &str) {
    let (class, sign) = match word {
        "Applied" | "Approved" => ("badge good", "✓"),
        "DriftRepaired" => ("badge busy", "↺"),
        "Pruned" | "Suspended" => ("badge rest", "−"),
        "PruneHeld" | "Contested" => ("badge ask", "?"),
        _ => ("badge bad", "✕"),
    };
    html.open("span", &[("class", class)]);
    html.element("span", &[("aria-hidden", "true")], sign);
    html.text(" ");
    html.text(word);
    html.close();
}
