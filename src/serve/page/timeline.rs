//! The timeline of a Sync: commits, repairs, prunes, approvals, rollbacks and failures on one axis.
//!
//! In: a card, and a filter by kind and text. Out: entries, newest first, as a page. Revisions come
//! from the status; the rest is known only since the daemon started.

use jiff::Timestamp;

use super::commit;
use super::html::Html;
use super::relative_time::{write_time, write_time_text};
use super::routes::{Link, query_value, query_values};
use super::tabs::SyncTab;
use super::{layout, sync};
use crate::api::HistoryEntry;
use crate::grammar::counted;
use crate::report::board::{Activity, Repair, StatusBoard, SyncCard};

/// The most characters of the search text.
const MAX_TEXT: usize = 200;
/// The number of entries on the first tab.
const LATEST: usize = 5;
/// Seconds between a repair and the line in the history that reports it.
const SAME_REPAIR: i64 = 5;
/// Text in place of fields for a deleted object.
const DELETED: &str = "the whole object was deleted";

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimelineKind {
    Commit,
    Repair,
    Prune,
    Approval,
    Rollback,
    Failure,
    Notice,
}

impl TimelineKind {
    /// All kinds, with the word in queries and JSON, and the label in the filter.
    pub(super) const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Commit, "commit", "Commits"),
        (Self::Repair, "repair", "Repairs"),
        (Self::Prune, "prune", "Prunes"),
        (Self::Approval, "approval", "Approvals"),
        (Self::Rollback, "rollback", "Rollbacks"),
        (Self::Failure, "failure", "Failures"),
        (Self::Notice, "notice", "Other"),
    ];

    pub(super) fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(kind, ..)| *kind == self).map_or("", |(_, word, _)| word)
    }

    /// The kind of a reason of a revision or an Event.
    fn of_reason(reason: &str) -> Self {
        match reason {
            "Applied" => Self::Commit,
            "DriftRepaired" => Self::Repair,
            "Pruned" | "PruneHeld" | "ObjectsOrphaned" | "DeletionHeld" => Self::Prune,
            "Approved" | "ApprovalRequired" => Self::Approval,
            "RolledBack" | "RevisionHeld" => Self::Rollback,
            "Suspended" | "DependencyNotReady" | "HeldByOther" | "ForcePush" | "HistoryUnknown"
            | "Contested" | "ConsoleAction" => Self::Notice,
            _ => Self::Failure,
        }
    }

    /// The CSS class and the sign of a reason of this kind.
    fn style(self, reason: &str) -> (&'static str, &'static str) {
        match self {
            Self::Approval if reason == "ApprovalRequired" => ("ask", "?"),
            Self::Commit | Self::Approval => ("good", "✓"),
            Self::Repair => ("busy", "↺"),
            Self::Prune => ("rest", "−"),
            Self::Rollback => ("ask", "↶"),
            Self::Failure => ("bad", "✕"),
            Self::Notice => ("rest", "·"),
        }
    }
}

/// One entry of the timeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineEntry<'a> {
    pub(super) time: Timestamp,
    pub(super) kind: TimelineKind,
    pub(super) content: EntryContent<'a>,
}

/// Content of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum EntryContent<'a> {
    /// A revision that was applied, refused or rolled back.
    Revision(&'a HistoryEntry),
    /// A repaired edit or deletion.
    Repair(&'a Repair),
    /// Anything else.
    Activity(&'a Activity),
}

impl TimelineEntry<'_> {
    /// The word for the outcome.
    pub(super) fn reason(&self) -> &str {
        match self.content {
            EntryContent::Revision(entry) => &entry.result,
            EntryContent::Activity(activity) => &activity.reason,
            EntryContent::Repair(_) => "DriftRepaired",
        }
    }

    /// True if the text is in anything that the entry shows; it is in lower case.
    fn holds(&self, text: &str) -> bool {
        let has = |part: &str| part.to_lowercase().contains(text);
        let has_detail = match self.content {
            EntryContent::Revision(it) => {
                [&it.revision, &it.subject, &it.author, &it.message].into_iter().any(|it| has(it))
            }
            EntryContent::Activity(it) => has(&it.text),
            EntryContent::Repair(it) => {
                has(&it.id.to_string())
                    || it.fields.iter().any(|it| has(it))
                    || it.manager.as_deref().is_some_and(has)
            }
        };
        has_detail || has(self.reason())
    }
}

/// The filter of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TimelineFilter {
    typed: String,
    kinds: Vec<String>,
}

impl TimelineFilter {
    pub(super) fn parse(query: &str) -> Self {
        let typed = query_value(query, "q").unwrap_or_default().chars().take(MAX_TEXT).collect();
        let is_known = |word: &String| TimelineKind::ALL.iter().any(|(_, known, _)| known == word);
        let kinds = query_values(query, "kinds").into_iter().filter(is_known).collect();
        Self { typed, kinds }
    }

    fn is_all(&self) -> bool {
        self.typed.is_empty() && self.kinds.is_empty()
    }

    fn chooses(&self, kind: TimelineKind) -> bool {
        self.kinds.iter().any(|word| word == kind.word())
    }

    fn fits(&self, entry: &TimelineEntry<'_>) -> bool {
        let text = self.typed.trim().to_lowercase();
        (self.kinds.is_empty() || self.chooses(entry.kind)) && (text.is_empty() || entry.holds(&text))
    }
}

/// All entries of a Sync, newest first. A repair is listed once, with its fields.
pub(super) fn entries(card: &SyncCard) -> Vec<TimelineEntry<'_>> {
    let is_told = |activity: &Activity| {
        let near = |repair: &Repair| {
            (repair.repaired_at.0.as_second() - activity.time.0.as_second()).abs() <= SAME_REPAIR
        };
        let of = |repair: &&Repair| near(repair) && activity.text.contains(&repair.id.to_string());
        TimelineKind::of_reason(&activity.reason) == TimelineKind::Repair
            && card.repairs.iter().any(|it| of(&it))
    };
    let revision = |it| EntryContent::Revision(it);
    let contents = card.status.history.iter().map(revision);
    let contents = contents.chain(card.repairs.iter().map(EntryContent::Repair));
    let contents =
        contents.chain(card.activities.iter().filter(|it| !is_told(it)).map(EntryContent::Activity));
    let mut all: Vec<TimelineEntry<'_>> = contents
        .map(|content| match content {
            EntryContent::Revision(it) => (it.time.0, TimelineKind::of_reason(&it.result), content),
            EntryContent::Activity(it) => (it.time.0, TimelineKind::of_reason(&it.reason), content),
            EntryContent::Repair(it) => (it.repaired_at.0, TimelineKind::Repair, content),
        })
        .map(|(time, kind, content)| TimelineEntry { time, kind, content })
        .collect();
    all.sort_by_key(|entry| std::cmp::Reverse(entry.time));
    all
}

/// The entries that match a filter, newest first.
pub(super) fn matching<'a>(card: &'a SyncCard, filter: &TimelineFilter) -> Vec<TimelineEntry<'a>> {
    entries(card).into_iter().filter(|entry| filter.fits(entry)).collect()
}

pub(super) fn page(board: &StatusBoard, card: &SyncCard, query: &str, now: Timestamp) -> String {
    let mut html = sync::begin_page(board, card, SyncTab::Timeline, now);
    let filter = TimelineFilter::parse(query);
    html.open("section", &[("id", "history")]);
    html.element("h2", &[], "Timeline");
    form(&mut html, &Link::tab(&card.name, SyncTab::Timeline), &filter);
    html.open("div", &[("id", "rows"), ("data-part", "")]);
    let (all, shown) = (entries(card).len(), matching(card, &filter));
    let text = match filter.is_all() {
        true if all == 0 => "Nothing yet.".to_owned(),
        true => counted(all, "entry"),
        false => format!("{} of {}", shown.len(), counted(all, "entry")),
    };
    html.element("p", &[("class", "quiet")], &text);
    html.open("ol", &[("class", "axis")]);
    let mut day = String::new();
    for entry in &shown {
        let this = entry.time.strftime("%Y-%m-%d").to_string();
        if this != day {
            html.open("li", &[("class", "day")]);
            html.element("h3", &[], &this);
            html.close();
            day = this;
        }
        write_entry(&mut html, card, entry, now);
    }
    html.close();
    html.close();
    html.element(
        "p",
        &[("class", "quiet")],
        "Revisions are kept in the status of the Sync. Everything else is known since this daemon started.",
    );
    html.close();
    sync::end_page(html, board, card, SyncTab::Timeline)
}

/// Writes the newest entries, with a link to all of them.
pub(super) fn write_latest(html: &mut Html, card: &SyncCard, now: Timestamp) {
    let all = entries(card);
    if all.is_empty() {
        return;
    }
    layout::begin_section(html, "latest", "Latest");
    html.open("ol", &[("class", "axis")]);
    all.iter().take(LATEST).for_each(|entry| write_entry(html, card, entry, now));
    html.close();
    html.link(&Link::tab(&card.name, SyncTab::Timeline), &[], "Timeline");
    html.close();
}

fn form(html: &mut Html, place: &Link, filter: &TimelineFilter) {
    let attributes = [("class", "filter"), ("method", "get"), ("action", place.as_str()), ("role", "search")];
    html.open("form", &attributes);
    html.open("label", &[]);
    html.element("span", &[], "Text");
    let input = [
        ("type", "search"),
        ("name", "q"),
        ("id", "q"),
        ("value", &*filter.typed),
        ("placeholder", "filter entries"),
    ];
    html.void("input", &input);
    html.close();
    html.open("fieldset", &[]);
    html.element("legend", &[], "Kinds");
    for (kind, word, label) in TimelineKind::ALL {
        html.open("label", &[("class", "choice")]);
        let chosen: &[(&'static str, &str)] =
            &[("type", "checkbox"), ("name", "kinds"), ("value", word), ("checked", "")];
        html.void("input", if filter.chooses(kind) { chosen } else { &chosen[..3] });
        html.text(label);
        html.close();
    }
    html.close();
    html.element("button", &[("type", "submit")], "Filter");
    if !filter.is_all() {
        html.link(place, &[("class", "clear")], "Show all");
    }
    html.close();
}

fn write_entry(html: &mut Html, card: &SyncCard, entry: &TimelineEntry<'_>, now: Timestamp) {
    let (class, sign) = entry.kind.style(entry.reason());
    html.open("li", &[("class", class)]);
    html.open("p", &[("class", "when")]);
    write_time(html, entry.time, now);
    html.close();
    html.open("div", &[("class", "what")]);
    html.open("span", &[("class", &format!("badge {class}"))]);
    html.element("span", &[("aria-hidden", "true")], sign);
    html.text(" ");
    html.text(entry.reason());
    html.close();
    html.text(" ");
    match entry.content {
        EntryContent::Revision(it) => revision(html, card, it),
        EntryContent::Activity(it) => html.text(&it.text),
        EntryContent::Repair(it) => repair(html, card, it, now),
    }
    html.close();
    html.close();
}

/// Writes a commit with its subject, its author and its changes.
fn revision(html: &mut Html, card: &SyncCard, entry: &HistoryEntry) {
    commit::write_revision(html, &card.source.url, &entry.revision);
    below(html, &subject_and_author(entry));
    below(html, &changes(entry));
    below(html, &entry.message);
}

/// The subject and the author of a commit.
pub(super) fn subject_and_author(entry: &HistoryEntry) -> String {
    let words = [&entry.subject, &entry.author].map(String::as_str);
    let words: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
    words.join(" — ")
}

/// The changes for a revision, and the duration.
fn changes(entry: &HistoryEntry) -> String {
    let changes = (!entry.changes.is_empty()).then(|| entry.changes.to_string());
    let took = entry.duration.as_ref().map(|took| format!("in {took}"));
    changes.into_iter().chain(took).collect::<Vec<_>>().join(" ")
}

/// Writes a repair: the object, the fields, and who changed them.
fn repair(html: &mut Html, card: &SyncCard, repair: &Repair, now: Timestamp) {
    match card.objects.row(&repair.id) {
        Some(_) => html.link(&Link::object(&card.name, &repair.id), &[], &repair.id.to_string()),
        None => html.text(&repair.id.to_string()),
    }
    html.text(if repair.was_deleted { " recreated" } else { " repaired" });
    html.open("span", &[("class", "quiet below")]);
    html.text(if repair.was_deleted { "deleted by " } else { "changed by " });
    html.text(repair.manager.as_deref().unwrap_or("an unknown field manager"));
    if let Some(time) = &repair.changed_at {
        html.text(", ");
        write_time_text(html, time, now);
    }
    html.close();
    let deleted = [DELETED.to_owned()];
    for field in if repair.was_deleted { &deleted[..] } else { &repair.fields } {
        html.element("code", &[("class", "below")], field);
    }
}

fn below(html: &mut Html, text: &str) {
    if !text.is_empty() {
        html.element("span", &[("class", "quiet below")], text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_a_kind_and_a_style() {
        for (reason, kind, class) in [
            ("Applied", "commit", "good"),
            ("DriftRepaired", "repair", "busy"),
            ("Pruned", "prune", "rest"),
            ("PruneHeld", "prune", "rest"),
            ("Approved", "approval", "good"),
            ("ApprovalRequired", "approval", "ask"),
            ("RolledBack", "rollback", "ask"),
            ("RevisionHeld", "rollback", "ask"),
            ("Contested", "notice", "rest"),
            ("ConsoleAction", "notice", "rest"),
            ("Suspended", "notice", "rest"),
            ("ManifestInvalid", "failure", "bad"),
            ("ApplyFailed", "failure", "bad"),
        ] {
            let found = TimelineKind::of_reason(reason);
            assert_eq!((found.word(), found.style(reason).0), (kind, class), "{reason}");
        }
    }
}
