//! Accessibility by axe-core: no finding on any view, for a visitor and for a person with actions.
//!
//! In: `target/tools/axe.min.js`, which `make tools` fetches. Out: nothing, or the rules that are
//! broken with the elements.

use moorline_test_support::browser::Browser;
use moorline_test_support::programs::{report_skipped, tools};

use super::{SIZES, VIEWS, board_with_every_state, served, spread};

/// Rules that need a person's judgement are incomplete, not violated, and are left out.
const RUN: &str =
    "axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations.map((rule) =>
    `${rule.id}: ${rule.help}: ${rule.nodes.map((node) => node.html).join(' | ')}`).join('\\n'))";

/// Text of axe-core.
pub(crate) fn axe() -> Option<String> {
    let file = tools().join("axe.min.js");
    let text = std::fs::read_to_string(&file);
    if text.is_err() {
        report_skipped(&format!("there is no {}; `make tools` fetches it", file.display()));
    }
    text.ok()
}

/// Findings on the page that is shown.
pub(crate) fn findings(browser: &mut Browser, axe: &str) -> String {
    browser.value(&format!("{axe};true"));
    browser.value(RUN).as_str().expect("axe-core answers").to_owned()
}

#[test]
fn axe_finds_nothing_on_any_view() {
    let Some(axe) = axe() else { return };
    let Some(mut browser) = Browser::start() else { return };
    let served = served(spread(board_with_every_state()));
    let mut faults = Vec::new();
    for (device, width, height) in SIZES {
        browser.size(width, height);
        for (_, path) in VIEWS {
            for is_dark in [false, true] {
                browser.dark(is_dark);
                browser.go(&format!("{}{path}", served.url));
                let found = findings(&mut browser, &axe);
                if !found.is_empty() {
                    faults.push(format!("{path} on a {device}, dark: {is_dark}:\n{found}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // An image without a text, so that the rules are known to be at work.
    browser.value("document.body.append(document.createElement('img')); true");
    assert!(findings(&mut browser, &axe).contains("image-alt"));
}
