//! Ways in: turns a request into a viewer and a session, or refuses it.
//!
//! In: the setting `console`, and requests. Out: an admission. With a sign-in nothing is served
//! without a person, except the pages around signing in and the files of the page. A bearer token
//! comes first, then the headers of a proxy, then the cookie. A token or proxy header that is not
//! accepted refuses the request; a cookie that is not accepted counts as none.

mod bearer_token;
mod ended_sessions;
mod names;
mod oidc_sign_in;
mod origin;
mod paths;
mod proxy_headers;
mod review_shares;
mod sealed_cookie;
mod session;
mod set_up;
#[cfg(test)]
mod tests;
mod tls;
mod used_ids;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, COOKIE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use tokio::time::Instant;

use super::connections::PeerAddress;
use super::status_page::plain;
use super::viewer::{Person, Viewer};
use bearer_token::{BearerTokens, TokenError};
pub use bearer_token::{KEPT_FOR, MAX_REVIEWS, TokenReviewRequest, serve_token_reviews};
use ended_sessions::EndedSessions;
pub use ended_sessions::SessionEnd;
use oidc_sign_in::OidcSignIn;
pub use oidc_sign_in::SIGN_IN_SECONDS;
pub(in crate::serve) use origin::is_same_origin;
use origin::{ConsoleAddress, is_known_host};
use proxy_headers::ProxyHeaders;
use review_shares::WINDOW;
pub(in crate::serve) use sealed_cookie::random_text;
use sealed_cookie::{CookieKeys, CookieKind};
pub use session::{Session, SignInWay, csrf_token, verify_csrf};
pub use set_up::SetUpError;
pub(in crate::serve) use tls::{PageTls, ProxyConnection};

/// Time after which a person signs in again.
pub const SESSION_SECONDS: i64 = 3600;
/// Time after which a viewer without a cookie has to be known again, in an event stream.
const REVIEWED_FOR: Duration = Duration::from_secs(60);
/// Names in a query that are tokens: URLs are written to logs and histories.
const TOKEN_NAMES: [&str; 5] = ["access_token", "id_token", "token", "bearer", "authorization"];
/// Files that everyone may read.
const FILES: [&str; 3] = ["/page.css", "/page.js", "/icon.svg"];

/// The ways in of a console; cheap to clone.
#[derive(Debug, Clone)]
pub struct SignIn(Arc<SignInInner>);

struct SignInInner {
    address: Option<ConsoleAddress>,
    keys: CookieKeys,
    tokens: Option<BearerTokens>,
    oidc: Option<OidcSignIn>,
    proxy: Option<ProxyHeaders>,
    tls: Option<Arc<PageTls>>,
    /// Sessions that were ended before their time.
    ended: Arc<EndedSessions>,
    /// Sessions of an earlier time do not count, in milliseconds since 1970: another process may
    /// have ended them.
    count_from: AtomicI64,
}

impl std::fmt::Debug for SignInInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignInInner(..)")
    }
}

/// The decision about a request.
#[derive(Debug)]
pub(super) enum Admission {
    /// It is answered for this viewer.
    Known(Viewer, Session),
    /// It is for a file that everyone may read.
    Public,
    /// It is answered here.
    Answered(Response<Body>),
}

/// The reason why a request has no person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum IdentityError {
    #[error("Sign in first.")]
    Unknown,
    #[error("{0}")]
    Refused(String),
    #[error("The API server cannot review the token now. Try again in a moment.")]
    Undecided,
    #[error("Too many unknown tokens. Try again in a moment.")]
    TooMany,
}

impl SignIn {
    /// Returns TLS of the page.
    pub(super) fn tls(&self) -> Option<Arc<PageTls>> {
        self.0.tls.clone()
    }

    /// Lets sessions count that begin at this time or later, in milliseconds since 1970.
    pub(super) fn count_sessions_from(&self, time: i64) {
        self.0.count_from.fetch_max(time, Ordering::Relaxed);
    }

    /// Decides about a request.
    pub(super) async fn admit(&self, request: &Parts) -> Admission {
        let (headers, uri) = (&request.headers, &request.uri);
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        if !is_known_host(self.0.address.as_ref(), headers) {
            let text = "This console answers to the host of its url, 127.0.0.1, [::1] and localhost only.\n";
            return Admission::Answered(plain(StatusCode::MISDIRECTED_REQUEST, text));
        }
        if has_token(query) {
            let text = "A token in a URL is refused: send it in the header Authorization.\n";
            return Admission::Answered(plain(StatusCode::BAD_REQUEST, text));
        }
        let is_safe = [Method::GET, Method::HEAD].contains(&request.method);
        if FILES.contains(&path) && is_safe {
            return Admission::Public;
        }
        if let Some(answer) = paths::answer(self, request, query).await {
            return Admission::Answered(answer);
        }
        let is_of_the_proxy = request.extensions.get::<ProxyConnection>().is_some();
        // Only a request of a test has no connection.
        let peer = request.extensions.get::<PeerAddress>().map(|peer| peer.0);
        let peer = peer.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        match self.identify(headers, (peer, is_of_the_proxy)).await {
            Ok((person, session)) => {
                let may_lack = session.way == SignInWay::Token;
                if !is_safe && !is_same_origin(self.0.address.as_ref(), headers, may_lack) {
                    let text = "Changes are accepted from pages of this console only.\n";
                    return Admission::Answered(plain(StatusCode::FORBIDDEN, text));
                }
                Admission::Known(Viewer::Person(person), session)
            }
            Err(error) => Admission::Answered(self.refuse(&error, request)),
        }
    }

    /// Finds the person of a request.
    async fn identify(
        &self,
        headers: &HeaderMap,
        (peer, is_of_the_proxy): (IpAddr, bool),
    ) -> Result<(Arc<Person>, Session), IdentityError> {
        if headers.contains_key(AUTHORIZATION) {
            return self.by_token(headers, peer).await;
        }
        if let Some(proxy) = &self.0.proxy {
            let person = proxy.person(headers, is_of_the_proxy);
            if let Some(person) = person.map_err(|error| IdentityError::Refused(format!("{error}.")))? {
                let id = format!("proxy\0{}", person.user);
                let ends = Instant::now() + REVIEWED_FOR;
                return Ok((Arc::new(person), self.session(id, SignInWay::Proxy, ends)));
            }
        }
        self.by_cookie(headers).ok_or(IdentityError::Unknown)
    }

    async fn by_token(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<(Arc<Person>, Session), IdentityError> {
        let refused = || IdentityError::Refused("The token is not accepted.".to_owned());
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return Err(refused()) };
        let (scheme, token) =
            value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(refused)?;
        let tokens = self.0.tokens.as_ref().filter(|_| scheme.eq_ignore_ascii_case("Bearer"));
        let Some(tokens) = tokens else {
            let text = "This console takes no login in the header Authorization, or only a bearer token.";
            return Err(IdentityError::Refused(text.to_owned()));
        };
        match tokens.person(token.trim(), &self.0.keys.forms, peer).await {
            Ok((person, hash)) => {
                let id = hash.iter().fold("token\0".to_owned(), |id, byte| format!("{id}{byte:02x}"));
                let ends = Instant::now() + REVIEWED_FOR;
                Ok((person, self.session(id, SignInWay::Token, ends)))
            }
            Err(TokenError::Refused) => Err(refused()),
            Err(TokenError::Undecided) => Err(IdentityError::Undecided),
            Err(TokenError::TooMany) => Err(IdentityError::TooMany),
        }
    }

    fn by_cookie(&self, headers: &HeaderMap) -> Option<(Arc<Person>, Session)> {
        self.0.oidc.as_ref()?;
        let value = self.0.keys.open(CookieKind::Session, &self.cookie(headers, CookieKind::Session)?)?;
        let (id, ends) = (value["id"].as_str()?, value["ends"].as_i64()?);
        let left = u64::try_from(ends - seconds()).ok().filter(|left| *left > 0)?;
        let is_of_earlier = value["begun"].as_i64()? < self.0.count_from.load(Ordering::Relaxed);
        if is_of_earlier || self.0.ended.has(id) {
            return None;
        }
        let groups = value["groups"].as_array()?.iter().map(|group| group.as_str().map(str::to_owned));
        let person = Person {
            user: value["user"].as_str()?.to_owned(),
            uid: None,
            groups: groups.collect::<Option<_>>()?,
            extra: std::collections::BTreeMap::new(),
        };
        let ends = Instant::now() + Duration::from_secs(left);
        Some((Arc::new(person), self.session(id.to_owned(), SignInWay::Cookie, ends)))
    }

    fn session(&self, id: String, way: SignInWay, ends: Instant) -> Session {
        let sign_out = (way == SignInWay::Cookie).then(|| (self.0.ended.clone(), id.as_str().into()));
        Session { id, way, end: SessionEnd { at: Some(ends), sign_out }, key: self.0.keys.forms.clone() }
    }

    /// Returns the name of a cookie. `__Host-` keeps other hosts of the domain from setting it.
    fn cookie_name(&self, kind: CookieKind) -> &'static str {
        let is_secure = self.0.address.as_ref().is_some_and(ConsoleAddress::is_secure);
        match (kind, is_secure) {
            (CookieKind::Session, true) => "__Host-moorline-session",
            (CookieKind::Session, false) => "moorline-session",
            (CookieKind::SignIn, true) => "__Host-moorline-login",
            (CookieKind::SignIn, false) => "moorline-login",
        }
    }

    /// Returns the value of a cookie that is there once.
    fn cookie(&self, headers: &HeaderMap, kind: CookieKind) -> Option<String> {
        let name = self.cookie_name(kind);
        let mut own = cookie_values(headers, name);
        let value = own.next()?;
        own.next().is_none().then(|| value.to_owned())
    }

    /// Builds the header that sets a cookie; without a value it is removed.
    fn set_cookie(&self, kind: CookieKind, value: Option<(&str, i64)>) -> HeaderValue {
        let is_secure = self.0.address.as_ref().is_some_and(ConsoleAddress::is_secure);
        let (value, age) = value.unwrap_or_default();
        let (name, secure) = (self.cookie_name(kind), if is_secure { "; Secure" } else { "" });
        let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        // All its characters are ours, or of base64.
        let mut value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    fn refuse(&self, error: &IdentityError, request: &Parts) -> Response<Body> {
        let path = request.uri.path();
        let is_page = request.method == Method::GET && !path.starts_with("/api/") && path != "/events";
        if *error == IdentityError::Unknown && is_page && self.0.oidc.is_some() {
            return paths::to_sign_in(&request.uri);
        }
        let status = match error {
            IdentityError::Unknown | IdentityError::Refused(_) => StatusCode::UNAUTHORIZED,
            IdentityError::Undecided => StatusCode::SERVICE_UNAVAILABLE,
            IdentityError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        };
        let mut answer = plain(status, &format!("{error}\n"));
        if status == StatusCode::TOO_MANY_REQUESTS {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(WINDOW.as_secs()));
        }
        if status == StatusCode::UNAUTHORIZED && self.0.tokens.is_some() {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

/// The values of all cookies of a name.
pub(super) fn cookie_values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(known, _)| *known == name).map(|(_, value)| value)
}

/// True if a query has a name of a token.
fn has_token(query: &str) -> bool {
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    names.any(|name| TOKEN_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Seconds since 1970.
fn seconds() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Milliseconds since 1970.
fn milliseconds() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
