//! The page of a Pod that a Sync owns: its containers, and links to their logs.

use jiff::Timestamp;

use super::html::Html;
use super::live_route::{LiveView, link_of};
use super::relative_time::write_time;
use super::{badge, layout, tree};
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::live_tree::{ContainerSummary, LiveNode, LiveTree, PodName, PodSummary};

/// Renders a Pod of a tree.
pub fn pod_page(
    board: &StatusBoard,
    card: &SyncCard,
    (live, pod): (&LiveTree, &PodName),
    (node, summary): (&LiveNode, &PodSummary),
    now: Timestamp,
) -> String {
    let name = card.name.to_string();
    let mut html = tree::begin(board, card, &name, &format!("Pod {pod}"));
    html.open("section", &[("id", "head"), ("class", "verdict")]);
    html.open("h1", &[]);
    html.element("span", &[("class", "quiet")], &format!("Pod {}/", pod.namespace));
    html.text(&pod.name);
    html.text(" ");
    badge::health(&mut html, node.health);
    html.close();
    if !node.message.is_empty() {
        html.element("p", &[("class", "why")], &node.message);
    }
    facts(&mut html, card, live, (node, summary), now);
    html.close();
    html.open("section", &[("id", "containers")]);
    html.element("h2", &[], "Containers");
    if node.hidden {
        let text = "Images are not shown: an owner of the Pod contains a secret value.";
        html.element("p", &[("class", "quiet")], text);
    }
    containers(&mut html, card, pod, summary, now);
    html.close();
    let place = LiveView::Pod(pod.clone()).link(&card.name).json();
    layout::end_page(html, board, Some(&place))
}

fn facts(
    html: &mut Html,
    card: &SyncCard,
    live: &LiveTree,
    (node, summary): (&LiveNode, &PodSummary),
    now: Timestamp,
) {
    html.open("p", &[("class", "quiet")]);
    html.text(if summary.phase.is_empty() { "No phase yet" } else { &summary.phase });
    if !summary.reason.is_empty() {
        html.text(&format!(" ({})", summary.reason));
    }
    if !summary.node.is_empty() {
        html.text(&format!(" on the node {}", summary.node));
    }
    if let Some(created) = node.created {
        html.text("; created ");
        write_time(html, created, now);
    }
    if node.deleting {
        html.text("; being deleted");
    }
    html.close();
    html.open("p", &[("class", "quiet")]);
    html.text("Owned by ");
    let mut is_first = true;
    for owner in live.owners(node) {
        if !std::mem::take(&mut is_first) {
            html.text(", which is owned by ");
        }
        match link_of(&card.name, &owner.id, owner.owner.is_none()) {
            Some(place) => html.link(&place, &[], &owner.id.to_string()),
            None => html.text(&owner.id.to_string()),
        }
    }
    html.text(if is_first { "the Sync itself" } else { "" });
    html.text("; in the ");
    html.link(&LiveView::Tree.link(&card.name), &[], "tree");
    html.close();
}

fn containers(html: &mut Html, card: &SyncCard, pod: &PodName, summary: &PodSummary, now: Timestamp) {
    html.open("table", &[("class", "cards")]);
    html.element("caption", &[("class", "unseen")], "Containers of the Pod");
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Container", "State", "Restarts", "Last end", "Logs"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for container in &summary.containers {
        row(html, card, pod, container, now);
    }
    html.close();
    html.close();
}

fn row(html: &mut Html, card: &SyncCard, pod: &PodName, container: &ContainerSummary, now: Timestamp) {
    html.open("tr", &[]);
    html.open("th", &[("scope", "row")]);
    html.element("b", &[], &container.name);
    html.element("span", &[("class", "quiet")], &format!(" {}", container.role.label()));
    html.open("span", &[("class", "quiet below")]);
    html.element("code", &[], &container.image);
    html.close();
    html.close();
    html.open("td", &[("data-label", "State")]);
    html.text(if container.state.is_empty() { "not reported" } else { container.state });
    if !container.reason.is_empty() {
        html.text(&format!(": {}", container.reason));
    }
    html.text(if container.ready { ", ready" } else { ", not ready" });
    if let Some(started) = container.started {
        html.open("span", &[("class", "quiet below")]);
        html.text("started ");
        write_time(html, started, now);
        html.close();
    }
    html.close();
    html.element("td", &[("data-label", "Restarts")], &container.restarts.to_string());
    html.open("td", &[("data-label", "Last end")]);
    match &container.last_end {
        None => html.element("span", &[("class", "quiet")], "none"),
        Some(end) => {
            html.text(if end.reason.is_empty() { "ended" } else { &end.reason });
            if let Some(code) = end.exit_code {
                html.text(&format!(", exit code {code}"));
            }
            if let Some(finished) = end.finished {
                html.text(", ");
                write_time(html, finished, now);
            }
        }
    }
    html.close();
    html.open("td", &[("data-label", "Logs")]);
    let logs = LiveView::Logs(pod.clone()).link(&card.name);
    let label = format!("Log of {}", container.name);
    html.link(&logs.clone().with_query(&[("container", &container.name)]), &[("aria-label", &label)], "log");
    if container.restarts > 0 {
        html.text(" ");
        let label = format!("Log of the previous run of {}", container.name);
        let place = logs.with_query(&[("container", &container.name), ("previous", "true")]);
        html.link(&place, &[("aria-label", &label)], "previous");
    }
    html.close();
    html.close();
}
