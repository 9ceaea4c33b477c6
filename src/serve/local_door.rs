//! Lets one browser of this machine into the local console, and nobody else.
//!
//! In: requests. Out: those with the cookie of this process, with the user as their viewer. The
//! address that is printed gives the cookie once; after that it opens nothing, so that a history or
//! a log of it is of no use. Other users of the machine reach the port, and are refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::StatusPage;
use super::login::{Session, is_same_origin};
use super::status_page::is_of_the_loopback;
use super::viewer::{Person, Viewer};

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Path before the secret that gives the cookie.
const ENTRANCE: &str = "/enter/";

/// The door of one local console.
pub(crate) struct Door {
    viewer: Viewer,
    cookie_name: String,
    entrance: String,
    cookie: String,
    was_used: AtomicBool,
}

impl Door {
    /// Creates it for a user; `None` if the system has no random numbers.
    pub(crate) fn new(user: &str, port: u16) -> Option<Self> {
        let (user, groups, extra) = (user.to_owned(), Vec::new(), BTreeMap::new());
        Some(Self {
            viewer: Viewer::Person(Arc::new(Person { user, uid: None, groups, extra })),
            // Cookies of a host reach all its ports.
            cookie_name: format!("moorline-console-{port}"),
            entrance: secret()?,
            cookie: secret()?,
            was_used: AtomicBool::new(false),
        })
    }

    /// The path that gives the cookie.
    pub(crate) fn entrance(&self) -> String {
        format!("{ENTRANCE}{}", self.entrance)
    }

    /// Puts the page behind the door.
    pub(crate) fn before(self, page: StatusPage) -> Router {
        page.router().layer(from_fn_with_state(Arc::new(self), pass))
    }

    /// True for the first request with the right secret.
    fn opens(&self, path: &str) -> bool {
        let is_right = path.strip_prefix(ENTRANCE).is_some_and(|given| is_same(given, &self.entrance));
        is_right && !self.was_used.swap(true, Ordering::SeqCst)
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie_name && is_same(value, &self.cookie))
    }
}

/// Answers strangers, and passes on the requests of the user.
async fn pass(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response<Body> {
    if !is_of_the_loopback(request.headers()) {
        return text(
            StatusCode::MISDIRECTED_REQUEST,
            "This console answers to 127.0.0.1 and localhost only.\n",
        );
    }
    if door.opens(request.uri().path()) {
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", door.cookie_name, door.cookie);
        let entered = Response::builder().status(StatusCode::SEE_OTHER).header(LOCATION, "/");
        let entered = entered.header(SET_COOKIE, cookie).header(CACHE_CONTROL, "no-store");
        return entered.body(Body::empty()).unwrap_or_default();
    }
    if !door.knows(request.headers()) {
        let words = "Open the address that moorline console has printed. It works once: start it again for another browser.\n";
        return text(StatusCode::UNAUTHORIZED, words);
    }
    let is_safe = [Method::GET, Method::HEAD].contains(request.method());
    if !is_safe && !is_same_origin(None, request.headers(), false) {
        return text(StatusCode::FORBIDDEN, "Changes are accepted from pages of this console only.\n");
    }
    request.extensions_mut().insert(door.viewer.clone());
    request.extensions_mut().insert(Session::local(&door.cookie));
    next.run(request).await
}

fn text(status: StatusCode, words: &'static str) -> Response<Body> {
    let answer = Response::builder().status(status).header(CACHE_CONTROL, "no-store");
    answer.header("content-type", "text/plain; charset=utf-8").body(Body::from(words)).unwrap_or_default()
}

fn secret() -> Option<String> {
    let mut bytes = [0; SECRET_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares with a secret, in constant time.
fn is_same(given: &str, secret: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, secret.as_bytes());
    hmac::verify(&key, given.as_bytes(), tag.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_address_opens_once_and_the_cookie_always() {
        let door = Door::new("ada", 8081).unwrap();
        let other = Door::new("ada", 8081).unwrap();
        assert!(!door.opens(&other.entrance()) && !door.opens("/enter/") && !door.opens("/"));
        assert!(door.opens(&door.entrance()) && !door.opens(&door.entrance()));
        let with = |cookie: String| HeaderMap::from_iter([(COOKIE, cookie.parse().unwrap())]);
        let own = format!("moorline-console-8081={}", door.cookie);
        for (cookie, expect) in [
            (own.clone(), true),
            (format!("a=b; {own}"), true),
            (format!("moorline-console-8082={}", door.cookie), false),
            (format!("moorline-console-8081={}", other.cookie), false),
            (format!("moorline-console-8081={}", door.entrance), false),
            ("moorline-console-8081=".to_owned(), false),
        ] {
            assert_eq!(door.knows(&with(cookie.clone())), expect, "{cookie}");
        }
        assert!(!door.knows(&HeaderMap::new()));
    }
}
