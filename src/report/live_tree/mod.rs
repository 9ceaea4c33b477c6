//! The objects of a Sync with the objects that these own, for viewers.
//!
//! In: the objects of a Sync, and lists of a moment. Out: [`LiveTree`], its Pods and their Events.
//! It holds names, times, health and states of containers, and no content of an object. Of an
//! object that contains a value of a Secret, and of all that it owns, images and messages are
//! hidden.

mod build;
mod candidate_kinds;
mod events;
mod pod;

use std::fmt;

use jiff::Timestamp;

pub use build::{ListedObject, OwnerReference, RootObject, build_tree, read_listed};
pub use candidate_kinds::{ReadPlan, WantedList, listed_kinds, plan_reads};
pub use events::{EventList, EventRow, EventSelection};
pub use pod::{ContainerEnd, ContainerRole, ContainerSummary, PodSummary};

use crate::object::ObjectId;
use crate::report::board::ObjectHealth;

/// The most objects of a tree.
pub const MAX_NODES: usize = 5000;
/// The most levels of owned objects below an object of the Sync.
pub const MAX_DEPTH: usize = 8;

/// A Pod, by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The objects of a Sync with the objects that these own, as they were at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveTree {
    /// All objects: first those of the Sync in their order, then the owned ones.
    pub nodes: Vec<LiveNode>,
    /// The number of objects of the Sync.
    pub roots: usize,
    /// Kinds and places that were not read, and bounds that were reached.
    pub left_out: Vec<LeftOut>,
    /// Time of the read.
    pub read_at: Timestamp,
}

/// One object of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveNode {
    /// The object.
    pub id: ObjectId,
    /// Its uid, if it exists.
    pub uid: Option<Box<str>>,
    /// Position of its owner in the tree; `None` for an object of the Sync.
    pub owner: Option<usize>,
    /// Positions of the objects that it owns: those that need attention first, then the newest.
    pub owned: Vec<usize>,
    /// Time of its creation, if it was listed.
    pub created: Option<Timestamp>,
    /// True if it is being deleted.
    pub deleting: bool,
    /// Its health, as far as its status was read.
    pub health: ObjectHealth,
    /// Message about the health; empty if it is healthy or hidden.
    pub message: Box<str>,
    /// True if it, or an owner, contains a value of a Secret.
    pub hidden: bool,
    /// Its containers, if it is a Pod that was read.
    pub pod: Option<Box<PodSummary>>,
}

/// A part of a read that is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The kind, or a word for all kinds.
    pub kind: String,
    /// The namespace; empty for all.
    pub namespace: String,
    /// The reason, as a sentence without a subject.
    pub reason: String,
}

impl LiveTree {
    /// The Pod of a name, if the tree has it.
    pub fn pod(&self, pod: &PodName) -> Option<(&LiveNode, &PodSummary)> {
        let is_it = |node: &&LiveNode| {
            node.id.is_kind("", "Pod")
                && node.id.namespace() == Some(&*pod.namespace)
                && node.id.name() == &*pod.name
        };
        let node = self.nodes.iter().find(is_it)?;
        Some((node, node.pod.as_deref()?))
    }

    /// The owners of an object, the nearest first.
    pub fn owners(&self, node: &LiveNode) -> impl Iterator<Item = &LiveNode> {
        let above = |node: &LiveNode| self.nodes.get(node.owner?);
        std::iter::successors(above(node), move |node| above(node))
    }

    /// The same tree without owned objects that are refused. What they own moves to their owner.
    /// Objects of the Sync stay.
    #[must_use]
    pub fn without(&self, refused: impl Fn(&LiveNode) -> bool) -> Self {
        let is_kept = |(at, node)| at < self.roots || !refused(node);
        let kept: Vec<bool> = self.nodes.iter().enumerate().map(is_kept).collect();
        let mut place = vec![None; self.nodes.len()];
        let mut nodes: Vec<LiveNode> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if !kept.get(at).copied().unwrap_or_default() {
                continue;
            }
            // The nearest owner that is kept: the object of the Sync at the latest.
            let mut owner = node.owner;
            while let Some(above) = owner.filter(|above| !kept.get(*above).copied().unwrap_or_default()) {
                owner = self.nodes.get(above).and_then(|above| above.owner);
            }
            let owner = owner.and_then(|above| place.get(above).copied().flatten());
            if let Some(place) = place.get_mut(at) {
                *place = Some(nodes.len());
            }
            if let Some(above) = owner.and_then(|above| nodes.get_mut(above)) {
                above.owned.push(place.get(at).copied().flatten().unwrap_or_default());
            }
            nodes.push(LiveNode { owner, owned: Vec::new(), ..node.clone() });
        }
        build::sort_owned(&mut nodes);
        Self { nodes, ..self.clone() }
    }
}

impl LiveNode {
    /// True if a person should look at the object.
    pub fn needs_attention(&self) -> bool {
        matches!(self.health, ObjectHealth::Degraded | ObjectHealth::Unknown)
    }
}
