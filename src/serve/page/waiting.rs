//! What waits to be deleted, and the very command that lets it go ahead.

use super::frame;
use super::html::{Html, counted};
use super::place::Place;
use crate::api::APPROVE_ANNOTATION;
use crate::report::board::{Card, ObjectState};

/// So many of them are named.
const MAX_NAMED: usize = 50;

/// Writes what waits for approval, if anything does.
pub(super) fn part(html: &mut Html, card: &Card) {
    if card.status.approval.is_none() {
        return;
    }
    frame::part(html, "waiting", "What waits for your word");
    let waiting: Vec<_> = card.objects.rows().filter(|row| row.state == ObjectState::Leaving).collect();
    let told = format!(
        "{} left Git and would be deleted. Nothing else waits: each goes only if it is still the same one.",
        counted(waiting.len(), "object")
    );
    html.element("p", &[], &told);
    command(html, card);
    html.open("ul", &[("class", "named")]);
    let mut last = "";
    for row in waiting.iter().take(MAX_NAMED) {
        html.open("li", &[]);
        html.link(&Place::object(&card.name, row.id), &[], &row.id.to_string());
        // What is said of all of them is said once.
        if row.message != last {
            html.element("span", &[("class", "quiet")], &format!(" {}", row.message));
            last = row.message;
        }
        html.close();
    }
    html.close();
    if waiting.len() > MAX_NAMED {
        let all = Place::sync(&card.name).with(&[("state", "leaving")]);
        html.open("p", &[]);
        html.link(&all, &[], &format!("and {} more", waiting.len() - MAX_NAMED));
        html.close();
    }
    html.close();
}

/// The commands that approve what waits now, and nothing that comes later.
pub(super) fn command(html: &mut Html, card: &Card) {
    let Some(approval) = &card.status.approval else { return };
    if !card.subject.is_resource {
        html.element(
            "p",
            &[("class", "advice")],
            "Without a Sync in the cluster there is nothing that could be approved: delete them by hand, or bring them back in Git.",
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
