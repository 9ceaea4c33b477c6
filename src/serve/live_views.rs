//! Answers the views that are read while somebody looks: tree, Events, Pods, logs, and plans.
//!
//! In: a view, its viewer, and a channel to the task that reads with the rights of the Sync. Out: a
//! response. Of a person, Kubernetes is asked about each kind and namespace of a view, and what it
//! refuses is left out and named; bytes of a log go out only to a person who may get `pods/log`. A
//! viewer on the loopback interface sees what its page of an object shows, and no logs.

mod visit;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::live_requests::{LiveRequest, LogRequest};
use super::log_stream::LogStream;
use super::status_page::{NO_STORE, built, head, plain};
use super::viewer::{AccessQuestion, AccessReviews, Viewer};
use crate::api::SyncName;
use crate::cluster::viewer::LogOptions;
use crate::report::board::SyncCard;
use crate::report::live_tree::{LiveTree, PodName};
use crate::serve::page::{self, Filter, LiveView, LogContent, LogSelection, LogText};
pub(super) use visit::LiveVisit;
use visit::pod_question;

/// The most logs that are followed at the same time.
pub(super) const MAX_LOG_STREAMS: usize = 16;
/// The longest wait for a tree or Events: two reads, because Events are read after their tree.
const READ_TIMEOUT: Duration = Duration::from_secs(12);
/// The longest wait for the whole of a log that is not followed.
const LOG_TIMEOUT: Duration = Duration::from_secs(8);
/// The most bytes of the last lines that the server sends; the last of them are shown.
const MAX_READ: usize = 8 * page::MAX_LOG_BYTES;
/// The number of older lines with which a followed log begins.
const FOLLOWED_LINES: usize = 200;
const TEXT: &str = "text/plain; charset=utf-8";

/// Answers live views.
#[derive(Debug)]
pub(super) struct LivePages {
    requests: mpsc::Sender<LiveRequest>,
    ending: watch::Receiver<bool>,
    streams: Arc<Semaphore>,
}

/// A Pod of a tree.
pub(super) struct OwnedPod {
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
            LiveView::FailingLog => self.failing_log(visit, &card).await,
            LiveView::NextPlan => self.next_plan(visit, &card).await,
            LiveView::Pod(pod) => match self.owned_pod(visit, &card, pod).await {
                Ok(owned) => visit.pod(&card, &owned),
                Err(response) => response,
            },
            LiveView::Logs(pod) => match self.owned_pod(visit, &card, pod).await {
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

    /// Leads to the log of the first Pod that fails; without one, to the tree.
    async fn failing_log(&self, visit: &LiveVisit<'_>, card: &SyncCard) -> Response<Body> {
        let place = match self.read_tree(&card.name).await {
            Ok(tree) => page::failing_log(&card.name, &*visit.visible(tree).await),
            Err(_) => None,
        };
        let place = place.unwrap_or_else(|| LiveView::Tree.link(&card.name));
        let place = if visit.json { place.json() } else { place };
        built(head(303, TEXT, NO_STORE, None).header(LOCATION, place.as_str()).body(Body::empty()))
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

    async fn next_plan(&self, visit: &LiveVisit<'_>, card: &SyncCard) -> Response<Body> {
        let made = self.ask(|answer| LiveRequest::NextPlan { sync: card.name.clone(), answer }).await;
        let plan = made.as_deref().map_err(String::as_str);
        visit.reply(
            if plan.is_ok() { 200 } else { 503 },
            match visit.json {
                true => page::next_plan_json(plan),
                false => page::next_plan_page(&visit.board, card, plan, Timestamp::now()),
            },
        )
    }

    /// Finds a Pod in the tree of the Sync: no other Pod is shown.
    async fn owned_pod(
        &self,
        visit: &LiveVisit<'_>,
        card: &SyncCard,
        pod: &PodName,
    ) -> Result<OwnedPod, Response<Body>> {
        let question = pod_question("get", "", &pod.namespace);
        if !visit.is_granted(question).await {
            return Err(visit.not_found());
        }
        let tree = match self.read_tree(&card.name).await {
            Ok(tree) => tree,
            Err(why) if visit.json => return Err(visit.reply(503, page::not_read_json(&why))),
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
        let Some((reviews, viewer, end)) = &visit.person else { return show(403, &LogContent::SignInNeeded) };
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
                let person = (AccessReviews::clone(reviews), Viewer::clone(viewer), end.clone());
                let stream = LogStream::new(log, person, (question, reviewed), self.ending.clone(), place);
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
