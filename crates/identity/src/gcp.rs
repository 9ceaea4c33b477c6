//! Access tokens of Google Cloud for a ServiceAccount.
//!
//! In: a ServiceAccount's token, the workload identity pool, and the account in its annotation.
//! Out: the requests, and what their answers say. Without an annotation, the token of the first
//! exchange is used as it is.

use jiff::Timestamp;
use serde_json::json;

use crate::exchange::{self, ExchangeError, ExchangeRequest, Method, Token};
use crate::secret::SecretText;

/// Annotation of a ServiceAccount with the account of Google that it acts as.
pub const ACCOUNT_ANNOTATION: &str = "iam.gke.io/gcp-service-account";

/// Right of an access token.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Maximum number of characters of an audience or an account.
const MAX_NAME_LENGTH: usize = 512;

/// Builds the exchange of a ServiceAccount's token for an access token. `provider` is the full name
/// of a provider of a pool, `//iam.googleapis.com/projects/…`, or an identity namespace of GKE.
pub fn exchange_token(provider: &str, token: &SecretText) -> Result<ExchangeRequest, ExchangeError> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte);
    let is_known = ["//iam.googleapis.com/projects/", "identitynamespace:"]
        .iter()
        .any(|start| provider.starts_with(start));
    if !is_known || provider.len() > MAX_NAME_LENGTH || !provider.bytes().all(sound) {
        return Err(ExchangeError::Input("the provider is not one of a workload identity pool"));
    }
    let body = json!({
        "grantType": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": provider,
        "scope": SCOPE,
        "requestedTokenType": "urn:ietf:params:oauth:token-type:access_token",
        "subjectToken": token.as_str(),
        "subjectTokenType": "urn:ietf:params:oauth:token-type:jwt",
    });
    Ok(ExchangeRequest {
        method: Method::Post,
        url: "https://sts.googleapis.com/v1/token".to_owned(),
        headers: vec![("content-type", "application/json".into())],
        body: SecretText::new(body.to_string()),
    })
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
pub fn impersonate(account: &str, token: &SecretText) -> Result<ExchangeRequest, ExchangeError> {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_account = account.split_once('@').is_some_and(|(name, domain)| {
        let whole = [name, domain].iter().all(|part| !part.is_empty() && part.bytes().all(sound));
        whole && account.len() <= MAX_NAME_LENGTH && domain.ends_with(".gserviceaccount.com")
    });
    if !is_account {
        return Err(ExchangeError::Input("the account is not the address of a service account of Google"));
    }
    let url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts";
    Ok(ExchangeRequest {
        method: Method::Post,
        url: format!("{url}/{account}:generateAccessToken"),
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
        let request = exchange_token(PROVIDER, &"a.b.c".into()).unwrap();
        let body: serde_json::Value = serde_json::from_str(request.body.as_str()).unwrap();
        assert_eq!((&body["audience"], &body["subjectToken"]), (&json!(PROVIDER), &json!("a.b.c")));
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let answer = br#"{"access_token": "ya29.first", "expires_in": 3599, "token_type": "Bearer"}"#;
        let first = read_token(200, answer, now).unwrap();
        assert_eq!(first.lifetime(now).as_secs(), 3599);
        let request = impersonate("shop@team.iam.gserviceaccount.com", &first.value).unwrap();
        let end = "/v1/projects/-/serviceAccounts/shop@team.iam.gserviceaccount.com:generateAccessToken";
        assert!(request.url.ends_with(end), "{}", request.url);
        assert!(!format!("{request:?}").contains("ya29"));
        let answer = br#"{"accessToken": "ya29.second", "expireTime": "2026-01-02T04:00:00Z"}"#;
        assert_eq!(read_account_token(200, answer).unwrap().value.as_str(), "ya29.second");
    }

    #[test]
    fn malformed_names_and_answers_are_refused() {
        for provider in ["", "projects/1", "https://evil.example", "//iam.googleapis.com/projects/1?x"] {
            assert!(exchange_token(provider, &"t".into()).is_err(), "{provider}");
        }
        for account in
            ["", "shop", "a@evil.example", "../x@team.iam.gserviceaccount.com", "@a.gserviceaccount.com"]
        {
            assert!(impersonate(account, &"t".into()).is_err(), "{account}");
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
