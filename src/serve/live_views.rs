//! Answers the views that read the cluster: tree, Events, Pods and logs.
//!
//! In: a view, its viewer, and a channel to the task that reads with the rights of the Sync. Out: a
//! response. Of a person, Kubernetes is asked about each kind and namespace of a view, and what it
//! refuses is left out and named; bytes of a log go out only to a person who may get `pods/log`. A
//! viewer on the loopback interface sees what its page of an object shows, and no logs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use futures::StreamExt as _;
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::live_requests::{LiveRequest, LogRequest};
use super::log_stream::LogStream;
use super::status_page::{HTML, JSON, NO_STORE, built, head, plain, reply};
use super::viewer::{AccessQuestion, AccessReviews, Viewer};
use crate::api::SyncName;
use crate::cluster::LogOptions;
use crate::object::GroupKind;
use crate::report::board::{StatusBoard, SyncCard};
use crate::report::live_tree::{EventList, LeftOut, LiveTree, PodName};
use crate::serve::page::{self, Filter, LiveView, LogContent, LogSelection, LogText};

/// The most logs that are followed at the same time.
pub(super) const MAX_LOG_STREAMS: usize = 16;
/// The longest wait for a tree or Events. One read takes no longer, and another may run before.
const READ_TIMEOUT: Duration = Duration::from_secs(12);
/// The longest wait for the whole of a log that is not followed.
const LOG_TIMEOUT: Duration = Duration::from_secs(8);
/// The most bytes of the last lines that the server sends; the last of them are shown.
const MAX_READ: usize = 8 * page::MAX_LOG_BYTES;
/// The number of older lines with which a followed log begins.
const FOLLOWED_LINES: usize = 200;
/// Reviews of rights at the same time, for one view.
const SIDE_BY_SIDE: usize = 8;
const TEXT: &str = "text/plain; charset=utf-8";

/// A request for a live view.
pub(super) struct LiveVisit<'a> {
    pub(super) board: Arc<StatusBoard>,
    pub(super) viewer: &'a Viewer,
    pub(super) reviews: &'a AccessReviews,
    pub(super) query: &'a str,
    pub(super) json: bool,
    pub(super) is_head: bool,
}

/// Answers live views.
#[derive(Debug)]
pub(super) struct LivePages {
    requests: mpsc::Sender<LiveRequest>,
    ending: watch::Receiver<bool>,
    streams: Arc<Semaphore>,
}

/// A Pod of a tree.
struct OwnedPod {
    tree: Arc<LiveTree>,
    pod: PodName,
}

impl LivePages {
    pub(super) fn new(requests: mpsc::Sender<LiveRequest>, ending: watch::Receiver<bool>) -> Self {
        Self { requests, ending, streams: Arc::new(Semaphore::new(MAX_LOG_STREAMS)) }
    }

    /// Answers a request.
    pub(super) async fn respond(
        &self,
        visit: &LiveVisit<'_>,
        sync: &SyncName,
        view: &LiveView,
    ) -> Response<Body> {
        let Some(card) = visit.board.cards.get(sync).cloned() else { return visit.not_found() };
        let of_sync = AccessQuestion::sync("get", &sync.namespace);
        if !visit.is_granted(of_sync).await {
            return visit.not_found();
        }
        if visit.is_head {
            return visit.reply(200, String::new());
        }
        match view {
            LiveView::Tree => self.tree(visit, &card).await,
            LiveView::Events => self.events(visit, &card).await,
            LiveView::Pod(pod) => match self.owned_pod(visit, &card, pod, "get").await {
                Ok(owned) => visit.pod(&card, &owned),
                Err(response) => response,
            },
            LiveView::Logs(pod) => match self.owned_pod(visit, &card, pod, "get").await {
                Ok(owned) => self.logs(visit, &card, owned).await,
                Err(response) => response,
            },
        }
    }

    async fn tree(&self, visit: &LiveVisit<'_>, card: &SyncCard) -> Response<Body> {
        let read = match self.read_tree(&card.name).await {
            Ok(tree) => Ok(visit.visible(tree).await),
            Err(why) => Err(why),
        };
        let tree = read.as_deref().map_err(String::as_str);
        let (filter, status) = (Filter::parse(visit.query), if tree.is_ok() { 200 } else { 503 });
        visit.reply(
            status,
            match visit.json {
                true => page::tree_json(card, tree, &filter),
                false => page::tree_page(&visit.board, card, tree, &filter, Timestamp::now()),
            },
        )
    }

    async fn events(&self, visit: &LiveVisit<'_>, card: &SyncCard) -> Response<Body> {
        let read = self.ask(|answer| LiveRequest::Events { sync: card.name.clone(), answer }).await;
        let read = match read {
            Ok(events) => Ok(visit.visible_events(events).await),
            Err(why) => Err(why),
        };
        let events = read.as_deref().map_err(String::as_str);
        visit.reply(
            if events.is_ok() { 200 } else { 503 },
            match visit.json {
                true => page::events_json(events),
                false => page::events_page(&visit.board, card, events, Timestamp::now()),
            },
        )
    }

    /// Finds a Pod in the tree of the Sync: no other Pod is shown.
    async fn owned_pod(
        &self,
        visit: &LiveVisit<'_>,
        card: &SyncCard,
        pod: &PodName,
        verb: &str,
    ) -> Result<OwnedPod, Response<Body>> {
        let question = pod_question(verb, "", &pod.namespace);
        if !visit.is_granted(question).await {
            return Err(visit.not_found());
        }
        let tree = match self.read_tree(&card.name).await {
            Ok(tree) => tree,
            Err(why) => {
                let text = format!("The Pods of the Sync were not read: {why}\n");
                return Err(plain(StatusCode::SERVICE_UNAVAILABLE, &text));
            }
        };
        if tree.pod(pod).is_none() {
            return Err(visit.not_found());
        }
        // Owners that the viewer may not list are not named.
        Ok(OwnedPod { tree: visit.visible_above(tree, pod).await, pod: pod.clone() })
    }

    async fn logs(&self, visit: &LiveVisit<'_>, card: &SyncCard, owned: OwnedPod) -> Response<Body> {
        let Some((_, summary)) = owned.tree.pod(&owned.pod) else { return visit.not_found() };
        let Some(asked) = LogSelection::parse(visit.query, summary) else { return visit.not_found() };
        let show = |status: u16, content: &LogContent<'_>| {
            visit.reply(
                status,
                match visit.json {
                    true => page::logs_json(&owned.pod, &asked, content),
                    false => page::logs_page(&visit.board, card, (&owned.pod, summary), &asked, content),
                },
            )
        };
        if *visit.viewer == Viewer::Loopback {
            return show(403, &LogContent::SignInNeeded);
        }
        let question = pod_question("get", "log", &owned.pod.namespace);
        let reviewed = Instant::now();
        if !visit.is_granted(question.clone()).await {
            return show(403, &LogContent::Forbidden);
        }
        let place = match asked.follow {
            false => None,
            true => match self.streams.clone().try_acquire_owned() {
                Ok(place) => Some(place),
                Err(_) => {
                    let text = format!("{MAX_LOG_STREAMS} logs are followed already.\n");
                    let mut refusal = plain(StatusCode::SERVICE_UNAVAILABLE, &text);
                    refusal.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("30"));
                    return refusal;
                }
            },
        };
        let log = match self.open_log(&card.name, &owned.pod, &asked).await {
            Ok(log) => log,
            Err(why) => return show(502, &LogContent::NotRead(&why)),
        };
        match place {
            Some(place) => {
                let stream = LogStream::new(log, visit, (question, reviewed), self.ending.clone(), place);
                let builder = head(200, TEXT, NO_STORE, None);
                built(builder.body(Body::from_stream(stream.into_texts())))
            }
            None => {
                let (text, is_cut) = last_lines(log).await;
                show(200, &LogContent::Read(&text, is_cut))
            }
        }
    }

    async fn open_log(
        &self,
        sync: &SyncName,
        pod: &PodName,
        asked: &LogSelection,
    ) -> Result<mpsc::Receiver<Vec<u8>>, String> {
        let options = LogOptions {
            container: asked.container.clone(),
            previous: asked.previous,
            follow: asked.follow,
            since_seconds: asked.since.as_ref().map(|(_, seconds)| *seconds),
            tail_lines: if asked.follow { FOLLOWED_LINES } else { page::MAX_LOG_LINES },
            limit_bytes: (!asked.follow).then_some(MAX_READ),
        };
        let (sync, pod) = (sync.clone(), pod.clone());
        self.ask(|answer| LiveRequest::Log(LogRequest { sync, pod, options, answer })).await
    }

    async fn read_tree(&self, sync: &SyncName) -> Result<Arc<LiveTree>, String> {
        self.ask(|answer| LiveRequest::Tree { sync: sync.clone(), answer }).await
    }

    /// Sends a request to the task that reads, and waits for the answer.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, String>>) -> LiveRequest,
    ) -> Result<T, String> {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            self.requests.send(request(answer)).await.ok()?;
            answered.await.ok()
        };
        let late = || Err("it took too long; try again in a moment".to_owned());
        timeout(READ_TIMEOUT, asked).await.ok().flatten().unwrap_or_else(late)
    }
}

impl LiveVisit<'_> {
    /// True for a viewer on the loopback interface, and for a person to whom Kubernetes grants it.
    async fn is_granted(&self, question: AccessQuestion) -> bool {
        match self.viewer {
            Viewer::Loopback => true,
            // Without a decision nothing is shown.
            Viewer::Person(_) => self.reviews.is_allowed(self.viewer, question).await.unwrap_or_default(),
        }
    }

    /// The tree without the kinds that the viewer may not list, which are named.
    async fn visible(&self, tree: Arc<LiveTree>) -> Arc<LiveTree> {
        let refused = self.refused(&tree, (0..tree.nodes.len()).collect()).await;
        if refused.is_empty() {
            return tree;
        }
        let place = |node: &crate::report::live_tree::LiveNode| {
            (node.id.group_kind(), node.id.namespace().map(Box::<str>::from))
        };
        let mut visible = tree.without(|node| refused.contains(&place(node)));
        visible.left_out.extend(refused.into_iter().map(|(kind, namespace)| LeftOut {
            kind: kind.to_string(),
            namespace: namespace.unwrap_or_default().into(),
            reason: "is left out: you may not list it".to_owned(),
        }));
        Arc::new(visible)
    }

    /// The tree without the owners of a Pod that the viewer may not list.
    async fn visible_above(&self, tree: Arc<LiveTree>, pod: &PodName) -> Arc<LiveTree> {
        let Some((node, _)) = tree.pod(pod) else { return tree };
        let above = std::iter::successors(node.owner, |at| tree.nodes.get(*at)?.owner);
        let refused = self.refused(&tree, above.collect()).await;
        if refused.is_empty() {
            return tree;
        }
        let mut own = LiveTree::clone(&tree);
        let is_refused = |node: &crate::report::live_tree::LiveNode| {
            refused.contains(&(node.id.group_kind(), node.id.namespace().map(Into::into)))
        };
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
    async fn visible_events(&self, events: Arc<EventList>) -> Arc<EventList> {
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

    fn pod(&self, card: &SyncCard, owned: &OwnedPod) -> Response<Body> {
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

    fn not_found(&self) -> Response<Body> {
        self.reply(404, page::not_found(&self.board, self.json))
    }

    fn reply(&self, status: u16, body: String) -> Response<Body> {
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
fn pod_question(verb: &str, subresource: &str, namespace: &str) -> AccessQuestion {
    AccessQuestion {
        verb: verb.to_owned(),
        group: String::new(),
        resource: "pods".to_owned(),
        subresource: subresource.to_owned(),
        namespace: Some(namespace.to_owned()),
    }
}

/// Reads a log to its end, and keeps its last bytes; true if others are missing.
async fn last_lines(mut log: mpsc::Receiver<Vec<u8>>) -> (String, bool) {
    let (mut text, mut decoder) = (String::new(), LogText::default());
    let (deadline, mut is_cut) = (Instant::now() + LOG_TIMEOUT, false);
    while let Ok(Some(bytes)) = timeout_at(deadline, log.recv()).await {
        text.push_str(&decoder.push(&bytes));
        is_cut |= keep_last(&mut text);
    }
    text.push_str(&decoder.finish());
    is_cut |= keep_last(&mut text);
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    (text, is_cut || lines >= page::MAX_LOG_LINES)
}

/// Cuts a text to its last whole lines within the bound; true if it was longer.
fn keep_last(text: &mut String) -> bool {
    let Some(more) = text.len().checked_sub(page::MAX_LOG_BYTES).filter(|more| *more > 0) else {
        return false;
    };
    let bytes = text.as_bytes().get(more..).unwrap_or_default();
    let line = bytes.iter().position(|byte| *byte == b'\n').map(|at| more + at + 1);
    let from = line.unwrap_or_else(|| text.ceil_char_boundary(more));
    text.drain(..from);
    true
}

#[cfg(test)]
mod tests;
