//! The timeline of one Sync: its revisions, and the repairs, prunes, approvals and refusals between
//! them.
//!
//! In: a card. Out: a table, newest row first. Revisions come from the status; the rest is known
//! only since the daemon started.

use jiff::Timestamp;

use super::html::Html;
use super::moment::moment;
use super::{commit, frame};
use crate::api::HistoryEntry;
use crate::report::board::{Card, Happening};

/// One row of the timeline.
#[derive(Debug, Clone, Copy)]
pub(super) enum Row<'a> {
    /// A revision that was applied, refused or rolled back.
    Revision(&'a HistoryEntry),
    /// Any other activity.
    Happened(&'a Happening),
}

impl Row<'_> {
    /// The time of the row.
    pub(super) fn at(&self) -> Timestamp {
        match self {
            Self::Revision(entry) => entry.time.0,
            Self::Happened(happening) => happening.at.0,
        }
    }

    fn outcome(&self) -> &str {
        match self {
            Self::Revision(entry) => &entry.result,
            Self::Happened(happening) => &happening.reason,
        }
    }
}

/// The rows of the timeline, newest first.
pub(super) fn rows(card: &Card) -> Vec<Row<'_>> {
    let revisions = card.status.history.iter().map(Row::Revision);
    let mut rows: Vec<Row<'_>> = card.happened.iter().map(Row::Happened).chain(revisions).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.at()));
    rows
}

pub(super) fn part(html: &mut Html, card: &Card, now: Timestamp) {
    frame::part(html, "history", "What happened");
    let rows = rows(card);
    if rows.is_empty() {
        html.element("p", &[("class", "quiet")], "Nothing yet.");
        return html.close();
    }
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["What", "Outcome", "When"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for row in rows {
        html.open("tr", &[]);
        html.open("th", &[("scope", "row")]);
        match row {
            Row::Revision(entry) => revision(html, card, entry),
            Row::Happened(happening) => html.text(&happening.text),
        }
        html.close();
        html.open("td", &[("data-label", "Outcome")]);
        outcome(html, row.outcome());
        if let Row::Revision(entry) = row {
            below(html, &done(entry));
            below(html, &entry.message);
        }
        html.close();
        html.open("td", &[("data-label", "When")]);
        moment(html, row.at(), now);
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}

/// Writes a commit with its subject and author.
fn revision(html: &mut Html, card: &Card, entry: &HistoryEntry) {
    commit::revision(html, &card.subject.url, &entry.revision);
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
