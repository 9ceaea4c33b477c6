//! Installation tokens of GitHub Apps: exchanged, shared and renewed.
//!
//! In: the credentials of a repository with an App.
//! Out: a [`TokenSource`], the same one for equal inputs, and from it the value of the
//! `Authorization` header. One exchange runs at a time, and all callers share its result, also a
//! failure. A source ends with the last repository that uses it, and its token with it.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use moorline_identity::github_app::{
    GithubApp, Installation, NO_INSTALLATION, OwnerForm, read_installation, read_token,
};
use moorline_identity::{ExchangeError, ExchangeRequest, Token, http_date};
use moorline_runtime::clock;
use sha2::{Digest, Sha256};

use super::address::HttpAddress;
use super::credentials::{Credentials, Sensitive};
use super::error::Error;
use super::github_app::AppLogin;
use super::http::{ExchangeResponse, HttpClient, SharedNetwork};

/// Maximum time of an exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum time before its end at which a token is renewed.
const RENEWED_BEFORE: Duration = Duration::from_secs(5 * 60);

/// A token with a short life is renewed after this part of it.
const RENEWED_BEFORE_PART: u32 = 5;

/// Time for which a failure is shared, so that many Syncs do not repeat it at once.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Minimum time between exchanges because a server refused a token.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// Difference of two clocks that GitHub does not tolerate.
const CLOCK_DIFFERENCE_SECONDS: i64 = 50;

/// The user of an installation token.
const TOKEN_USER: &str = "x-access-token";

/// All sources of a daemon.
#[derive(Debug, Default)]
pub(super) struct TokenSources(Mutex<HashMap<[u8; 32], Weak<TokenSource>>>);

impl TokenSources {
    /// Returns the source of these inputs. Everything that an exchange depends on is in the key.
    pub(super) fn source(
        &self,
        address: &HttpAddress,
        credentials: &Credentials,
        network: &SharedNetwork,
    ) -> Result<Option<Arc<TokenSource>>, Error> {
        let Some(login) = &credentials.app else { return Ok(None) };
        let api = login.api(address)?;
        let key = key(address, &api, login, credentials);
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|_, source| source.strong_count() > 0);
        if let Some(source) = sources.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(source));
        }
        // The client certificate is for the host of the repository only.
        let client = credentials.client.clone().filter(|_| api.host == address.host);
        let authorities = credentials.authorities.clone();
        let trust = Credentials { authorities, client, ..Credentials::default() };
        let client = HttpClient::new(&api.host, &trust, network)?;
        let source = Arc::new(TokenSource {
            app: login.app.clone(),
            api,
            client,
            state: Mutex::default(),
            news: Condvar::new(),
        });
        sources.insert(key, Arc::downgrade(&source));
        Ok(Some(source))
    }
}

/// Returns the key of a cache, with the length of each input before it.
fn key(address: &HttpAddress, api: &HttpAddress, login: &AppLogin, credentials: &Credentials) -> [u8; 32] {
    let (server, base) = (address.server(), api.to_string());
    let pem = |pem: Option<&Sensitive<Vec<u8>>>| pem.map(|pem| pem.reveal().clone()).unwrap_or_default();
    let client = credentials.client.as_ref();
    let trust = [
        pem(credentials.authorities.as_ref()),
        pem(client.map(|client| &client.certificates)),
        pem(client.map(|client| &client.key)),
    ];
    let mut hash = Sha256::new();
    let inputs = [server.as_bytes(), base.as_bytes()].into_iter().chain(login.app.identity());
    for input in inputs.chain(trust.iter().map(Vec::as_slice)) {
        hash.update((input.len() as u64).to_be_bytes());
        hash.update(input);
    }
    hash.finalize().into()
}

/// Tokens of one App for one server.
#[derive(Debug)]
pub(super) struct TokenSource {
    app: GithubApp,
    api: HttpAddress,
    client: HttpClient,
    state: Mutex<SourceState>,
    /// Notified at the end of each exchange.
    news: Condvar,
}

#[derive(Debug, Default)]
struct SourceState {
    token: Option<Arc<InstallationToken>>,
    /// True while a caller exchanges.
    is_exchanging: bool,
    /// The last failure, unless an exchange succeeded after it.
    failed: Option<(Instant, Error)>,
    /// Time of the last exchange because of a refused token.
    refused: Option<Instant>,
}

/// A token, as the value of a header.
#[derive(Debug)]
pub(super) struct InstallationToken {
    pub(super) authorization: Sensitive<String>,
    renewed_from: Instant,
    valid_until: Instant,
}

impl InstallationToken {
    fn new(token: &Token, server_time: Timestamp) -> Option<Self> {
        let lifetime = token.lifetime(server_time);
        let pair = format!("{TOKEN_USER}:{}", token.value.as_str());
        let (now, margin) = (clock::now(), RENEWED_BEFORE.min(lifetime / RENEWED_BEFORE_PART));
        (!lifetime.is_zero()).then(|| Self {
            authorization: Sensitive::new(format!("Basic {}", STANDARD.encode(pair))),
            renewed_from: now + lifetime.saturating_sub(margin),
            valid_until: now + lifetime,
        })
    }
}

impl TokenSource {
    /// Returns a token that is not to be renewed yet.
    pub(super) fn token(&self, by: Instant) -> Result<Arc<InstallationToken>, Error> {
        let mut state = self.lock();
        loop {
            let now = clock::now();
            let valid = state.token.clone().filter(|token| now < token.valid_until);
            match (&valid, &state.failed) {
                (Some(token), _) if now < token.renewed_from => return Ok(token.clone()),
                (Some(token), Some((at, _))) if clock::since(*at) < FAILURE_PAUSE => return Ok(token.clone()),
                (None, Some((at, error))) if clock::since(*at) < FAILURE_PAUSE => return Err(error.clone()),
                // An old token is as good as a new one until then.
                (Some(token), _) if state.is_exchanging => return Ok(token.clone()),
                (_, _) if !state.is_exchanging => break,
                _ => {}
            }
            let left = by.saturating_duration_since(now);
            if left.is_zero() {
                return Err(Error::Timeout { server: self.api.server().into(), what: "answer" });
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        state.is_exchanging = true;
        drop(state);
        let turn = ExchangeTurn(self);
        let found = self.exchange(by.min(clock::now() + EXCHANGE_TIMEOUT));
        let mut state = self.lock();
        let found = match found {
            Ok(token) => {
                state.failed = None;
                Ok(state.token.insert(Arc::new(token)).clone())
            }
            Err(error) => {
                state.failed = Some((clock::now(), error.clone()));
                state.token.clone().filter(|token| clock::now() < token.valid_until).ok_or(error)
            }
        };
        drop((state, turn));
        found
    }

    /// Returns another token than a refused one; `None` if there was an exchange for that just now.
    pub(super) fn instead_of(
        &self,
        refused: &Arc<InstallationToken>,
        by: Instant,
    ) -> Result<Option<Arc<InstallationToken>>, Error> {
        let mut state = self.lock();
        if state.token.as_ref().is_some_and(|token| Arc::ptr_eq(token, refused)) {
            if state.refused.is_some_and(|at| clock::since(at) < REFUSED_PAUSE) {
                return Ok(None);
            }
            state.token = None;
            state.refused = Some(clock::now());
        }
        drop(state);
        self.token(by).map(Some)
    }

    fn exchange(&self, by: Instant) -> Result<InstallationToken, Error> {
        let base = self.api.to_string();
        let installation = match self.app.installation() {
            Installation::Id(id) => id.clone(),
            Installation::Owner(owner) => self.installation_of(&base, owner, by)?,
        };
        let (request, now) = self.signed(|now| self.app.create_token(&base, &installation, now))?;
        let answer = self.client.exchange(&request, self.api.server(), by)?;
        let server_time = answer.date.as_deref().and_then(http_date);
        let token =
            read_token(answer.status, answer.body.reveal()).map_err(|error| self.refusal(error, &answer))?;
        let expired = ExchangeError::Answer("gives a token that has expired already");
        InstallationToken::new(&token, server_time.unwrap_or(now))
            .ok_or_else(|| self.refusal(expired, &answer))
    }

    /// Finds the installation of an organization or a user.
    fn installation_of(&self, base: &str, owner: &str, by: Instant) -> Result<Box<str>, Error> {
        for form in [OwnerForm::Organization, OwnerForm::User] {
            let (request, _) = self.signed(|now| self.app.find_installation(base, owner, form, now))?;
            let answer = self.client.exchange(&request, self.api.server(), by)?;
            let found = read_installation(answer.status, answer.body.reveal());
            if let Some(id) = found.map_err(|error| self.refusal(error, &answer))? {
                return Ok(id);
            }
        }
        Err(self.refused(NO_INSTALLATION.to_string()))
    }

    /// Signs a request at the current time.
    fn signed(
        &self,
        build: impl Fn(Timestamp) -> Result<ExchangeRequest, ExchangeError>,
    ) -> Result<(ExchangeRequest, Timestamp), Error> {
        let now = Timestamp::now();
        build(now).map(|request| (request, now)).map_err(|error| self.refused(error.to_string()))
    }

    /// Converts the error of an answer. A wrong clock is the reason that nobody thinks of.
    fn refusal(&self, error: ExchangeError, answer: &ExchangeResponse) -> Error {
        let ExchangeError::Refused { status, .. } = error else {
            return match error {
                ExchangeError::Unavailable(status) => {
                    Error::Status { server: self.api.server().into(), status }
                }
                error => self.refused(error.to_string()),
            };
        };
        let server_time = answer.date.as_deref().and_then(http_date).filter(|_| status == 401);
        let ahead = server_time.map(|time| Timestamp::now().as_second() - time.as_second());
        match ahead.filter(|ahead| ahead.abs() > CLOCK_DIFFERENCE_SECONDS) {
            Some(ahead) => {
                let way = if ahead > 0 { "ahead of" } else { "behind" };
                self.refused(format!(
                    "the clock of the daemon is {} s {way} the server's; correct it (status {status})",
                    ahead.abs()
                ))
            }
            None => self.refused(error.to_string()),
        }
    }

    fn refused(&self, problem: String) -> Error {
        Error::NoToken { server: self.api.server().into(), problem: problem.into() }
    }

    fn lock(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of the caller that exchanges; the others go on when it ends, however it ends.
struct ExchangeTurn<'a>(&'a TokenSource);

impl Drop for ExchangeTurn<'_> {
    fn drop(&mut self) {
        self.0.lock().is_exchanging = false;
        self.0.news.notify_all();
    }
}
