//! Sign-in at an OpenID Connect provider: by code with PKCE, state and nonce.
//!
//! In: the settings, and what the provider sends back with the browser. Out: the address that the
//! browser is sent to with the sealed secrets of the sign-in, and then the person. The provider is
//! asked by the bounded client of the repositories: no redirect, and the rules for hosts.

use std::sync::Arc;
use std::time::Duration;

use moorline_identity::ExchangeRequest;
use moorline_identity::id_token::{TokenRules, verify_id_token};
use moorline_identity::oidc::{OidcClient, OidcEndpoints, SignInSecrets, read_id_token, read_keys};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::names::{NameRules, groups_of};
use super::sealed_cookie::{CookieKeys, CookieKind, random_text};
use super::seconds;
use super::used_ids::UsedIds;
use crate::serve::viewer::Person;
use crate::source::{Repositories, send_exchange};
use crate::token_bucket::TokenBucket;

/// Time in which a person has to sign in at the provider.
pub const SIGN_IN_SECONDS: i64 = 600;
/// Time for which the description of the provider is kept.
const DESCRIPTION_KEPT_FOR: Duration = Duration::from_secs(600);
/// Time before a provider that failed is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The longest wait for one answer of the provider.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Burst of sign-ins, and sign-ins in a second after that.
const RATE: (u32, u32) = (20, 5);
/// The most characters of a code.
const MAX_CODE: usize = 4096;

/// A sign-in that has begun.
pub(super) struct BegunSignIn {
    /// Address of the provider.
    pub(super) location: String,
    /// The sealed secrets, for a cookie of this browser.
    pub(super) cookie: String,
}

/// Values that the browser brings back.
#[derive(Debug, Clone, Default)]
pub(super) struct Callback {
    pub(super) code: Option<String>,
    pub(super) state: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) failed: bool,
    /// The cookie of the browser.
    pub(super) cookie: Option<String>,
}

/// The reason why nobody is signed in. Nothing of the browser or the provider is quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignInError {
    #[error("too many people sign in at once; try again in a moment")]
    TooMany,
    #[error("the provider cannot be asked: {0}")]
    Provider(String),
    #[error(
        "this sign-in was not begun in this browser, is older than ten minutes, or was used already; sign in again"
    )]
    State,
    #[error("the provider did not sign you in")]
    Declined,
    #[error("{0}")]
    Refused(String),
}

/// The addresses of the provider, or why there are none.
type Described = Result<Arc<OidcEndpoints>, SignInError>;

/// Sign-in at one provider.
pub(super) struct OidcSignIn {
    pub(super) client: OidcClient,
    pub(super) names: NameRules,
    pub(super) user_claim: Box<str>,
    pub(super) groups_claim: Box<str>,
    provider: Mutex<Option<(Instant, Described)>>,
    used: UsedIds,
    begun: TokenBucket,
    ended: TokenBucket,
    network: Repositories,
    asker: Box<str>,
}

impl OidcSignIn {
    /// Creates it; `asker` is the namespace whose share of the network is used.
    pub(super) fn new(
        client: OidcClient,
        names: NameRules,
        (user_claim, groups_claim): (&str, &str),
        (network, asker): (Repositories, &str),
    ) -> Self {
        Self {
            client,
            names,
            user_claim: user_claim.into(),
            groups_claim: groups_claim.into(),
            provider: Mutex::default(),
            used: UsedIds::default(),
            begun: TokenBucket::new(RATE),
            ended: TokenBucket::new(RATE),
            network,
            asker: asker.into(),
        }
    }

    /// Begins a sign-in that ends at a path of the console.
    pub(super) async fn begin(&self, keys: &CookieKeys, next: &str) -> Result<BegunSignIn, SignInError> {
        if !self.begun.take() {
            return Err(SignInError::TooMany);
        }
        let endpoints = self.endpoints().await?;
        let random = || random_text().ok_or(SignInError::TooMany);
        let (state, nonce, verifier) = (random()?, random()?, random()?);
        let ends = seconds() + SIGN_IN_SECONDS;
        let value = json!({"state": state, "nonce": nonce, "verifier": verifier, "next": next, "ends": ends});
        let cookie = keys.seal(CookieKind::SignIn, &value).ok_or(SignInError::TooMany)?;
        let secrets = SignInSecrets { state: &state, nonce: &nonce, verifier: &verifier };
        Ok(BegunSignIn { location: self.client.authorize_url(&endpoints, secrets), cookie })
    }

    /// Ends a sign-in: returns the person, and the path of the console.
    pub(super) async fn end(
        &self,
        keys: &CookieKeys,
        callback: Callback,
    ) -> Result<(Person, String), SignInError> {
        let begun = callback.cookie.as_deref().and_then(|cookie| keys.open(CookieKind::SignIn, cookie));
        let begun = begun.ok_or(SignInError::State)?;
        let text = |name: &str| begun[name].as_str().unwrap_or_default();
        let (ends, now) = (begun["ends"].as_i64().unwrap_or_default(), seconds());
        let is_own = callback.state.as_deref().is_some_and(|state| state == text("state"));
        // A state counts once, also if the code is refused.
        if !is_own || ends <= now || !self.used.add(text("state"), ends, now) {
            return Err(SignInError::State);
        }
        if callback.issuer.is_some_and(|issuer| *issuer != *self.client.issuer) {
            return Err(SignInError::State);
        }
        let code = callback.code.filter(|code| !callback.failed && (1..=MAX_CODE).contains(&code.len()));
        let code = code.ok_or(SignInError::Declined)?;
        if !self.ended.take() {
            return Err(SignInError::TooMany);
        }
        let claims = self.redeem(&code, text("verifier"), text("nonce")).await?;
        let person = self.person(&claims)?;
        Ok((person, text("next").to_owned()))
    }

    /// Exchanges the code, and returns the verified claims.
    async fn redeem(&self, code: &str, verifier: &str, nonce: &str) -> Result<Value, SignInError> {
        let provider = |error: moorline_identity::ExchangeError| SignInError::Provider(error.to_string());
        let endpoints = self.endpoints().await?;
        let (status, body) = self.ask(self.client.redeem(&endpoints, code, verifier)).await?;
        let token = read_id_token(status, &body).map_err(provider)?;
        // Read for each sign-in, so that a key that the provider withdrew is not trusted.
        let (status, body) = self.ask(self.client.fetch_keys(&endpoints)).await?;
        let keys = read_keys(status, &body).map_err(provider)?;
        let now = jiff::Timestamp::from_second(seconds()).unwrap_or_default();
        let rules = TokenRules { issuer: &self.client.issuer, client: &self.client.id, nonce, now };
        verify_id_token(token.as_str(), &keys, rules).map_err(|error| SignInError::Refused(error.to_string()))
    }

    fn person(&self, claims: &Value) -> Result<Person, SignInError> {
        let refused = |text: String| SignInError::Refused(text);
        let claim = &self.user_claim;
        let user = claims[&**claim].as_str().unwrap_or_default();
        if user.is_empty() {
            return Err(refused(format!(
                "the ID token has no claim {claim}; compare oidcUsernameClaim and oidcScopes"
            )));
        }
        // A person may enter an address at the provider without owning it.
        if &**claim == "email" && claims["email_verified"] != true {
            return Err(refused(
                "the provider does not say that the address is verified (email_verified)".to_owned(),
            ));
        }
        let groups = groups_of(&claims[&*self.groups_claim]).map_err(|error| refused(error.to_string()))?;
        self.names.person(user, groups).map_err(|error| refused(error.to_string()))
    }

    /// Returns the addresses of the provider. One request runs at a time, and all share its result.
    async fn endpoints(&self) -> Result<Arc<OidcEndpoints>, SignInError> {
        let mut known = self.provider.lock().await;
        if let Some((since, result)) = &*known {
            let kept = if result.is_ok() { DESCRIPTION_KEPT_FOR } else { RETRY_AFTER };
            if since.elapsed() < kept {
                return result.clone();
            }
        }
        let answer = self.ask(self.client.discover()).await;
        let result = answer.and_then(|(status, body)| {
            let read = self.client.read_endpoints(status, &body);
            read.map(Arc::new).map_err(|error| SignInError::Provider(error.to_string()))
        });
        *known = Some((Instant::now(), result.clone()));
        result
    }

    async fn ask(&self, request: ExchangeRequest) -> Result<(u16, Vec<u8>), SignInError> {
        let by = crate::clock::now() + ANSWER_TIMEOUT;
        let answer = send_exchange(&self.network, request, &self.asker, by).await;
        answer
            .map(|(status, body)| (status, body.reveal().clone()))
            .map_err(|error| SignInError::Provider(error.to_string()))
    }
}
