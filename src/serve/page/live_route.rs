//! Paths of the views that are read while somebody looks: tree, Events, Pods, logs, and plans.
//!
//! In: the segments of a path below a Sync. Out: [`LiveView`], and links to it.

use super::routes::Link;
use crate::api::SyncName;
use crate::object::ObjectId;
use crate::report::board::ObjectHealth;
use crate::report::live_tree::{ContainerRole, LiveNode, LiveTree, PodName, PodSummary};

/// A view of a Sync that is read while somebody looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveView {
    /// The objects of the Sync with what they own.
    Tree,
    /// The Events about the Sync, its objects and what they own.
    Events,
    /// A Pod that the Sync owns.
    Pod(PodName),
    /// The log of a container of such a Pod.
    Logs(PodName),
    /// The log of the first Pod that fails, to which it redirects.
    FailingLog,
    /// The plan of the newest revision, while the Sync is suspended or held.
    NextPlan,
}

impl LiveView {
    /// Parses the segments after those of the Sync.
    pub(super) fn parse(words: &[&str]) -> Option<Self> {
        let pod = |namespace: &str, name: &str| {
            // The name has to be one that an object can have.
            let id = ObjectId::new("", "Pod", namespace, name).ok()?;
            Some(PodName { namespace: id.namespace()?.into(), name: id.name().into() })
        };
        match words {
            ["tree"] => Some(Self::Tree),
            ["events"] => Some(Self::Events),
            ["failing-log"] => Some(Self::FailingLog),
            ["plan", "next"] => Some(Self::NextPlan),
            ["pods", namespace, name] => pod(namespace, name).map(Self::Pod),
            ["pods", namespace, name, "logs"] => pod(namespace, name).map(Self::Logs),
            _ => None,
        }
    }

    /// The link to this view of a Sync.
    pub(crate) fn link(&self, sync: &SyncName) -> Link {
        let words = match self {
            Self::Tree => vec!["tree"],
            Self::Events => vec!["events"],
            Self::FailingLog => vec!["failing-log"],
            Self::NextPlan => vec!["plan", "next"],
            Self::Pod(pod) => vec!["pods", &*pod.namespace, &*pod.name],
            Self::Logs(pod) => vec!["pods", &*pod.namespace, &*pod.name, "logs"],
        };
        Link::sync(sync).below(&words)
    }
}

/// The page of an object in a tree, if it has one: an object of the Sync, or a Pod.
pub(super) fn link_of(sync: &SyncName, id: &ObjectId, is_of_sync: bool) -> Option<Link> {
    match id.namespace() {
        Some(namespace) if id.is_kind("", "Pod") => {
            let pod = PodName { namespace: namespace.into(), name: id.name().into() };
            Some(LiveView::Pod(pod).link(sync))
        }
        _ if is_of_sync => Some(Link::object(sync, id)),
        _ => None,
    }
}

/// The log of the first Pod of a tree that fails, of the container that keeps it from being ready.
pub(crate) fn failing_log(sync: &SyncName, tree: &LiveTree) -> Option<Link> {
    let urgency = |node: &LiveNode| match node.health {
        ObjectHealth::Degraded => Some(0),
        ObjectHealth::Unknown => Some(1),
        ObjectHealth::Progressing => Some(2),
        ObjectHealth::NoStatus | ObjectHealth::NotRead | ObjectHealth::Healthy | ObjectHealth::Suspended => {
            None
        }
    };
    let pods = tree.nodes.iter().filter(|node| node.pod.is_some());
    let (_, node) = pods.filter_map(|node| Some((urgency(node)?, node))).min_by_key(|(rank, _)| *rank)?;
    let pod = PodName { namespace: node.id.namespace()?.into(), name: node.id.name().into() };
    let container = node.pod.as_deref().and_then(failing_container).unwrap_or_default();
    Some(LiveView::Logs(pod).link(sync).with_query(&[("container", container)]))
}

/// The first container that is not ready; those that only look into others do not count.
fn failing_container(pod: &PodSummary) -> Option<&str> {
    let may_fail = |role| role != ContainerRole::Ephemeral;
    let fails = pod.containers.iter().find(|it| !it.ready && may_fail(it.role));
    fails.map(|container| &*container.name)
}
