//! The JSON of trees, Events, Pods and logs. docs/page.md has the names of the fields.

use serde_json::{Value, json};

use super::filter::Filter;
use super::live_route::link_of;
use super::logs::{LogContent, LogSelection};
use super::tree::{fitting, health_of};
use crate::report::board::SyncCard;
use crate::report::live_tree::{EventList, EventRow, LeftOut, LiveNode, LiveTree, PodName, PodSummary};

/// `/api/v1/syncs/NAMESPACE/NAME/tree`.
pub fn tree_json(card: &SyncCard, tree: Result<&LiveTree, &str>, filter: &Filter) -> String {
    let tree = match tree {
        Ok(tree) => tree,
        Err(why) => return not_read_json(why),
    };
    let part = fitting(card, tree, filter);
    let objects: Vec<Value> = part.rows.iter().map(|at| node(card, tree, *at)).collect();
    text(&json!({
        "readAt": tree.read_at.to_string(), "objects": objects, "leftOut": left_out(&tree.left_out),
        "fitting": part.total, "page": part.page, "pages": part.pages,
    }))
}

/// An object with what it owns. The tree has few levels.
fn node(card: &SyncCard, tree: &LiveTree, at: usize) -> Value {
    let Some(found) = tree.nodes.get(at) else { return Value::Null };
    let (health, message) = health_of(card, tree, at);
    let owned: Vec<Value> = found.owned.iter().map(|below| node(card, tree, *below)).collect();
    let is_of_sync = at < tree.roots;
    let place = link_of(&card.name, &found.id, is_of_sync).filter(|_| is_of_sync || found.pod.is_some());
    json!({
        "group": found.id.group(), "kind": found.id.kind(),
        "namespace": found.id.namespace(), "name": found.id.name(),
        "created": found.created.map(|time| time.to_string()), "deleting": found.deleting,
        "health": health.label(), "healthMessage": or_null(message),
        "restarts": found.pod.as_ref().map(|pod| pod.restarts()),
        "page": place.map(|place| place.as_str().to_owned()),
        "owned": owned,
    })
}

/// `/api/v1/syncs/NAMESPACE/NAME/events`.
pub fn events_json(events: Result<&EventList, &str>) -> String {
    let list = match events {
        Ok(list) => list,
        Err(why) => return not_read_json(why),
    };
    let event = |event: &EventRow| {
        json!({
            "time": event.time.map(|time| time.to_string()), "type": event.severity, "reason": event.reason,
            "object": event.object.to_string(), "namespace": event.namespace, "count": event.count,
            "reporter": event.reporter, "message": event.message,
        })
    };
    let events: Vec<Value> = list.events.iter().map(event).collect();
    text(&json!({
        "readAt": list.read_at.to_string(), "events": events, "leftOut": left_out(&list.left_out),
    }))
}

/// The JSON in the place of everything that could not be read.
pub fn not_read_json(why: &str) -> String {
    text(&json!({"notRead": why}))
}

/// `/api/v1/syncs/NAMESPACE/NAME/pods/NAMESPACE/NAME`.
pub fn pod_json(tree: &LiveTree, (found, summary): (&LiveNode, &PodSummary)) -> String {
    let time = |time: Option<jiff::Timestamp>| time.map(|time| time.to_string());
    let containers: Vec<Value> = summary
        .containers
        .iter()
        .map(|it| {
            let end = it.last_end.as_ref().map(|end| {
                json!({"reason": end.reason, "exitCode": end.exit_code, "finishedAt": time(end.finished)})
            });
            json!({
                "name": it.name, "role": it.role.label(), "image": it.image, "ready": it.ready,
                "restarts": it.restarts, "state": or_null(it.state), "reason": or_null(&it.reason),
                "startedAt": time(it.started), "lastEnd": end,
            })
        })
        .collect();
    let owners: Vec<String> = tree.owners(found).map(|owner| owner.id.to_string()).collect();
    text(&json!({
        "namespace": found.id.namespace(), "name": found.id.name(), "owners": owners,
        "created": time(found.created), "deleting": found.deleting,
        "health": found.health.label(), "healthMessage": or_null(&found.message),
        "phase": or_null(&summary.phase), "reason": or_null(&summary.reason), "node": or_null(&summary.node),
        "containers": containers,
    }))
}

/// `/api/v1/syncs/NAMESPACE/NAME/pods/NAMESPACE/NAME/logs`.
pub fn logs_json(pod: &PodName, asked: &LogSelection, content: &LogContent<'_>) -> String {
    let command = asked.command(pod);
    text(&match content {
        LogContent::Read(log, is_cut) => {
            json!({"pod": pod.to_string(), "container": asked.container, "text": log, "cut": is_cut})
        }
        LogContent::SignInNeeded => json!({"error": "sign in to read logs", "command": command}),
        LogContent::Forbidden => json!({"error": "you may not get pods/log", "command": command}),
        LogContent::NotRead(why) => json!({"notRead": why, "command": command}),
    })
}

fn left_out(parts: &[LeftOut]) -> Vec<Value> {
    parts
        .iter()
        .map(|part| json!({"kind": part.kind, "namespace": or_null(&part.namespace), "reason": part.reason}))
        .collect()
}

fn or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn text(value: &Value) -> String {
    let mut text = value.to_string();
    text.push('\n');
    text
}
