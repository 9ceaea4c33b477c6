//! The section about a revision that waits for approval, with the form of a viewer who may give it
//! and the commands.

use super::html::Html;
use super::{action_forms, layout};
use crate::api::{APPROVE_ANNOTATION, ApprovalSubject};
use crate::report::board::{StatusBoard, SyncCard};

/// Writes the revision that waits, if there is one.
pub(super) fn write_section(html: &mut Html, board: &StatusBoard, card: &SyncCard) {
    let is_revision = |of| of == ApprovalSubject::Revision;
    let Some(asked) = card.status.approvals.iter().find(|asked| is_revision(asked.of)) else { return };
    layout::begin_section(html, "revision-waiting", "Revision pending approval");
    let revision = asked.revision.as_deref().unwrap_or_default();
    let text = format!(
        "{revision}: {} to create, {} to change, {} to prune. Approval covers exactly this plan.",
        asked.created, asked.changed, asked.pruned
    );
    html.element("p", &[], &text);
    action_forms::write_approval(html, (board, card), "Approve this plan", &asked.hash);
    let (namespace, name) = (&card.name.namespace, &card.name.name);
    html.open("div", &[("class", "commands")]);
    let approve = format!("moorline approve {name} -n {namespace} --hash {}", asked.hash);
    html.element("pre", &[("tabindex", "0")], &approve);
    html.element("span", &[("class", "quiet")], "or");
    let annotate = format!(
        "kubectl annotate sync {name} -n {namespace} --overwrite {APPROVE_ANNOTATION}={}",
        asked.hash
    );
    html.element("pre", &[("tabindex", "0")], &annotate);
    html.close();
    html.open("ul", &[("class", "named")]);
    asked.plan.iter().for_each(|line| html.element("li", &[], line));
    html.close();
    html.close();
}
