//! The Events about a Sync, its objects and what they own.

use jiff::Timestamp;

use super::html::Html;
use super::live_route::link_of;
use super::relative_time::write_time;
use super::tabs::SyncTab;
use super::{sync, tree};
use crate::grammar::counted;
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::live_tree::{EventList, EventRow};

/// The most Events of a page; the JSON has all that were kept.
const MAX_SHOWN: usize = 150;

/// Renders the Events, or the reason why they were not read.
pub fn events_page(
    board: &StatusBoard,
    card: &SyncCard,
    events: Result<&EventList, &str>,
    now: Timestamp,
) -> String {
    let mut html = sync::begin_read_page(board, card, SyncTab::Events, now);
    html.open("section", &[("id", "events")]);
    html.element("h2", &[], "Events");
    match events {
        Err(why) => html.element("p", &[], &format!("They were not read: {why}")),
        Ok(list) => {
            html.open("p", &[("class", "quiet")]);
            let shown = list.events.len().min(MAX_SHOWN);
            html.text(&match list.events.len() > shown {
                true => format!("the newest {shown} of {}", counted(list.events.len(), "Event")),
                false => counted(shown, "Event"),
            });
            html.text("; read ");
            write_time(&mut html, list.read_at, now);
            html.close();
            if shown > 0 {
                table(&mut html, card, &list.events[..shown], now);
            }
            tree::write_left_out(&mut html, &list.left_out);
        }
    }
    html.close();
    sync::end_page(html, board, card, SyncTab::Events)
}

fn table(html: &mut Html, card: &SyncCard, events: &[EventRow], now: Timestamp) {
    html.open("table", &[("class", "cards")]);
    html.element("caption", &[("class", "unseen")], "Events, the newest first");
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Time", "Reason", "Object", "Message"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for event in events {
        html.open("tr", &[]);
        html.open("td", &[("data-label", "Time")]);
        match event.time {
            Some(time) => write_time(html, time, now),
            None => html.text("unknown"),
        }
        if event.count > 1 {
            html.element("span", &[("class", "quiet below")], &format!("{} times", event.count));
        }
        html.close();
        html.open("td", &[("data-label", "Reason")]);
        html.element("b", &[], &event.reason);
        let severity = if &*event.severity == "Warning" { "warning" } else { "" };
        html.element("span", &[("class", "quiet below")], severity);
        html.close();
        html.open("td", &[("data-label", "Object")]);
        let is_of_sync = card.objects.row(&event.object).is_some();
        let place = link_of(&card.name, &event.object, is_of_sync).filter(|_| event.node.is_some());
        match place {
            Some(place) => html.link(&place, &[], &event.object.to_string()),
            None => html.text(&event.object.to_string()),
        }
        html.close();
        html.open("td", &[("data-label", "Message")]);
        html.text(&event.message);
        if !event.reporter.is_empty() {
            html.element("span", &[("class", "quiet below")], &event.reporter);
        }
        html.close();
        html.close();
    }
    html.close();
    html.close();
}
