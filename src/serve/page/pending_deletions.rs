//! The section about pending deletions, with the commands that approve them.

use super::action_forms;
use super::html::Html;
use super::layout;
use super::routes::Link;
use super::tabs::SyncTab;
use crate::api::{APPROVE_ANNOTATION, DELETION_ANNOTATION, DeletionPolicy, Reason, format_deletion_answer};
use crate::grammar::counted;
use crate::report::board::{ObjectState, StatusBoard, SyncCard};

/// The most objects that are listed.
const MAX_NAMED: usize = 50;

/// Writes the pending deletions with the commands that answer them, if there are any; the plan has
/// the objects.
pub(super) fn write_summary(html: &mut Html, board: &StatusBoard, card: &SyncCard) {
    if begin_waiting(html, board, card) {
        if card.status.approval.is_some() {
            html.open("p", &[]);
            html.link(&Link::tab(&card.name, SyncTab::Plan), &[], "Which objects, and why");
            html.close();
        }
        html.close();
    }
}

/// Begins the section about pending deletions, with the approval of a viewer who may give it, and
/// the commands; false if there are none.
fn begin_waiting(html: &mut Html, board: &StatusBoard, card: &SyncCard) -> bool {
    if is_deletion(card) {
        layout::begin_section(html, "waiting", "Pending approval");
        html.element("p", &[], "The deletion of this Sync has stopped. Decide about the remaining objects.");
        answers(html, card);
        return true;
    }
    let Some(approval) = &card.status.approval else { return false };
    layout::begin_section(html, "waiting", "Pending approval");
    let waiting = card.objects.rows().filter(|row| row.state == ObjectState::PendingPrune).count();
    let text = format!(
        "{} removed from Git and waiting to be deleted. Approval covers exactly these objects, by the hash ",
        counted(waiting, "object")
    );
    html.open("p", &[]);
    html.text(&text);
    html.element("code", &[], &approval.hash);
    html.text(".");
    html.close();
    let approves = format!("Approve the deletion of {}", counted(approval.objects, "object"));
    action_forms::write_approval(html, (board, card), &approves, &approval.hash);
    write_commands(html, card);
    true
}

/// Writes the pending deletions with their objects, if there are any.
pub(super) fn write_section(html: &mut Html, board: &StatusBoard, card: &SyncCard) {
    if !begin_waiting(html, board, card) {
        return;
    }
    let waiting: Vec<_> = card.objects.rows().filter(|row| row.state == ObjectState::PendingPrune).collect();
    if waiting.is_empty() {
        return html.close();
    }
    html.open("ul", &[("class", "named")]);
    let mut last = "";
    for row in waiting.iter().take(MAX_NAMED) {
        html.open("li", &[]);
        html.link(&Link::object(&card.name, row.id), &[], &row.id.to_string());
        // Equal messages are written once.
        if row.message != last {
            html.element("span", &[("class", "quiet")], &format!(" {}", row.message));
            last = row.message;
        }
        html.close();
    }
    html.close();
    if waiting.len() > MAX_NAMED {
        let all = Link::sync(&card.name).with_query(&[("state", "pendingprune")]);
        html.open("p", &[]);
        html.link(&all, &[], &format!("and {} more", waiting.len() - MAX_NAMED));
        html.close();
    }
    html.close();
}

/// True if the deletion of the Sync waits for a person.
fn is_deletion(card: &SyncCard) -> bool {
    card.ready_reason().0 == Reason::DeletionHeld.to_string()
}

/// Writes the commands that answer a pending deletion.
fn answers(html: &mut Html, card: &SyncCard) {
    let (namespace, name) = (&card.name.namespace, &card.name.name);
    let generation = card.status.observed_generation.unwrap_or_default();
    for (policy, flag, text) in [
        (DeletionPolicy::Orphan, "--orphan", "Keep them in the cluster:"),
        (DeletionPolicy::Delete, "--delete", "Delete them:"),
    ] {
        html.element("p", &[("class", "advice")], text);
        html.open("div", &[("class", "commands")]);
        html.element("pre", &[("tabindex", "0")], &format!("moorline delete {name} -n {namespace} {flag}"));
        html.element("span", &[("class", "quiet")], "or");
        let annotate = format!(
            "kubectl annotate sync {name} -n {namespace} --overwrite {DELETION_ANNOTATION}={}",
            format_deletion_answer(policy, generation)
        );
        html.element("pre", &[("tabindex", "0")], &annotate);
        html.close();
    }
}

/// Writes the commands that approve the pending prunes, and no later ones, or that answer a pending
/// deletion.
pub(super) fn write_commands(html: &mut Html, card: &SyncCard) {
    if is_deletion(card) {
        return answers(html, card);
    }
    let Some(approval) = &card.status.approval else { return };
    if !card.source.is_resource {
        html.element(
            "p",
            &[("class", "advice")],
            "Approval needs a Sync resource in the cluster: delete the objects by hand, or restore them in Git.",
        );
        return;
    }
    let (namespace, name) = (&card.name.namespace, &card.name.name);
    html.open("div", &[("class", "commands")]);
    html.element("pre", &[("tabindex", "0")], &format!("moorline approve {name} -n {namespace}"));
    html.element("span", &[("class", "quiet")], "or");
    let annotate = format!(
        "kubectl annotate sync {name} -n {namespace} --overwrite {APPROVE_ANNOTATION}={}",
        approval.hash
    );
    html.element("pre", &[("tabindex", "0")], &annotate);
    html.close();
}
