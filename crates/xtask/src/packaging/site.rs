//! The documentation as a site, made by mdBook.
//!
//! In: the pages of `docs/SUMMARY.md`, also those above `docs/`. Out: a site in which every link
//! leads somewhere: those to other files lead to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::checkout::{Checkout, run};
use super::tools::Tools;

/// Folder whose files are part of the site as they are.
const IMAGES: &str = "docs/images/";

/// Makes the site in `target/site`, and returns the number of its pages.
pub(crate) fn make(checkout: &Checkout) -> Result<usize, String> {
    let source = checkout.root.join("target/site-source");
    let site = checkout.root.join("target/site");
    for folder in [&source, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    collect(checkout, &source)?;
    let program = Tools::with_mdbook(checkout)?;
    run(Command::new(program).arg("build").arg("--dest-dir").arg(&site).arg(&source))?;
    check(&site)
}

/// Copies the pages to their places below `src`, and what mdBook needs beside them.
fn collect(checkout: &Checkout, source: &Path) -> Result<(), String> {
    let summary = read_text(&checkout.root.join("docs/SUMMARY.md"))?;
    let pages = pages_of(&summary);
    for page in &pages {
        let text = read_text(&checkout.root.join(page))?;
        write(&source.join("src").join(page), &with_links(&text, page, &pages, checkout.source.as_deref()))?;
    }
    write(&source.join("src/SUMMARY.md"), &summary.replace("](", "](docs/").replace("](docs/../", "]("))?;
    let images = fs::read_dir(checkout.root.join(IMAGES)).map_err(|error| format!("{IMAGES}: {error}"))?;
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to.parent().unwrap_or(to))
            .and_then(|()| fs::copy(from, to))
            .map_err(|error| format!("{}: {error}", from.display()))
    };
    for image in images {
        let image = image.map_err(|error| format!("{IMAGES}: {error}"))?;
        copy(&image.path(), &source.join("src").join(IMAGES).join(image.file_name()))?;
    }
    for (from, to) in [
        ("docs/book.toml", "book.toml"),
        ("docs/theme.css", "theme.css"),
        ("src/serve/page/icon.svg", "theme/favicon.svg"),
    ] {
        copy(&checkout.root.join(from), &source.join(to))?;
    }
    // In place of the fonts that mdBook brings.
    write(&source.join("theme/fonts/fonts.css"), "/* The fonts are those of the system. */\n")
}

/// Paths in the repository of the pages that a summary lists.
fn pages_of(summary: &str) -> BTreeSet<String> {
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.map(|link| in_repository("docs/SUMMARY.md", link)).collect()
}

/// A page with the links that lead somewhere else in the site.
fn with_links(text: &str, page: &str, pages: &BTreeSet<String>, source: Option<&str>) -> String {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        is_code ^= line.trim_start().starts_with("```");
        lines.push(if is_code { line.to_owned() } else { line_with_links(line, page, pages, source) });
    }
    lines.join("\n")
}

fn line_with_links(line: &str, page: &str, pages: &BTreeSet<String>, source: Option<&str>) -> String {
    let mut turned = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at + 2);
        let end = link.find(')').unwrap_or(link.len());
        turned.push_str(before);
        turned.push_str(&link_in_site(&link[..end], page, pages, source));
        rest = &link[end..];
    }
    turned + rest
}

/// A link of a page as the site has it. A link to a file that is no page leads to the address of
/// the repository, or to the file in the checkout.
fn link_in_site(link: &str, page: &str, pages: &BTreeSet<String>, source: Option<&str>) -> String {
    let (file, place) = link.find('#').map_or((link, ""), |at| link.split_at(at));
    let path = in_repository(page, file);
    if link.contains(':') || file.is_empty() || path.starts_with(IMAGES) {
        return link.to_owned();
    }
    if pages.contains(&path) {
        // A README becomes the first page of its folder.
        let folder = file.strip_suffix("README.md");
        return folder.map_or_else(|| link.to_owned(), |folder| format!("{folder}index.md{place}"));
    }
    match source {
        Some(source) => format!("{source}/blob/HEAD/{path}{place}"),
        None => {
            // mdBook would turn the name of a file that ends in .md into one that is not there.
            let path = match path.rsplit_once('/') {
                Some((folder, file)) if file.ends_with(".md") => format!("{folder}/"),
                _ => format!("{path}{place}"),
            };
            format!("{}../../{path}", "../".repeat(page.matches('/').count()))
        }
    }
}

/// Path in the repository of a link beside a page.
fn in_repository(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks that every link of the site leads to a file of it and to a place in that file, or to a
/// file of the checkout.
fn check(site: &Path) -> Result<usize, String> {
    let mut pages = BTreeMap::new();
    read(site, &mut pages)?;
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path, values(text, "id=\"").collect())).collect();
    let mut wrong = Vec::new();
    for (path, text) in &pages {
        for link in values(text, "href=\"").chain(values(text, "src=\"")) {
            let is_elsewhere =
                link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:");
            if is_elsewhere {
                continue;
            }
            let (file, place) = link.split_once('#').map_or((link, ""), |(file, place)| (file, place));
            let target = if file.is_empty() { path.clone() } else { joined(path, file) };
            let is_folder = target.starts_with(site) && target.is_dir();
            let target = if is_folder { target.join("index.html") } else { target };
            let has_place = place.is_empty()
                || !target.starts_with(site)
                || ids.get(&target).is_some_and(|ids| ids.contains(place));
            let is_there = if target.starts_with(site) { target.is_file() } else { target.exists() };
            if !is_there || !has_place {
                wrong.push(format!(
                    "{}: {link} leads nowhere",
                    path.strip_prefix(site).unwrap_or(path).display()
                ));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    if wrong.is_empty() { Ok(pages.len()) } else { Err(wrong.join("\n")) }
}

/// Path of a link beside a page, without steps upwards.
fn joined(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(page).to_path_buf();
    for step in link.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path
}

fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let shown = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(shown)? {
        let path = entry.map_err(shown)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, pages)?;
        // It may be shown at any address, so its links begin at the root.
        } else if name.ends_with(".html") && name != "404.html" {
            pages.insert(path.clone(), fs::read_to_string(&path).map_err(shown)?);
        }
    }
    Ok(())
}

/// Values of an attribute.
fn values<'a>(text: &'a str, attribute: &'static str) -> impl Iterator<Item = &'a str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_that_are_no_pages_lead_to_the_repository() {
        let summary = "[a](README.md)\n- [b](b.md)\n- [c](../CHANGELOG.md)\n- [d](d/e.md)\n";
        let pages = pages_of(summary);
        assert_eq!(
            pages.iter().collect::<Vec<_>>(),
            ["CHANGELOG.md", "docs/README.md", "docs/b.md", "docs/d/e.md"]
        );
        let check = |page: &str, source: Option<&str>, text: &str, expect: &str| {
            assert_eq!(with_links(text, page, &pages, source), expect);
        };
        let address = Some("https://example.com/r");
        check(
            "docs/b.md",
            address,
            "[a](d/e.md#x), [b](#y), [c](../CHANGELOG.md)",
            "[a](d/e.md#x), [b](#y), [c](../CHANGELOG.md)",
        );
        check("docs/d/e.md", address, "[a](../README.md#x)", "[a](../index.md#x)");
        check("docs/b.md", address, "[a](../LICENSE)", "[a](https://example.com/r/blob/HEAD/LICENSE)");
        check("docs/d/e.md", None, "[a](../../src/d.rs)", "[a](../../../../src/d.rs)");
        check("docs/b.md", None, "[a](../src/AGENTS.md)", "[a](../../../src/)");
        check(
            "CHANGELOG.md",
            None,
            "![a](docs/images/p.png) [b](LICENSE)",
            "![a](docs/images/p.png) [b](../../LICENSE)",
        );
        check("docs/b.md", address, "[a](https://example.com/../g)", "[a](https://example.com/../g)");
        check("docs/b.md", address, "```\n[a](../LICENSE)\n```\n", "```\n[a](../LICENSE)\n```\n");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let site = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(site.path().join(name), text).expect("a page");
        write("a.html", "<a href=\"b.html#there\">b</a> <a href=\"https://example.com\">e</a>");
        write("b.html", "<h1 id=\"there\">b</h1>");
        assert_eq!(check(site.path()), Ok(2));
        write("b.html", "<a href=\"gone.html\">gone</a>");
        let wrong = check(site.path()).expect_err("two links");
        assert!(wrong.contains("a.html: b.html#there leads nowhere"), "{wrong}");
        assert!(wrong.contains("b.html: gone.html leads nowhere"), "{wrong}");
    }
}
