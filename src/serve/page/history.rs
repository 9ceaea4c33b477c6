//! What became of the last revisions.

use jiff::Timestamp;

use super::html::Html;
use super::moment::moment;
use super::{commit, frame};
use crate::report::board::Card;

pub(super) fn part(html: &mut Html, card: &Card, now: Timestamp) {
    frame::part(html, "history", "Revisions");
    if card.status.history.is_empty() {
        html.element("p", &[("class", "quiet")], "None yet.");
        return html.close();
    }
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Revision", "Outcome", "When"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for entry in &card.status.history {
        html.open("tr", &[]);
        html.open("th", &[("scope", "row")]);
        commit::revision(html, &card.subject.url, &entry.revision);
        html.close();
        html.open("td", &[("data-label", "Outcome")]);
        let (class, sign) = match entry.result.as_str() {
            "Applied" => ("badge good", "✓"),
            "PruneHeld" | "Contested" => ("badge ask", "?"),
            _ => ("badge bad", "✕"),
        };
        html.open("span", &[("class", class)]);
        html.element("span", &[("aria-hidden", "true")], sign);
        html.text(" ");
        html.text(&entry.result);
        html.close();
        if !entry.message.is_empty() {
            html.element("span", &[("class", "quiet below")], &entry.message);
        }
        html.close();
        html.open("td", &[("data-label", "When")]);
        moment(html, entry.time.0, now);
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}
