//! The overview page: summary, Syncs that need attention, and the list of all Syncs.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::filter::Filter;
use super::html::Html;
use super::routes::Link;
use super::{attention_links, badge, sync_table};
use super::{dependency_graph, layout, pending_deletions, relative_time};
use crate::api::Reason;
use crate::grammar::counted;
use crate::report::board::{StatusBoard, SyncCard, SyncState, advice};

/// The most Syncs that are described in detail.
const MAX_TOLD: usize = 10;
/// The most characters of a message on the overview.
const MAX_WHY: usize = 300;

pub(super) fn page(board: &StatusBoard, query: &str, now: Timestamp) -> String {
    let filter = Filter::parse(query);
    let mut html = layout::begin_page("Moorline", layout::LiveUpdates::All(board.version));
    if layout::stance(&mut html, board) {
        return layout::end_page(html, board, None);
    }
    verdict(&mut html, board, &filter, now);
    attention(&mut html, board, &filter);
    sync_table::write_favourites(&mut html, board, query, now);
    sync_table::write_section(&mut html, board, &filter, now);
    if board.cards.values().any(|card| !card.source.depends_on.is_empty()) {
        let cards: Vec<&SyncCard> = board.cards.values().map(|card| &**card).collect();
        let zoom = (&Link::overview(), dependency_graph::Zoom::parse(query));
        dependency_graph::write_section(&mut html, board, &cards, None, zoom);
    }
    layout::end_page(html, board, Some(&Link::overview().json()))
}

/// Writes the summary of all Syncs.
fn verdict(html: &mut Html, board: &StatusBoard, filter: &Filter, now: Timestamp) {
    let count = |fits: fn(SyncState) -> bool| board.cards.values().filter(|card| fits(card.state())).count();
    let all = board.cards.len();
    let amiss = count(SyncState::needs_attention);
    let busy = count(|state| matches!(state, SyncState::Progressing | SyncState::Starting));
    let resting = count(|state| matches!(state, SyncState::Suspended | SyncState::Held));
    let rests = if count(|state| state == SyncState::Held) == 0 { "suspended" } else { "suspended or held" };
    let (class, sign, verdict) = match (all, amiss, busy, resting) {
        (0, _, _, _) => ("rest", "○", "There are no Syncs yet".to_owned()),
        (_, 0, 0, 0) => ("good", "✓", "Everything is synced".to_owned()),
        (all, 0, 0, resting) if all == resting => ("rest", "‖", format!("Everything is {rests}")),
        (_, 0, 0, resting) => ("good", "✓", format!("Everything is synced; {resting} {rests}")),
        (_, 0, busy, _) => ("busy", "…", format!("{} progressing", syncs_are(busy))),
        (all, 1, _, _) => ("bad", "!", format!("1 of {} needs attention", counted(all, "Sync"))),
        (all, amiss, _, _) => ("bad", "!", format!("{amiss} of {} need attention", counted(all, "Sync"))),
    };
    html.open("section", &[("id", "verdict"), ("data-part", ""), ("class", "verdict")]);
    html.open("h1", &[("class", class)]);
    html.element("span", &[("aria-hidden", "true"), ("class", "sign")], sign);
    html.text(" ");
    html.text(&verdict);
    html.close();
    html.open("p", &[("class", "quiet")]);
    let objects: i64 = board.cards.values().filter_map(|card| card.status.objects).map(|it| it.desired).sum();
    html.text(&format!(
        "{}, {}",
        counted(all, "Sync"),
        counted(usize::try_from(objects).unwrap_or_default(), "object")
    ));
    let clusters: BTreeSet<&str> = board.cards.values().map(|card| card.cluster()).collect();
    if !clusters.is_empty() {
        html.text(", ");
        html.link(&Link::clusters(), &[], &counted(clusters.len(), "cluster"));
    }
    if let Some(last) = board.cards.values().filter_map(|card| card.last_change()).map(|time| time.0).max() {
        html.text("; last change ");
        relative_time::write_time(html, last, now);
    }
    html.close();
    counts(html, board, filter);
    if all == 0 {
        html.element(
            "p",
            &[],
            "A Sync applies the manifests of a repository to the cluster: kubectl explain sync.spec",
        );
    }
    html.close();
}

/// Writes the number of Syncs in each state, each with a link to them.
fn counts(html: &mut Html, board: &StatusBoard, filter: &Filter) {
    let of = |state| board.cards.values().filter(|card| card.state() == state).count();
    let counted = SyncState::ALL.into_iter().map(|state| (state, of(state)));
    let counted: Vec<(SyncState, usize)> = counted.filter(|(_, count)| *count > 0).collect();
    if counted.is_empty() {
        return;
    }
    html.open("ul", &[("class", "counts"), ("aria-label", "Syncs by state")]);
    for (state, count) in counted {
        html.open("li", &[]);
        let place = filter.of_state(&state.label().to_lowercase()).on_page(Link::overview(), 1).at("syncs");
        let (class, sign) = badge::sync_style(state);
        html.open_link(&place, &[("class", &format!("badge {class}")), ("title", state.meaning())]);
        html.element("span", &[("aria-hidden", "true")], sign);
        html.text(&format!(" {count} {}", state.title()));
        html.close();
        html.close();
    }
    html.close();
}

fn syncs_are(count: usize) -> String {
    format!("{} {}", counted(count, "Sync"), if count == 1 { "is" } else { "are" })
}

/// Writes the Syncs that need attention, with advice.
fn attention(html: &mut Html, board: &StatusBoard, filter: &Filter) {
    let mut amiss: Vec<&SyncCard> =
        board.cards.values().map(|card| &**card).filter(|card| card.state().needs_attention()).collect();
    if amiss.is_empty() {
        return;
    }
    amiss.sort_by_key(|card| card.state());
    layout::begin_section(html, "attention", "Needs attention");
    for card in amiss.iter().take(MAX_TOLD) {
        html.open("article", &[("class", "told")]);
        html.open("h3", &[]);
        badge::sync(html, card.state());
        html.text(" ");
        html.link(&Link::sync(&card.name), &[], &card.name.to_string());
        html.close();
        write_reason(html, card, MAX_WHY);
        attention_links::write(html, card);
        pending_deletions::write_commands(html, card);
        html.close();
    }
    if amiss.len() > MAX_TOLD {
        let rest = format!("and {} more", amiss.len() - MAX_TOLD);
        html.open("p", &[]);
        let all = filter.of_state("attention").on_page(Link::overview(), 1).at("syncs");
        html.link(&all, &[], &rest);
        html.close();
    }
    html.close();
}

/// Writes the reason for the state of a Sync, with advice.
pub(super) fn write_reason(html: &mut Html, card: &SyncCard, most: usize) {
    let (mut reason, mut message) = card.ready_reason();
    // A Sync that is ready may still need attention because of another condition.
    let other = match card.state() {
        SyncState::Degraded if Reason::parse(reason) == Some(Reason::Applied) => card.condition("Healthy"),
        SyncState::Drifted => card.condition("Drifted"),
        _ => None,
    };
    if let Some(other) = other {
        (reason, message) = (&other.reason, &other.message);
    }
    html.open("p", &[("class", "why")]);
    html.element("b", &[], reason);
    html.text(": ");
    match message.char_indices().nth(most) {
        Some((end, _)) => html.text(&format!("{}…", &message[..end])),
        None => html.text(message),
    }
    html.close();
    if let Some(advice) = Reason::parse(reason).and_then(|reason| advice(reason, &card.name)) {
        html.element("p", &[("class", "advice")], &advice);
    }
}

/// The number of objects, and the numbers of those with problems.
pub(super) fn object_counts(card: &SyncCard) -> String {
    let Some(counts) = card.status.objects else { return "–".to_owned() };
    let mut text = if counts.applied == counts.desired {
        counts.desired.to_string()
    } else {
        format!("{} of {}", counts.applied, counts.desired)
    };
    for (count, word) in [(counts.failed, "failed"), (counts.held, "held"), (counts.drifted, "drifted")] {
        if count > 0 {
            text += &format!(", {count} {word}");
        }
    }
    text
}
