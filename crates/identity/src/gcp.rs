//! Access tokens of Google Cloud for a ServiceAccount.
//!
//! In: a ServiceAccount's token, the workload identity pool, and the account in its annotation.
//! Out: the requests, and what their answers say. Without an annotation, the token of the first
//! exchange is used as it is.

use jiff::Timestamp;
use serde_json::json;

use crate::endpoints::CloudEndpoints;
use crate::exchange::{self, ExchangeError, ExchangeRequest, Method, Token};
use crate::secret::SecretText;

/// Annotation of a ServiceAccount with the account of Google that it acts as.
pub const ACCOUNT_ANNOTATION: &str = "iam.gke.io/gcp-service-account";

/// Right of an access token.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Maximum number of characters of an audience or an account.
const MAX_NAME_LENGTH: usize = 512;

/// Annotations of a ServiceAccount with the provider of a workload identity pool, as two other
/// tools name them.
pub const PROVIDER_ANNOTATIONS: [&str; 2] =
    ["cloud.google.com/workload-identity-provider", "gcp.auth.fluxcd.io/workload-identity-provider"];

/// User of an access token in the login of a registry.
pub const REGISTRY_USER: &str = "oauth2accesstoken";

/// True for the host of an Artifact Registry or a Container Registry.
pub fn is_registry(host: &str) -> bool {
    host == "gcr.io" || host.ends_with(".gcr.io") || host.ends_with("-docker.pkg.dev")
}

/// The party that accepts tokens of the cluster's ServiceAccounts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GcpProvider(Box<str>);

impl GcpProvider {
    /// Reads `projects/N/locations/global/workloadIdentityPools/POOL/providers/NAME`, with or
    /// without `//iam.googleapis.com/` in front, or `identitynamespace:POOL:CLUSTER` of GKE.
    pub fn new(text: &str) -> Result<Self, ExchangeError> {
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte);
        let text = text.trim_start_matches("https:");
        let text = match text.starts_with("projects/") {
            true => format!("//iam.googleapis.com/{text}"),
            false => text.to_owned(),
        };
        let of_pool = text.starts_with("//iam.googleapis.com/projects/") && text.contains("/providers/");
        let of_gke = text.strip_prefix("identitynamespace:").is_some_and(|rest| rest.contains(':'));
        match (of_pool || of_gke) && text.len() <= MAX_NAME_LENGTH && text.bytes().all(sound) {
            true => Ok(Self(text.into())),
            false => Err(ExchangeError::Input("the provider is not one of a workload identity pool")),
        }
    }

    /// Returns the name of the provider.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns the audience of the ServiceAccount's token.
    pub fn audience(&self) -> String {
        match self.0.strip_prefix("identitynamespace:").and_then(|rest| rest.split_once(':')) {
            Some((pool, _)) => pool.to_owned(),
            None => format!("https:{}", self.0),
        }
    }
}

/// Builds the exchange of a ServiceAccount's token for an access token.
pub fn exchange_token(
    endpoints: &CloudEndpoints,
    provider: &GcpProvider,
    token: &SecretText,
) -> ExchangeRequest {
    let body = json!({
        "grantType": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": provider.name(),
        "scope": SCOPE,
        "requestedTokenType": "urn:ietf:params:oauth:token-type:access_token",
        "subjectToken": token.as_str(),
        "subjectTokenType": "urn:ietf:params:oauth:token-type:jwt",
    });
    let base = endpoints.base("gcp-sts", || "https://sts.googleapis.com".to_owned());
    ExchangeRequest {
        method: Method::Post,
        url: format!("{base}/v1/token"),
        headers: vec![("content-type", "application/json".into())],
        body: SecretText::new(body.to_string()),
    }
}

/// Reads the token of the first exchange, which was received at `now`.
pub fn read_token(status: u16, body: &[u8], now: Timestamp) -> Result<Token, ExchangeError> {
    let problem =
        "Google does not accept the ServiceAccount; check the workload identity pool and its provider";
    exchange::accept(status, problem)?;
    let answer = exchange::json(body)?;
    Ok(Token {
        value: exchange::token_field(&answer, "access_token")?,
        expires: exchange::after(now, &answer["expires_in"])?,
    })
}

/// Builds the request for a token of an account of Google.
pub fn impersonate(
    endpoints: &CloudEndpoints,
    account: &str,
    token: &SecretText,
) -> Result<ExchangeRequest, ExchangeError> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_account = account.split_once('@').is_some_and(|(name, domain)| {
        let whole = [name, domain].iter().all(|part| !part.is_empty() && part.bytes().all(sound));
        whole && account.len() <= MAX_NAME_LENGTH && domain.ends_with(".gserviceaccount.com")
    });
    if !is_account {
        return Err(ExchangeError::Input("the account is not the address of a service account of Google"));
    }
    let public = || "https://iamcredentials.googleapis.com".to_owned();
    let base = endpoints.base("gcp-iamcredentials", public);
    Ok(ExchangeRequest {
        method: Method::Post,
        url: format!("{base}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"),
        headers: vec![
            ("authorization", SecretText::new(format!("Bearer {}", token.as_str()))),
            ("content-type", "application/json".into()),
        ],
        body: SecretText::new(json!({"scope": [SCOPE], "lifetime": "3600s"}).to_string()),
    })
}

/// Reads the token of an account.
pub fn read_account_token(status: u16, body: &[u8]) -> Result<Token, ExchangeError> {
    let problem = "Google does not let the ServiceAccount act as the account; it needs roles/iam.workloadIdentityUser on it";
    exchange::accept(status, problem)?;
    let answer = exchange::json(body)?;
    let expires = exchange::time(answer["expireTime"].as_str())?;
    Ok(Token { value: exchange::token_field(&answer, "accessToken")?, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVIDER: &str =
        "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/cluster";

    #[test]
    fn tokens_are_exchanged_in_two_steps() {
        let (public, provider) = (CloudEndpoints::default(), GcpProvider::new(PROVIDER).unwrap());
        assert_eq!(provider.audience(), format!("https:{PROVIDER}"));
        let request = exchange_token(&public, &provider, &"a.b.c".into());
        assert_eq!(request.url, "https://sts.googleapis.com/v1/token");
        let body: serde_json::Value = serde_json::from_str(request.body.as_str()).unwrap();
        assert_eq!((&body["audience"], &body["subjectToken"]), (&json!(PROVIDER), &json!("a.b.c")));
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let answer = br#"{"access_token": "ya29.first", "expires_in": 3599, "token_type": "Bearer"}"#;
        let first = read_token(200, answer, now).unwrap();
        assert_eq!(first.lifetime(now).as_secs(), 3599);
        let request = impersonate(&public, "shop@team.iam.gserviceaccount.com", &first.value).unwrap();
        let end = "/v1/projects/-/serviceAccounts/shop@team.iam.gserviceaccount.com:generateAccessToken";
        assert!(request.url.ends_with(end), "{}", request.url);
        assert!(!format!("{request:?}").contains("ya29"));
        let answer = br#"{"accessToken": "ya29.second", "expireTime": "2026-01-02T04:00:00Z"}"#;
        assert_eq!(read_account_token(200, answer).unwrap().value.as_str(), "ya29.second");
    }

    #[test]
    fn a_provider_is_named_in_short_and_gke_has_its_own() {
        let short = PROVIDER.strip_prefix("//iam.googleapis.com/").unwrap();
        assert_eq!(GcpProvider::new(short).unwrap().name(), PROVIDER);
        let gke = "identitynamespace:shop.svc.id.goog:https://container.googleapis.com/v1/projects/shop/locations/a/clusters/b";
        assert_eq!(GcpProvider::new(gke).unwrap().audience(), "shop.svc.id.goog");
        for (host, expect) in [
            ("europe-docker.pkg.dev", true),
            ("eu.gcr.io", true),
            ("gcr.io", true),
            ("evilgcr.io", false),
            ("docker.pkg.dev.evil.example", false),
        ] {
            assert_eq!(is_registry(host), expect, "{host}");
        }
    }

    #[test]
    fn malformed_names_and_answers_are_refused() {
        for provider in [
            "",
            "projects/1",
            "https://evil.example",
            "//iam.googleapis.com/projects/1",
            "//iam.googleapis.com/projects/1?x",
        ] {
            assert!(GcpProvider::new(provider).is_err(), "{provider}");
        }
        for account in
            ["", "shop", "a@evil.example", "../x@team.iam.gserviceaccount.com", "@a.gserviceaccount.com"]
        {
            assert!(impersonate(&CloudEndpoints::default(), account, &"t".into()).is_err(), "{account}");
        }
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        for (found, expect) in [
            (read_token(400, b"planted", now).unwrap_err(), "workload identity pool"),
            (read_token(200, br#"{"access_token": "planted"}"#, now).unwrap_err(), "when the token expires"),
            (read_account_token(403, b"planted").unwrap_err(), "roles/iam.workloadIdentityUser"),
            (read_account_token(429, b"planted").unwrap_err(), "status 429"),
        ] {
            let message = found.to_string();
            assert!(message.contains(expect) && !message.contains("planted"), "{message}");
        }
    }
}
