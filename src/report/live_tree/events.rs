//! Events of the Kubernetes API about a Sync, its objects and what these own.
//!
//! In: a tree, and listed Events. Out: [`EventList`], the newest first. The message of an Event
//! about an object that may contain a value of a Secret is hidden: controllers quote what they
//! refuse.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{LeftOut, LiveTree};
use crate::api::SyncName;
use crate::object::ObjectId;
use crate::report::board::NOT_SHOWN;
use crate::sanitize::sanitize;

/// The most Events that are kept.
pub const MAX_EVENTS: usize = 500;
/// The most characters of a message.
const MAX_MESSAGE: usize = 1000;
/// The most characters of another text.
const MAX_WORD: usize = 200;

/// Events, as they were at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventList {
    /// The Events, the newest first.
    pub events: Vec<EventRow>,
    /// Namespaces that were not read, and bounds that were reached.
    pub left_out: Vec<LeftOut>,
    /// Time of the read.
    pub read_at: Timestamp,
}

/// One Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its last time.
    pub time: Option<Timestamp>,
    /// `Normal` or `Warning`.
    pub severity: Box<str>,
    /// Its reason.
    pub reason: Box<str>,
    /// The object; the Sync itself is an object, too.
    pub object: ObjectId,
    /// Position in the tree, if the object is there.
    pub node: Option<usize>,
    /// The namespace of the Event.
    pub namespace: Box<str>,
    /// The number of times that it was reported.
    pub count: u64,
    /// The controller that reported it.
    pub reporter: Box<str>,
    /// Its message.
    pub message: Box<str>,
}

/// Selects the Events about a Sync and its tree.
pub fn build_events<'a>(
    sync: &SyncName,
    tree: &LiveTree,
    listed: impl Iterator<Item = &'a Map<String, Value>>,
    mut left_out: Vec<LeftOut>,
    read_at: Timestamp,
) -> EventList {
    let by_uid: HashMap<&str, usize> =
        tree.nodes.iter().enumerate().filter_map(|(at, node)| Some((node.uid.as_deref()?, at))).collect();
    let by_id: HashMap<&ObjectId, usize> =
        tree.nodes.iter().enumerate().map(|(at, node)| (&node.id, at)).collect();
    let mut events: Vec<EventRow> = listed
        .filter_map(|event| {
            let about = event.get("involvedObject").or_else(|| event.get("regarding"))?;
            let object = object_of(about)?;
            let uid = about.get("uid").and_then(Value::as_str).unwrap_or_default();
            let node = by_uid.get(uid).or_else(|| by_id.get(&object)).copied();
            let is_sync = object.is_kind("moorline.dev", "Sync")
                && object.namespace() == Some(&sync.namespace)
                && object.name() == &*sync.name;
            (node.is_some() || is_sync).then(|| row(event, object, node, tree))
        })
        .collect();
    events.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.object.cmp(&other.object)));
    if events.len() > MAX_EVENTS {
        let kind = format!("{} older Events", events.len() - MAX_EVENTS);
        let reason = format!("are left out: at most {MAX_EVENTS} are shown");
        left_out.push(LeftOut { kind, namespace: String::new(), reason });
        events.truncate(MAX_EVENTS);
    }
    EventList { events, left_out, read_at }
}

fn object_of(about: &Value) -> Option<ObjectId> {
    let text = |field: &str| about.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    ObjectId::new(group, text("kind"), text("namespace"), text("name")).ok()
}

fn row(event: &Map<String, Value>, object: ObjectId, node: Option<usize>, tree: &LiveTree) -> EventRow {
    let word = |path: &[&str]| {
        let value = path.iter().skip(1).try_fold(event.get(path[0])?, |value, field| value.get(field));
        value.and_then(Value::as_str).filter(|text| !text.is_empty())
    };
    let text = |found: Option<&str>, most| -> Box<str> {
        let text: String = found.unwrap_or_default().chars().take(most).collect();
        sanitize(&text).into()
    };
    let times = [&["series", "lastObservedTime"][..], &["lastTimestamp"], &["eventTime"], &["firstTimestamp"]];
    let created = word(&["metadata", "creationTimestamp"]);
    let time = times.iter().find_map(|path| word(path)).or(created).and_then(|time| time.parse().ok());
    let number = |value: Option<&Value>| value.and_then(Value::as_u64);
    let count = number(event.get("series").and_then(|series| series.get("count")))
        .or_else(|| number(event.get("count")))
        .unwrap_or(1);
    let is_hidden = object.is_kind("", "Secret")
        || node.and_then(|at| tree.nodes.get(at)).is_some_and(|node| node.hidden);
    let message = word(&["message"]).or_else(|| word(&["note"]));
    EventRow {
        time,
        severity: text(word(&["type"]), MAX_WORD),
        reason: text(word(&["reason"]), MAX_WORD),
        namespace: text(word(&["metadata", "namespace"]), MAX_WORD),
        reporter: text(word(&["reportingComponent"]).or_else(|| word(&["source", "component"])), MAX_WORD),
        message: if is_hidden { NOT_SHOWN.into() } else { text(message, MAX_MESSAGE) },
        object,
        node,
        count,
    }
}
