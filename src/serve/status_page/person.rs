//! Answers people who signed in: pages with what they may see, and their actions.
//!
//! In: a person, and a request. Out: a document that is never cached, or the result of an action.
//! Rights are asked for before any byte of the answer is made.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::header::{ACCEPT, LOCATION};
use axum::http::{Extensions, HeaderMap, Response, StatusCode};
use jiff::Timestamp;
use serde_json::json;

use super::{HTML, JSON, NO_STORE, StatusPage, built, head, plain, reply, with_referrer};
use crate::api::SyncName;
use crate::object::ObjectId;
use crate::report::board::{BoardViewer, StatusBoard};
use crate::serve::actions::{self, ActionError, ActionKind};
use crate::serve::login::{Session, SignInWay, csrf_token};
use crate::serve::mcp::McpCaller;
use crate::serve::page::{self as pages, Link, LiveRead, PageRequest, ReadObject, Route};
use crate::serve::rights::{ConsoleAccess, HiddenContent};
use crate::serve::viewer::{AccessQuestion, Viewer};

/// A person who sent a request.
#[derive(Clone, Copy)]
pub(super) struct SignedIn<'a> {
    pub(super) access: &'a ConsoleAccess,
    pub(super) viewer: &'a Viewer,
    pub(super) session: &'a Session,
}

/// The caller of `/mcp`.
pub(super) fn agent<'a>(page: &StatusPage, who: SignedIn<'a>) -> McpCaller<'a> {
    let board = page.0.board.borrow().clone();
    McpCaller { access: who.access, viewer: who.viewer, login: who.session, board }
}

/// A person whose rights nobody can ask for.
pub(super) struct NoReviews;

/// Finds the person of a request; `None` without a sign-in.
pub(super) fn of_request<'a>(
    extensions: &'a Extensions,
    access: Option<&'a ConsoleAccess>,
) -> Result<Option<SignedIn<'a>>, NoReviews> {
    match (extensions.get::<Viewer>(), extensions.get::<Session>(), access) {
        (None | Some(Viewer::Loopback), ..) => Ok(None),
        (Some(viewer), Some(session), Some(access)) => Ok(Some(SignedIn { access, viewer, session })),
        (Some(Viewer::Person(_)), ..) => Err(NoReviews),
    }
}

/// The board as a person may see it for a page, and what is hidden on it. `read` are the objects
/// whose live form the page shows.
pub(super) async fn board(
    page: &StatusPage,
    who: SignedIn<'_>,
    PageRequest { route, json }: &PageRequest,
    read: &[ObjectId],
) -> Result<(Arc<StatusBoard>, HiddenContent), Response<Body>> {
    let board = page.0.board.borrow().clone();
    let mut board = who.access.visible(who.viewer, &board).await.map_err(|why| match json {
        true => with_referrer(reply(503, JSON, NO_STORE, None, pages::not_read_json(&why), false)),
        false => plain(StatusCode::SERVICE_UNAVAILABLE, &format!("Not shown: {why}.\n")),
    })?;
    let sync = match route {
        Route::Sync(sync) | Route::Tab(sync, _) | Route::Object(sync, _) | Route::Live(sync, _) => Some(sync),
        Route::Overview
        | Route::Clusters
        | Route::Events
        | Route::Style
        | Route::Script
        | Route::Icon
        | Route::NotFound => None,
    };
    let card = sync.and_then(|sync| board.cards.get(sync)).cloned();
    let mut hidden = HiddenContent::default();
    if let Some(card) = &card {
        hidden = who.access.hidden_content(who.viewer, card, read).await;
    }
    let viewer = acting_viewer(who, card.as_ref().map(|card| &card.name), route).await;
    let own = Arc::make_mut(&mut board);
    own.viewer = viewer.map(Arc::new);
    if let Some(card) = card {
        own.cards.insert(card.name.clone(), hidden.hide_in(&card));
    }
    Ok((board, hidden))
}

/// A document as a person may see it. It is never cached: rights and names change.
pub(super) async fn document(
    page: &StatusPage,
    who: SignedIn<'_>,
    (asked, query): (&PageRequest, &str),
    is_head: bool,
) -> Response<Body> {
    let known = page.0.board.borrow().clone();
    let ids = pages::objects_to_read(&known, &asked.route, query);
    let (board, hidden) = match board(page, who, asked, &ids).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let read = match &asked.route {
        Route::Object(sync, _) | Route::Tab(sync, _) if !is_head && board.cards.contains_key(sync) => {
            read_visible(page, sync, ids, &hidden).await
        }
        _ => Vec::new(),
    };
    let hidden = match &asked.route {
        Route::Object(_, id) => hidden.reason(id),
        _ => None,
    };
    let look = match (&asked.route, read.as_slice()) {
        _ if hidden.is_some() => hidden.map(LiveRead::Hidden),
        (_, []) => None,
        (Route::Object(..), [(_, Ok(seen)), ..]) => Some(LiveRead::Read(seen)),
        (Route::Object(..), [(_, Err(why)), ..]) => Some(LiveRead::NotRead(why)),
        (_, several) => Some(LiveRead::Several(several)),
    };
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    let answer = pages::respond(&board, asked, query, look, now);
    let kind = if asked.json { JSON } else { HTML };
    with_referrer(reply(answer.status, kind, NO_STORE, None, answer.body, is_head))
}

/// Reads those objects that the person may `get`; the others have the reason.
async fn read_visible(
    page: &StatusPage,
    sync: &SyncName,
    ids: Vec<ObjectId>,
    hidden: &HiddenContent,
) -> Vec<ReadObject> {
    let (refused, visible): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| hidden.reason(id).is_some());
    let mut read = page.read_live_objects(sync, visible).await;
    read.extend(refused.into_iter().map(|id| {
        let why = hidden.reason(&id).unwrap_or_default().to_owned();
        (id, Err(why))
    }));
    read
}

/// Does an action, and leads back to the page of the Sync.
pub(super) async fn act(
    page: &StatusPage,
    who: SignedIn<'_>,
    (sync, kind): (SyncName, Option<ActionKind>),
    headers: &HeaderMap,
    body: Body,
) -> Response<Body> {
    let wants_json =
        headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"application/json"));
    let (back, done) = (Link::sync(&sync), async {
        let kind = kind.ok_or(ActionError::Unknown)?;
        let form = axum::body::to_bytes(body, actions::MAX_FORM).await;
        let too_long = |_| ActionError::Invalid("the form is too long".to_owned());
        let form = String::from_utf8(form.map_err(too_long)?.to_vec());
        let form = form.map_err(|_| ActionError::Invalid("the form is not UTF-8".to_owned()))?;
        actions::decide(who.access, (who.viewer, who.session), (sync, kind), &form).await
    });
    let (status, key, text) = match done.await {
        Ok(_) if !wants_json => {
            let builder = head(303, crate::serve::PLAIN, NO_STORE, None).header(LOCATION, back.as_str());
            return built(builder.body(Body::empty()));
        }
        Ok(done) => (200, "done", done),
        Err(refused) => (refused.status(), "error", refused.to_string()),
    };
    match wants_json {
        true => reply(status, JSON, NO_STORE, None, json!({key: text}).to_string(), false),
        false => {
            let role = page.0.board.borrow().role.clone();
            let viewer = acting_viewer(who, None, &Route::NotFound).await.map(Arc::new);
            let board = StatusBoard { role, viewer, ..StatusBoard::default() };
            let text = pages::refusal_page(&board, &back, &text);
            with_referrer(reply(status, HTML, NO_STORE, None, text, false))
        }
    }
}

/// The person with the actions that are possible on what is shown.
async fn acting_viewer(who: SignedIn<'_>, sync: Option<&SyncName>, route: &Route) -> Option<BoardViewer> {
    let Viewer::Person(person) = who.viewer else { return None };
    let mut acting = BoardViewer {
        user: person.user.clone(),
        token: csrf_token(who.session),
        signs_out: who.session.way == SignInWay::Cookie,
        ..BoardViewer::default()
    };
    match (sync, route) {
        (None, _) => {}
        (Some(_), Route::Object(_, id)) if pages::is_workload(id) => {
            let patch = AccessQuestion::of_kind("patch", id);
            acting.restarts = who.access.reviews.is_allowed(who.viewer, patch).await == Ok(true);
        }
        (Some(sync), Route::Sync(_) | Route::Tab(..) | Route::Live(..)) => {
            acting.verbs = who.access.verbs(who.viewer, &sync.namespace).await;
        }
        (Some(_), _) => {}
    }
    Some(acting)
}
