//! Builds the tree: objects of a Sync, then what they own by `ownerReferences`.
//!
//! In: the objects of a Sync, and listed objects. Out: [`LiveTree`]. An object stands below one
//! owner: its controller if that is in the tree, else the first owner that is. As for the garbage
//! collector, an owner is of the same namespace or of the cluster, and its kind and name have to
//! match its uid.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{LeftOut, LiveNode, LiveTree, MAX_DEPTH, MAX_NODES, PodSummary};
use crate::health::{self, Context, Health};
use crate::object::{GroupKind, ObjectId};
use crate::report::board::ObjectHealth;
use crate::sanitize::sanitize;

/// The most characters of a message.
const MAX_MESSAGE: usize = 500;
/// The most owners of an object that are read.
const MAX_OWNERS: usize = 8;

/// An object of the Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootObject {
    /// The object.
    pub id: ObjectId,
    /// Its uid, if it is known.
    pub uid: Option<Box<str>>,
    /// True if it contains a value of a Secret, or if that is not known.
    pub hidden: bool,
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedObject {
    /// The object.
    pub id: ObjectId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its owners.
    pub owners: Vec<OwnerReference>,
    /// Time of its creation.
    pub created: Option<Timestamp>,
    /// True if it is being deleted.
    pub deleting: bool,
    /// Its health and the message; `None` if only its metadata were read.
    pub health: Option<(ObjectHealth, Box<str>)>,
    /// Its containers, if it is a whole Pod.
    pub pod: Option<Box<PodSummary>>,
}

/// An owner, as an object names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerReference {
    /// uid of the owner.
    pub uid: Box<str>,
    /// Kind of the owner.
    pub kind: Box<str>,
    /// Name of the owner.
    pub name: Box<str>,
    /// True for the controller.
    pub controls: bool,
}

/// Reads an item of a list; `None` if it is malformed. `whole` is true if it has its status.
pub fn read_listed(kind: &GroupKind, body: &Map<String, Value>, whole: bool) -> Option<ListedObject> {
    let metadata = body.get("metadata")?.as_object()?;
    let text = |field: &str| metadata.get(field).and_then(Value::as_str);
    let namespace = text("namespace").unwrap_or_default();
    let id = ObjectId::new(&kind.group, &kind.kind, namespace, text("name")?).ok()?;
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let owners = owners.into_iter().flatten().take(MAX_OWNERS).filter_map(|owner| {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).map(Box::from);
        let controls = owner.get("controller").and_then(Value::as_bool).unwrap_or_default();
        Some(OwnerReference { uid: text("uid")?, kind: text("kind")?, name: text("name")?, controls })
    });
    let is_pod = id.is_kind("", "Pod");
    Some(ListedObject {
        uid: text("uid")?.into(),
        owners: owners.collect(),
        created: text("creationTimestamp").and_then(|time| time.parse().ok()),
        deleting: metadata.contains_key("deletionTimestamp"),
        health: whole.then(|| state(health::health(kind, body, &Context::default()))),
        pod: (whole && is_pod).then(|| Box::new(PodSummary::read(body))),
        id,
    })
}

/// The health as the page has it, and its message.
fn state(health: Health) -> (ObjectHealth, Box<str>) {
    let word = match &health {
        Health::Healthy => ObjectHealth::Healthy,
        Health::Suspended => ObjectHealth::Suspended,
        Health::Progressing { .. } => ObjectHealth::Progressing,
        Health::Degraded { .. } => ObjectHealth::Degraded,
        Health::Unknown { .. } => ObjectHealth::Unknown,
    };
    let message: String = health.message().unwrap_or_default().chars().take(MAX_MESSAGE).collect();
    (word, sanitize(&message).into())
}

/// Builds the tree.
pub fn build_tree(
    roots: Vec<RootObject>,
    listed: Vec<ListedObject>,
    left_out: Vec<LeftOut>,
    read_at: Timestamp,
) -> LiveTree {
    let mut tree = LiveTree { left_out, read_at, ..LiveTree::default() };
    let mut owned = Vec::new();
    let mut known: HashMap<ObjectId, ListedObject> = HashMap::new();
    let cut = roots.len().saturating_sub(MAX_NODES);
    let ids: std::collections::HashSet<ObjectId> = roots.iter().map(|root| root.id.clone()).collect();
    for object in listed {
        match ids.contains(&object.id) {
            true => drop(known.insert(object.id.clone(), object)),
            false if object.owners.is_empty() => {}
            false => owned.push(Some(object)),
        }
    }
    for root in roots.into_iter().take(MAX_NODES) {
        let seen = known.remove(&root.id);
        let mut node = seen.map_or_else(|| unlisted(root.id.clone()), node_of);
        node.uid = node.uid.or(root.uid);
        hide(&mut node, root.hidden);
        tree.nodes.push(node);
    }
    tree.roots = tree.nodes.len();
    let more = place_owned(&mut tree.nodes, owned) + cut;
    if more > 0 {
        let reason = format!("are left out: a tree has at most {MAX_NODES} objects on {MAX_DEPTH} levels");
        let kind = format!("{more} or more objects");
        tree.left_out.push(LeftOut { kind, namespace: String::new(), reason });
    }
    sort_owned(&mut tree.nodes);
    tree.left_out.sort();
    tree.left_out.dedup();
    tree
}

/// Places owned objects below their owners, level by level. Returns the number of those for which
/// there was no place.
fn place_owned(nodes: &mut Vec<LiveNode>, mut owned: Vec<Option<ListedObject>>) -> usize {
    let mut by_owner: HashMap<Box<str>, Vec<usize>> = HashMap::new();
    for (at, object) in owned.iter().enumerate() {
        for owner in object.iter().flat_map(|object| &object.owners) {
            by_owner.entry(owner.uid.clone()).or_default().push(at);
        }
    }
    let uids: std::collections::HashSet<Box<str>> = nodes
        .iter()
        .filter_map(|node| node.uid.clone())
        .chain(owned.iter().flatten().map(|object| object.uid.clone()))
        .collect();
    let (mut level, mut depth, mut more) = (0..nodes.len(), 0, 0);
    while !level.is_empty() {
        depth += 1;
        let begin = nodes.len();
        for owner in level {
            let Some(uid) = nodes.get(owner).and_then(|node| node.uid.clone()) else { continue };
            for at in by_owner.get(&uid).into_iter().flatten() {
                let Some(slot) = owned.get_mut(*at) else { continue };
                let is_placed_here = slot
                    .as_ref()
                    .zip(nodes.get(owner))
                    .is_some_and(|(object, owner)| belongs(object, owner, &uids));
                let Some(object) = slot.take_if(|_| is_placed_here) else { continue };
                if nodes.len() >= MAX_NODES || depth > MAX_DEPTH {
                    more += 1;
                    continue;
                }
                let mut node = node_of(object);
                node.owner = Some(owner);
                let (place, hidden) = (nodes.len(), nodes.get(owner).is_some_and(|owner| owner.hidden));
                hide(&mut node, hidden);
                if let Some(owner) = nodes.get_mut(owner) {
                    owner.owned.push(place);
                }
                nodes.push(node);
            }
        }
        level = begin..nodes.len();
    }
    more
}

/// True if an object stands below this owner.
fn belongs(object: &ListedObject, owner: &LiveNode, uids: &std::collections::HashSet<Box<str>>) -> bool {
    let same_place = owner.id.namespace().is_none_or(|namespace| object.id.namespace() == Some(namespace));
    let is_named = |named: &&OwnerReference| {
        Some(&named.uid) == owner.uid.as_ref()
            && *named.kind == *owner.id.kind()
            && *named.name == *owner.id.name()
    };
    let Some(named) = object.owners.iter().find(is_named) else { return false };
    let controller = object.owners.iter().find(|owner| owner.controls);
    let is_its_controller =
        controller.is_none_or(|controller| controller.uid == named.uid || !uids.contains(&controller.uid));
    same_place && is_its_controller
}

/// Sorts what each object owns: what needs attention first, then the newest.
pub(super) fn sort_owned(nodes: &mut [LiveNode]) {
    let keys: Vec<_> =
        nodes.iter().map(|node| (!node.needs_attention(), Reverse(node.created), node.id.clone())).collect();
    for node in nodes {
        node.owned.sort_by(|one, other| keys.get(*one).cmp(&keys.get(*other)));
    }
}

fn node_of(object: ListedObject) -> LiveNode {
    let kind = object.id.group_kind();
    let unread = if health::may_report(&kind) { ObjectHealth::NotRead } else { ObjectHealth::NoStatus };
    let (health, message) = object.health.unwrap_or_else(|| (unread, Box::default()));
    LiveNode {
        uid: Some(object.uid),
        created: object.created,
        deleting: object.deleting,
        pod: object.pod,
        health,
        message,
        ..unlisted(object.id)
    }
}

/// An object of which nothing was read.
fn unlisted(id: ObjectId) -> LiveNode {
    LiveNode {
        id,
        uid: None,
        owner: None,
        owned: Vec::new(),
        created: None,
        deleting: false,
        health: ObjectHealth::NotRead,
        message: Box::default(),
        hidden: false,
        pod: None,
    }
}

/// Hides texts that may contain a value of a Secret.
fn hide(node: &mut LiveNode, hidden: bool) {
    node.hidden = hidden;
    if !hidden {
        return;
    }
    node.message = Box::default();
    if let Some(pod) = &mut node.pod {
        pod.hide();
    }
}

#[cfg(test)]
mod tests;
