//! Answers challenges of a registry.
//!
//! In: the challenge of a registry itself, never that of a server that it redirects to.
//! Out: the header for its requests: the login, or a token from the server that the registry names.

use std::time::Instant;

use http::Method;

use super::super::challenge::{split, token_in, token_url};
use super::super::chart::url::Url;
use super::super::credentials::{HttpLogin, Sensitive};
use super::super::error::Error;
use super::registry_answer::read_bounded;
use super::registry_client::RegistryClient;

/// Maximum number of bytes of the response with a token.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// Returns the header that a challenge asks for.
pub(super) fn answer_challenge(
    client: &RegistryClient,
    challenge: &str,
    by: Instant,
) -> Result<Sensitive<String>, Error> {
    let given = client.cloud_login.as_deref().or(client.credentials.login.as_ref());
    let login = given.map(HttpLogin::authorization);
    match (split(challenge), given) {
        // A login that is a token needs no other one.
        (("bearer" | "basic", _), Some(HttpLogin::Bearer(_))) => login.ok_or_else(|| client.denied()),
        (("bearer", parameters), _) => token(client, parameters, login.as_ref(), by),
        (("basic", _), Some(_)) => login.ok_or_else(|| client.denied()),
        _ => Err(client.denied()),
    }
}

/// Requests a token from the server that the registry names.
fn token(
    client: &RegistryClient,
    parameters: &str,
    login: Option<&Sensitive<String>>,
    by: Instant,
) -> Result<Sensitive<String>, Error> {
    let scope = format!("repository:{}:pull", client.address().repository());
    let url = token_url(parameters, Some(&scope));
    let url = url.ok_or_else(|| client.unusable("asks for a token and does not name its server"))?;
    let url = Url::parse(&url);
    let url = url.ok_or_else(|| client.unusable("names no valid URL for tokens"))?;
    if client.address().is_tls() && !url.is_tls() {
        return Err(client.unusable("has its tokens on a server without https"));
    }
    let (whole, server) = (url.whole(), url.server());
    let to = (Method::GET, &*whole, &*server);
    let answer = match client.is_own(&url) {
        true => client.own.ask(to, "application/json", login, by)?,
        false => client.stranger(&url)?.ask(to, "application/json", login, by)?,
    };
    match answer.status {
        200 => {}
        status @ (401 | 403) => return Err(Error::Denied { server, status }),
        300..=399 => {
            return Err(client.unusable("has its tokens on a server that redirects, which is not followed"));
        }
        status => return Err(Error::Status { server, status }),
    }
    let bytes = read_bounded(answer.body, &server, MAX_TOKEN_BYTES, "bytes of a token")?;
    let token = token_in(&bytes).ok_or_else(|| client.unusable("gives no token that can be used"))?;
    Ok(Sensitive::new(format!("Bearer {token}")))
}
