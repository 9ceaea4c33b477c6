//! The paths around signing in: `/login`, `/login/start`, `/login/callback` and `/logout`.
//!
//! In: a request. Out: a page, or a redirect to the provider, to a page of the console, or to
//! `/login`. Redirects lead to the provider or to paths of ours, and nowhere else.

use axum::body::Body;
use axum::http::header::{HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use serde_json::json;

use super::oidc_sign_in::{Callback, OidcSignIn, SignInError};
use super::sealed_cookie::{CookieKind, random_text};
use super::{SESSION_SECONDS, SIGN_IN_SECONDS, SignIn, is_same_origin, milliseconds, seconds};
use crate::sanitize::sanitize;
use crate::serve::page::{SignInAction, form_value, sign_in_page};
use crate::serve::status_page::{HTML, NO_STORE, plain, reply};
use crate::serve::viewer::Person;

/// The most characters of a path to which a person returns.
const MAX_NEXT: usize = 512;
/// Makes a browser forget pages before another person signs in.
const CLEAR: HeaderName = HeaderName::from_static("clear-site-data");

/// Answers a path around signing in; `None` for other paths.
pub(super) async fn answer(sign_in: &SignIn, request: &Parts, query: &str) -> Option<Response<Body>> {
    let (method, headers) = (&request.method, &request.headers);
    let path = request.uri.path();
    if path == "/logout" && *method == Method::POST {
        return Some(log_out(sign_in, headers));
    }
    let is_own = ["/login", "/login/start", "/login/callback", "/logout"].contains(&path);
    if !is_own {
        return None;
    }
    if *method != Method::GET {
        return Some(plain(StatusCode::METHOD_NOT_ALLOWED, "This path answers to GET only.\n"));
    }
    let Some(oidc) = &sign_in.0.oidc else {
        return Some(plain(StatusCode::NOT_FOUND, "This console has no sign-in of its own.\n"));
    };
    Some(match path {
        "/login/start" => start(sign_in, oidc, headers, query).await,
        "/login/callback" => end(sign_in, oidc, headers, query).await,
        "/logout" => sign_out_page(sign_in, headers),
        _ => sign_in_again(StatusCode::OK, &["Sign in to see this cluster."], &next_of(query)),
    })
}

/// Redirects to the page that begins a sign-in.
pub(super) fn to_sign_in(uri: &Uri) -> Response<Body> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    redirect(&format!("/login?next={}", escape(&safe_path(path))))
}

async fn start(sign_in: &SignIn, oidc: &OidcSignIn, headers: &HeaderMap, query: &str) -> Response<Body> {
    let next = next_of(query);
    // A cookie of another host would not come back with the browser.
    if let Some(address) = sign_in.0.address.as_ref().filter(|address| !address.is_asked(headers)) {
        return redirect(&format!("{}/login?next={}", address.url, escape(&next)));
    }
    match oidc.begin(&sign_in.0.keys, &next).await {
        Ok(begun) => {
            let mut answer = redirect(&begun.location);
            let cookie = sign_in.set_cookie(CookieKind::SignIn, Some((&begun.cookie, SIGN_IN_SECONDS)));
            answer.headers_mut().append(SET_COOKIE, cookie);
            answer
        }
        Err(error) => failed(sign_in, &error, &next),
    }
}

async fn end(sign_in: &SignIn, oidc: &OidcSignIn, headers: &HeaderMap, query: &str) -> Response<Body> {
    let value = |name| form_value(query, name);
    let callback = Callback {
        code: value("code"),
        state: value("state"),
        issuer: value("iss"),
        failed: value("error").is_some(),
        cookie: sign_in.cookie(headers, CookieKind::SignIn),
    };
    let (person, next) = match oidc.end(&sign_in.0.keys, callback).await {
        Ok(done) => done,
        Err(error) => return failed(sign_in, &error, "/"),
    };
    let Some(session) = seal(sign_in, &person) else {
        let text = "you are in more groups than a cookie holds; keep some of them only by oidcGroups";
        return failed(sign_in, &SignInError::Refused(text.to_owned()), "/");
    };
    tracing::info!(user = &*sanitize(&person.user), "signed in");
    let mut answer = redirect(&safe_path(&next));
    let cookie = sign_in.set_cookie(CookieKind::Session, Some((&session, SESSION_SECONDS)));
    answer.headers_mut().append(SET_COOKIE, cookie);
    answer.headers_mut().append(SET_COOKIE, sign_in.set_cookie(CookieKind::SignIn, None));
    answer.headers_mut().insert(CLEAR, HeaderValue::from_static("\"cache\""));
    answer
}

/// Seals a new session; `None` if it does not fit into a cookie.
fn seal(sign_in: &SignIn, person: &Person) -> Option<String> {
    let (begun, ends) = (milliseconds(), seconds() + SESSION_SECONDS);
    let value = json!({
        "id": random_text()?, "user": person.user, "groups": person.groups, "begun": begun, "ends": ends,
    });
    sign_in.0.keys.seal(CookieKind::Session, &value)
}

fn log_out(sign_in: &SignIn, headers: &HeaderMap) -> Response<Body> {
    if !is_same_origin(sign_in.0.address.as_ref(), headers, false) {
        return plain(StatusCode::FORBIDDEN, "Sign out on a page of this console.\n");
    }
    if let Some((_, session)) = sign_in.by_cookie(headers) {
        // Its streams and copies of the cookie end with it.
        let now = seconds();
        sign_in.0.ended.end(&session.id, now + SESSION_SECONDS, now);
    }
    let mut answer = redirect("/login");
    answer.headers_mut().append(SET_COOKIE, sign_in.set_cookie(CookieKind::Session, None));
    answer.headers_mut().insert(CLEAR, HeaderValue::from_static("\"cache\""));
    answer
}

fn sign_out_page(sign_in: &SignIn, headers: &HeaderMap) -> Response<Body> {
    match sign_in.by_cookie(headers) {
        Some((person, _)) => {
            let who = format!("You are {} here.", person.user);
            html(StatusCode::OK, &sign_in_page("Sign out", &[&who], SignInAction::SignOut))
        }
        None => html(StatusCode::OK, &sign_in_page("Signed out", &[], SignInAction::SignIn("/"))),
    }
}

fn failed(sign_in: &SignIn, error: &SignInError, next: &str) -> Response<Body> {
    let status = match error {
        SignInError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        SignInError::Provider(_) => StatusCode::BAD_GATEWAY,
        SignInError::State => StatusCode::BAD_REQUEST,
        SignInError::Declined | SignInError::Refused(_) => StatusCode::FORBIDDEN,
    };
    let error = error.to_string();
    tracing::warn!(error = &*sanitize(&error), "nobody was signed in");
    let mut answer = sign_in_again(status, &["You are not signed in.", &error], next);
    answer.headers_mut().append(SET_COOKIE, sign_in.set_cookie(CookieKind::SignIn, None));
    answer
}

fn sign_in_again(status: StatusCode, sentences: &[&str], next: &str) -> Response<Body> {
    html(status, &sign_in_page("Sign in", sentences, SignInAction::SignIn(next)))
}

fn html(status: StatusCode, text: &str) -> Response<Body> {
    reply(status.as_u16(), HTML, NO_STORE, None, text.to_owned(), false)
}

fn redirect(location: &str) -> Response<Body> {
    let mut answer = plain(StatusCode::SEE_OTHER, "");
    let location = HeaderValue::from_str(location).unwrap_or_else(|_| HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, location);
    answer
}

fn next_of(query: &str) -> String {
    safe_path(&form_value(query, "next").unwrap_or_default())
}

/// Returns a path of the console; `/` for a path that a browser might take for another host.
fn safe_path(path: &str) -> String {
    let is_sound = path.len() <= MAX_NEXT && path.bytes().all(|byte| byte.is_ascii_graphic());
    let is_path = path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    let is_own = ["/login", "/logout"].iter().any(|own| path.starts_with(own));
    if is_sound && is_path && !is_own { path.to_owned() } else { "/".to_owned() }
}

/// Escapes a path for a query.
fn escape(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().fold(String::new(), |out, byte| match plain(byte) {
        true => out + &char::from(byte).to_string(),
        false => format!("{out}%{byte:02X}"),
    })
}
