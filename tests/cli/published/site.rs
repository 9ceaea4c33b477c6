//! The site of the documentation has every page, in the colours of the status page. The tests of
//! `cargo xtask site` build it, and follow its links.
//!
//! In: the pages, `docs/SUMMARY.md` and the style sheets. Out: nothing, or what is missing.

use std::collections::BTreeSet;

use super::{names, text};

/// Pages of the site that are not in `docs/`.
const ABOVE: [&str; 7] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.ko.md",
    "README.md",
    "SECURITY.md",
];

#[test]
fn every_page_is_in_the_site_once() {
    let in_docs = |folder: &str| {
        let names = names(folder, ".md").into_iter().filter(|name| name != "SUMMARY.md");
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    let mut pages = [in_docs("docs"), in_docs("docs/decisions"), ABOVE.map(str::to_owned).to_vec()].concat();
    pages.sort();
    let mut listed = listed(&text("docs/SUMMARY.md"));
    listed.sort();
    assert_eq!(listed, pages);
}

#[test]
fn the_index_of_the_documentation_names_every_page() {
    let index = text("docs/README.md");
    for name in names("docs", ".md") {
        let is_page = !["README.md", "SUMMARY.md"].contains(&name.as_str());
        assert!(!is_page || index.contains(&format!("]({name}")), "docs/README.md does not name {name}");
    }
}

#[test]
fn the_site_has_the_colours_of_the_status_page() {
    let (page, site) = (text("src/serve/page/page.css"), text("docs/theme.css"));
    let sets = |style: &str| -> Vec<String> {
        style.lines().map(str::trim).filter(|line| line.starts_with("--page: ")).map(str::to_owned).collect()
    };
    let (light_and_dark, shown) = (sets(&page), sets(&site));
    assert_eq!(light_and_dark.len(), 2);
    // The dark set stands twice: for a reader who chose it, and for one without scripts.
    assert_eq!(shown, [&light_and_dark[..], &light_and_dark[1..]].concat());
    assert_eq!(colours(&site).difference(&colours(&page)).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Paths of the pages in the repository.
fn listed(summary: &str) -> Vec<String> {
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.map(|link| link.strip_prefix("../").map_or_else(|| format!("docs/{link}"), str::to_owned)).collect()
}

/// The colours in a style sheet.
fn colours(style: &str) -> BTreeSet<String> {
    let parts = style
        .split('#')
        .skip(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_hexdigit).collect::<String>());
    parts.filter(|colour| colour.len() == 6).collect()
}

#[test]
fn the_pages_of_a_summary_are_listed() {
    assert_eq!(
        listed("[a](../README.md)\n- [b](b.md)\n  - [c](d/e.md)\n"),
        ["README.md", "docs/b.md", "docs/d/e.md"]
    );
    assert_eq!(
        colours("a { color: #0b5a83; } #id { --b: #abc }").into_iter().collect::<Vec<_>>(),
        ["0b5a83"]
    );
}
