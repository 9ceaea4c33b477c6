//! The page of clusters, and Syncs of one cluster on the overview.

use std::sync::Arc;

use moorline::report::board::{ClusterFacts, DaemonRole, SourceSummary, StatusBoard, SyncCard};
use serde_json::json;

use super::{data, page};
use crate::board::many_syncs;

/// Thirty Syncs in three clusters.
fn board() -> StatusBoard {
    spread(many_syncs(30))
}

/// The board with its Syncs in three clusters: at home, in one that answers, and in one that does not.
pub(crate) fn spread(mut board: StatusBoard) -> StatusBoard {
    let cards: Vec<SyncCard> = board.cards.values().map(|card| SyncCard::clone(card)).collect();
    for (at, card) in cards.into_iter().enumerate() {
        let cluster = [None, Some("ops/east-kubeconfig"), Some("ops/west/value")][at % 3].map(Into::into);
        let source = Arc::new(SourceSummary { cluster, ..SourceSummary::clone(&card.source) });
        board.update_card(SyncCard { source, ..card });
    }
    let facts = |release: &str, silent: Option<&str>| ClusterFacts {
        release: Some(release.into()),
        silent_since: silent.map(|at| serde_json::from_value(json!(at)).unwrap()),
        ..ClusterFacts::default()
    };
    board.set_cluster("home", facts("v1.36.3", None));
    board.set_cluster("ops/east-kubeconfig", facts("v1.35.1", None));
    board.set_cluster("ops/west/value", facts("v1.34.7", Some("2026-11-22T11:00:00Z")));
    board.set_cluster("ops/nobody-uses-it", facts("v1.30.0", None));
    board
}

#[test]
fn each_cluster_has_a_row_with_state_version_and_syncs() {
    let board = board();
    let html = page(&board, "/clusters");
    for part in [
        "3 clusters",
        "<a href=\"/?cluster=home#syncs\">home</a>",
        "<a href=\"/?cluster=ops%2Feast-kubeconfig#syncs\">ops/east-kubeconfig</a>",
        "v1.36.3",
        "v1.35.1",
        "60 min ago</time>",
        "/?state=synced&amp;cluster=ops%2Feast-kubeconfig#syncs",
        "/api/v1/clusters",
        "where the Syncs are",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("nobody-uses-it"), "{html}");
    let names = |query: &str| -> Vec<String> {
        let found = data(&board, &format!("/api/v1/clusters{query}"));
        let rows = found["clusters"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["name"].as_str().unwrap(), row["state"].as_str().unwrap()))
            .collect()
    };
    let [home, east, west] =
        ["home Reachable", "ops/east-kubeconfig Reachable", "ops/west/value Unreachable"];
    for (query, expect) in [
        ("", &[home, east, west][..]),
        ("?q=WEST", &[west]),
        ("?q=ops&state=reachable", &[east]),
        ("?state=unreachable", &[west]),
        ("?q=nothing", &[]),
    ] {
        assert_eq!(names(query), expect, "{query}");
    }
    let west = data(&board, "/api/v1/clusters?q=west")["clusters"][0].clone();
    let expect = json!({
        "name": "ops/west/value", "state": "Unreachable", "since": "2026-11-22T11:00:00Z", "message": null,
        "serverVersion": "v1.34.7", "syncs": 10, "states": west["states"],
    });
    assert_eq!(west, expect);
    let states = west["states"].as_object().unwrap();
    assert_eq!(states.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), 10, "{states:?}");
    assert!(page(&board, "/clusters?q=nothing").contains("No cluster matches the filter."));
}

/// As many clusters as Syncs.
fn one_cluster_each(count: usize) -> StatusBoard {
    let mut board = many_syncs(count);
    let cards: Vec<SyncCard> = board.cards.values().map(|card| SyncCard::clone(card)).collect();
    for (at, card) in cards.into_iter().enumerate() {
        let cluster = Some(format!("ops/c-{at:03}").into());
        let source = Arc::new(SourceSummary { cluster, ..SourceSummary::clone(&card.source) });
        board.update_card(SyncCard { source, ..card });
    }
    board
}

#[test]
fn the_page_has_a_bound_and_the_filter_finds_the_others() {
    let board = one_cluster_each(501);
    let html = page(&board, "/clusters");
    assert!(html.contains("501 clusters; the first 500 are shown"), "{html}");
    assert_eq!(html.matches("<th scope=\"row\">").count(), 500);
    assert!(!html.contains("ops/c-500</a>") && page(&board, "/clusters?q=c-500").contains("ops/c-500</a>"));
    assert_eq!(data(&board, "/api/v1/clusters")["clusters"].as_array().unwrap().len(), 501);
}

#[test]
fn the_overview_finds_and_groups_syncs_by_cluster() {
    let board = board();
    let found = |query: &str| {
        let syncs = data(&board, &format!("/api/v1/syncs{query}"))["syncs"].as_array().unwrap().clone();
        assert!(query.is_empty() || syncs.iter().all(|it| it["cluster"] == syncs[0]["cluster"]), "{query}");
        syncs.len()
    };
    for (query, count) in [
        ("", 30),
        ("?cluster=home", 10),
        ("?cluster=ops/east-kubeconfig", 10),
        ("?cluster=ops/east", 0),
        ("?q=east-kube", 10),
        ("?q=home", 0),
    ] {
        assert_eq!(found(query), count, "{query}");
    }
    let html = page(&board, "/?group=cluster&cluster=ops/west/value");
    for part in [
        "<b>ops/west/value</b>",
        "name=\"cluster\" value=\"ops/west/value\"",
        "10 of 30 Syncs",
        "<a href=\"/clusters\">3 clusters</a>",
        " in ops/west/value</span>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn the_bound_of_the_page_is_for_clusters_that_match() {
    let full = one_cluster_each(500);
    let html = page(&full, "/clusters");
    assert!(html.contains("500 clusters") && !html.contains("are shown"), "{html}");
    assert_eq!(html.matches("<th scope=\"row\">").count(), 500);
    let board = one_cluster_each(601);
    for (query, text, rows) in [
        ("?q=c-1", "100 of 601 clusters", 100),
        ("?q=ops", "601 clusters; the first 500 are shown", 500),
        ("?q=c-600", "1 of 601 clusters", 1),
    ] {
        let html = page(&board, &format!("/clusters{query}"));
        assert!(html.contains(text), "{query}: {html}");
        assert_eq!(html.contains("are shown"), rows == 500, "{query}");
        assert_eq!(html.matches("<th scope=\"row\">").count(), rows, "{query}");
    }
    // The rows are in the order of the names, and so are those of the data.
    let html = page(&board, "/clusters");
    let names = (0..500).map(|nth| html.find(&format!("ops/c-{nth:03}</a>")).expect("a row"));
    assert!(names.is_sorted());
    let found = data(&board, "/api/v1/clusters");
    let names = found["clusters"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap());
    assert!(names.eq((0..601).map(|nth| format!("ops/c-{nth:03}"))));
}

#[test]
fn a_daemon_on_standby_names_no_cluster() {
    let mut board = board();
    board.set_role(DaemonRole::Standby(None));
    let html = page(&board, "/clusters");
    assert!(html.contains("This daemon is on standby") && !html.contains("east-kubeconfig"), "{html}");
}
