//! The plan of the newest revision of a Sync that is suspended or held, made for a viewer.
//!
//! In: a card, and the plan or the reason why there is none. Out: a page below the tab of plans,
//! and its JSON. It is read-only: nothing here approves or applies it.

use jiff::Timestamp;
use serde_json::json;

use super::html::Html;
use super::live_route::LiveView;
use super::relative_time::write_time;
use super::routes::Link;
use super::tabs::SyncTab;
use super::{commit, json, layout, live_json, sync};
use crate::grammar::counted;
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::next_plan::NextPlan;

/// Renders the plan, or the reason why there is none.
pub fn next_plan_page(
    board: &StatusBoard,
    card: &SyncCard,
    plan: Result<&NextPlan, &str>,
    now: Timestamp,
) -> String {
    let mut html = sync::begin_read_page(board, card, SyncTab::Plan, now);
    layout::begin_section(&mut html, "next-plan", "Plan of the newest commit");
    match plan {
        Err(why) => html.element("p", &[], &format!("It was not made: {why}.")),
        Ok(plan) => write_plan(&mut html, card, plan, now),
    }
    html.open("p", &[]);
    html.link(&Link::tab(&card.name, SyncTab::Plan), &[], "Back to the plan of this Sync");
    html.close();
    html.close();
    layout::end_page(html, board, Some(&LiveView::NextPlan.link(&card.name).json()))
}

fn write_plan(html: &mut Html, card: &SyncCard, plan: &NextPlan, now: Timestamp) {
    let changes = &plan.changes;
    html.open("p", &[]);
    commit::write_revision(html, &card.source.url, &plan.revision);
    html.text(&format!(
        ": {} to create, {} to change, {} to prune. Nothing of it is applied while the Sync is suspended or held.",
        changes.created, changes.changed, changes.pruned
    ));
    html.close();
    html.open("p", &[("class", "quiet")]);
    html.text("Made ");
    write_time(html, plan.made_at, now);
    html.close();
    html.open("ul", &[("class", "named")]);
    changes.lines.iter().for_each(|line| html.element("li", &[], line));
    for (reason, count) in &plan.held {
        html.element("li", &[], &format!("hold {}: {reason}", counted(*count, "object")));
    }
    html.close();
    if !plan.unobserved.is_empty() {
        let kinds: Vec<&str> = plan.unobserved.iter().map(String::as_str).collect();
        let text = format!("Deletions are missing of kinds that cannot be listed: {}.", kinds.join(", "));
        html.element("p", &[], &text);
    }
}

/// `/api/v1/syncs/NAMESPACE/NAME/plan/next`.
pub fn next_plan_json(plan: Result<&NextPlan, &str>) -> String {
    let plan = match plan {
        Ok(plan) => plan,
        Err(why) => return live_json::not_read_json(why),
    };
    json::text(&json!({
        "revision": plan.revision, "created": plan.changes.created, "changed": plan.changes.changed,
        "pruned": plan.changes.pruned, "plan": plan.changes.lines, "held": plan.held,
        "unobserved": plan.unobserved, "readAt": plan.made_at.to_string(),
    }))
}
