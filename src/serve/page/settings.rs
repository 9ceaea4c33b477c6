//! The settings of a Sync in plain words, and its conditions.

use jiff::Timestamp;

use super::html::Html;
use super::relative_time;
use super::routes::Link;
use super::tabs::SyncTab;
use super::{layout, overview, sync};
use crate::report::board::{StatusBoard, SyncCard};

pub(super) fn page(board: &StatusBoard, card: &SyncCard, now: Timestamp) -> String {
    let mut html = sync::begin_page(board, card, SyncTab::Settings, now);
    source(&mut html, board, card, now);
    words(&mut html, card);
    conditions(&mut html, card, now);
    sync::end_page(html, board, card, SyncTab::Settings)
}

fn source(html: &mut Html, board: &StatusBoard, card: &SyncCard, now: Timestamp) {
    let source = &card.source;
    layout::begin_section(html, "facts", "Source");
    html.open("dl", &[("class", "facts")]);
    fact(html, "Repository");
    match Link::external(&source.url) {
        Some(place) => html.link(&place, &[], &source.url),
        None => html.text(&source.url),
    }
    html.close();
    let path = source.path.trim_start_matches("./");
    text_fact(html, "Path", if path.is_empty() { "the whole repository" } else { path });
    text_fact(html, "Reference", &source.reference);
    if !source.interval.is_empty() {
        text_fact(html, "Poll interval", &source.interval);
    }
    fact(html, "Depends on");
    if source.depends_on.is_empty() {
        html.text("no other Sync");
    }
    for (at, name) in source.depends_on.iter().enumerate() {
        html.text(if at > 0 { ", " } else { "" });
        match board.cards.contains_key(name) {
            true => html.link(&Link::sync(name), &[], &name.to_string()),
            false => html.text(&name.to_string()),
        }
    }
    html.close();
    let account = source.service_account.as_deref();
    text_fact(html, "ServiceAccount", account.unwrap_or("the daemon's own ServiceAccount"));
    text_fact(html, "Objects", &overview::object_counts(card));
    fact(html, "Last change");
    match card.last_change() {
        Some(at) => relative_time::write_time(html, at.0, now),
        None => html.text("none yet"),
    }
    html.close();
    html.close();
    html.close();
}

fn words(html: &mut Html, card: &SyncCard) {
    layout::begin_section(html, "words", "What it does");
    if card.source.words.is_empty() {
        let text = match card.source.is_resource {
            true => "The spec is not valid, so it is not described here.",
            false => "It has no Sync resource: it was started with moorline run --url, and has the defaults.",
        };
        html.element("p", &[("class", "quiet")], text);
    } else {
        html.open("dl", &[("class", "facts words")]);
        for sentence in &card.source.words {
            text_fact(html, sentence.title, &sentence.text);
        }
        html.close();
    }
    if !card.source.labels.is_empty() {
        html.open("p", &[("class", "quiet")]);
        html.text("Labels: ");
        for (at, (key, value)) in card.source.labels.iter().enumerate() {
            html.text(if at > 0 { ", " } else { "" });
            html.element("code", &[], &format!("{key}={value}"));
        }
        html.close();
    }
    html.close();
}

fn text_fact(html: &mut Html, title: &str, text: &str) {
    fact(html, title);
    html.text(text);
    html.close();
}

/// Begins a fact; the caller closes it.
fn fact(html: &mut Html, title: &str) {
    html.element("dt", &[], title);
    html.open("dd", &[]);
}

fn conditions(html: &mut Html, card: &SyncCard, now: Timestamp) {
    if card.status.conditions.is_empty() {
        return;
    }
    layout::begin_section(html, "conditions", "Conditions");
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Condition", "Status", "Reason", "Message", "Since"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
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
}
