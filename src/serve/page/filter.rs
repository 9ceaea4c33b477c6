//! Filters and pagination of lists: by text, state and kind.
//!
//! In: a query. Out: [`Filter`], the matching rows, and links to the other pages.

use super::html::Html;
use super::routes::{Link, query_value};
use crate::report::board::{ObjectHealth, ObjectRow, SyncCard, SyncState};

/// The number of objects on a page.
pub(crate) const OBJECTS_PER_PAGE: usize = 100;
/// The number of Syncs on a page; their rows are larger.
pub(crate) const SYNCS_PER_PAGE: usize = 50;
/// The most characters of the search text.
const MAX_TEXT: usize = 200;

/// The filter of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The search text in lower case.
    pub(crate) text: String,
    /// The search text as typed.
    pub(crate) typed: String,
    pub(crate) state: String,
    pub(crate) kind: String,
    /// Only Syncs with objects in this cluster; empty for all.
    pub(crate) cluster: String,
    /// Order of Syncs; empty for the states that need a person first.
    pub(crate) sort: String,
    /// Grouping of Syncs: `namespace`, `cluster`, `state` or `label:KEY`; empty for none.
    pub(crate) group: String,
    /// Page number, from 1.
    pub(crate) page: usize,
}

/// One more choice in a form.
pub(crate) struct Choice<'a> {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) chosen: &'a str,
    /// Values with their labels; the first value is empty.
    pub(crate) options: Vec<(String, String)>,
}

/// One page of the matching rows.
pub(crate) struct FilteredPage<T> {
    pub(crate) rows: Vec<T>,
    /// Number of all matching rows.
    pub(crate) total: usize,
    pub(crate) page: usize,
    pub(crate) pages: usize,
}

/// State filters for objects, with their labels.
pub(crate) const OBJECT_WORDS: [(&str, &str); 9] = [
    ("", "all"),
    ("attention", "need attention"),
    ("failed", "failed"),
    ("pendingprune", "pending prune"),
    ("outofsync", "out of sync"),
    ("held", "held"),
    ("degraded", "degraded or unknown"),
    ("progressing", "progressing"),
    ("synced", "synced"),
];

impl Filter {
    /// Parses a query.
    pub fn parse(text: &str) -> Self {
        let get = |name| query_value(text, name).unwrap_or_default();
        let typed: String = get("q").chars().take(MAX_TEXT).collect();
        let page = get("page").parse().unwrap_or(1);
        let (text, state) = (typed.trim().to_lowercase(), get("state").trim().to_lowercase());
        let word = |name| get(name).trim().chars().take(MAX_TEXT).collect();
        let (sort, group) = (word("sort"), word("group"));
        let (kind, cluster) = (get("kind"), word("cluster"));
        Self { text, typed, state, kind, cluster, sort, group, page }
    }

    /// True if the filter matches everything.
    pub(crate) fn is_all(&self) -> bool {
        [&self.text, &self.state, &self.kind, &self.cluster].iter().all(|it| it.is_empty())
    }

    /// True if a Sync matches.
    pub(crate) fn fits(&self, card: &SyncCard) -> bool {
        let state = card.state();
        let of_state = match self.state.as_str() {
            "" => true,
            "attention" => state.needs_attention(),
            word => SyncState::parse(word) == Some(state),
        };
        let holds = |text: &str| text.to_lowercase().contains(&self.text);
        let is_there = self.cluster.is_empty() || self.cluster == card.cluster();
        let is_found = || {
            let cluster = card.source.cluster.as_deref().unwrap_or_default();
            holds(&card.name.to_string()) || holds(&card.source.url) || holds(cluster)
        };
        of_state && is_there && (self.text.is_empty() || is_found())
    }

    /// True if an object matches.
    pub(crate) fn fits_object(&self, row: &ObjectRow<'_>) -> bool {
        let of_state = match self.state.as_str() {
            "" => true,
            "attention" => row.needs_attention(),
            "degraded" => matches!(row.health, ObjectHealth::Degraded | ObjectHealth::Unknown),
            "progressing" => matches!(row.health, ObjectHealth::Progressing | ObjectHealth::NotRead),
            word => row.state.label().eq_ignore_ascii_case(word),
        };
        let of_kind = || self.kind.is_empty() || row.id.group_kind().to_string() == self.kind;
        let holds = || row.id.to_string().to_lowercase().contains(&self.text);
        of_state && of_kind() && (self.text.is_empty() || holds())
    }

    /// The requested page of the matching rows, or the last one.
    pub(crate) fn paginate<T>(&self, fitting: impl Iterator<Item = T>, size: usize) -> FilteredPage<T> {
        let all: Vec<T> = fitting.collect();
        let pages = all.len().div_ceil(size).max(1);
        let (page, count) = (self.page.clamp(1, pages), all.len());
        let rows = all.into_iter().skip((page - 1) * size).take(size).collect();
        FilteredPage { rows, total: count, page, pages }
    }

    /// A link to another page with the same filter.
    pub(crate) fn on_page(&self, place: Link, page: usize) -> Link {
        let page = if page > 1 { page.to_string() } else { String::new() };
        let asked = [
            ("q", self.typed.as_str()),
            ("state", &self.state),
            ("kind", &self.kind),
            ("cluster", &self.cluster),
            ("sort", &self.sort),
            ("group", &self.group),
            ("page", &page),
        ];
        place.with_query(&asked)
    }

    /// The page of another filter by state, with the same order and groups.
    pub(crate) fn of_state(&self, state: &str) -> Self {
        Self { state: state.to_owned(), page: 1, ..self.clone() }
    }
}

/// Writes the form: a text, a state, further choices, and the button.
pub(crate) fn form(
    html: &mut Html,
    place: &Link,
    filter: &Filter,
    what: &str,
    words: &[(&str, &str)],
    more: &[Choice<'_>],
) {
    html.open(
        "form",
        &[("class", "filter"), ("method", "get"), ("action", place.as_str()), ("role", "search")],
    );
    html.open("label", &[]);
    html.element("span", &[], "Name");
    let hint = format!("filter {what}");
    html.void(
        "input",
        &[("type", "search"), ("name", "q"), ("id", "q"), ("value", &filter.typed), ("placeholder", &hint)],
    );
    html.close();
    let options = words.iter().map(|(word, meaning)| ((*word).to_owned(), (*meaning).to_owned()));
    let states = Choice { name: "state", label: "State", chosen: &filter.state, options: options.collect() };
    select(html, &states);
    more.iter().for_each(|choice| select(html, choice));
    for (name, value) in [("kind", &filter.kind), ("cluster", &filter.cluster)] {
        if !value.is_empty() {
            html.void("input", &[("type", "hidden"), ("name", name), ("value", value)]);
        }
    }
    html.element("button", &[("type", "submit")], "Filter");
    if !filter.is_all() {
        html.link(place, &[("class", "clear")], "Show all");
    }
    html.close();
}

fn select(html: &mut Html, choice: &Choice<'_>) {
    html.open("label", &[]);
    html.element("span", &[], choice.label);
    html.open("select", &[("name", choice.name), ("id", choice.name)]);
    for (word, meaning) in &choice.options {
        // Without a written value the browser would send the label.
        let value = if word.is_empty() { " " } else { word };
        let attributes: &[(&'static str, &str)] = &[("value", value), ("selected", "")];
        let count = if *word == choice.chosen { 2 } else { 1 };
        html.element("option", &attributes[..count], meaning);
    }
    html.close();
    html.close();
}

/// Writes links to the other pages.
pub(crate) fn write_pagination<T>(html: &mut Html, place: &Link, filter: &Filter, part: &FilteredPage<T>) {
    if part.pages < 2 {
        return;
    }
    html.open("nav", &[("class", "pages"), ("aria-label", "Pages")]);
    let to = |page| filter.on_page(place.clone(), page);
    if part.page > 1 {
        html.link(&to(part.page - 1), &[("rel", "prev")], "← Previous");
    }
    html.element("span", &[], &format!("Page {} of {}", part.page, part.pages));
    if part.page < part.pages {
        html.link(&to(part.page + 1), &[("rel", "next")], "Next →");
    }
    html.close();
}

/// State filters for Syncs, with their labels.
pub(crate) fn sync_states() -> Vec<(&'static str, &'static str)> {
    let states = SyncState::ALL.into_iter().map(|state| match state {
        SyncState::Failing => ("failing", "failing"),
        SyncState::PendingDecision => ("pendingapproval", "pending approval"),
        SyncState::Degraded => ("degraded", "degraded"),
        SyncState::Drifted => ("outofsync", "out of sync"),
        SyncState::Progressing => ("progressing", "progressing"),
        SyncState::Starting => ("starting", "starting"),
        SyncState::Held => ("held", "held"),
        SyncState::Suspended => ("suspended", "suspended"),
        SyncState::Synced => ("synced", "synced"),
    });
    [("", "all"), ("attention", "need attention")].into_iter().chain(states).collect()
}
