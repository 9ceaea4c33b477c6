//! The tabs of a Sync: one list of its pages, and the navigation between them.
//!
//! In: a card and the current tab. Out: links; each tab is a path segment below the page of the
//! Sync, so it can be opened, shared and cached by itself.

use super::html::Html;
use super::routes::Link;
use crate::api::ApprovalSubject;
use crate::report::board::{ObjectRow, ObjectState, SyncCard};

/// A page of a Sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncTab {
    /// The objects as a list, at the path of the Sync itself.
    Objects,
    /// The objects with what they own.
    Tree,
    /// Commits, repairs, prunes, approvals, rollbacks and failures.
    Timeline,
    /// The objects that differ from Git.
    Diff,
    /// Held objects, and what an approval would delete.
    Plan,
    /// Events of the cluster.
    Events,
    /// The spec in words.
    Settings,
}

impl SyncTab {
    /// All tabs in their order on the page, with path segment and title.
    pub const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::Objects, "", "Objects"),
        (Self::Tree, "tree", "Tree"),
        (Self::Timeline, "timeline", "Timeline"),
        (Self::Diff, "diff", "Diff"),
        (Self::Plan, "plan", "Plan"),
        (Self::Events, "events", "Events"),
        (Self::Settings, "settings", "Settings"),
    ];

    /// Parses the path segment of a tab.
    pub fn parse(segment: &str) -> Option<Self> {
        let named = Self::ALL.into_iter().filter(|(_, known, _)| !known.is_empty());
        named.into_iter().find(|(_, known, _)| *known == segment).map(|(tab, _, _)| tab)
    }

    /// The path segment; empty for the objects.
    pub(crate) fn segment(self) -> &'static str {
        Self::ALL.into_iter().find(|(tab, _, _)| *tab == self).map_or("", |(_, segment, _)| segment)
    }

    /// The title in the navigation.
    pub(crate) fn title(self) -> &'static str {
        Self::ALL.into_iter().find(|(tab, _, _)| *tab == self).map_or("", |(_, _, title)| title)
    }
}

/// Writes the navigation between the tabs of a Sync.
pub(super) fn write_nav(html: &mut Html, card: &SyncCard, current: SyncTab) {
    html.open(
        "nav",
        &[("id", "tabs"), ("data-part", ""), ("class", "tabs"), ("aria-label", "Views of this Sync")],
    );
    html.open("ul", &[]);
    for (tab, _, title) in SyncTab::ALL {
        html.open("li", &[]);
        let marked: &[(&'static str, &str)] = &[("aria-current", "page")];
        html.open_link(&Link::tab(&card.name, tab), if tab == current { marked } else { &[] });
        html.text(title);
        let count = count_of(card, tab);
        if count > 0 {
            html.text(" ");
            html.element("span", &[("class", "count")], &count.to_string());
        }
        html.close();
        html.close();
    }
    html.close();
    html.close();
}

/// Number beside the title: of what waits for somebody there.
fn count_of(card: &SyncCard, tab: SyncTab) -> usize {
    let count = |fits: fn(&ObjectRow<'_>) -> bool| card.objects.rows().filter(fits).count();
    match tab {
        SyncTab::Diff => count(|row| row.state == ObjectState::Drifted),
        SyncTab::Plan => {
            let revisions =
                card.status.approvals.iter().filter(|asked| asked.of == ApprovalSubject::Revision);
            count(|row| row.state == ObjectState::PendingPrune) + revisions.count()
        }
        SyncTab::Objects | SyncTab::Tree | SyncTab::Timeline | SyncTab::Events | SyncTab::Settings => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_is_read_back_from_its_segment() {
        for (tab, segment, _) in SyncTab::ALL {
            assert_eq!(SyncTab::parse(segment), Some(tab).filter(|tab| *tab != SyncTab::Objects));
            assert_eq!(tab.segment(), segment);
        }
        assert_eq!(SyncTab::parse("objects"), None);
    }
}
