//! Credentials and access tokens of clouds, shared by all that have the same inputs.
//!
//! In: a ServiceAccount, or a key of a Secret, and the role and scope that are asked for.
//! Out: the credentials or the token. The key of the cache has every input: the names of the
//! accounts, the uid, the audience, the role and the scope. They are in memory only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moorline_identity::aws::{self, AwsRole};
use moorline_identity::azure::{self, AzureClient, AzureService};
use moorline_identity::gcp::{self, GcpProvider};
use moorline_identity::sigv4::AwsCredentials;
use moorline_identity::{CloudEndpoints, ExchangeError, ExchangeRequest, SecretText, Token, http_date};
use moorline_runtime::clock;
use sha2::{Digest, Sha256};

use super::account::{AccountFacts, CloudAccount};
use super::renewed::Renewed;
use crate::address::{Address, Kind};
use crate::credentials::Credentials;
use crate::error::Error;
use crate::http::{ExchangeResponse, HttpClient, SharedNetwork};

/// Name of a session at AWS.
pub(super) const SESSION_NAME: &str = "moorline";

/// Maximum number of sessions; those that have expired are removed before.
const MAX_SESSIONS: usize = 10_000;

pub(super) const AWS: &str = "AWS";
pub(super) const GCP: &str = "Google Cloud";
pub(super) const AZURE: &str = "Azure";

/// Sessions of a daemon.
#[derive(Default)]
pub(crate) struct Clouds {
    /// Addresses and names of the operator.
    endpoints: OnceLock<CloudEndpoints>,
    sessions: Mutex<HashMap<[u8; 32], Arc<Renewed<Session>>>>,
}

impl std::fmt::Debug for Clouds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clouds(..)")
    }
}

/// Credentials, or an access token.
#[derive(Clone)]
pub(super) enum Session {
    Aws(AwsCredentials),
    /// A token, and its end.
    Bearer(SecretText, Instant),
}

/// The party that an exchange is for: its name in messages, and its cloud.
#[derive(Clone)]
pub(super) struct Holder {
    pub(super) shown: Box<str>,
    pub(super) cloud: &'static str,
}

impl Clouds {
    /// Sets addresses and names; the first call counts.
    pub(crate) fn set(&self, endpoints: CloudEndpoints) {
        drop(self.endpoints.set(endpoints));
    }

    /// Returns the addresses and names of the operator.
    pub(super) fn endpoints(&self) -> &CloudEndpoints {
        self.endpoints.get_or_init(CloudEndpoints::default)
    }

    /// Returns the session of these inputs.
    pub(super) fn session(
        &self,
        inputs: &[&[u8]],
        by: Instant,
        exchange: impl FnOnce() -> Result<(Session, Duration), Error>,
    ) -> Result<Arc<Session>, Error> {
        let mut hash = Sha256::new();
        for input in inputs {
            hash.update((input.len() as u64).to_be_bytes());
            hash.update(input);
        }
        let key: [u8; 32] = hash.finalize().into();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if !sessions.contains_key(&key) {
            sessions.retain(|_, session| session.is_alive());
            if sessions.len() >= MAX_SESSIONS {
                sessions.clear();
            }
        }
        let session = sessions.entry(key).or_default().clone();
        drop(sessions);
        session.get(by, exchange)
    }
}

impl Holder {
    pub(super) fn error(&self, problem: impl ToString) -> Error {
        Error::NoIdentity {
            holder: self.shown.clone(),
            cloud: self.cloud,
            problem: problem.to_string().into(),
        }
    }

    /// Converts the error of an exchange. A cloud that is broken is not a refusal.
    pub(super) fn failed(&self, error: ExchangeError, server: &str) -> Error {
        match error {
            ExchangeError::Unavailable(status) => Error::Status { server: server.into(), status },
            error => self.error(error),
        }
    }
}

/// Sends a request of an exchange. No redirect is followed.
pub(crate) fn send(
    network: &SharedNetwork,
    request: &ExchangeRequest,
    by: Instant,
) -> Result<(ExchangeResponse, Box<str>), Error> {
    // An address of a service has a path, if only a slash.
    let whole = format!("{}-", request.url.split('?').next().unwrap_or_default());
    let address = Address::remote(&whole)?;
    let Kind::Http(http) = address.kind() else { return Err(Error::Stopped) };
    let client = HttpClient::new(&http.host, &Credentials::default(), network)?;
    let answer = client.exchange(request, http.server(), by)?;
    Ok((answer, http.server().into()))
}

/// Returns the time of the server, or of this machine.
pub(super) fn time_of(answer: &ExchangeResponse) -> Timestamp {
    answer.date.as_deref().and_then(http_date).unwrap_or_else(Timestamp::now)
}

/// Exchanges by one request, and returns the token with its lifetime.
pub(super) fn exchange_bearer(
    network: &SharedNetwork,
    holder: &Holder,
    request: &ExchangeRequest,
    read: impl FnOnce(u16, &[u8], Timestamp) -> Result<Token, ExchangeError>,
    by: Instant,
) -> Result<(Session, Duration), Error> {
    let (answer, server) = send(network, request, by)?;
    let now = time_of(&answer);
    let token = read(answer.status, answer.body.reveal(), now);
    let token = token.map_err(|error| holder.failed(error, &server))?;
    let lifetime = token.lifetime(now);
    living(Session::Bearer(token.value, clock::now() + lifetime), lifetime, holder)
}

/// Exchanges for credentials of AWS.
pub(super) fn exchange_aws(
    network: &SharedNetwork,
    holder: &Holder,
    request: &ExchangeRequest,
    by: Instant,
) -> Result<(Session, Duration), Error> {
    let (answer, server) = send(network, request, by)?;
    let read = aws::read_credentials(answer.status, answer.body.reveal());
    let (credentials, expires) = read.map_err(|error| holder.failed(error, &server))?;
    let lifetime = Token { value: "".into(), expires }.lifetime(time_of(&answer));
    living(Session::Aws(credentials), lifetime, holder)
}

fn living(session: Session, lifetime: Duration, holder: &Holder) -> Result<(Session, Duration), Error> {
    match lifetime.is_zero() {
        true => Err(holder.error(ExchangeError::Answer("gives credentials that have expired already"))),
        false => Ok((session, lifetime)),
    }
}

/// Credentials of a ServiceAccount.
#[derive(Clone, Copy)]
pub(super) struct AccountSessions<'a> {
    pub(super) account: &'a CloudAccount,
    pub(super) network: &'a SharedNetwork,
    pub(super) by: Instant,
}

impl AccountSessions<'_> {
    pub(super) fn holder(self, cloud: &'static str) -> Holder {
        Holder { shown: self.account.shown(), cloud }
    }

    fn annotation<'f>(
        self,
        facts: &'f AccountFacts,
        cloud: &'static str,
        key: &str,
    ) -> Result<&'f str, Error> {
        let found = facts.annotations.get(key).map(|value| value.trim()).filter(|value| !value.is_empty());
        found.ok_or_else(|| {
            let account = &facts.shown;
            self.holder(cloud).error(format!("{account} has no annotation {key}"))
        })
    }

    /// Returns the session whose inputs begin with the account.
    fn session(
        self,
        facts: &AccountFacts,
        (cloud, audience, inputs): (&'static str, &str, &[&str]),
        exchange: impl FnOnce(&SecretText) -> Result<(Session, Duration), Error>,
    ) -> Result<Arc<Session>, Error> {
        let name = self.account.name();
        let (account, asker) = (name.name.as_deref(), name.asker.as_deref());
        let is_named = [account.is_some(), asker.is_some()].map(u8::from);
        let mut all: Vec<&[u8]> = vec![
            cloud.as_bytes(),
            name.namespace.as_bytes(),
            account.unwrap_or_default().as_bytes(),
            asker.unwrap_or_default().as_bytes(),
            &is_named,
            facts.uid.as_bytes(),
            audience.as_bytes(),
        ];
        all.extend(inputs.iter().map(|input| input.as_bytes()));
        self.network
            .clouds()
            .session(&all, self.by, || exchange(&self.account.token(facts, (cloud, audience), self.by)?))
    }

    /// Returns the credentials of the role in the ServiceAccount's annotation.
    pub(super) fn aws(self, region: &str) -> Result<(AwsCredentials, AwsRole), Error> {
        let facts = self.account.facts(AWS, self.by)?;
        let holder = self.holder(AWS);
        let arn = self.annotation(&facts, AWS, aws::ROLE_ANNOTATION)?;
        let role = AwsRole::new(arn, region).map_err(|error| holder.error(error))?;
        let session = self.session(&facts, (AWS, aws::AUDIENCE, &[role.arn()]), |token| {
            let endpoints = self.network.clouds().endpoints();
            let request = role.assume(endpoints, token, SESSION_NAME);
            exchange_aws(self.network, &holder, &request, self.by)
        })?;
        match &*session {
            Session::Aws(credentials) => Ok((credentials.clone(), role)),
            Session::Bearer(..) => Err(Error::Stopped),
        }
    }

    /// Returns an access token of Google Cloud, and the time that is left of it.
    pub(super) fn gcp(self) -> Result<(SecretText, Duration), Error> {
        let facts = self.account.facts(GCP, self.by)?;
        let (holder, endpoints) = (self.holder(GCP), self.network.clouds().endpoints());
        let named = gcp::PROVIDER_ANNOTATIONS.iter().find_map(|key| facts.annotations.get(*key));
        let named = named.map(|name| GcpProvider::new(name)).transpose();
        let provider =
            named.map_err(|error| holder.error(error))?.or_else(|| endpoints.gcp_provider().cloned());
        let provider = provider.ok_or_else(|| {
            holder.error(
                "the setting cloudEndpoints names no provider of a workload identity pool (gcp-provider)",
            )
        })?;
        let account = facts.annotations.get(gcp::ACCOUNT_ANNOTATION);
        let acts_as = account.map(|account| &**account).unwrap_or_default();
        let audience = provider.audience();
        let session = self.session(&facts, (GCP, &audience, &[provider.name(), acts_as]), |token| {
            let request = gcp::exchange_token(endpoints, &provider, token);
            let first = exchange_bearer(self.network, &holder, &request, gcp::read_token, self.by)?;
            let (Session::Bearer(federated, _), false) = (&first.0, acts_as.is_empty()) else {
                return Ok(first);
            };
            let request = gcp::impersonate(endpoints, acts_as, federated);
            let request = request.map_err(|error| holder.error(error))?;
            let read = |status, body: &[u8], _| gcp::read_account_token(status, body);
            exchange_bearer(self.network, &holder, &request, read, self.by)
        })?;
        bearer(&session)
    }

    /// Returns an access token of Azure for a service, and the time that is left of it.
    pub(super) fn azure(self, service: &AzureService) -> Result<(SecretText, Duration), Error> {
        let facts = self.account.facts(AZURE, self.by)?;
        let holder = self.holder(AZURE);
        let client = self.annotation(&facts, AZURE, azure::CLIENT_ANNOTATION)?;
        let tenant = self.annotation(&facts, AZURE, azure::TENANT_ANNOTATION)?;
        let application = AzureClient::new(client, tenant).map_err(|error| holder.error(error))?;
        let scope = service.scope();
        let session = self.session(&facts, (AZURE, azure::AUDIENCE, &[client, tenant, &scope]), |token| {
            let endpoints = self.network.clouds().endpoints();
            let request = application.exchange_token(endpoints, token, service);
            exchange_bearer(self.network, &holder, &request, azure::read_token, self.by)
        })?;
        bearer(&session)
    }
}

/// Returns the token of a session, and the time that is left of it.
pub(super) fn bearer(session: &Session) -> Result<(SecretText, Duration), Error> {
    match session {
        Session::Bearer(token, until) => Ok((token.clone(), until.saturating_duration_since(clock::now()))),
        Session::Aws(_) => Err(Error::Stopped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_of_all_its_inputs() {
        let (clouds, by) = (Clouds::default(), clock::now() + Duration::from_secs(60));
        let mut exchanges = 0;
        let mut ask = |inputs: &[&[u8]]| {
            let session = clouds.session(inputs, by, || {
                exchanges += 1;
                let life = Duration::from_secs(600);
                Ok((Session::Bearer("planted".into(), clock::now() + life), life))
            });
            assert!(session.is_ok());
            exchanges
        };
        let account: [&[u8]; 4] = [b"AWS", b"shop", b"puller", b"uid-1"];
        assert_eq!((ask(&account), ask(&account)), (1, 1));
        // A ServiceAccount that was created again is another one, and so are shifted borders.
        assert_eq!(ask(&[b"AWS", b"shop", b"puller", b"uid-2"]), 2);
        assert_eq!(ask(&[b"AWS", b"shopp", b"uller", b"uid-1"]), 3);
        assert_eq!(ask(&[b"AWS", b"shop", b"puller", b"uid-1", b""]), 4);
    }
}
