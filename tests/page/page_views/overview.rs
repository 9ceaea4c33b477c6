//! The overview with 1,000 Syncs, the graph of dependencies, and the timeline of one Sync.

use serde_json::json;

use super::{data, page};
use crate::board::{board_with_every_state, many_syncs};

#[test]
fn a_thousand_syncs_are_found_sorted_grouped_and_paged() {
    let board = many_syncs(1000);
    let html = page(&board, "/");
    assert!(html.contains("Page 1 of 20"), "{html}");
    for query in ["", "?state=attention", "?group=namespace", "?group=label:team&sort=changed", "?page=20"] {
        let size = page(&board, &format!("/{query}")).len();
        assert!(size < 100_000, "{query}: {size} bytes");
    }
    let found = data(&board, "/api/v1/syncs?q=app-123");
    assert_eq!(found["syncs"].as_array().unwrap().len(), 1);
    let first = |query: &str| {
        let html = page(&board, &format!("/?{query}"));
        let rows = html.split("id=\"rows\"").nth(1).unwrap().to_owned();
        let name = rows.split("data-sync=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        (name, rows)
    };
    for (query, expect) in [
        ("sort=name", "team-0/app-000"),
        ("sort=state", "team-0/app-000"),
        ("sort=changed", "team-5/app-999"),
        ("sort=name&group=label:team&page=20", "team-6/app-650"),
        ("state=synced&sort=name", "team-0/app-007"),
    ] {
        assert_eq!(first(query).0, expect, "{query}");
    }
    let (_, rows) = first("group=namespace&sort=name");
    assert!(
        rows.contains("<b>team-0</b><span class=\"quiet\"> 143 Syncs, 15 need attention</span>"),
        "{rows}"
    );
    for part in ["aria-sort=\"ascending\"", "/?sort=changed&amp;group=namespace#syncs"] {
        assert!(rows.contains(part), "{part}: {rows}");
    }
    let html = page(&board, "/?fav=team-3/app-003,team-9/none,x");
    let favourites = html.split("id=\"favourites\"").nth(1).expect("favourites");
    assert!(favourites.contains("team-3/app-003") && !html.contains("team-9/none"), "{favourites}");
    let counted = html.split("class=\"counts\"").nth(1).unwrap();
    assert!(counted.contains("100 Failing</a>") && counted.contains("900 Synced</a>"), "{counted}");
}

#[test]
fn the_graph_has_three_sizes_without_a_script() {
    let board = board_with_every_state();
    for (query, width) in [("", "756"), ("?zoom=1", "453"), ("?zoom=3", "1209"), ("?zoom=9", "756")] {
        let html = page(&board, &format!("/{query}"));
        let svg = html.split("<svg").nth(1).unwrap().split('>').next().unwrap();
        assert!(svg.contains(&format!(" width=\"{width}\"")), "{query}: {svg}");
        assert!(html.contains("href=\"/?zoom=3#order\""), "{html}");
    }
}

#[test]
fn commits_repairs_prunes_approvals_and_failures_are_on_one_axis() {
    let board = board_with_every_state();
    let html = page(&board, "/syncs/ops/shop/timeline");
    let told = [
        "approved the deletion of 2 objects",
        "3 created, 1 pruned in 1.2s",
        "no longer in Git, and deleted: ConfigMap shop/older",
        "main@2222 is not signed",
        "ConfigMap shop/banner</a> recreated",
        "ConfigMap shop/settings</a> repaired",
    ];
    let axis = html.split("<ol class=\"axis\">").nth(1).expect("the axis");
    let places: Vec<_> =
        told.iter().map(|text| axis.find(text).unwrap_or_else(|| panic!("{text}: {axis}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    for part in ["changed by kubectl-patch, <time", "<code class=\"below\">data.key</code>", "6 entries"] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let reasons = |query: &str| -> Vec<String> {
        let data = data(&board, &format!("/api/v1/syncs/ops/shop/timeline{query}"));
        let entries = data["entries"].as_array().unwrap().iter();
        entries
            .map(|it| format!("{} {}", it["kind"].as_str().unwrap(), it["reason"].as_str().unwrap()))
            .collect()
    };
    let all = [
        "approval Approved",
        "commit Applied",
        "prune Pruned",
        "failure SignatureMissing",
        "repair DriftRepaired",
        "repair DriftRepaired",
    ];
    for (query, expect) in [
        ("", &all[..]),
        ("?kinds=nothing", &all),
        ("?kinds=commit,prune", &all[1..3]),
        ("?kinds=repair&kinds=failure", &all[3..]),
        ("?q=LOVELACE", &all[1..2]),
        ("?q=kubectl-patch", &all[5..]),
        ("?q=older&kinds=prune", &all[2..3]),
        ("?q=older&kinds=repair", &[]),
    ] {
        assert_eq!(reasons(query), expect, "{query}");
    }
    let filtered = page(&board, "/syncs/ops/shop/timeline?kinds=commit&q=open");
    for part in ["1 of 6 entries", "value=\"commit\" checked", "value=\"open\""] {
        assert!(filtered.contains(part), "{part}: {filtered}");
    }
    let data = data(&board, "/api/v1/syncs/ops/shop");
    assert_eq!(data["timeline"].as_array().unwrap().len(), 6);
    assert_eq!(data["timeline"][1]["author"], "Ada Lovelace");
    assert_eq!(
        (&data["repairs"][0]["deleted"], &data["repairs"][1]["deleted"]),
        (&json!(true), &json!(false))
    );
}
