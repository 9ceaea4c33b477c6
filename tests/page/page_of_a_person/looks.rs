//! Views that only a person has, in a browser: they fit on a phone and on a screen, in light and
//! dark, and axe-core finds nothing.
//!
//! In: the board of the tasks with the mouse. Out: faults of geometry and accessibility; pictures
//! lie in target/pictures.

use moorline::api::SyncName;
use moorline_test_support::browser::Browser;
use serde_json::json;

use super::Console;
use super::clicks::{board, serve};
use crate::page_browser::{axe, geometry, seen};

/// Views that a visitor without a name does not have, or not with the actions.
const VIEWS: [&str; 8] = [
    "",
    "syncs/ops/shop",
    "syncs/ops/shop/tree",
    "syncs/ops/shop/plan",
    "syncs/ops/shop/settings",
    "syncs/ops/shop/objects/apps/Deployment/shop/web",
    "syncs/ops/shop/pods/shop/web-7f9c",
    "syncs/ops/shop/pods/shop/web-7f9c/logs?container=web",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn axe_finds_nothing_on_the_views_of_a_person() {
    let Some(axe) = axe::axe() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let board = board();
    let status = json!(*board.cards[&SyncName::new("ops", "shop")].status);
    let console = Console::of(board, seen);
    console.create(&status).await;
    let url = serve(&console).await;
    let mut faults = Vec::new();
    for (width, is_dark) in [(320, false), (1280, false), (1280, true)] {
        browser.size(width, 900);
        browser.dark(is_dark);
        for path in VIEWS {
            browser.go(&format!("{url}{path}"));
            let words = browser.value("document.body.innerText").to_string();
            assert!(!words.contains("Not found") && !words.contains("cannot be shown"), "{path}: {words}");
            let found = axe::findings(&mut browser, &axe);
            let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
            let parts = geometry::faults(&mut browser);
            if !found.is_empty() || !parts.is_empty() || wide > width.into() {
                faults.push(format!("{path}, {wide} of {width}, dark: {is_dark}:\n{found}\n{parts}"));
            }
            if width == 1280 && !is_dark {
                browser.picture(&format!("person-{}", path.replace(['/', '?', '='], "-")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
