//! Layout that all pages share: head, header bar, footer, and the page for unknown paths.
//!
//! In: a title, and the kind of live updates. Out: a document around the content. Style sheet and
//! script are files whose names contain their digest, so browsers cache them until they change.

use super::html::Html;
use super::routes::Link;
use crate::report::board::{BoardViewer, DaemonRole, StatusBoard};

/// The style sheet.
pub const STYLE: &str = include_str!("page.css");
/// The script; without it everything works except live updates.
pub const SCRIPT: &str = include_str!("page.js");
/// The icon beside the title.
pub const ICON: &str = include_str!("icon.svg");

const STYLE_AS: u64 = digest(STYLE.as_bytes());
const SCRIPT_AS: u64 = digest(SCRIPT.as_bytes());

/// Digest of a file's content (FNV-1a). It needs no cryptographic strength: the files are our own.
const fn digest(bytes: &[u8]) -> u64 {
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Live updates of a page, and the version that it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveUpdates<'a> {
    /// Update everything when any Sync changes.
    All(u64),
    /// Update everything when this Sync changes.
    Sync(&'a str, u64),
    /// Only report that this Sync has changed: the content was read for this viewer.
    NotifyOnly(&'a str, u64),
    /// No updates.
    Off,
}

/// Begins a page; the body is written into `main`, which [`end_page`] closes.
pub(crate) fn begin_page(title: &str, live: LiveUpdates<'_>) -> Html {
    let mut html = Html::default();
    html.void("!doctype", &[("html", "")]);
    html.open("html", &[("lang", "en")]);
    html.open("head", &[]);
    html.void("meta", &[("charset", "utf-8")]);
    html.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    html.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    html.element("title", &[], title);
    let style = format!("/page.css?v={STYLE_AS:x}");
    let script = format!("/page.js?v={SCRIPT_AS:x}");
    html.void("link", &[("rel", "stylesheet"), ("href", Link::file(&style).as_str())]);
    html.void("link", &[("rel", "icon"), ("href", "/icon.svg"), ("type", "image/svg+xml")]);
    html.element("script", &[("src", &script), ("defer", "")], "");
    html.close();
    let events = |of: &str| Link::file("/events").with_query(&[("of", of)]).as_str().to_owned();
    let live = match live {
        LiveUpdates::All(version) => Some(("", version, "show")),
        LiveUpdates::Sync(of, version) => Some((of, version, "show")),
        LiveUpdates::NotifyOnly(of, version) => Some((of, version, "tell")),
        LiveUpdates::Off => None,
    };
    match live {
        Some((of, version, then)) => {
            let (events, version) = (events(of), version.to_string());
            html.open("body", &[("data-events", &events), ("data-version", &version), ("data-then", then)]);
        }
        None => html.open("body", &[]),
    }
    html.link(&Link::anchor("main"), &[("class", "skip")], "Skip to the content");
    html.open("header", &[("class", "bar")]);
    html.open_link(&Link::overview(), &[("class", "brand")]);
    html.element("span", &[("aria-hidden", "true")], "⚓");
    html.text(" Moorline");
    html.close();
    html.element("span", &[("id", "live"), ("role", "status"), ("class", "quiet")], "");
    html.close();
    html.open("main", &[("id", "main"), ("tabindex", "-1")]);
    html
}

/// Ends a page, with a link to the same content as JSON.
pub(crate) fn end_page(mut html: Html, board: &StatusBoard, json: Option<&Link>) -> String {
    html.close();
    html.open("footer", &[]);
    match (&board.role, &board.viewer) {
        (DaemonRole::Serving, None) => {
            html.element("span", &[], "This page is read-only. Make changes in Git.");
        }
        (DaemonRole::Serving, Some(_)) => html.element("span", &[], "Make changes of objects in Git."),
        (DaemonRole::Starting, _) => html.element("span", &[], "The daemon is starting."),
        (DaemonRole::Standby(_), _) => html.element("span", &[], "This daemon is on standby."),
    }
    if let Some(viewer) = &board.viewer {
        person(&mut html, viewer);
    }
    if let Some(json) = json {
        html.text(" ");
        html.link(json, &[], "View as JSON");
    }
    html.close();
    html.finish()
}

/// Writes the name of the person, and the form that ends the session if there is one to end.
fn person(html: &mut Html, viewer: &BoardViewer) {
    html.text(" You are ");
    html.element("b", &[], &viewer.user);
    html.text(". ");
    if viewer.signs_out {
        html.open("form", &[("method", "post"), ("action", "/logout"), ("class", "sign-out")]);
        html.element("button", &[("type", "submit")], "Sign out");
        html.close();
        html.text(" ");
    }
}

/// Begins a section that the script replaces on updates.
pub(crate) fn begin_section(html: &mut Html, id: &'static str, title: &str) {
    html.open("section", &[("id", id), ("data-part", "")]);
    html.element("h2", &[], title);
}

/// The page for unknown paths.
pub(crate) fn not_found_page(board: &StatusBoard) -> String {
    let mut html = begin_page("Not found · Moorline", LiveUpdates::Off);
    html.element("h1", &[], "Not found");
    let or = if board.viewer.is_some() { ", or you may not see it" } else { "" };
    let text = format!("This daemon knows no Sync or object of this name; it may have been deleted{or}.");
    html.element("p", &[], &text);
    html.open("p", &[]);
    html.link(&Link::overview(), &[], "All Syncs");
    html.close();
    end_page(html, board, None)
}

/// Writes the leader if this daemon does not lead; true if it wrote something.
pub(crate) fn stance(html: &mut Html, board: &StatusBoard) -> bool {
    match &board.role {
        DaemonRole::Serving => return false,
        DaemonRole::Starting => {
            html.element("h1", &[], "The daemon is starting");
            html.element("p", &[], "Its Syncs will be listed in a moment.");
        }
        DaemonRole::Standby(leader) => {
            html.element("h1", &[], "This daemon is on standby");
            html.open("p", &[]);
            match leader {
                Some(leader) => {
                    html.text("The leader serves the Syncs and this page: ");
                    html.element("code", &[], leader);
                    html.text(". Open the page there.");
                }
                None => html.text("It waits for the Lease; the holder is not known yet."),
            }
            html.close();
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_content() {
        assert_ne!(digest(b"a"), digest(b"b"));
        assert_eq!(digest(b""), 0xcbf2_9ce4_8422_2325);
        let html = begin_page("a", LiveUpdates::Sync("ops/shop", 7)).finish();
        assert!(html.starts_with("<!doctype html><html lang=\"en\">"), "{html}");
        assert!(html.contains(&format!("/page.css?v={STYLE_AS:x}")), "{html}");
        assert!(html.contains("data-events=\"/events?of=ops%2Fshop\" data-version=\"7\""), "{html}");
    }
}
