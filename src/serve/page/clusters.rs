//! The page of all clusters: state, version and Syncs of each.
//!
//! In: a board and a filter. Out: a table, and its JSON. A cluster has a row if the viewer may read
//! one of its Syncs.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::filter::{Filter, form};
use super::html::Html;
use super::json::text;
use super::routes::Link;
use super::{badge, layout, relative_time};
use crate::grammar::counted;
use crate::report::board::{ClusterState, ClusterSummary, HOME_CLUSTER, StatusBoard, SyncState};

/// The most clusters on the page; the filter finds the others.
const MAX_ROWS: usize = 500;

/// The page.
pub(super) fn page(board: &StatusBoard, query: &str, now: Timestamp) -> String {
    let filter = Filter::parse(query);
    let mut html = layout::begin_page("Clusters · Moorline", layout::LiveUpdates::All(board.version));
    if layout::stance(&mut html, board) {
        return layout::end_page(html, board, None);
    }
    let all = board.summarize_clusters();
    html.open("nav", &[("class", "crumbs"), ("aria-label", "Breadcrumb")]);
    html.link(&Link::overview(), &[], "All Syncs");
    html.close();
    html.element("h1", &[], "Clusters");
    html.open("section", &[("id", "clusters")]);
    form(&mut html, &Link::clusters(), &filter, "clusters", &states(), &[]);
    html.open("div", &[("id", "rows"), ("data-part", "")]);
    let fitting: Vec<&ClusterSummary> = all.iter().filter(|it| fits(&filter, it)).collect();
    html.open("p", &[("class", "quiet")]);
    match (fitting.len(), all.len()) {
        (_, 0) => html.text("There are no Syncs yet."),
        (0, _) => html.text("No cluster matches the filter."),
        (some, all) if some < all => html.text(&format!("{some} of {}", counted(all, "cluster"))),
        (some, _) => html.text(&counted(some, "cluster")),
    }
    if fitting.len() > MAX_ROWS {
        html.text(&format!("; the first {MAX_ROWS} are shown"));
    }
    html.close();
    if !fitting.is_empty() {
        write_table(&mut html, &fitting, now);
    }
    html.close();
    html.close();
    layout::end_page(html, board, Some(&Link::clusters().json()))
}

/// `/api/v1/clusters`.
pub(super) fn data(board: &StatusBoard, filter: &Filter) -> String {
    let all = board.summarize_clusters();
    let rows: Vec<Value> = all.iter().filter(|it| fits(filter, it)).map(row_data).collect();
    text(&json!({"version": board.version, "clusters": rows}))
}

fn row_data(cluster: &ClusterSummary) -> Value {
    let states = cluster.syncs.iter().map(|(state, count)| (state.label().to_owned(), (*count).into()));
    let message = Some(&cluster.message).filter(|message| !message.is_empty());
    json!({
        "name": cluster.name, "state": cluster.state.label(), "since": cluster.since, "message": message,
        "serverVersion": cluster.release, "syncs": cluster.total(), "states": states.collect::<Map<_, _>>(),
    })
}

/// State filters, with their labels.
fn states() -> Vec<(&'static str, &'static str)> {
    let states = ClusterState::ALL.into_iter().map(|state| match state {
        ClusterState::OtherCluster => ("othercluster", "other cluster"),
        ClusterState::Refused => ("refused", "refused"),
        ClusterState::Unreachable => ("unreachable", "unreachable"),
        ClusterState::Unknown => ("unknown", "unknown"),
        ClusterState::Reachable => ("reachable", "reachable"),
    });
    [("", "all")].into_iter().chain(states).collect()
}

fn fits(filter: &Filter, cluster: &ClusterSummary) -> bool {
    let of_state = filter.state.is_empty() || cluster.state.label().eq_ignore_ascii_case(&filter.state);
    of_state && cluster.name.to_lowercase().contains(&filter.text)
}

fn write_table(html: &mut Html, clusters: &[&ClusterSummary], now: Timestamp) {
    html.open("table", &[("class", "cards clusters")]);
    html.element("caption", &[("class", "unseen")], "Matching clusters");
    html.open("colgroup", &[]);
    for class in ["name", "rest", "count", "syncs"] {
        html.void("col", &[("class", class)]);
    }
    html.close();
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Cluster", "State", "Version", "Syncs"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    clusters.iter().take(MAX_ROWS).for_each(|cluster| row(html, cluster, now));
    html.close();
    html.close();
}

fn row(html: &mut Html, cluster: &ClusterSummary, now: Timestamp) {
    html.open("tr", &[]);
    html.open("th", &[("scope", "row")]);
    html.link(&syncs_of(cluster, None), &[], &cluster.name);
    if &*cluster.name == HOME_CLUSTER {
        html.element("span", &[("class", "quiet below")], "where the Syncs are");
    }
    html.close();
    html.open("td", &[("class", "state")]);
    badge::cluster(html, cluster.state);
    if let Some(since) = &cluster.since {
        html.text(" since ");
        relative_time::write_time(html, since.0, now);
    }
    if !cluster.message.is_empty() {
        html.element("span", &[("class", "quiet below")], &cluster.message);
    }
    html.close();
    html.open("td", &[("data-label", "Version")]);
    html.text(cluster.release.as_deref().unwrap_or("–"));
    html.close();
    html.open("td", &[("data-label", "Syncs")]);
    html.open("ul", &[("class", "counts"), ("aria-label", "Syncs by state")]);
    for (state, count) in &cluster.syncs {
        let (class, sign) = badge::sync_style(*state);
        html.open("li", &[]);
        let class = format!("badge {class}");
        html.open_link(&syncs_of(cluster, Some(*state)), &[("class", &class), ("title", state.meaning())]);
        html.element("span", &[("aria-hidden", "true")], sign);
        html.text(&format!(" {count} {}", state.title()));
        html.close();
        html.close();
    }
    html.close();
    html.close();
    html.close();
}

/// The Syncs of a cluster on the overview.
fn syncs_of(cluster: &ClusterSummary, state: Option<SyncState>) -> Link {
    let state = state.map(|state| state.label().to_lowercase()).unwrap_or_default();
    Link::overview().with_query(&[("state", &state), ("cluster", &cluster.name)]).at("syncs")
}
