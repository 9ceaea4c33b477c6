//! Serves the status page over HTTP: routing, access, caching and live updates.
//!
//! In: the board, and a channel that requests live objects. Out: responses. Without a sign-in only
//! GET and HEAD are accepted: the page changes nothing. With one, a viewer sees what Kubernetes
//! lets the person read, and acts by POST (`person.rs`). Bound to the loopback interface, it
//! accepts only loopback host names, so that no foreign website can read it through a browser by
//! DNS rebinding. Event streams are limited in number, and so are all connections together; they
//! are separate from those of probes and metrics.

mod event_stream;
mod person;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, HeaderName,
    IF_NONE_MATCH, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::response::Builder;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use jiff::Timestamp;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::actions;
use super::live_requests::LiveRequest;
use super::live_views::{LivePages, LiveVisit};
use super::login::{Admission, PageTls, SignIn};
use super::mcp;
use super::page::{self, LiveRead, PageRequest, ReadObject, Route};
use super::rights::{ConsoleAccess, SharedBoards, StreamRights};
use crate::api::SyncName;
use crate::object::ObjectId;
use crate::report::board::{LiveObject, StatusBoard};
use event_stream::EventStream;
use person::SignedIn;

/// The most open event streams; further clients poll.
pub const MAX_LISTENERS: usize = 256;
/// The longest wait for a live object.
const READ_TIMEOUT: Duration = Duration::from_secs(6);
/// Answer for an object that was not read in time.
const TOO_SLOW: &str = "it took too long";

/// Content security policy: everything comes from this origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const JSON: &str = "application/json";
/// Cached, and revalidated on each use.
const REVALIDATE: &str = "no-cache";
/// For files whose name contains their digest.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
pub(super) const NO_STORE: &str = "no-store";

/// A request for a live object.
#[derive(Debug)]
pub struct LiveObjectRequest {
    /// The Sync of the object.
    pub sync: SyncName,
    /// The object.
    pub id: ObjectId,
    /// Receives the object, or the reason why it was not read.
    pub answer: oneshot::Sender<Result<LiveObject, String>>,
}

/// Handler of the status page; cheap to clone.
#[derive(Debug, Clone)]
pub struct StatusPage(Arc<StatusPageInner>, Option<SignIn>);

#[derive(Debug)]
struct StatusPageInner {
    board: watch::Receiver<Arc<StatusBoard>>,
    requests: mpsc::Sender<LiveRequest>,
    /// Views that read the cluster beyond one object.
    live: LivePages,
    ending: watch::Receiver<bool>,
    is_private: bool,
    /// Rights and actions of people who sign in; without it, nobody can.
    console: Option<ConsoleAccess>,
    listeners: Arc<Semaphore>,
    /// Parts of the board that the viewers of event streams share.
    parts: Arc<SharedBoards>,
    /// Start time, which tells the versions of this process from those of another.
    began: u128,
}

impl StatusPage {
    /// Creates the handler. `is_private` is true if it is bound to the loopback interface.
    pub fn new(
        board: watch::Receiver<Arc<StatusBoard>>,
        looks: mpsc::Sender<LiveRequest>,
        ending: watch::Receiver<bool>,
        is_private: bool,
    ) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let listeners = Arc::new(Semaphore::new(MAX_LISTENERS));
        let live = LivePages::new(looks.clone(), ending.clone());
        let inner = StatusPageInner {
            board,
            requests: looks,
            live,
            ending,
            is_private,
            console: None,
            listeners,
            parts: Arc::default(),
            began,
        };
        Self(Arc::new(inner), None)
    }

    /// Serves people only who sign in; without ways in, the page stays as it is bound.
    pub fn with_sign_in(self, sign_in: Option<SignIn>) -> Self {
        Self(self.0, sign_in)
    }

    pub(super) fn tls(&self) -> Option<Arc<PageTls>> {
        self.1.as_ref().and_then(SignIn::tls)
    }

    /// Serves people who signed in, whose `Viewer` is in the extensions of the request: they see
    /// and do what Kubernetes lets them. To be called before the handler is cloned.
    pub fn with_console(mut self, access: ConsoleAccess) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.console = Some(access);
        }
        self
    }

    /// The routes of the page.
    pub fn router(self) -> Router {
        Router::new()
            .fallback(
                |State(viewing): State<Self>, request: Request| async move { viewing.admit(request).await },
            )
            .with_state(self)
    }

    /// Finds the viewer, and answers. Beside a [`Viewer`] there is a [`Session`] in the extensions.
    async fn admit(&self, request: Request) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let Some(sign_in) = &self.1 else {
            if self.0.is_private && !is_of_the_loopback(&parts.headers) {
                let text = "This page answers to 127.0.0.1, [::1] and localhost only.\n";
                return plain(StatusCode::MISDIRECTED_REQUEST, text);
            }
            return self.answer(Request::from_parts(parts, body)).await;
        };
        sign_in.count_sessions_from(self.0.board.borrow().term_began);
        match sign_in.admit(&parts).await {
            Admission::Answered(answer) => answer,
            Admission::Public => self.answer(Request::from_parts(parts, body)).await,
            Admission::Known(viewer, session) => {
                parts.extensions.insert(viewer);
                parts.extensions.insert(session);
                self.answer(Request::from_parts(parts, body)).await
            }
        }
    }

    async fn answer(&self, request: Request) -> Response<Body> {
        let (head, body) = request.into_parts();
        let (method, headers) = (&head.method, &head.headers);
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        let signed_in = match person::of_request(&head.extensions, self.0.console.as_ref()) {
            Ok(signed_in) => signed_in,
            Err(person::NoReviews) => {
                return plain(StatusCode::SERVICE_UNAVAILABLE, "Nobody can ask for your rights here.\n");
            }
        };
        if path == mcp::PATH {
            let caller = signed_in.map(|who| person::agent(self, who));
            return mcp::answer(caller, &head, body).await;
        }
        if let Some((sync, kind)) = actions::action_path(path).filter(|_| *method == Method::POST) {
            let Some(who) = signed_in else {
                return plain(StatusCode::FORBIDDEN, "Nobody is signed in: this page is read-only.\n");
            };
            return person::act(self, who, (sync, kind), headers, body).await;
        }
        let is_head = *method == Method::HEAD;
        if !is_head && *method != Method::GET {
            let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "This page is read-only.\n");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let asked = page::parse_path(path);
        let file = |kind, text: &str| reply(200, kind, IMMUTABLE, None, text.to_owned(), is_head);
        match &asked.route {
            Route::Style => file("text/css; charset=utf-8", page::STYLE),
            Route::Script => file("text/javascript; charset=utf-8", page::SCRIPT),
            Route::Icon => file("image/svg+xml", page::ICON),
            Route::Events if is_head => reply(200, "text/event-stream", NO_STORE, None, String::new(), true),
            Route::Events => self.events(page::parse_event_source(query), signed_in),
            Route::Live(sync, view) => {
                let board = match signed_in {
                    Some(who) => person::board(self, who, &asked, &[]).await.map(|(board, _)| board),
                    None => Ok(self.0.board.borrow().clone()),
                };
                match board {
                    Ok(board) => {
                        let person =
                            signed_in.map(|who| (&who.access.reviews, who.viewer, who.session.end.clone()));
                        let visit = LiveVisit { board, person, query, json: asked.json, is_head };
                        self.0.live.respond(&visit, sync, view).await
                    }
                    Err(refusal) => refusal,
                }
            }
            Route::Overview
            | Route::Clusters
            | Route::Sync(_)
            | Route::Tab(..)
            | Route::Object(..)
            | Route::NotFound => match signed_in {
                Some(who) => person::document(self, who, (&asked, query), is_head).await,
                None => self.document(&asked, query, headers, is_head).await,
            },
        }
    }

    async fn document(
        &self,
        asked: &PageRequest,
        query: &str,
        headers: &HeaderMap,
        is_head: bool,
    ) -> Response<Body> {
        let board = self.0.board.borrow().clone();
        let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
        let kind = if asked.json { JSON } else { HTML };
        // Ages in the HTML change every minute, so the tag has to change as well.
        let minute = if asked.json { 0 } else { now.as_second() / 60 };
        let tag = |version: u64| format!("\"{:x}-{version:x}-{minute:x}\"", self.0.began);
        let known = page::version(&board, &asked.route).map(tag);
        if known.as_ref().is_some_and(|known| is_known(headers, known)) {
            return built(head(304, kind, REVALIDATE, known.as_deref()).body(Body::empty()));
        }
        let read = match &asked.route {
            Route::Object(sync, _) | Route::Tab(sync, _) if !is_head => {
                self.read_live_objects(sync, page::objects_to_read(&board, &asked.route, query)).await
            }
            _ => Vec::new(),
        };
        let look = match (&asked.route, read.as_slice()) {
            (_, []) => None,
            (Route::Object(..), [(_, Ok(seen)), ..]) => Some(LiveRead::Read(seen)),
            (Route::Object(..), [(_, Err(why)), ..]) => Some(LiveRead::NotRead(why)),
            (_, several) => Some(LiveRead::Several(several)),
        };
        let answer = page::respond(&board, asked, query, look, now);
        let caching = if answer.version.is_some() { REVALIDATE } else { NO_STORE };
        let tag = answer.version.map(tag);
        reply(answer.status, kind, caching, tag.as_deref(), answer.body, is_head)
    }

    /// Requests live objects one after the other. The first that takes too long is the last.
    async fn read_live_objects(&self, sync: &SyncName, ids: Vec<ObjectId>) -> Vec<ReadObject> {
        let mut read: Vec<ReadObject> = Vec::with_capacity(ids.len());
        for id in ids {
            let is_slow = matches!(read.last(), Some((_, Err(why))) if why == TOO_SLOW);
            let seen =
                if is_slow { Err(TOO_SLOW.to_owned()) } else { self.read_live_object(sync, &id).await };
            read.push((id, seen));
        }
        read
    }

    /// Requests a live object, and waits for it.
    async fn read_live_object(&self, sync: &SyncName, id: &ObjectId) -> Result<LiveObject, String> {
        let (answer, answered) = oneshot::channel();
        let wanted = LiveObjectRequest { sync: sync.clone(), id: id.clone(), answer };
        if self.0.requests.try_send(LiveRequest::Object(wanted)).is_err() {
            return Err("too many requests for live objects; try again in a moment".to_owned());
        }
        match timeout(READ_TIMEOUT, answered).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(_)) | Err(_) => Err(TOO_SLOW.to_owned()),
        }
    }

    /// Opens an event stream with the versions of a page.
    fn events(&self, of: Option<SyncName>, person: Option<SignedIn<'_>>) -> Response<Body> {
        let Ok(place) = self.0.listeners.clone().try_acquire_owned() else {
            let mut refusal = plain(StatusCode::SERVICE_UNAVAILABLE, "Too many open event streams.\n");
            refusal.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("30"));
            return refusal;
        };
        let listener = EventStream {
            board: self.0.board.clone(),
            ending: self.0.ending.clone(),
            route: of.map_or(Route::Overview, Route::Sync),
            last_sent: None,
            until: person.map(|who| who.session.end.clone()).unwrap_or_default(),
            rights: person
                .map(|who| StreamRights::new(who.access.clone(), who.viewer.clone(), self.0.parts.clone())),
            _place: place,
        };
        let stream = futures::stream::unfold(listener, |mut listener| async move {
            let said = listener.next_in_time().await?;
            Some((Ok::<_, std::convert::Infallible>(said), listener))
        });
        built(head(200, "text/event-stream", NO_STORE, None).body(Body::from_stream(stream)))
    }
}

/// True if the Host header is a name of the loopback interface.
pub(super) fn is_of_the_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    };
    port.bytes().all(|byte| byte.is_ascii_digit())
        && ["127.0.0.1", "localhost", "[::1]"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// True if the client has this version.
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let tags = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    tags.split(',').map(|known| known.trim().trim_start_matches("W/")).any(|known| known == tag)
}

pub(super) fn head(status: u16, kind: &'static str, caching: &'static str, tag: Option<&str>) -> Builder {
    let policies: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, caching),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let builder = policies
        .into_iter()
        .fold(Response::builder().status(status), |builder, (name, value)| builder.header(name, value));
    match tag {
        Some(tag) => builder.header(ETAG, tag),
        None => builder,
    }
}

pub(super) fn reply(
    status: u16,
    kind: &'static str,
    caching: &'static str,
    tag: Option<&str>,
    body: String,
    is_head: bool,
) -> Response<Body> {
    let builder = head(status, kind, caching, tag).header(CONTENT_LENGTH, body.len());
    built(builder.body(if is_head { Body::empty() } else { Body::from(body) }))
}

/// Lets forms name the origin of the page: one of a page without referrers cannot be compared.
pub(super) fn with_referrer(mut answer: Response<Body>) -> Response<Body> {
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    answer
}

pub(super) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    reply(status.as_u16(), super::PLAIN, NO_STORE, None, text.to_owned(), false)
}

/// Returns the response; it cannot be invalid, because all its parts are ours.
pub(super) fn built(built: Result<Response<Body>, axum::http::Error>) -> Response<Body> {
    built.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        let check = |host: Option<&str>, expect: bool| {
            let mut headers = HeaderMap::new();
            host.map(|host| headers.insert(HOST, host.parse().unwrap()));
            assert_eq!(is_of_the_loopback(&headers), expect, "{host:?}");
        };
        for good in ["127.0.0.1:8081", "localhost", "LOCALHOST:1", "[::1]:9090", "[::1]"] {
            check(Some(good), true);
        }
        for bad in
            ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil", "[::1].evil", "localhost:80x", ""]
        {
            check(Some(bad), false);
        }
        check(None, false);
    }

    #[test]
    fn a_version_that_is_known_is_recognised() {
        let check = |tags: &str, expect: bool| {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, tags.parse().unwrap())]);
            assert_eq!(is_known(&headers, "\"1-2-3\""), expect, "{tags}");
        };
        check("\"1-2-3\"", true);
        check("\"0\", W/\"1-2-3\"", true);
        check("\"1-2-4\"", false);
        check("", false);
    }
}
