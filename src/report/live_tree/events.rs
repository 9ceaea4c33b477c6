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
const MAX_EVENTS: usize = 500;
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
#[derive(Debug)]
pub struct EventSelection<'a> {
    sync: &'a SyncName,
    tree: &'a LiveTree,
    by_uid: HashMap<&'a str, usize>,
    by_id: HashMap<&'a ObjectId, usize>,
}

impl<'a> EventSelection<'a> {
    /// Creates the selection of a Sync with its tree.
    pub fn new(sync: &'a SyncName, tree: &'a LiveTree) -> Self {
        let nodes = || tree.nodes.iter().enumerate();
        Self {
            sync,
            tree,
            by_uid: nodes().filter_map(|(at, node)| Some((node.uid.as_deref()?, at))).collect(),
            by_id: nodes().map(|(at, node)| (&node.id, at)).collect(),
        }
    }

    /// Reads an Event; `None` if it is about another object.
    pub fn select(&self, event: &Map<String, Value>) -> Option<EventRow> {
        let about = event.get("involvedObject").or_else(|| event.get("regarding"))?;
        let object = object_of(about)?;
        let uid = about.get("uid").and_then(Value::as_str).unwrap_or_default();
        let node = self.by_uid.get(uid).or_else(|| self.by_id.get(&object)).copied();
        let is_sync = object.is_kind("moorline.dev", "Sync")
            && object.namespace() == Some(&self.sync.namespace)
            && *object.name() == *self.sync.name;
        (node.is_some() || is_sync).then(|| row(event, object, node, self.tree))
    }
}

impl EventList {
    /// Sorts Events and keeps the newest.
    pub fn new(mut events: Vec<EventRow>, mut left_out: Vec<LeftOut>, read_at: Timestamp) -> Self {
        events.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.object.cmp(&other.object)));
        if events.len() > MAX_EVENTS {
            let kind = format!("{} older Events", events.len() - MAX_EVENTS);
            let reason = format!("are left out: at most {MAX_EVENTS} are shown");
            left_out.push(LeftOut { kind, namespace: String::new(), reason });
            events.truncate(MAX_EVENTS);
        }
        Self { events, left_out, read_at }
    }
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
    let times =
        [&["series", "lastObservedTime"][..], &["lastTimestamp"], &["eventTime"], &["firstTimestamp"]];
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
