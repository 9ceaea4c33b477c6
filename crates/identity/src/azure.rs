//! Access tokens of Microsoft Entra for a ServiceAccount, and the login of a registry of Azure.
//!
//! In: a ServiceAccount's token, and the application in its annotations.
//! Out: the requests, and what their answers say.

use jiff::Timestamp;

use crate::endpoints::CloudEndpoints;
use crate::exchange::{self, ExchangeError, ExchangeRequest, Token};
use crate::secret::SecretText;

/// Annotation of a ServiceAccount with the client id of an application or a managed identity.
pub const CLIENT_ANNOTATION: &str = "azure.workload.identity/client-id";

/// Annotation of a ServiceAccount with the tenant of Entra.
pub const TENANT_ANNOTATION: &str = "azure.workload.identity/tenant-id";

/// Audience of the ServiceAccount's token.
pub const AUDIENCE: &str = "api://AzureADTokenExchange";

/// User of a registry's refresh token.
pub const REGISTRY_USER: &str = "00000000-0000-0000-0000-000000000000";

/// Maximum number of characters of a host.
const MAX_HOST_LENGTH: usize = 253;

/// A service of Azure, which is the scope of a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AzureService {
    /// Repositories of Azure DevOps.
    DevOps,
    /// Container registries.
    Registry,
    /// Key vaults of a domain, such as `vault.azure.net`.
    KeyVault(Box<str>),
}

impl AzureService {
    /// Returns the scope of a token.
    pub fn scope(&self) -> String {
        match self {
            // The id of Azure DevOps in each tenant.
            Self::DevOps => "499b84ac-1321-427f-aa17-267ca6975798/.default".to_owned(),
            Self::Registry => "https://containerregistry.azure.net/.default".to_owned(),
            Self::KeyVault(domain) => format!("https://{domain}/.default"),
        }
    }
}

/// True for a host with repositories of Azure DevOps.
pub fn is_dev_ops(host: &str) -> bool {
    let of_organization = host.strip_suffix(".visualstudio.com").is_some_and(|name| !name.is_empty());
    host == "dev.azure.com" || of_organization
}

/// True for a host of a registry, such as `shop.azurecr.io`.
pub fn is_registry(host: &str) -> bool {
    let ends = [".azurecr.io", ".azurecr.cn", ".azurecr.us"];
    ends.iter().any(|end| host.strip_suffix(end).is_some_and(|name| !name.is_empty()))
}

/// An application of Entra, as the annotations of a ServiceAccount name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AzureClient {
    client: Box<str>,
    tenant: Box<str>,
}

impl AzureClient {
    /// Reads the annotations of a ServiceAccount.
    pub fn new(client: &str, tenant: &str) -> Result<Self, ExchangeError> {
        match (is_guid(client), is_guid(tenant)) {
            (true, true) => Ok(Self { client: client.into(), tenant: tenant.into() }),
            (false, _) => Err(ExchangeError::Input("the client id is not a GUID")),
            (true, false) => Err(ExchangeError::Input("the tenant id is not a GUID")),
        }
    }

    /// Returns client and tenant.
    pub fn names(&self) -> [&str; 2] {
        [&self.client, &self.tenant]
    }

    /// Builds the exchange of a ServiceAccount's token for an access token of a service.
    pub fn exchange_token(
        &self,
        endpoints: &CloudEndpoints,
        token: &SecretText,
        service: &AzureService,
    ) -> ExchangeRequest {
        let assertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
        let proof = [("client_assertion_type", assertion), ("client_assertion", token.as_str())];
        self.request(endpoints, service, &proof)
    }

    /// Builds the exchange of the application's secret for an access token of a service.
    pub fn exchange_secret(
        &self,
        endpoints: &CloudEndpoints,
        secret: &SecretText,
        service: &AzureService,
    ) -> ExchangeRequest {
        self.request(endpoints, service, &[("client_secret", secret.as_str())])
    }

    fn request(
        &self,
        endpoints: &CloudEndpoints,
        service: &AzureService,
        proof: &[(&str, &str)],
    ) -> ExchangeRequest {
        let scope = service.scope();
        let mut fields =
            vec![("grant_type", "client_credentials"), ("client_id", &*self.client), ("scope", &*scope)];
        fields.extend(proof);
        let base = endpoints.base("azure-login", || "https://login.microsoftonline.com".to_owned());
        ExchangeRequest::form(format!("{base}/{}/oauth2/v2.0/token", self.tenant), &fields)
    }
}

/// Reads the access token, which was received at `now`.
pub fn read_token(status: u16, body: &[u8], now: Timestamp) -> Result<Token, ExchangeError> {
    let problem = "Entra does not accept the ServiceAccount; check the federated credential of the application: its issuer, subject and audience";
    exchange::accept(status, problem)?;
    let answer = exchange::json(body)?;
    Ok(Token {
        value: exchange::token_field(&answer, "access_token")?,
        expires: exchange::after(now, &answer["expires_in"])?,
    })
}

/// Builds the exchange of an access token for the login of a registry, such as `shop.azurecr.io`.
pub fn exchange_registry_token(
    endpoints: &CloudEndpoints,
    host: &str,
    token: &SecretText,
) -> Result<ExchangeRequest, ExchangeError> {
    let sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:".contains(&byte);
    let is_known = is_registry(host) || endpoints.has_host("azure-registry", host);
    if !is_known || host.len() > MAX_HOST_LENGTH || !host.bytes().all(sound) {
        return Err(ExchangeError::Input("the host is not a registry of Azure"));
    }
    let fields = [("grant_type", "access_token"), ("service", host), ("access_token", token.as_str())];
    Ok(ExchangeRequest::form(format!("https://{host}/oauth2/exchange"), &fields))
}

/// Reads the refresh token of a registry, the password of [`REGISTRY_USER`]. The answer names no
/// end, so it counts as long as the access token that it was exchanged for.
pub fn read_registry_token(status: u16, body: &[u8], access: &Token) -> Result<Token, ExchangeError> {
    let problem = "the registry does not accept the application; it needs the role AcrPull";
    exchange::accept(status, problem)?;
    let answer = exchange::json(body)?;
    Ok(Token { value: exchange::token_field(&answer, "refresh_token")?, expires: access.expires })
}

fn is_guid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "11111111-2222-3333-4444-555555555555";
    const TENANT: &str = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

    #[test]
    fn a_token_is_for_one_service_and_a_registry_has_its_own() {
        let (public, client) = (CloudEndpoints::default(), AzureClient::new(CLIENT, TENANT).unwrap());
        let request = client.exchange_token(&public, &"a.b.c".into(), &AzureService::DevOps);
        assert_eq!(request.url, format!("https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token"));
        let body = request.body.as_str();
        assert!(body.contains("&scope=499b84ac-1321-427f-aa17-267ca6975798%2F.default&"), "{body}");
        assert!(body.ends_with("jwt-bearer&client_assertion=a.b.c"), "{body}");
        assert!(!format!("{request:?}").contains("a.b.c"));
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let token = read_token(200, br#"{"access_token": "ey.x", "expires_in": "600"}"#, now).unwrap();
        let request = exchange_registry_token(&public, "shop.azurecr.io", &token.value).unwrap();
        assert_eq!(request.url, "https://shop.azurecr.io/oauth2/exchange");
        assert_eq!(
            request.body.as_str(),
            "grant_type=access_token&service=shop.azurecr.io&access_token=ey.x"
        );
        let refresh = read_registry_token(200, br#"{"refresh_token": "r"}"#, &token).unwrap();
        assert_eq!((refresh.value.as_str(), refresh.lifetime(now).as_secs()), ("r", 600));
        let vault = AzureService::KeyVault("vault.azure.cn".into());
        let endpoints = CloudEndpoints::new(["azure-login=https://login.chinacloudapi.cn"]).unwrap();
        let request = client.exchange_secret(&endpoints, &"planted".into(), &vault);
        assert_eq!(request.url, format!("https://login.chinacloudapi.cn/{TENANT}/oauth2/v2.0/token"));
        assert!(request.body.as_str().ends_with("vault.azure.cn%2F.default&client_secret=planted"));
    }

    #[test]
    fn malformed_names_and_answers_are_refused() {
        for (client, tenant) in [("", TENANT), (CLIENT, "common"), ("../x", TENANT), (CLIENT, "a/b")] {
            assert!(AzureClient::new(client, tenant).is_err(), "{client} {tenant}");
        }
        for host in ["", ".azurecr.io", "evil.example", "azurecr.io.evil.example", "a.azurecr.io/x"] {
            assert!(
                exchange_registry_token(&CloudEndpoints::default(), host, &"t".into()).is_err(),
                "{host}"
            );
        }
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let token = Token { value: "t".into(), expires: now };
        for (found, expect) in [
            (read_token(401, b"planted", now).unwrap_err(), "federated credential"),
            (read_token(200, b"[]", now).unwrap_err(), "no token that can be used"),
            (read_registry_token(401, b"planted", &token).unwrap_err(), "AcrPull"),
            (read_registry_token(302, b"planted", &token).unwrap_err(), "redirects elsewhere"),
        ] {
            let message = found.to_string();
            assert!(message.contains(expect) && !message.contains("planted"), "{message}");
        }
    }
}
