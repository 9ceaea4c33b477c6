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
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use ring::hmac;

use super::login::{Session, cookie_values, is_same_origin, random_text};
use super::status_page::{NO_STORE, built, head, is_of_the_loopback, plain};
use super::viewer::{Person, Viewer};
use super::{PLAIN, StatusPage};

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
            entrance: random_text()?,
            cookie: random_text()?,
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
        cookie_values(headers, &self.cookie_name).any(|value| is_same(value, &self.cookie))
    }
}

/// Answers strangers, and passes on the requests of the user.
async fn pass(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response<Body> {
    if !is_of_the_loopback(request.headers()) {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "This console answers to 127.0.0.1 and localhost only.\n",
        );
    }
    if door.opens(request.uri().path()) {
        let cookie = format!("{}={}; HttpOnly; SameSite=Strict; Path=/", door.cookie_name, door.cookie);
        let entered = head(303, PLAIN, NO_STORE, None).header(LOCATION, "/").header(SET_COOKIE, cookie);
        return built(entered.body(Body::empty()));
    }
    if !door.knows(request.headers()) {
        let words = "Open the address that moorline console has printed. It works once: start it again for another browser.\n";
        return plain(StatusCode::UNAUTHORIZED, words);
    }
    let is_safe = [Method::GET, Method::HEAD].contains(request.method());
    if !is_safe && !is_same_origin(None, request.headers(), false) {
        return plain(StatusCode::FORBIDDEN, "Changes are accepted from pages of this console only.\n");
    }
    request.extensions_mut().insert(door.viewer.clone());
    request.extensions_mut().insert(Session::local(&door.cookie));
    next.run(request).await
}

/// Compares with a secret, in constant time.
fn is_same(given: &str, secret: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, secret.as_bytes());
    hmac::verify(&key, given.as_bytes(), tag.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE;

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
