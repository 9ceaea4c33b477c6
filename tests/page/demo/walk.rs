//! The story of the demo in a real browser: a person opens the page that it names, finds the Sync with the keyboard alone, and
//! sees each step without loading anything again.

use crate::demo::Running;
use moorline_test_support::browser::Browser;

/// Text of the page.
const TEXT: &str = "document.body.innerText";
/// Number of revisions among its latest entries.
const REVISIONS: &str = "document.querySelectorAll('#latest .revision').length";
/// Seconds that each step stays to be seen.
const PACE: &str = "8";

/// Presses Tab until a link to this has the focus, and follows it.
fn follow(browser: &mut Browser, path: &str) {
    browser.until("the link is there", &format!("document.querySelector('a[href=\"{path}\"]') !== null"));
    for _ in 0..200 {
        browser.press("Tab");
        if browser.value("document.activeElement.getAttribute('href')") == path {
            browser.press("Enter");
            browser.loaded();
            assert_eq!(browser.value("location.pathname"), path);
            return;
        }
    }
    panic!("the Tab key does not come to {path}");
}

/// Waits until the page shows this, and takes a picture of it.
fn shows(browser: &mut Browser, words: &[&str], picture: &str) {
    for words in words {
        browser.until(words, &format!("{TEXT}.includes({})", serde_json::json!(words)));
    }
    browser.picture(picture);
}

#[test]
fn the_story_is_seen_in_a_browser_as_it_happens() {
    let Some(mut browser) = Browser::start() else { return };
    let mut demo = Running::start(&["demo", "--tour", "--pace", PACE]);
    let page = demo.line();
    let _ = demo.kubeconfig();
    browser.go(&page);
    follow(&mut browser, "/syncs/moorline/shop");
    browser.value("window.mark = 1; 0");

    demo.words_until("are applied and healthy");
    shows(&mut browser, &["Synced", "15 objects are in sync with main@"], "demo-1-first-sync");
    let before = browser.value(REVISIONS).as_u64().unwrap();
    demo.words_until("later the Deployment web runs");
    browser.until("the commit is a revision", &format!("{REVISIONS} === {}", before + 1));
    browser.picture("demo-2-commit");
    demo.words_until("later web has 3 replicas again");
    shows(&mut browser, &["kubectl-scale", "spec.replicas"], "demo-3-hand-edit");
    demo.words_until("Nothing is deleted");
    shows(&mut browser, &["12 objects removed from Git", "moorline.dev/approve="], "demo-4-held-prune");
    demo.words_until("the Sync reports the error");
    shows(&mut browser, &["apps/web.yaml:11:16"], "demo-5-bad-commit");
    demo.words_until("End of the tour.");
    shows(&mut browser, &["15 objects are in sync with main@"], "demo-6-end");
    assert_eq!(browser.value("window.mark"), 1, "it was not loaded anew");

    follow(&mut browser, "/");
    assert!(browser.value(TEXT).as_str().unwrap().contains("Everything is synced"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    demo.interrupt();
}
