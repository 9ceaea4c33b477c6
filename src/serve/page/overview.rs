//! The overview page: summary, Syncs that need attention, and the list of all Syncs.

use jiff::Timestamp;

use super::filter::{Filter, form, sync_states, write_pagination};
use super::html::Html;
use super::routes::Link;
use super::{badge, commit};
use super::{dependency_graph, layout, pending_deletions, relative_time};
use crate::api::Reason;
use crate::grammar::counted;
use crate::report::board::{StatusBoard, SyncCard, SyncState, advice};

/// The most Syncs that are described in detail.
const MAX_TOLD: usize = 20;
/// The most characters of a message on the overview.
const MAX_WHY: usize = 300;

pub(super) fn page(board: &StatusBoard, filter: &Filter, now: Timestamp) -> String {
    let mut html = layout::begin_page("Moorline", layout::LiveUpdates::All(board.version));
    if layout::stance(&mut html, board) {
        return layout::end_page(html, board, None);
    }
    verdict(&mut html, board, now);
    attention(&mut html, board);
    syncs(&mut html, board, filter, now);
    if board.cards.values().any(|card| !card.source.depends_on.is_empty()) {
        layout::begin_section(&mut html, "order", "Dependencies");
        dependency_graph::draw(
            &mut html,
            board,
            &board.cards.values().map(|card| &**card).collect::<Vec<_>>(),
            None,
        );
        html.close();
    }
    layout::end_page(html, board, Some(&Link::overview().json()))
}

/// Writes the summary of all Syncs.
fn verdict(html: &mut Html, board: &StatusBoard, now: Timestamp) {
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
    if let Some(last) = board.cards.values().filter_map(|card| card.last_change()).map(|time| time.0).max() {
        html.text("; last change ");
        relative_time::write_time(html, last, now);
    }
    html.close();
    if all == 0 {
        html.element(
            "p",
            &[],
            "A Sync applies the manifests of a repository to the cluster: kubectl explain sync.spec",
        );
    }
    html.close();
}

fn syncs_are(count: usize) -> String {
    format!("{} {}", counted(count, "Sync"), if count == 1 { "is" } else { "are" })
}

/// Writes the Syncs that need attention, with advice.
fn attention(html: &mut Html, board: &StatusBoard) {
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
        pending_deletions::write_commands(html, card);
        html.close();
    }
    if amiss.len() > MAX_TOLD {
        let rest = format!("and {} more", amiss.len() - MAX_TOLD);
        html.open("p", &[]);
        html.link(&Link::overview().with_query(&[("state", "attention")]), &[], &rest);
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

fn syncs(html: &mut Html, board: &StatusBoard, filter: &Filter, now: Timestamp) {
    html.open("section", &[("id", "syncs")]);
    html.element("h2", &[], "Syncs");
    form(html, &Link::overview(), filter, "Syncs", &sync_states());
    html.open("div", &[("id", "rows"), ("data-part", "")]);
    let mut fitting: Vec<&SyncCard> =
        board.cards.values().map(|card| &**card).filter(|card| filter.fits(card)).collect();
    fitting.sort_by_key(|card| card.state());
    let part = filter.paginate(fitting.into_iter());
    if part.rows.is_empty() && !board.cards.is_empty() {
        html.element("p", &[("class", "quiet")], "No Sync matches the filter.");
    }
    if !part.rows.is_empty() {
        html.open("table", &[("class", "cards")]);
        html.element("caption", &[("class", "unseen")], "Matching Syncs, those that need attention first");
        html.open("thead", &[]);
        html.open("tr", &[]);
        for title in ["Sync", "State", "Applied", "Objects", "Healthy", "Last change"] {
            html.element("th", &[("scope", "col")], title);
        }
        html.close();
        html.close();
        html.open("tbody", &[]);
        part.rows.iter().for_each(|card| row(html, card, now));
        html.close();
        html.close();
    }
    write_pagination(html, &Link::overview(), filter, &part);
    html.close();
    html.close();
}

fn row(html: &mut Html, card: &SyncCard, now: Timestamp) {
    html.open("tr", &[]);
    html.open("th", &[("scope", "row")]);
    html.link(&Link::sync(&card.name), &[], &card.name.to_string());
    html.element("span", &[("class", "quiet below")], &follows(card));
    html.close();
    html.open("td", &[("data-label", "State")]);
    badge::sync(html, card.state());
    html.close();
    html.open("td", &[("data-label", "Applied")]);
    let revisions = card.status.revision.as_ref();
    let applied = revisions.and_then(|revision| revision.applied.as_deref()).unwrap_or_default();
    commit::write_revision(html, &card.source.url, applied);
    html.close();
    html.open("td", &[("data-label", "Objects")]);
    html.text(&object_counts(card));
    html.close();
    html.open("td", &[("data-label", "Healthy")]);
    html.text(match card.condition("Healthy").map(|healthy| healthy.status.as_str()) {
        Some("True") => "yes",
        Some("False") => "no",
        Some(_) => "unknown",
        None => "–",
    });
    html.close();
    html.open("td", &[("data-label", "Last change")]);
    match card.last_change() {
        Some(at) => relative_time::write_time(html, at.0, now),
        None => html.text("–"),
    }
    html.close();
    html.close();
}

fn follows(card: &SyncCard) -> String {
    let subject = &card.source;
    let path = subject.path.trim_start_matches("./");
    format!("{} {path}", subject.url.trim_start_matches("https://"))
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
