//! The tree of a Sync: its objects, and what they own, level by level.
//!
//! In: a tree that was read for viewers. Out: nested lists that open and close without a script.
//! Objects that need attention come first, and what they own is open.

use jiff::Timestamp;

use super::filter::{Filter, FilteredPage, OBJECT_WORDS, OBJECTS_PER_PAGE, form, write_pagination};
use super::html::Html;
use super::live_route::{LiveView, link_of};
use super::relative_time::write_time;
use super::tabs::SyncTab;
use super::{badge, layout, sync};
use crate::grammar::counted;
use crate::report::board::{ObjectHealth, StatusBoard, SyncCard};
use crate::report::live_tree::{LeftOut, LiveNode, LiveTree};

/// The most objects below one owner that a page shows.
const MAX_OWNED: usize = 25;
/// The most objects of a page.
const MAX_SHOWN: usize = 220;
/// Up to this number of objects, a page shows all of them open.
const MAX_OPEN: usize = 60;
/// The most entries of the list of what is left out.
const MAX_LEFT_OUT: usize = 30;

/// Renders the tree, or the reason why it was not read.
pub fn tree_page(
    board: &StatusBoard,
    card: &SyncCard,
    tree: Result<&LiveTree, &str>,
    filter: &Filter,
    now: Timestamp,
) -> String {
    let place = LiveView::Tree.link(&card.name);
    let mut html = sync::begin_read_page(board, card, SyncTab::Tree, now);
    html.open("section", &[("id", "tree")]);
    html.element("h2", &[], "Tree");
    match tree {
        Err(why) => html.element("p", &[], &format!("It was not read: {why}")),
        Ok(tree) => {
            form(&mut html, &place, filter, "objects", &OBJECT_WORDS, &[]);
            let part = fitting(card, tree, filter);
            summary(&mut html, tree, &part, now);
            let shown: usize = part.rows.iter().map(|root| count_below(tree, *root) + 1).sum();
            let mut drawing = Drawing { card, tree, now, left: MAX_SHOWN, all_open: shown <= MAX_OPEN };
            html.open("ul", &[("class", "tree")]);
            drawing.left = drawing.left.saturating_sub(part.rows.len());
            part.rows.iter().for_each(|root| drawing.node(&mut html, *root));
            html.close();
            write_pagination(&mut html, &place, filter, &part);
            write_left_out(&mut html, &tree.left_out);
        }
    }
    html.close();
    layout::end_page(html, board, Some(&place.json()))
}

/// Begins the page of a live view, with its breadcrumbs.
pub(super) fn begin(board: &StatusBoard, card: &SyncCard, name: &str, title: &str) -> Html {
    let version = super::sync_version(board, card);
    let live = layout::LiveUpdates::NotifyOnly(name, version);
    let mut html = layout::begin_page(&format!("{title} · {name} · Moorline"), live);
    sync::crumbs(&mut html, card, Some(title));
    html
}

/// The objects of the Sync that fit, those that need attention first, then those that own others.
pub(super) fn fitting(card: &SyncCard, tree: &LiveTree, filter: &Filter) -> FilteredPage<usize> {
    let fits = |at: &usize| {
        let row = tree.nodes.get(*at).and_then(|node| card.objects.row(&node.id));
        filter.is_all() || row.is_some_and(|row| filter.fits_object(&row) || attends(card, tree, *at, filter))
    };
    let mut roots: Vec<usize> = (0..tree.roots).filter(fits).collect();
    let owns = |at: usize| tree.nodes.get(at).is_some_and(|node| !node.owned.is_empty());
    roots.sort_by_cached_key(|at| (!needs_attention(card, tree, *at), !owns(*at), *at));
    filter.paginate(roots.into_iter(), OBJECTS_PER_PAGE)
}

/// True if an owned object matches the filter for objects that need attention.
fn attends(card: &SyncCard, tree: &LiveTree, at: usize, filter: &Filter) -> bool {
    filter.state == "attention"
        && filter.text.is_empty()
        && filter.kind.is_empty()
        && needs_attention(card, tree, at)
}

/// The health of an object: that of the Sync's objects is known without a read.
pub(super) fn health_of<'a>(card: &'a SyncCard, tree: &'a LiveTree, at: usize) -> (ObjectHealth, &'a str) {
    let Some(node) = tree.nodes.get(at) else { return (ObjectHealth::NotRead, "") };
    let row = if at < tree.roots { card.objects.row(&node.id) } else { None };
    match row {
        Some(row) => (row.health, row.health_message),
        None => (node.health, &node.message),
    }
}

/// True if an object, or one below it, needs attention.
fn needs_attention(card: &SyncCard, tree: &LiveTree, at: usize) -> bool {
    let is_bad = matches!(health_of(card, tree, at).0, ObjectHealth::Degraded | ObjectHealth::Unknown);
    let row = tree.nodes.get(at).filter(|_| at < tree.roots).and_then(|node| card.objects.row(&node.id));
    is_bad
        || row.is_some_and(|row| row.needs_attention())
        || owned(tree, at).iter().any(|below| needs_attention(card, tree, *below))
}

fn owned(tree: &LiveTree, at: usize) -> &[usize] {
    tree.nodes.get(at).map_or(&[], |node| &node.owned)
}

fn count_below(tree: &LiveTree, at: usize) -> usize {
    owned(tree, at).iter().map(|below| count_below(tree, *below) + 1).sum()
}

fn summary(html: &mut Html, tree: &LiveTree, part: &FilteredPage<usize>, now: Timestamp) {
    html.open("p", &[("class", "quiet")]);
    html.text(&counted(part.total, "object"));
    html.text(&format!(" of the Sync, {} owned by them; read ", tree.nodes.len() - tree.roots));
    write_time(html, tree.read_at, now);
    html.close();
}

/// Writes what is missing in a read.
pub(super) fn write_left_out(html: &mut Html, left_out: &[LeftOut]) {
    if left_out.is_empty() {
        return;
    }
    html.open("details", &[("id", "left-out")]);
    html.element("summary", &[], &format!("Left out: {}", left_out.len()));
    html.open("ul", &[("class", "named")]);
    for part in left_out.iter().take(MAX_LEFT_OUT) {
        html.open("li", &[]);
        html.element("b", &[], &part.kind);
        if !part.namespace.is_empty() {
            html.text(&format!(" in {}", part.namespace));
        }
        html.text(&format!(" {}", part.reason));
        html.close();
    }
    if left_out.len() > MAX_LEFT_OUT {
        html.element("li", &[], &format!("and {} more", left_out.len() - MAX_LEFT_OUT));
    }
    html.close();
    html.close();
}

/// A tree that is being written.
struct Drawing<'a> {
    card: &'a SyncCard,
    tree: &'a LiveTree,
    now: Timestamp,
    /// The number of objects that the page may still show.
    left: usize,
    all_open: bool,
}

impl Drawing<'_> {
    fn node(&mut self, html: &mut Html, at: usize) {
        let Some(node) = self.tree.nodes.get(at) else { return };
        html.open("li", &[]);
        self.line(html, at, node);
        if !node.owned.is_empty() {
            let bad =
                node.owned.iter().filter(|below| needs_attention(self.card, self.tree, **below)).count();
            let is_open = self.all_open || bad > 0;
            html.open("details", if is_open { &[("open", "")] } else { &[] });
            let mut text = format!("owns {}", counted(node.owned.len(), "object"));
            if bad > 0 {
                text.push_str(&format!(", {bad} of them unhealthy or with unhealthy ones below"));
            }
            html.element("summary", &[], &text);
            html.open("ul", &[]);
            let shown = node.owned.len().min(MAX_OWNED).min(self.left);
            self.left -= shown;
            node.owned.iter().take(shown).for_each(|below| self.node(html, *below));
            let more = node.owned.len() - shown;
            if more > 0 {
                html.element("li", &[("class", "quiet")], &format!("and {more} more; the JSON has all"));
            }
            html.close();
            html.close();
        }
        html.close();
    }

    fn line(&self, html: &mut Html, at: usize, node: &LiveNode) {
        html.element("span", &[("class", "quiet")], &format!("{} ", node.id.kind()));
        let is_of_sync = at < self.tree.roots;
        match link_of(&self.card.name, &node.id, is_of_sync) {
            Some(place) if is_of_sync || node.pod.is_some() => html.link(&place, &[], &name_of(node)),
            _ => html.text(&name_of(node)),
        }
        html.text(" ");
        let (health, message) = health_of(self.card, self.tree, at);
        badge::health(html, health);
        if node.deleting {
            html.text(" being deleted");
        }
        if let Some(pod) = node.pod.as_deref().filter(|pod| pod.restarts() > 0) {
            html.text(&format!(
                " {}",
                counted(usize::try_from(pod.restarts()).unwrap_or_default(), "restart")
            ));
        }
        if let Some(created) = node.created {
            html.text(" ");
            html.open("span", &[("class", "quiet")]);
            write_time(html, created, self.now);
            html.close();
        }
        if !message.is_empty() {
            html.element("span", &[("class", "quiet below")], message);
        }
    }
}

/// The name, with the namespace if the object is one of the Sync.
fn name_of(node: &LiveNode) -> String {
    match (node.owner, node.id.namespace()) {
        (None, Some(namespace)) => format!("{namespace}/{}", node.id.name()),
        _ => node.id.name().to_owned(),
    }
}
