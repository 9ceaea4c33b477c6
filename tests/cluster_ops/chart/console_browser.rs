//! Ten cells of the table of rights, in a browser: a person has the button and it does what it says, or has none and is refused.
//!
//! In: the console of the table, over the real API server. Out: annotations in the name of the person, or no change.

use moorline_test_support::browser::Browser;
use moorline_test_support::rest::send_request;
use serde_json::json;

use super::console::{HASH, sync_path};
use super::release::Release;

/// A person, the namespace by its number, the action, and true if the person may take it.
const CELLS: [(&str, usize, &str, bool); 10] = [
    ("reader", 0, "sync", false),
    ("syncs", 0, "sync", true),
    ("syncs", 1, "sync", false),
    ("suspends", 0, "suspend", true),
    ("suspends", 0, "approve", false),
    ("approves", 0, "approve", true),
    ("approves", 1, "approve", true),
    ("rolls", 1, "rollback", false),
    ("member", 1, "rollback", true),
    ("other", 0, "suspend", false),
];

/// The annotation that an action leaves, with the name of the person in it.
fn mark(action: &str) -> &'static str {
    match action {
        "sync" => "requested-by",
        "suspend" => "suspend-by",
        "approve" => "approved-by",
        _ => "hold-by",
    }
}

/// Takes each action as a person with a mouse.
pub(crate) async fn ten_cells(release: &Release, address: &str, namespaces: [&str; 2]) {
    let Some(mut browser) = Browser::start() else { return };
    for (who, namespace, action, may) in CELLS {
        let cell = format!("{who} {action} {namespace}");
        let namespace = namespaces[namespace];
        // The same change again would not be seen, or refused as done.
        let key = format!("moorline.dev/{}", mark(action));
        let clean = json!({"spec": {"suspend": false}, "metadata": {"annotations": {
            "moorline.dev/hold-revision": null, (key.clone()): null}}});
        let cleaned = send_request(&release.admin, "PATCH", &sync_path(namespace), clean).await;
        cleaned.expect("a Sync without marks");
        browser.header("Authorization", &format!("Bearer {who}"));
        let html = format!("/syncs/{namespace}/shop");
        browser.go(&format!("http://{address}{html}"));
        let form = format!("document.querySelector('form[action=\"{html}/actions/{action}\"]')");
        let has_button = browser.value(&format!("{form} !== null")) == true;
        assert_eq!(has_button, may, "{cell}: {}", browser.value("document.body.innerText"));
        if may {
            if action == "rollback" {
                browser.click("Roll back", "document.querySelector('#roll-back summary')");
                browser.until("the reason is next", "document.activeElement.name === 'reason'");
                browser.types("slow");
            }
            browser.click(action, &format!("{form}.querySelector('button')"));
            browser.loaded();
            assert_eq!(browser.value("location.pathname"), html, "{cell}");
        } else {
            // By hand, as a page of the console could.
            let fields = format!("hash={HASH}&reason=slow&revision=x");
            let asked = format!(
                "fetch('{html}/actions/{action}', {{method: 'POST', body: new URLSearchParams('{fields}')}}).then((it) => it.status)"
            );
            assert_eq!(browser.value(&asked), 403, "{cell}");
        }
        let sync = release.get(&sync_path(namespace)).await.expect("the Sync");
        let by = sync["metadata"]["annotations"][&key].as_str().unwrap_or_default().to_owned();
        assert_eq!(by.ends_with(who), may, "{cell}: {by}");
    }
}
