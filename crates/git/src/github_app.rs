//! Login of a GitHub App: read from a Secret, and bound to the API of the repository's host.
//!
//! In: the keys of a Secret, as Flux and Argo CD name them.
//! Out: [`AppLogin`]. The App's signature is sent only to the API that belongs to the host of the
//! repository, so that a Secret with another address exposes it to nobody.

use moorline_identity::SigningKey;
use moorline_identity::github_app::{GithubApp, Installation};

use super::address::{Address, HttpAddress, Kind};
use super::secret_keys::{CredentialsError, SecretKeys};

/// The port of https.
const HTTPS_PORT: u16 = 443;

/// A GitHub App, and the address of the API in its Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AppLogin {
    pub(super) app: GithubApp,
    base: Option<HttpAddress>,
}

impl AppLogin {
    /// Reads the keys of an App; `None` if the Secret has none of them.
    pub(super) fn from_secret(keys: &SecretKeys<'_>) -> Result<Option<Self>, CredentialsError> {
        let missing = |key, missing| CredentialsError::Missing { key, missing };
        let (id, key) = (keys.line("githubAppID")?, keys.pem("githubAppPrivateKey")?);
        let (id, key) = match (id, key) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(missing("githubAppID", "githubAppPrivateKey")),
            (None, Some(_)) => return Err(missing("githubAppPrivateKey", "githubAppID")),
            (Some(id), Some(key)) => (id, key),
        };
        let installation = keys.line("githubAppInstallationID")?;
        let installation = match (installation, keys.line("githubAppInstallationOwner")?) {
            (Some(id), None) => Installation::Id(id.reveal().as_str().into()),
            (None, Some(owner)) => Installation::Owner(owner.reveal().as_str().into()),
            (None, None) => return Err(missing("githubAppID", "githubAppInstallationID")),
            (Some(_), Some(_)) => {
                return Err(CredentialsError::Both("githubAppInstallationID", "githubAppInstallationOwner"));
            }
        };
        let unusable = CredentialsError::Value {
            key: "githubAppPrivateKey",
            problem: "is no RSA key of 2048 to 4096 bits without a password, as GitHub creates it for an App",
        };
        let key = SigningKey::from_pem(&key).ok_or(unusable)?;
        let app = GithubApp::new(id.reveal(), installation, key).map_err(CredentialsError::App)?;
        let base = keys.line("githubAppBaseURL")?.map(|base| base_address(base.reveal())).transpose()?;
        Ok(Some(Self { app, base }))
    }

    /// Returns the address of the API for a repository, if the App may be used for it.
    pub(super) fn api(&self, repository: &HttpAddress) -> Result<HttpAddress, CredentialsError> {
        let host = &*repository.host;
        let is_hosted = repository.port == HTTPS_PORT && (host == "github.com" || host.ends_with(".ghe.com"));
        let (api_host, path) = match is_hosted {
            true => (format!("api.{host}"), ""),
            false => (host.to_owned(), "/api/v3"),
        };
        let api = HttpAddress { tls: true, host: api_host.into(), port: repository.port, path: path.into() };
        match &self.base {
            None if !is_hosted => {
                Err(CredentialsError::NoApi { host: host.into(), api: api.to_string().into() })
            }
            Some(base) if *base != api => Err(CredentialsError::OtherApi {
                base: base.to_string().into(),
                host: host.into(),
                api: api.to_string().into(),
            }),
            _ => Ok(api),
        }
    }
}

/// Reads the address of an API, which needs no path.
fn base_address(text: &str) -> Result<HttpAddress, CredentialsError> {
    let problem = "is not an address such as https://github.example.com/api/v3";
    let broken = CredentialsError::Value { key: "githubAppBaseURL", problem };
    // A path in its place makes a complete address of one without.
    let whole = Address::remote(&format!("{}/-", text.trim_end_matches('/'))).map_err(|_| broken.clone())?;
    match whole.kind() {
        Kind::Http(address) if address.tls => {
            let path = address.path.strip_suffix("/-").unwrap_or_default();
            Ok(HttpAddress { path: path.into(), ..address.clone() })
        }
        _ => Err(broken),
    }
}
