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
use crate::report::board::{ObjectPlace, StatusBoard, SyncCard};
use crate::report::live_tree::{EventList, LeftOut, LiveNode, LiveTree, PodName};
use crate::serve::login::SessionEnd;
use crate::serve::page;
use crate::serve::status_page::{HTML, JSON, NO_STORE, reply, with_referrer};
use crate::serve::viewer::{AccessQuestion, AccessReviews, Viewer};

/// Reviews of rights at the same time, for one view.
const SIDE_BY_SIDE: usize = 8;

/// A request for a live view.
pub(in crate::serve) struct LiveVisit<'a> {
    pub(in crate::serve) board: Arc<StatusBoard>,
    /// The task that asks for rights, the person, and the end of the session; `None` on the
    /// loopback interface without a sign-in.
    pub(in crate::serve) person: Option<(&'a AccessReviews, &'a Viewer, SessionEnd)>,
    pub(in crate::serve) query: &'a str,
    pub(in crate::serve) json: bool,
    pub(in crate::serve) is_head: bool,
}

impl LiveVisit<'_> {
    /// True for a viewer on the loopback interface, and for a person to whom Kubernetes grants it.
    pub(super) async fn is_granted(&self, question: AccessQuestion) -> bool {
        match &self.person {
            None => true,
            // Without a decision nothing is shown.
            Some((reviews, viewer, _)) => reviews.is_allowed(viewer, question).await.unwrap_or_default(),
        }
    }

    /// The tree without owned objects of kinds that the viewer may not list, which are named.
    /// Objects of the Sync stay, as in its list: by name and health alone without the right to
    /// `get` them.
    pub(super) async fn visible(&self, tree: Arc<LiveTree>) -> Arc<LiveTree> {
        let unlisted = self.refused(&tree, "list", (tree.roots..tree.nodes.len()).collect()).await;
        let unread = self.refused(&tree, "get", (0..tree.roots).collect()).await;
        if unlisted.is_empty() && unread.is_empty() {
            return tree;
        }
        let mut visible = tree.without(|node| unlisted.contains(&place(node)));
        let roots = visible.roots;
        for node in visible.nodes.iter_mut().take(roots).filter(|node| unread.contains(&place(node))) {
            (node.created, node.deleting, node.pod) = (None, false, None);
            node.message = "".into();
        }
        let unlisted = unlisted.into_iter().map(|place| (place, "is left out: you may not list it"));
        let unread = unread.into_iter().map(|place| (place, "is shown by name only: you may not get it"));
        visible.left_out.extend(unlisted.chain(unread).map(|((kind, namespace), reason)| LeftOut {
            kind: kind.to_string(),
            namespace: namespace.unwrap_or_default().into(),
            reason: reason.to_owned(),
        }));
        Arc::new(visible)
    }

    /// The tree without the owners of a Pod that the viewer may not list.
    pub(super) async fn visible_above(&self, tree: Arc<LiveTree>, pod: &PodName) -> Arc<LiveTree> {
        let Some((node, _)) = tree.pod(pod) else { return tree };
        let above = std::iter::successors(node.owner, |at| tree.nodes.get(*at)?.owner);
        // Names of the Sync's own objects are shown.
        let above = above.filter(|at| *at >= tree.roots).collect();
        let refused = self.refused(&tree, "list", above).await;
        if refused.is_empty() {
            return tree;
        }
        let mut own = LiveTree::clone(&tree);
        let is_refused = |node: &LiveNode| node.owner.is_some() && refused.contains(&place(node));
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
        let reviews = namespaces.into_iter().map(|namespace| async move {
            let question =
                AccessQuestion { resource: "events".to_owned(), ..pod_question("list", "", &namespace) };
            (!self.is_granted(question).await).then_some(namespace)
        });
        let decided = futures::stream::iter(reviews).buffer_unordered(SIDE_BY_SIDE);
        let refused: BTreeSet<Box<str>> = decided.filter_map(std::future::ready).collect().await;
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

    /// The kinds and namespaces of some objects of a tree for which the viewer lacks a verb.
    async fn refused(&self, tree: &LiveTree, verb: &str, nodes: Vec<usize>) -> BTreeSet<ObjectPlace> {
        if self.person.is_none() {
            return BTreeSet::new();
        }
        let nodes = nodes.into_iter().filter_map(|at| tree.nodes.get(at));
        let places: BTreeSet<ObjectPlace> = nodes.map(place).collect();
        let reviews = places.into_iter().map(|place| async move {
            let is_granted = self.is_granted(AccessQuestion::of_place(verb, &place)).await;
            (!is_granted).then_some(place)
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
            let whole = reply(status, kind, NO_STORE, None, body, false);
            return if self.person.is_some() { with_referrer(whole) } else { whole };
        }
        // A HEAD reads nothing, so the length is not known.
        let mut response = reply(status, kind, NO_STORE, None, String::new(), true);
        response.headers_mut().remove(CONTENT_LENGTH);
        response
    }
}

fn place(node: &LiveNode) -> ObjectPlace {
    (node.id.group_kind(), node.id.namespace().map(Into::into))
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
