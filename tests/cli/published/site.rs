//! The site of the documentation has every page, and each of its links leads somewhere.
//!
//! In: the pages, `docs/SUMMARY.md`, and the site that `docs/site.sh` builds from them. Out:
//! nothing, or what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use moorline_test_support::programs::find;

use super::{between, names, root, text};

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
    let (page, site) = (text("src/serve/page/page.css"), text("docs/theme/moorline.css"));
    let sets = |style: &str| -> Vec<String> {
        style.lines().map(str::trim).filter(|line| line.starts_with("--page: ")).map(str::to_owned).collect()
    };
    let (light_and_dark, shown) = (sets(&page), sets(&site));
    assert_eq!(light_and_dark.len(), 2);
    // The dark set stands twice: for a reader who chose it, and for one without scripts.
    assert_eq!(shown, [&light_and_dark[..], &light_and_dark[1..]].concat());
    assert_eq!(colours(&site).difference(&colours(&page)).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn every_link_of_the_site_leads_somewhere() {
    if find("mdbook").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    for source in ["", "https://git.example.com/moorline"] {
        let mut build = Command::new("sh");
        build.arg(root().join("docs/site.sh")).env("SITE", &site).env("MOORLINE_SOURCE", source);
        let output = build.output().expect("sh starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && !said.contains("WARN"), "{said}");
        let pages = read(&site);
        assert!(pages.len() > 50, "{}", pages.len());
        let broken: Vec<String> = pages.keys().flat_map(|page| broken(&site, page, &pages)).collect();
        assert!(broken.is_empty(), "{} links lead nowhere:\n{}", broken.len(), broken.join("\n"));
        let elsewhere =
            pages.values().filter(|html| html.contains("git.example.com/moorline/blob/HEAD/")).count();
        assert_eq!(elsewhere > 0, !source.is_empty(), "{elsewhere}");
    }
    let index = fs::read_to_string(site.join("index.html")).expect("a first page");
    assert!(index.contains("moorline") && index.contains("searcher"), "the first page has a search");
    // Without a script, the reader's system decides about the colours, and the list of pages is in
    // a frame.
    assert!(index.contains("<noscript>") && text("docs/theme/moorline.css").contains("html:not(.js)"));
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

/// All pages below a folder, by their paths.
fn read(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages.extend(read(&path));
        } else if path.extension().is_some_and(|end| end == "html") {
            pages.insert(path.clone(), fs::read_to_string(path).expect("a page"));
        }
    }
    pages
}

/// Links of a page to files or headings that are not there.
fn broken(site: &Path, page: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    // It may be shown at any address, so its links begin at the root.
    if page.ends_with("404.html") {
        return Vec::new();
    }
    let shown = page.strip_prefix(site).expect("a page of the site").display();
    let folder = page.parent().expect("a folder");
    let is_broken = |link: &&str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { page.to_owned() } else { resolved(folder, file) };
        match pages.get(&target) {
            Some(html) => !heading.is_empty() && !html.contains(&format!("id=\"{}\"", decoded(heading))),
            None => !target.is_file(),
        }
    };
    links(&pages[page]).into_iter().filter(is_broken).map(|link| format!("{shown}: {link}")).collect()
}

/// Targets of links and of embedded files, without those on other sites.
fn links(html: &str) -> Vec<&str> {
    let values = [" href=\"", " src=\""].into_iter().flat_map(|name| html.split(name).skip(1));
    let values = values.filter_map(|rest| rest.split('"').next());
    values.filter(|link| !link.contains(':') && !link.starts_with("//")).collect()
}

/// A relative path from a folder.
fn resolved(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in decoded(link).split('/') {
        match part {
            ".." => _ = path.pop(),
            "." | "" => {}
            part => path.push(part),
        }
    }
    path
}

/// A link without the escapes of addresses.
fn decoded(link: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), link.as_bytes());
    while let Some((first, others)) = rest.split_first() {
        let hex = others.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let site = Path::new("/site");
    let html = "<a href=\"b.html#two%20words\">x</a> <a href=\"../c.html\">y</a> <a href=\"#one\">z</a> <a href=\"https://example.com\">";
    let page = |path: &str, html: &str| (PathBuf::from(path), html.to_owned());
    let pages = |b: &str| {
        BTreeMap::from([
            page("/site/docs/a.html", html),
            page("/site/docs/b.html", b),
            page("/site/c.html", ""),
        ])
    };
    let found = |b: &str| broken(site, Path::new("/site/docs/a.html"), &pages(b));
    assert_eq!(found("<h1 id=\"two words\">"), ["docs/a.html: #one"]);
    assert_eq!(found(""), ["docs/a.html: b.html#two%20words", "docs/a.html: #one"]);
    assert_eq!(links("<script src=\"a.js\"></script>"), ["a.js"]);
    assert_eq!(between("a(b)c", "(", ")"), Some("b"));
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
