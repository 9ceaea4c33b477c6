//! The next commit of a Sync: the plan that the daemon has of it, or why it has none.
//!
//! In: a card. Out: [`NextCommit`], from the status alone. A Sync that is not held has no next
//! commit: each is applied as soon as it is seen. The plan of a suspended or held one is made on a
//! page of its own, when a viewer asks for it.

use crate::api::{ApprovalSubject, PendingApproval};
use crate::report::board::{SyncCard, SyncState};

use super::html::Html;
use super::live_route::LiveView;
use super::{commit, layout};

/// The next commit of a Sync, as far as the daemon knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextCommit<'a> {
    /// The newest revision that was seen, if it is not applied.
    pub(super) revision: Option<&'a str>,
    /// The plan of that revision.
    pub(super) plan: Option<&'a PendingApproval>,
    /// The reason why there is no plan, or what the plan waits for.
    pub(super) text: String,
    /// The plan is made when a viewer asks for it.
    pub(super) is_on_demand: bool,
}

/// Returns what is known about the next commit.
pub(super) fn next_commit(card: &SyncCard) -> NextCommit<'_> {
    let revisions = card.status.revision.as_ref();
    let seen = revisions.and_then(|it| it.seen.as_deref());
    let applied = revisions.and_then(|it| it.applied.as_deref());
    let revision = seen.filter(|seen| Some(*seen) != applied);
    let asked = card.status.approvals.iter().find(|asked| asked.of == ApprovalSubject::Revision);
    let plan = asked.filter(|asked| revision.is_some() && asked.revision.as_deref() == revision);
    let none = |why: &str| format!("{why}, so there is no plan of it. `{}` computes one.", command(card));
    let chosen = revisions.and_then(|it| it.chosen.as_ref());
    let interval = &card.source.interval;
    let text = match card.state() {
        _ if plan.is_some() => "It waits for approval; its plan is below.".to_owned(),
        SyncState::Starting => "The repository was not read yet.".to_owned(),
        SyncState::Suspended => "The Sync is suspended: new commits are not applied.".to_owned(),
        _ if chosen.is_some() && revision.is_none() => {
            "The Sync is held at the newest commit that was seen. A newer one is not applied until it is released.".to_owned()
        }
        _ if chosen.is_some() => {
            "The Sync is held at a revision: newer commits are not applied until it is released.".to_owned()
        }
        _ if asked.is_some() => none("An earlier revision waits for approval, and this one was not rendered yet"),
        _ if revision.is_some() && card.status.approval.is_some() => {
            "It is applied, except for the deletions below, which wait for approval.".to_owned()
        }
        SyncState::Failing if revision.is_some() => none("It could not be applied; the reason is above"),
        _ if revision.is_some() => "It is being applied: a commit is applied as soon as it is seen.".to_owned(),
        _ if card.status.approval.is_some() => {
            "Every commit so far is applied, except for the deletions below. The next one is applied once it is seen.".to_owned()
        }
        _ if interval.is_empty() => "There is none: every commit so far is applied, and the next one is applied once it is seen.".to_owned(),
        _ => format!(
            "There is none: every commit so far is applied, and the next one is applied once it is seen. The repository is polled every {interval}."
        ),
    };
    let is_on_demand = plan.is_none() && (card.state() == SyncState::Suspended || chosen.is_some());
    NextCommit { revision, plan, text, is_on_demand }
}

/// The command that computes the plan of the newest commit.
fn command(card: &SyncCard) -> String {
    format!("moorline plan --sync {} -n {}", card.name.name, card.name.namespace)
}

/// Writes what the next commit would do.
pub(super) fn write_section(html: &mut Html, card: &SyncCard) {
    layout::begin_section(html, "next", "Next commit");
    let next = next_commit(card);
    if let Some(revision) = next.revision {
        html.open("p", &[]);
        html.text("The newest commit that was seen: ");
        commit::write_revision(html, &card.source.url, revision);
        html.close();
    }
    // Words between back quotes are code.
    html.open("p", &[]);
    for (at, part) in next.text.split('`').enumerate() {
        match at % 2 {
            0 => html.text(part),
            _ => html.element("code", &[], part),
        }
    }
    html.close();
    if next.is_on_demand {
        html.open("p", &[]);
        html.link(&LiveView::NextPlan.link(&card.name), &[], "Show the plan of the newest commit");
        html.close();
    }
    html.close();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{SyncName, SyncStatus};

    #[test]
    fn the_next_commit_has_the_plan_that_the_daemon_has_or_a_reason_why_there_is_none() {
        let ready = |status: &str, reason: &str| {
            json!([{"type": "Ready", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-11-22T10:00:00Z"}])
        };
        let revision = json!({"seen": "main@2", "applied": "main@1"});
        let same = json!({"seen": "main@1", "applied": "main@1"});
        let chosen = |revision: &Value| {
            let mut held = revision.clone();
            held["chosen"] = json!({"revision": "main@1"});
            held
        };
        let asks = |of: &str| json!([{"of": "Revision", "hash": "h", "revision": of, "changed": 1}]);
        let prune = json!({"hash": "h", "objects": 2});
        for (conditions, revision, more, newest, has_plan, text) in [
            (
                ready("False", "ApprovalRequired"),
                &revision,
                json!({"approvals": asks("main@2")}),
                Some("main@2"),
                true,
                "its plan is below",
            ),
            (
                ready("False", "ApprovalRequired"),
                &revision,
                json!({"approvals": asks("main@0")}),
                Some("main@2"),
                false,
                "An earlier revision",
            ),
            (ready("False", "Suspended"), &revision, json!({}), Some("main@2"), false, "suspended"),
            (
                ready("False", "YamlInvalid"),
                &revision,
                json!({}),
                Some("main@2"),
                false,
                "could not be applied",
            ),
            (
                ready("False", "PruneHeld"),
                &revision,
                json!({"approval": prune}),
                Some("main@2"),
                false,
                "except for the deletions",
            ),
            (
                ready("False", "PruneHeld"),
                &same,
                json!({"approval": prune}),
                None,
                false,
                "except for the deletions",
            ),
            (
                ready("True", "Applied"),
                &chosen(&revision),
                json!({}),
                Some("main@2"),
                false,
                "held at a revision",
            ),
            (ready("True", "Applied"), &chosen(&same), json!({}), None, false, "held at the newest"),
            (ready("False", "Progressing"), &revision, json!({}), Some("main@2"), false, "being applied"),
            (ready("True", "Applied"), &same, json!({}), None, false, "There is none"),
            (json!([]), &json!({}), json!({}), None, false, "not read yet"),
        ] {
            let mut status = json!({"conditions": conditions, "revision": revision});
            more.as_object().into_iter().flatten().for_each(|(name, value)| status[name] = value.clone());
            let status: SyncStatus = serde_json::from_value(status.clone()).unwrap();
            let card = SyncCard::of_resource(SyncName::new("ops", "shop"), Arc::default(), status);
            let next = next_commit(&card);
            assert_eq!((next.revision, next.plan.is_some()), (newest, has_plan), "{text}");
            assert!(next.text.contains(text), "{text}: {}", next.text);
            let is_on_demand = ["suspended", "held at a revision", "held at the newest"].contains(&text);
            assert_eq!(next.is_on_demand, is_on_demand, "{text}");
        }
    }
}
