//! A viewer who looks at a live view, and the rights of that viewer.
//!
//! In: a tree or Events. Out: the part that Kubernetes lets the viewer list, with names of what is
//! left out. Without a decision nothing is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use axum::http::header::CONTENT_LENGTH;
use futures::StreamExt as _;
use jiff::Timestamp;

use super::OwnedPod;
use crate::object::GroupKind;
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::live_tree::{EventList, LeftOut, LiveNode, LiveTree, PodName};
use crate::serve::page;
use crate::serve::status_page::{HTML, JSON, NO_STORE, reply};
use crate::serve::viewer::{AccessQuestion, AccessReviews, Viewer};

/// Reviews of rights at the same time, for one view.
const SIDE_BY_SIDE: usize = 8;

/// A request for a live view.
pub(in crate::serve) struct LiveVisit<'a> {
    pub(in crate::serve) board: Arc<StatusBoard>,
    pub(in crate::serve) viewer: &'a Viewer,
    pub(in crate::serve) reviews: &'a AccessReviews,
    pub(in crate::serve) query: &'a str,
    pub(in crate::serve) json: bool,
    pub(in crate::serve) is_head: bool,
}

impl LiveVisit<'_> {
    /// True for a viewer on the loopback interface, and for a person to whom Kubernetes grants it.
    pub(super) async fn is_granted(&self, question: AccessQuestion) -> bool {
        match self.viewer {
            Viewer::Loopback => true,
            // Without a decision nothing is shown.
            Viewer::Person(_) => self.reviews.is_allowed(self.viewer, question).await.unwrap_or_default(),
        }
    }

    /// The tree without the kinds that the viewer may not list, which are named.
    pub(super) async fn visible(&self, tree: Arc<LiveTree>) -> Arc<LiveTree> {
        let refused = self.refused(&tree, (0..tree.nodes.len()).collect()).await;
        if refused.is_empty() {
            return tree;
        }
        let place = |node: &LiveNode| (node.id.group_kind(), node.id.namespace().map(Box::<str>::from));
        let mut visible = tree.without(|node| refused.contains(&place(node)));
        visible.left_out.extend(refused.into_iter().map(|(kind, namespace)| LeftOut {
            kind: kind.to_string(),
            namespace: namespace.unwrap_or_default().into(),
            reason: "is left out: you may not list it".to_owned(),
        }));
        Arc::new(visible)
    }

    /// The tree without the owners of a Pod that the viewer may not list.
    pub(super) async fn visible_above(&self, tree: Arc<LiveTree>, pod: &PodName) -> Arc<LiveTree> {
        let Some((node, _)) = tree.pod(pod) else { return tree };
        let above = std::iter::successors(node.owner, |at| tree.nodes.get(*at)?.owner);
        let refused = self.refused(&tree, above.collect()).await;
        if refused.is_empty() {
            return tree;
        }
        let mut own = LiveTree::clone(&tree);
        let is_refused =
            |node: &LiveNode| refused.contains(&(node.id.group_kind(), node.id.namespace().map(Into::into)));
        // The Pod stays, without what is above the first refused owner.
        let cut: Vec<usize> = own
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.owner.and_then(|at| tree.nodes.get(at)).is_some_and(is_refused))
            .map(|(at, _)| at)
            .collect();
        for at in cut {
            if let Some(node) = own.nodes.get_mut(at) {
                node.owner = None;
            }
        }
        Arc::new(own)
    }

    /// The Events of the namespaces in which the viewer may list Events.
    pub(super) async fn visible_events(&self, events: Arc<EventList>) -> Arc<EventList> {
        let namespaces: BTreeSet<Box<str>> =
            events.events.iter().map(|event| event.namespace.clone()).collect();
        let mut refused = BTreeSet::new();
        for namespace in namespaces {
            let question =
                AccessQuestion { resource: "events".to_owned(), ..pod_question("list", "", &namespace) };
            if !self.is_granted(question).await {
                refused.insert(namespace);
            }
        }
        if refused.is_empty() {
            return events;
        }
        let mut visible = EventList::clone(&events);
        visible.events.retain(|event| !refused.contains(&event.namespace));
        visible.left_out.extend(refused.into_iter().map(|namespace| LeftOut {
            kind: "Event".to_owned(),
            namespace: namespace.into(),
            reason: "is left out: you may not list it".to_owned(),
        }));
        Arc::new(visible)
    }

    /// The kinds and namespaces of some objects of a tree that the viewer may not list.
    async fn refused(&self, tree: &LiveTree, nodes: Vec<usize>) -> BTreeSet<(GroupKind, Option<Box<str>>)> {
        if *self.viewer == Viewer::Loopback {
            return BTreeSet::new();
        }
        let nodes = nodes.into_iter().filter_map(|at| tree.nodes.get(at));
        let places: BTreeSet<(GroupKind, Option<Box<str>>)> =
            nodes.map(|node| (node.id.group_kind(), node.id.namespace().map(Into::into))).collect();
        let reviews = places.into_iter().map(|(kind, namespace)| async move {
            let granted = match tree.plurals.get(&kind) {
                // A kind without a known resource cannot be asked about.
                None => false,
                Some(plural) => {
                    let question = AccessQuestion {
                        verb: "list".to_owned(),
                        group: kind.group.to_string(),
                        resource: plural.to_string(),
                        subresource: String::new(),
                        namespace: namespace.as_deref().map(str::to_owned),
                    };
                    self.is_granted(question).await
                }
            };
            (!granted).then_some((kind, namespace))
        });
        let decided = futures::stream::iter(reviews).buffer_unordered(SIDE_BY_SIDE);
        decided.filter_map(std::future::ready).collect().await
    }

    pub(super) fn pod(&self, card: &SyncCard, owned: &OwnedPod) -> Response<Body> {
        let Some(found) = owned.tree.pod(&owned.pod) else { return self.not_found() };
        self.reply(
            200,
            match self.json {
                true => page::pod_json(&owned.tree, found),
                false => {
                    page::pod_page(&self.board, card, (&owned.tree, &owned.pod), found, Timestamp::now())
                }
            },
        )
    }

    pub(super) fn not_found(&self) -> Response<Body> {
        self.reply(404, page::not_found(&self.board, self.json))
    }

    pub(super) fn reply(&self, status: u16, body: String) -> Response<Body> {
        let kind = if self.json { JSON } else { HTML };
        if !self.is_head {
            return reply(status, kind, NO_STORE, None, body, false);
        }
        // A HEAD reads nothing, so the length is not known.
        let mut response = reply(status, kind, NO_STORE, None, String::new(), true);
        response.headers_mut().remove(CONTENT_LENGTH);
        response
    }
}

/// A question about Pods of a namespace.
pub(super) fn pod_question(verb: &str, subresource: &str, namespace: &str) -> AccessQuestion {
    AccessQuestion {
        verb: verb.to_owned(),
        group: String::new(),
        resource: "pods".to_owned(),
        subresource: subresource.to_owned(),
        namespace: Some(namespace.to_owned()),
    }
}
