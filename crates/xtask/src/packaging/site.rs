//! The documentation as a site, made by mdBook.
//!
//! In: `docs/` with its summary. Out: pages in which every link leads somewhere: those out of
//! `docs/` lead to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::checkout::{Checkout, run};
use super::tools::Tools;

/// Makes the site in `target/site`, and returns the number of its pages.
pub(crate) fn make(checkout: &Checkout) -> Result<usize, String> {
    let source = checkout.root.join("target/site-source");
    let site = checkout.root.join("target/site");
    for folder in [&source, &site] {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    copy(&checkout.root.join("docs"), "", &source.join("src"), checkout)?;
    for name in ["book.toml", "theme.css"] {
        fs::rename(source.join("src").join(name), source.join(name))
            .map_err(|error| format!("{name}: {error}"))?;
    }
    let program = Tools::with_mdbook(checkout)?;
    run(Command::new(program).arg("build").arg("--dest-dir").arg(&site).arg(&source))?;
    check(&site)
}

/// Copies a folder, and turns the links that lead out of `docs/` in its pages.
fn copy(from: &Path, prefix: &str, to: &Path, checkout: &Checkout) -> Result<(), String> {
    let shown = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(shown)?;
    for entry in fs::read_dir(from).map_err(shown)? {
        let entry = entry.map_err(shown)?;
        let (name, path) = (entry.file_name(), entry.path());
        let to = to.join(&name);
        if entry.file_type().map_err(shown)?.is_dir() {
            copy(&path, &format!("{prefix}{}/", name.to_string_lossy()), &to, checkout)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(&path).map_err(shown)?;
            fs::write(&to, with_links(&text, prefix, checkout.source.as_deref())).map_err(shown)?;
        } else {
            fs::copy(&path, &to).map_err(shown)?;
        }
    }
    Ok(())
}

/// A page whose links out of `docs/` lead to the repository: to its address, or to the files of the
/// checkout.
fn with_links(text: &str, prefix: &str, source: Option<&str>) -> String {
    let mut page = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at + 2);
        page.push_str(before);
        let end = link.find(')').unwrap_or(link.len());
        let target = &link[..end];
        match outside(target, prefix) {
            Some(path) => match source {
                Some(source) => page.push_str(&format!("{source}/blob/main/{path}")),
                None => page.push_str(&format!("{}../../{path}", "../".repeat(prefix.matches('/').count()))),
            },
            None => page.push_str(target),
        }
        rest = &link[end..];
    }
    page + rest
}

/// Path in the repository of a link that leads out of `docs/`.
fn outside<'a>(target: &'a str, prefix: &str) -> Option<&'a str> {
    let mut path = target;
    for _ in 0..=prefix.matches('/').count() {
        path = path.strip_prefix("../")?;
    }
    Some(path)
}

/// Checks that every link of the site leads to a file of it, and to a place in that file.
fn check(site: &Path) -> Result<usize, String> {
    let mut pages = BTreeMap::new();
    read(site, &mut pages)?;
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path, values(text, "id=\"").collect())).collect();
    let mut wrong = Vec::new();
    for (path, text) in &pages {
        for link in values(text, "href=\"") {
            let is_elsewhere =
                link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:");
            if is_elsewhere || link.starts_with("../../") {
                continue;
            }
            let (file, place) = link.split_once('#').map_or((link, ""), |(file, place)| (file, place));
            let target = if file.is_empty() { path.clone() } else { joined(path, file) };
            let target = if target.is_dir() { target.join("index.html") } else { target };
            let has_place = place.is_empty() || ids.get(&target).is_some_and(|ids| ids.contains(place));
            if !target.is_file() || !has_place {
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
        // Made of all pages, so its links are relative to the root.
        } else if name.ends_with(".html") && !["print.html", "404.html", "toc.html"].contains(&&*name) {
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
    fn links_out_of_the_documentation_lead_to_the_repository() {
        let text = "[a](b.md#c), [d](../SECURITY.md#e) and [f](https://example.com/../g)";
        let turned = with_links(text, "", Some("https://example.com/r"));
        assert_eq!(
            turned,
            "[a](b.md#c), [d](https://example.com/r/blob/main/SECURITY.md#e) and [f](https://example.com/../g)"
        );
        assert_eq!(
            with_links("[a](../b.md) [c](../../d.rs)", "decisions/", None),
            "[a](../b.md) [c](../../../d.rs)"
        );
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
