//! Login of a cloud for one registry or one host of repositories.
//!
//! In: a cloud, a ServiceAccount, host and port of a server that belongs to the cloud.
//! Out: a [`CloudLogin`], which the clients of that server ask for its current value.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use moorline_identity::aws::{read_registry_login, registry_region};
use moorline_identity::azure::{self, AzureService, exchange_registry_token, read_registry_token};
use moorline_identity::{CloudEndpoints, Token, gcp};

use super::account::CloudAccount;
use super::renewed::Renewed;
use super::sessions::{AWS, AZURE, AccountSessions, send, time_of};
use crate::error::Error;
use crate::http::SharedNetwork;
use crate::http_login::HttpLogin;
use crate::secret_keys::CredentialsError;
use crate::sensitive::Sensitive;

/// Region of a registry that the operator names, whose name has no region.
const DEFAULT_REGION: &str = "us-east-1";

/// User of the login of a registry of AWS.
const ECR_USER: &str = "AWS";

/// A cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cloud {
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// Microsoft Azure.
    Azure,
}

/// A login that is exchanged and renewed as it is needed; cheap to clone.
#[derive(Clone)]
pub struct CloudLogin(Arc<Inner>);

struct Inner {
    service: LoginService,
    account: CloudAccount,
    /// Host, and port unless it is that of https.
    server: Box<str>,
    network: Arc<SharedNetwork>,
    current: Renewed<HttpLogin>,
}

/// A kind of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LoginService {
    Ecr { region: Box<str> },
    ArtifactRegistry,
    AzureRegistry,
    AzureDevOps,
}

impl CloudLogin {
    /// Creates the login for a registry.
    pub(crate) fn of_registry(
        (cloud, account): (Cloud, CloudAccount),
        server: &str,
        network: &Arc<SharedNetwork>,
    ) -> Result<Self, Error> {
        let endpoints = network.clouds().endpoints();
        let service = registry(cloud, server, endpoints).ok_or(CredentialsError::Mismatch(match cloud {
            Cloud::Aws => {
                "the provider AWS is for registries such as 123456789012.dkr.ecr.eu-central-1.amazonaws.com"
            }
            Cloud::Gcp => "the provider GCP is for registries such as europe-docker.pkg.dev",
            Cloud::Azure => "the provider Azure is for registries such as shop.azurecr.io",
        }))?;
        Ok(Self::new(service, account, server, network))
    }

    /// Creates the login for a host of repositories.
    pub(crate) fn of_repository(
        account: CloudAccount,
        server: &str,
        network: &Arc<SharedNetwork>,
    ) -> Result<Self, Error> {
        let endpoints = network.clouds().endpoints();
        let is_known = azure::is_dev_ops(server) || endpoints.has_host("azure-devops", server);
        let problem = "the provider Azure is for repositories of Azure DevOps: https://dev.azure.com/ORGANIZATION/PROJECT/_git/NAME";
        match is_known {
            true => Ok(Self::new(LoginService::AzureDevOps, account, server, network)),
            false => Err(CredentialsError::Mismatch(problem).into()),
        }
    }

    fn new(service: LoginService, account: CloudAccount, server: &str, network: &Arc<SharedNetwork>) -> Self {
        let (server, network) = (server.into(), network.clone());
        Self(Arc::new(Inner { service, account, server, network, current: Renewed::default() }))
    }

    /// Returns the current login.
    pub(crate) fn login(&self, by: Instant) -> Result<Arc<HttpLogin>, Error> {
        self.0.current.get(by, || self.exchange(by))
    }

    /// Notes that the server refused the current login; true if another one can be had now.
    pub(crate) fn refused(&self) -> bool {
        self.0.current.refuse()
    }

    fn exchange(&self, by: Instant) -> Result<(HttpLogin, Duration), Error> {
        let Inner { service, account, server, network, .. } = &*self.0;
        let sessions = AccountSessions { account, network, by };
        let basic = |user: &str, password: &str| HttpLogin::Basic {
            username: Sensitive::new(user.to_owned()),
            password: Sensitive::new(password.to_owned()),
        };
        match service {
            LoginService::Ecr { region } => {
                let (holder, (credentials, role)) = (sessions.holder(AWS), sessions.aws(region)?);
                let endpoints = network.clouds().endpoints();
                let request = role.registry_login(endpoints, &credentials, Timestamp::now());
                let request = request.map_err(|error| holder.error(error))?;
                let (answer, at) = send(network, &request, by)?;
                let login = read_registry_login(answer.status, answer.body.reveal());
                let login = login.map_err(|error| holder.failed(error, &at))?;
                let pair = STANDARD.decode(login.value.as_str()).ok();
                let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
                let password = pair.as_deref().and_then(|pair| pair.strip_prefix("AWS:"));
                let password = password.ok_or_else(|| holder.error("it gives no login that can be used"))?;
                Ok((basic(ECR_USER, password), login.lifetime(time_of(&answer))))
            }
            LoginService::ArtifactRegistry => {
                let (token, left) = sessions.gcp()?;
                Ok((basic(gcp::REGISTRY_USER, token.as_str()), left))
            }
            LoginService::AzureRegistry => {
                let (token, left) = sessions.azure(&AzureService::Registry)?;
                let holder = sessions.holder(AZURE);
                let endpoints = network.clouds().endpoints();
                let request = exchange_registry_token(endpoints, server, &token);
                let request = request.map_err(|error| holder.error(error))?;
                let (answer, at) = send(network, &request, by)?;
                let access = Token { value: token, expires: time_of(&answer) };
                let refresh = read_registry_token(answer.status, answer.body.reveal(), &access);
                let refresh = refresh.map_err(|error| holder.failed(error, &at))?;
                Ok((basic(azure::REGISTRY_USER, refresh.value.as_str()), left))
            }
            LoginService::AzureDevOps => {
                let (token, left) = sessions.azure(&AzureService::DevOps)?;
                Ok((HttpLogin::Bearer(Sensitive::new(token.as_str().to_owned())), left))
            }
        }
    }
}

/// Returns the kind of a registry; none if it is not one of the cloud.
fn registry(cloud: Cloud, server: &str, endpoints: &CloudEndpoints) -> Option<LoginService> {
    match cloud {
        Cloud::Aws => {
            let own = endpoints.has_host("aws-registry", server).then_some(DEFAULT_REGION);
            let region = registry_region(server).or(own)?;
            Some(LoginService::Ecr { region: region.into() })
        }
        Cloud::Gcp => {
            let is_known = gcp::is_registry(server) || endpoints.has_host("gcp-registry", server);
            is_known.then_some(LoginService::ArtifactRegistry)
        }
        Cloud::Azure => {
            let is_known = azure::is_registry(server) || endpoints.has_host("azure-registry", server);
            is_known.then_some(LoginService::AzureRegistry)
        }
    }
}

impl PartialEq for CloudLogin {
    fn eq(&self, other: &Self) -> bool {
        let (one, two) = (&self.0, &other.0);
        (&one.service, &one.account, &one.server) == (&two.service, &two.account, &two.server)
    }
}

impl Eq for CloudLogin {}

impl fmt::Debug for CloudLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { service, account, server, .. } = &*self.0;
        f.debug_tuple("CloudLogin").field(service).field(account).field(server).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_only_for_servers_of_its_cloud() {
        let endpoints = CloudEndpoints::new(["gcp-registry=https://localhost:5000"]).unwrap();
        let found = |cloud, server| registry(cloud, server, &endpoints);
        let ecr = LoginService::Ecr { region: "eu-central-1".into() };
        let host = "123456789012.dkr.ecr.eu-central-1.amazonaws.com";
        for (cloud, server, expect) in [
            (Cloud::Aws, host, Some(ecr)),
            (Cloud::Gcp, host, None),
            (Cloud::Azure, host, None),
            (Cloud::Gcp, "europe-docker.pkg.dev", Some(LoginService::ArtifactRegistry)),
            (Cloud::Gcp, "localhost:5000", Some(LoginService::ArtifactRegistry)),
            (Cloud::Gcp, "localhost:5001", None),
            (Cloud::Azure, "shop.azurecr.io", Some(LoginService::AzureRegistry)),
            (Cloud::Azure, "shop.azurecr.io.evil.example", None),
            (Cloud::Aws, "ghcr.io", None),
        ] {
            assert_eq!(found(cloud, server), expect, "{cloud:?} {server}");
        }
    }
}
