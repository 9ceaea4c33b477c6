//! Sets up the ways in from the setting `console` and the files of Secrets.
//!
//! In: settings, and handles for the API server and the network. Out: a [`SignIn`], none if no way
//! in is set up, or a [`SetUpError`]: the page is not served then, rather than without a sign-in.

use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderName;
use moorline_identity::SecretText;
use moorline_identity::oidc::OidcClient;
use tokio::sync::mpsc;

use super::bearer_token::{BearerTokens, TokenReviewRequest};
use super::names::NameRules;
use super::oidc_sign_in::OidcSignIn;
use super::origin::ConsoleAddress;
use super::proxy_headers::ProxyHeaders;
use super::sealed_cookie::{CookieKeys, random_text};
use super::tls::{PageTls, TlsError};
use super::{SignIn, SignInInner, milliseconds};
use crate::settings::ConsoleSettings;
use crate::source::Repositories;

/// The least number of bytes of a session key.
const MIN_KEY_BYTES: usize = 32;
const DEFAULT_PREFIX: &str = "oidc:";
/// Prefix of names from an authenticating proxy, so that a group there is none of the cluster.
const DEFAULT_PROXY_PREFIX: &str = "proxy:";
const DEFAULT_SCOPES: &str = "openid";
const DEFAULT_USER_CLAIM: &str = "sub";
const DEFAULT_GROUPS_CLAIM: &str = "groups";

/// The reason why there are no ways in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetUpError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The key of the sessions is too short.
    #[error("session-key of the setting console has less than {MIN_KEY_BYTES} bytes")]
    Key,
    /// A file of a Secret cannot be read.
    #[error("{0} of the setting console cannot be read")]
    File(&'static str),
    /// A header has no name.
    #[error("{0} of the setting console is not the name of a header")]
    Header(&'static str),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

impl SignIn {
    /// Sets up the ways in. `namespace` is that of the daemon, whose share of the network is used.
    pub fn new(
        settings: &ConsoleSettings,
        reviews: mpsc::Sender<TokenReviewRequest>,
        network: &Repositories,
        namespace: &str,
    ) -> Result<Option<Self>, SetUpError> {
        if !settings.has_sign_in() {
            return Ok(None);
        }
        let client_ca =
            settings.get("proxyUserHeader").and_then(|_| settings.file("secrets", "client-ca.crt"));
        let tls = settings.get("tls").map(|folder| PageTls::new(folder.into(), client_ca)).transpose()?;
        let oidc = client(settings)?.map(|client| {
            let claims = (
                settings.get("oidcUsernameClaim").unwrap_or(DEFAULT_USER_CLAIM),
                settings.get("oidcGroupsClaim").unwrap_or(DEFAULT_GROUPS_CLAIM),
            );
            let prefix = prefix(settings, "oidcPrefix", DEFAULT_PREFIX);
            let groups = settings.get("oidcGroups").unwrap_or_default();
            let names = NameRules { prefix: prefix.into(), groups: groups.into() };
            OidcSignIn::new(client, names, claims, (network.clone(), namespace))
        });
        Ok(Some(Self(Arc::new(SignInInner {
            address: settings.get("url").map(ConsoleAddress::new),
            keys: keys(settings)?,
            tokens: settings.get("tokenAudience").map(|audience| BearerTokens::new(audience, reviews)),
            oidc,
            proxy: proxy(settings)?,
            tls: tls.map(Arc::new),
            ended: Arc::default(),
            count_from: milliseconds().into(),
        }))))
    }
}

/// Derives the keys of cookies from the session key; without one, of a key that ends with the
/// process.
fn keys(settings: &ConsoleSettings) -> Result<CookieKeys, SetUpError> {
    let secret = match secret(settings, "session-key")? {
        Some(key) if key.as_str().len() < MIN_KEY_BYTES => return Err(SetUpError::Key),
        Some(key) => key,
        None => SecretText::new(random_text().ok_or(SetUpError::Random)?),
    };
    // A session is of one provider and one way of naming people.
    let names =
        ["oidcIssuer", "oidcClientID", "oidcUsernameClaim", "oidcGroupsClaim", "oidcPrefix", "oidcGroups"];
    let binding: Vec<_> = names.iter().map(|name| settings.get(name).unwrap_or_default()).collect();
    CookieKeys::new(secret.as_str().as_bytes(), &binding.join("\n")).ok_or(SetUpError::Random)
}

fn client(settings: &ConsoleSettings) -> Result<Option<OidcClient>, SetUpError> {
    let (Some(issuer), Some(id), Some(url)) =
        (settings.get("oidcIssuer"), settings.get("oidcClientID"), settings.get("url"))
    else {
        return Ok(None);
    };
    let hosts = settings.get("oidcHosts").unwrap_or_default().split(' ');
    Ok(Some(OidcClient {
        issuer: issuer.into(),
        id: id.into(),
        secret: secret(settings, "client-secret")?,
        redirect: format!("{}/login/callback", ConsoleAddress::new(url).url).into(),
        scopes: settings.get("oidcScopes").unwrap_or(DEFAULT_SCOPES).into(),
        hosts: hosts.filter(|host| !host.is_empty()).map(Into::into).collect(),
    }))
}

/// The prefix of names; empty only if the setting says so.
fn prefix<'a>(settings: &'a ConsoleSettings, name: &str, otherwise: &'a str) -> &'a str {
    if settings.has(name) { settings.get(name).unwrap_or_default() } else { otherwise }
}

fn proxy(settings: &ConsoleSettings) -> Result<Option<ProxyHeaders>, SetUpError> {
    let header = |name: &'static str| -> Result<Option<HeaderName>, SetUpError> {
        let header = settings.get(name).map(|header| HeaderName::from_bytes(header.as_bytes()));
        header.transpose().map_err(|_| SetUpError::Header(name))
    };
    let groups = header("proxyGroupsHeader")?;
    Ok(header("proxyUserHeader")?.map(|user| ProxyHeaders {
        user,
        groups,
        names: NameRules {
            prefix: prefix(settings, "proxyPrefix", DEFAULT_PROXY_PREFIX).into(),
            groups: "".into(),
        },
    }))
}

/// Reads a file of the Secret; none if it does not have the key.
fn secret(settings: &ConsoleSettings, name: &'static str) -> Result<Option<SecretText>, SetUpError> {
    let Some(file) = settings.file("secrets", name) else { return Ok(None) };
    if !Path::new(&file).exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(file).map_err(|_| SetUpError::File(name))?;
    let text = SecretText::new(text);
    Ok(Some(text.as_str().trim_end_matches(['\n', '\r']).into()))
}
