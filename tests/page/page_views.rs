//! The status page and its JSON for literal boards: none of the tests needs a daemon.
//!
//! In: boards. Out: documents, in which is looked for what a person looks for.

pub(crate) mod clusters;
mod overview;

use crate::board::{COMMIT, SCRIPT_INJECTION, board_with_every_state, id, many};
use moorline::api::SyncName;
use moorline::report::board::{
    DaemonRole, LiveDifference, LiveObject, ObjectWriter, RedactedBody, StatusBoard,
};
use moorline::serve::page::{LiveRead, PageRequest, Route, objects_to_read, parse_path, respond, version};
use serde_json::{Value, json};

fn now() -> jiff::Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn get(board: &StatusBoard, path: &str) -> (u16, String) {
    look(board, path, None)
}

fn look(board: &StatusBoard, path: &str, look: Option<LiveRead<'_>>) -> (u16, String) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let answer = respond(board, &parse_path(path), query, look, now());
    (answer.status, answer.body)
}

fn page(board: &StatusBoard, path: &str) -> String {
    let (status, body) = get(board, path);
    assert_eq!(status, 200, "{path}");
    is_sound(&body);
    body
}

fn data(board: &StatusBoard, path: &str) -> Value {
    let (status, body) = get(board, path);
    assert_eq!(status, 200, "{path}");
    serde_json::from_str(&body).unwrap()
}

/// Every element that is opened is closed, in order, ids are there once, and nothing is inline that the policy forbids.
pub(crate) fn is_sound(html: &str) {
    let (mut open, mut ids) = (Vec::new(), std::collections::BTreeSet::new());
    for piece in html.split('<').skip(1) {
        let tag = piece.split('>').next().unwrap();
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "before {piece}"),
            None if ["!doctype", "meta", "link", "input", "col"].contains(&name) => {}
            None => open.push(name),
        }
        assert!(!tag.contains(" style=") && !tag.contains(" on"), "{tag}");
        if let Some(rest) = tag.split(" id=\"").nth(1) {
            assert!(ids.insert(rest.split('"').next().unwrap()), "{tag}");
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    assert!(!html.contains("<script>"), "{html}");
}

#[test]
fn the_first_thing_to_see_is_whether_all_is_as_committed() {
    let board = board_with_every_state();
    let html = page(&board, "/");
    assert!(html.contains("3 of 7 Syncs need attention"), "{html}");
    let shop = html.find("/syncs/ops/shop").unwrap();
    assert!(shop < html.find("/syncs/ops/base").unwrap(), "what wants somebody comes first");
    for part in [
        "moorline approve shop -n ops",
        "kubectl annotate sync shop -n ops --overwrite moorline.dev/approve=6c1c8f7d2a90b3e4",
        "Fix the listed files and commit.",
        &format!("https://github.com/example/fleet/commit/{COMMIT}"),
        ">2 min ago</time>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let mut calm = StatusBoard::default();
    calm.set_role(DaemonRole::Serving);
    assert!(page(&calm, "/").contains("There are no Syncs yet"));
    calm.update_card(moorline::report::board::SyncCard::clone(board.card("ops", "base").unwrap()));
    assert!(page(&calm, "/").contains("Everything is synced"));
}

#[test]
fn a_deletion_that_waits_is_answered_by_the_commands_on_the_page() {
    let mut board = board_with_every_state();
    let mut card = moorline::report::board::SyncCard::clone(board.card("ops", "shop").unwrap());
    let mut status = moorline::api::SyncStatus::clone(&card.status);
    (status.approval, status.observed_generation) = (None, Some(7));
    let ready = &mut status.conditions[0];
    (ready.reason, ready.message) = ("DeletionHeld".into(), "the Sync is being deleted".into());
    card.status = status.into();
    board.update_card(card);
    for path in ["/", "/syncs/ops/shop"] {
        let html = page(&board, path);
        for part in [
            "Pending approval",
            "moorline delete shop -n ops --orphan",
            "kubectl annotate sync shop -n ops --overwrite moorline.dev/deletion=Orphan@7",
            "moorline delete shop -n ops --delete",
            "moorline.dev/deletion=Delete@7",
            "Decide about the remaining objects",
        ] {
            assert!(html.contains(part), "{path}: {part}");
        }
        assert!(!html.contains("moorline approve shop"), "{path}");
    }
}

#[test]
fn a_daemon_that_stands_by_knows_who_leads_and_nothing_else() {
    let mut board = board_with_every_state();
    board.set_role(DaemonRole::Standby(Some(SCRIPT_INJECTION.into())));
    let html = page(&board, "/");
    assert!(html.contains("This daemon is on standby") && html.contains("&lt;script&gt;"), "{html}");
    assert!(!html.contains("/syncs/ops/shop"));
    let data = data(&board, "/api/v1/syncs");
    assert_eq!(
        (&data["stance"], &data["leader"], &data["syncs"]),
        (&json!("StandsBy"), &json!(SCRIPT_INJECTION), &json!([]))
    );
}

#[test]
fn what_strangers_wrote_is_text() {
    let board = board_with_every_state();
    for path in ["/", "/syncs/ops/broken", "/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"] {
        let html = page(&board, path);
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{path}");
    }
}

/// The tabs of a Sync that need no live object.
const TABS: [&str; 5] = ["", "/timeline", "/diff", "/plan", "/settings"];

#[test]
fn a_sync_shows_all_that_there_is_to_know() {
    let board = board_with_every_state();
    let check = |tab: &str, parts: &[&str]| {
        let html = page(&board, &format!("/syncs/ops/shop{tab}"));
        for part in parts {
            assert!(html.contains(part), "{tab}: {part}\n{html}");
        }
    };
    let commit = format!("<a href=\"https://github.com/example/fleet/commit/{COMMIT}\"");
    for tab in TABS {
        // State and revision are on every tab, and every tab leads to all others.
        let current = format!("<a href=\"/syncs/ops/shop{tab}\" aria-current=\"page\">");
        let head =
            ["Pending approval", "<b>PruneHeld</b>", &commit, "Open the shop — Ada Lovelace", &current];
        check(tab, &head);
        check(tab, &["/syncs/ops/shop/tree\">Tree</a>", "/syncs/ops/shop/events\">Events</a>"]);
    }
    let removed = "12 objects removed from Git and waiting to be deleted";
    let approve = "moorline approve shop -n ops";
    check("", &[removed, approve, "apps/deployment-web.yaml:1", "ops/shop depends on ops/base", "<svg"]);
    check("", &["<h3>Deployment</h3>", "no longer in Git"]);
    check("/plan", &[removed, approve, "<code>6c1c8f7d2a90b3e4</code>", "/-/ConfigMap/shop/old-11"]);
    check("/plan", &["OutOfSync</span> DriftReported: 1 object</h3>", "/objects/apps/Deployment/shop/web"]);
    check("/settings", &["branch main", "clusters/prod/shop", "30s", "ops/base</a>", "<dt>Prune</dt>"]);
    check("/settings", &["more than 10 objects and more than 30 %", "<code>team=blue</code>", ">PruneHeld<"]);
    check(
        "/diff",
        &["1 object not as in Git", "It was not read.", "Changed by kubectl-edit, <time", "old-00"],
    );
    let unwell = page(&board, "/syncs/ops/unwell");
    assert!(unwell.contains("the container web waits: ImagePullBackOff"), "the root cause");
    let base = page(&board, "/syncs/ops/base/plan");
    assert!(base.contains("No object is held.") && base.contains("polled every 30s"), "{base}");
}

#[test]
fn a_list_of_problems_that_is_cut_says_how_many_it_leaves_out() {
    let mut board = board_with_every_state();
    let mut card = moorline::report::board::SyncCard::clone(board.card("ops", "unwell").unwrap());
    let counts = json!({"desired": 9, "applied": 5, "held": 3, "failed": 1, "pruned": 0, "drifted": 0});
    let problem =
        json!({"object": "ConfigMap shop/a", "reason": "Contested", "message": "it is changed back"});
    let status = json!({"objects": counts, "problems": [problem]});
    card.status = std::sync::Arc::new(serde_json::from_value(status).unwrap());
    board.update_card(card);
    let html = page(&board, "/syncs/ops/unwell");
    assert!(html.contains("<p>and 3 more</p>"), "{html}");
}

#[test]
fn objects_are_found_by_text_state_and_kind() {
    let board = board_with_every_state();
    let found = |query: &str| -> Vec<String> {
        let data = data(&board, &format!("/api/v1/syncs/ops/shop?{query}"));
        let rows = data["objects"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["kind"].as_str().unwrap(), row["name"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(found("q=LOGIN"), ["Secret login"]);
    assert_eq!(found("state=outofsync"), ["Deployment web"]);
    assert_eq!(found("kind=Deployment.apps"), ["Deployment web"]);
    assert_eq!(found("state=pendingprune").len(), 12);
    assert_eq!(found("state=synced"), ["ConfigMap banner", "ConfigMap settings", "Secret login"]);
    assert_eq!(found("").len(), 16);
    let html = page(&board, "/syncs/ops/shop?q=login");
    assert!(html.contains("1 of 16 objects") && html.contains("value=\"login\""), "{html}");
}

#[test]
fn an_object_shows_what_is_wanted_what_is_live_and_the_difference() {
    let board = board_with_every_state();
    let path = "/syncs/ops/shop/objects/apps/Deployment/shop/web";
    let mut body = wanted_body(&board, "apps/Deployment|shop/web");
    body["spec"]["replicas"] = json!(5);
    body["spec"]["template"]["metadata"]["annotations"] = json!({"note": "by hand"});
    body["status"] = json!({"replicas": 5});
    let differs =
        LiveDifference { path: "spec.replicas".into(), values: Some((Some(json!(5)), Some(json!(2)))) };
    let writer = ObjectWriter {
        manager: "kubectl-edit".into(),
        time: "2026-11-22T11:40:00Z".into(),
        subresource: "".into(),
    };
    let hidden = LiveDifference { path: "data.secret".into(), values: None };
    let differences = vec![differs, hidden];
    let live = Some(RedactedBody { body, omission: "" });
    let seen = LiveObject { live, differences, writers: vec![writer] };
    let (status, html) = look(&board, path, Some(LiveRead::Read(&seen)));
    is_sound(&html);
    assert_eq!(status, 200);
    for part in [
        "<span> spec:</span><del>-  replicas: 5</del><ins>+  replicas: 2</ins><span>   selector:</span>",
        "<span class=\"server\">       annotations:</span><span class=\"server\">         note: by hand</span>",
        "<code>data.secret</code>",
        "<summary>spec:</summary>",
        "replicas: 5",
        "registry.example/web:1",
        "20 min ago",
        "Live state",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    // The diffs of all differing objects of the Sync, with the same object.
    let read = [(id("apps/Deployment|shop/web"), Ok(seen.clone()))];
    let (_, list) = look(&board, "/syncs/ops/shop/diff", Some(LiveRead::Several(&read)));
    is_sound(&list);
    assert!(list.contains("<del>-  replicas: 5</del><ins>+  replicas: 2</ins>"), "{list}");
    let (_, list) = look(&board, "/api/v1/syncs/ops/shop/diff", Some(LiveRead::Several(&read)));
    let list: Value = serde_json::from_str(&list).unwrap();
    let lines = list["objects"][0]["diff"].as_array().unwrap();
    for line in ["-  replicas: 5", "+  replicas: 2", "~status:"] {
        assert!(lines.contains(&json!(line)), "{line}: {list}");
    }
    let asked = parse_path("/syncs/ops/shop/diff").route;
    assert_eq!(objects_to_read(&board, &asked, ""), [id("apps/Deployment|shop/web")], "and no deletion");
    let data = look(&board, &format!("/api/v1{path}"), Some(LiveRead::Read(&seen))).1;
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(
        data["differences"],
        json!([
            {"path": "spec.replicas", "live": 5, "wanted": 2, "diff": ["@@ -1 +1 @@", "-5", "+2"]},
            {"path": "data.secret", "hidden": "hidden: may contain Secret values"},
        ])
    );
    assert_eq!(data["wanted"]["body"]["kind"], "Deployment");
    let (_, unread) = look(&board, path, Some(LiveRead::NotRead("the API server did not answer")));
    assert!(unread.contains("It was not read: the API server did not answer"), "{unread}");
    let secret = page(&board, "/syncs/ops/base/objects/-/Secret/shop/login");
    assert!(secret.contains("password: (not shown)") && !secret.contains("hunter2"), "{secret}");
    assert!(!everywhere(&board).contains("hunter2"));
}

/// The desired body of an object of the Sync ops/shop.
fn wanted_body(board: &StatusBoard, object: &str) -> Value {
    Value::Object(board.card("ops", "shop").unwrap().objects.wanted(&id(object)).unwrap().body())
}

/// All that is shown of a board.
fn everywhere(board: &StatusBoard) -> String {
    let mut all = get(board, "/").1 + &get(board, "/api/v1/syncs").1;
    for card in board.cards.values() {
        let sync = format!("/syncs/{}/{}", card.name.namespace, card.name.name);
        for tab in TABS {
            all += &(page(board, &format!("{sync}{tab}")) + &get(board, &format!("/api/v1{sync}{tab}")).1);
        }
        for row in card.objects.rows() {
            let group = if row.id.group().is_empty() { "-" } else { row.id.group() };
            let path = format!("{sync}/objects/{group}/{}/shop/{}", row.id.kind(), row.id.name());
            all += &(page(board, &path) + &get(board, &format!("/api/v1{path}")).1);
        }
    }
    all
}

#[test]
fn ten_thousand_objects_are_shown_a_page_at_a_time() {
    let board = many(10_000);
    let first = page(&board, "/syncs/ops/many");
    assert!(first.len() < 100_000, "{} bytes", first.len());
    assert!(first.contains("Page 1 of 100") && first.contains("10000 objects"));
    let last = page(&board, "/syncs/ops/many?page=100000");
    assert!(last.contains("Page 100 of 100") && last.contains("page=99") && !last.contains("page=101"));
    let found = page(&board, "/syncs/ops/many?q=application-04321");
    assert!(found.contains("1 of 10000 objects"), "{found}");
    let all: usize = (1..=100)
        .map(|page| {
            data(&board, &format!("/api/v1/syncs/ops/many?page={page}"))["objects"].as_array().unwrap().len()
        })
        .sum();
    assert_eq!(all, 10_000);
}

#[test]
fn what_is_not_there_is_not_found() {
    let board = board_with_every_state();
    for path in [
        "/syncs/ops/other",
        "/syncs/ops/shop/objects/-/ConfigMap/shop/other",
        "/syncs/ops/shop/objects/-/ConfigMap/shop",
        "/syncs/ops",
        "/syncs/ops/shop/objects",
        "/syncs/ops/other/plan",
        "/api/v1/other",
        "/%ff",
        "/../x",
    ] {
        assert_eq!(get(&board, path).0, 404, "{path}");
    }
}

#[test]
fn a_page_has_another_version_when_what_it_shows_is_another() {
    let mut board = board_with_every_state();
    let of = |board: &StatusBoard, name: &str| version(board, &Route::Sync(SyncName::new("ops", name)));
    let (shop, unwell, resting) = (of(&board, "shop"), of(&board, "unwell"), of(&board, "resting"));
    let all = version(&board, &Route::Overview);
    let base = moorline::report::board::SyncCard::clone(board.card("ops", "base").unwrap());
    board.update_card(base);
    assert!(version(&board, &Route::Overview) > all);
    assert!(of(&board, "shop") != shop && of(&board, "unwell") != unwell, "it is drawn beside them");
    assert_eq!(of(&board, "resting"), resting);
    let shop = of(&board, "shop");
    board.remove(&SyncName::new("ops", "base"));
    assert_ne!(of(&board, "shop"), shop, "it is drawn no more");
    let object = Route::Object(SyncName::new("ops", "shop"), id("/ConfigMap|shop/banner"));
    assert_eq!(version(&board, &object), None);
    assert_eq!(parse_path("/api/v1/syncs"), PageRequest { route: Route::Overview, json: true });
}
