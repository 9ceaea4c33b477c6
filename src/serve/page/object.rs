//! The page of one object: desired and live state, and their differences.

use jiff::Timestamp;

use super::html::Html;
use super::object_diff::object_diff;
use super::relative_time::write_time_text;
use super::routes::Link;
use super::{LiveRead, action_forms, badge, diff_list};
use super::{layout, sync, yaml_view};
use crate::report::board::{LiveObject, ObjectRow, RedactedBody, StatusBoard, SyncCard};

pub(super) fn page(
    board: &StatusBoard,
    card: &SyncCard,
    row: &ObjectRow<'_>,
    look: Option<LiveRead<'_>>,
    now: Timestamp,
) -> String {
    let (name, sync) = (row.id.to_string(), card.name.to_string());
    let mut html = layout::begin_page(
        &format!("{name} · Moorline"),
        layout::LiveUpdates::NotifyOnly(&sync, super::sync_version(board, card)),
    );
    sync::crumbs(&mut html, card, Some(&name));
    head(&mut html, row, now);
    action_forms::write_restart(&mut html, board, card, row.id);
    match look {
        Some(LiveRead::Read(seen)) => {
            differences(&mut html, card, row, seen);
            bodies(&mut html, card, row, Some(seen));
            writers(&mut html, seen, now);
        }
        Some(LiveRead::NotRead(why)) => {
            html.open("section", &[("id", "unread")]);
            html.element("h2", &[], "Live state");
            html.element("p", &[], &format!("It was not read: {why}"));
            html.close();
            bodies(&mut html, card, row, None);
        }
        Some(LiveRead::Hidden(why)) => {
            html.open("section", &[("id", "hidden")]);
            html.element("h2", &[], "Content");
            html.element("p", &[], &format!("It is not shown: {why}."));
            html.close();
        }
        Some(LiveRead::Several(_)) | None => bodies(&mut html, card, row, None),
    }
    let place = Link::object(&card.name, row.id).json();
    layout::end_page(html, board, Some(&place))
}

fn head(html: &mut Html, row: &ObjectRow<'_>, now: Timestamp) {
    html.open("section", &[("id", "head"), ("class", "verdict")]);
    html.open("h1", &[]);
    html.element("span", &[("class", "quiet")], &format!("{} ", row.id.group_kind()));
    if let Some(namespace) = row.id.namespace() {
        html.element("span", &[("class", "quiet")], &format!("{namespace}/"));
    }
    html.text(row.id.name());
    html.text(" ");
    badge::object(html, row.state, row.reason);
    html.text(" ");
    badge::health(html, row.health);
    html.close();
    for (word, said) in [(row.reason, row.message), (row.health.label(), row.health_message)] {
        if !said.is_empty() {
            html.open("p", &[("class", "why")]);
            html.element("b", &[], word);
            html.text(": ");
            html.text(said);
            html.close();
        }
    }
    if let Some(drift) = row.drift {
        html.open("p", &[]);
        html.text("Changed by ");
        html.text(drift.manager.as_deref().unwrap_or("an unknown field manager"));
        if let Some(time) = &drift.time {
            html.text(", ");
            write_time_text(html, time, now);
        }
        html.text(": ");
        for field in &drift.fields {
            html.element("code", &[("class", "below")], field);
        }
        html.close();
    }
    html.open("p", &[("class", "quiet")]);
    match row.origin {
        Some(origin) => {
            html.text("Source file ");
            html.element("code", &[], &origin.to_string());
            match row.done {
                "kept" => html.text("; not changed since this daemon started"),
                done => html.text(&format!("; {done} since this daemon started")),
            }
        }
        None => html.text("No longer in Git"),
    }
    html.close();
    html.close();
}

fn differences(html: &mut Html, card: &SyncCard, row: &ObjectRow<'_>, seen: &LiveObject) {
    html.open("section", &[("id", "difference")]);
    html.element("h2", &[], "Diff");
    let wanted = card.objects.wanted(row.id).map(RedactedBody::wanted);
    match wanted.as_ref().map(|wanted| object_diff(wanted, seen)) {
        _ if seen.live.is_none() => html.element("p", &[], "The object does not exist in the cluster."),
        None | Some(None) => {
            html.element("p", &[], "The object was removed from Git, so there is nothing to compare with.");
        }
        Some(Some(diff)) => {
            if diff.is_equal() {
                let text = "All fields that Git sets match the live object.";
                html.element("p", &[("class", "quiet")], text);
            }
            diff_list::legend(html);
            diff.write(html, "diff", "Diff of the live object and Git");
        }
    }
    html.close();
}

fn bodies(html: &mut Html, card: &SyncCard, row: &ObjectRow<'_>, seen: Option<&LiveObject>) {
    search(html);
    html.open("div", &[("class", "beside")]);
    if let Some(wanted) = card.objects.wanted(row.id) {
        body(html, "wanted", "Desired state", &RedactedBody::wanted(wanted));
    }
    if let Some(live) = seen.and_then(|seen| seen.live.as_ref()) {
        body(html, "live-object", "Live state", live);
    }
    html.close();
}

/// Writes a search field, which the script shows.
fn search(html: &mut Html) {
    html.open("p", &[("id", "search"), ("class", "filter"), ("hidden", "")]);
    html.open("label", &[]);
    html.element("span", &[], "Search in the YAML");
    html.void("input", &[("type", "search"), ("id", "find"), ("autocomplete", "off")]);
    html.close();
    html.element("span", &[("id", "found"), ("class", "quiet"), ("role", "status")], "");
    html.close();
}

fn body(html: &mut Html, id: &'static str, title: &'static str, shown: &RedactedBody) {
    html.open("section", &[("id", id)]);
    html.element("h2", &[], title);
    if !shown.omission.is_empty() {
        html.element("p", &[("class", "quiet")], shown.omission);
    }
    yaml_view::write(html, id, title, &shown.body);
    html.close();
}

fn writers(html: &mut Html, seen: &LiveObject, now: Timestamp) {
    if seen.writers.is_empty() {
        return;
    }
    html.open("section", &[("id", "writers")]);
    html.element("h2", &[], "Field managers");
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Field manager", "Part", "Last write"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for writer in &seen.writers {
        html.open("tr", &[]);
        html.open("th", &[("scope", "row")]);
        html.element("code", &[], &writer.manager);
        html.close();
        let part = if writer.subresource.is_empty() { "object" } else { &writer.subresource };
        html.element("td", &[("data-label", "Part")], part);
        html.open("td", &[("data-label", "Last write")]);
        match writer.time.is_empty() {
            true => html.text("not known"),
            false => write_time_text(html, &writer.time, now),
        }
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}
