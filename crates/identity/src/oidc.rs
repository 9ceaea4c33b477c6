//! Sign-in of a person at an OpenID Connect provider: its requests, and what their answers say.
//!
//! In: the provider and the client that the operator names, and the secrets of one sign-in.
//! Out: the address that a browser is sent to, the requests, and the ID token in an answer. The
//! flow is the one by code with PKCE (S256); `id_token.rs` verifies the token.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::exchange::{self, ExchangeError, ExchangeRequest, Method, encoded};
use crate::secret::SecretText;

/// Path of the document that describes a provider.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Maximum number of characters of an address.
const MAX_URL_LENGTH: usize = 2048;

/// The client that the operator registered at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcClient {
    /// Address of the provider, as it names itself.
    pub issuer: Box<str>,
    /// Name of the client.
    pub id: Box<str>,
    /// Its secret; none for a public client.
    pub secret: Option<SecretText>,
    /// Address of ours to which the provider sends the browser back.
    pub redirect: Box<str>,
    /// Scopes, separated by spaces.
    pub scopes: Box<str>,
    /// Further hosts, with their ports, that the provider may name.
    pub hosts: Vec<Box<str>>,
}

/// Addresses that a provider names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcEndpoints {
    authorization: Box<str>,
    token: Box<str>,
    keys: Box<str>,
    /// True if the secret is a field of the form, because the provider takes no other.
    by_form: bool,
}

/// Secrets of one sign-in, which only the browser that began it has.
#[derive(Debug, Clone, Copy)]
pub struct SignInSecrets<'a> {
    /// Binds the answer to the browser.
    pub state: &'a str,
    /// Binds the ID token to the sign-in.
    pub nonce: &'a str,
    /// Proves to the provider that the code is used by who asked for it.
    pub verifier: &'a str,
}

impl OidcClient {
    /// Builds the request for the description of the provider.
    pub fn discover(&self) -> ExchangeRequest {
        get(format!("{}{DISCOVERY}", self.issuer.trim_end_matches('/')))
    }

    /// Reads the description of the provider. Its addresses are on the host of the issuer, or on
    /// one that the operator names.
    pub fn read_endpoints(&self, status: u16, body: &[u8]) -> Result<OidcEndpoints, ExchangeError> {
        exchange::accept(status, "it is not an OpenID Connect provider; compare oidcIssuer")?;
        let answer = exchange::json(body)?;
        if answer["issuer"].as_str() != Some(&*self.issuer) {
            return Err(ExchangeError::Answer("names itself differently; compare oidcIssuer"));
        }
        let address = |name: &str| {
            let url = answer[name].as_str().unwrap_or_default();
            match self.is_own(url) {
                true => Ok(url.into()),
                false => Err(ExchangeError::Answer(
                    "names an address that is not on the host of oidcIssuer; list its host in oidcHosts",
                )),
            }
        };
        let methods = answer["token_endpoint_auth_methods_supported"].as_array();
        let takes = |name: &str| methods.is_some_and(|all| all.iter().any(|method| method == name));
        Ok(OidcEndpoints {
            authorization: address("authorization_endpoint")?,
            token: address("token_endpoint")?,
            keys: address("jwks_uri")?,
            by_form: takes("client_secret_post") && !takes("client_secret_basic"),
        })
    }

    /// Returns the address that the browser is sent to.
    pub fn authorize_url(&self, endpoints: &OidcEndpoints, secrets: SignInSecrets<'_>) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, secrets.verifier.as_bytes()));
        let fields = [
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", &self.redirect),
            ("scope", &self.scopes),
            ("state", secrets.state),
            ("nonce", secrets.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let query: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let between = if endpoints.authorization.contains('?') { '&' } else { '?' };
        format!("{}{between}{}", endpoints.authorization, query.join("&"))
    }

    /// Builds the request that exchanges the code for an ID token.
    pub fn redeem(&self, endpoints: &OidcEndpoints, code: &str, verifier: &str) -> ExchangeRequest {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", verifier),
        ];
        let secret = self.secret.as_ref().map(SecretText::as_str);
        let basic = secret.filter(|_| !endpoints.by_form);
        if basic.is_none() {
            fields.push(("client_id", &self.id));
            fields.extend(secret.map(|secret| ("client_secret", secret)));
        }
        let mut request = ExchangeRequest::form(endpoints.token.to_string(), &fields);
        if let Some(secret) = basic {
            let login = STANDARD.encode(format!("{}:{}", encoded(&self.id), encoded(secret)));
            request.headers.push(("authorization", SecretText::new(format!("Basic {login}"))));
        }
        request
    }

    /// Builds the request for the keys of the provider.
    pub fn fetch_keys(&self, endpoints: &OidcEndpoints) -> ExchangeRequest {
        get(endpoints.keys.to_string())
    }

    /// True for an address on the host of the issuer, or on one of the further hosts. Only an
    /// issuer without TLS may name addresses without it.
    fn is_own(&self, url: &str) -> bool {
        let sound = url.len() <= MAX_URL_LENGTH && url.bytes().all(|byte| byte.is_ascii_graphic());
        let (Some((scheme, host)), Some((own, issuer))) = (origin(url), origin(&self.issuer)) else {
            return false;
        };
        let has_path = url[scheme.len() + "://".len() + host.len()..].starts_with('/');
        let known = host == issuer || self.hosts.iter().any(|further| **further == *host);
        sound && has_path && known && (scheme == "https" || scheme == own) && !url.contains('#')
    }
}

/// Reads the ID token in the answer to a code.
pub fn read_id_token(status: u16, body: &[u8]) -> Result<SecretText, ExchangeError> {
    exchange::accept(
        status,
        "it refuses the code: it may be used or too old, or the client or its secret is wrong",
    )?;
    exchange::token_field(&exchange::json(body)?, "id_token")
}

/// Reads the keys of a provider.
pub fn read_keys(status: u16, body: &[u8]) -> Result<Value, ExchangeError> {
    exchange::accept(status, "it gives no keys")?;
    let answer = exchange::json(body)?;
    match answer["keys"].is_array() {
        true => Ok(answer),
        false => Err(ExchangeError::Answer("gives no keys")),
    }
}

/// Returns the scheme of an address, and its host with the port.
fn origin(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let is_web = ["https", "http"].contains(&scheme);
    (is_web && !host.is_empty() && host.bytes().all(sound)).then_some((scheme, host))
}

fn get(url: String) -> ExchangeRequest {
    let headers = vec![("accept", "application/json".into())];
    ExchangeRequest { method: Method::Get, url, headers, body: "".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> OidcClient {
        OidcClient {
            issuer: "https://id.example/realm".into(),
            id: "moor:line".into(),
            secret: Some("pla+nted".into()),
            redirect: "https://console.example/login/callback".into(),
            scopes: "openid groups".into(),
            hosts: vec!["keys.example".into()],
        }
    }

    fn description(token: &str) -> Value {
        serde_json::json!({
            "issuer": "https://id.example/realm", "authorization_endpoint": "https://id.example/authorize?a=b",
            "token_endpoint": token, "jwks_uri": "https://keys.example/keys",
        })
    }

    #[test]
    fn a_provider_names_addresses_on_its_own_host_only() {
        let client = client();
        assert_eq!(client.discover().url, "https://id.example/realm/.well-known/openid-configuration");
        let read = |value: &Value| client.read_endpoints(200, value.to_string().as_bytes());
        assert!(read(&description("https://id.example/token")).is_ok());
        for wrong in [
            "https://evil.example/token",
            "http://id.example/token",
            "https://id.example:8443/token",
            "https://id.example@evil.example/",
            "https://id.example.evil.example/",
            "//id.example/token",
            "https://id.example",
            "https://id.example/token#a",
            "https://id.example/to ken",
            "file:///token",
            "",
        ] {
            assert!(read(&description(wrong)).is_err(), "{wrong}");
        }
        let mut other = description("https://id.example/token");
        other["issuer"] = "https://id.example/other".into();
        assert!(read(&other).is_err());
        assert!(client.read_endpoints(302, b"{}").is_err() && client.read_endpoints(200, b"no").is_err());
    }

    #[test]
    fn requests_have_the_challenge_in_front_and_its_proof_behind() {
        let client = client();
        let mut known = description("https://id.example/token");
        let read = |value: &Value| client.read_endpoints(200, value.to_string().as_bytes()).unwrap();
        let endpoints = read(&known);
        // The example of RFC 7636.
        let secrets =
            SignInSecrets { state: "s", nonce: "n", verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" };
        assert_eq!(
            client.authorize_url(&endpoints, secrets),
            "https://id.example/authorize?a=b&response_type=code&client_id=moor%3Aline\
             &redirect_uri=https%3A%2F%2Fconsole.example%2Flogin%2Fcallback&scope=openid%20groups&state=s&nonce=n\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
        );
        let login = |request: &ExchangeRequest| {
            request.headers.iter().find(|(name, _)| *name == "authorization").map(|(_, value)| value.clone())
        };
        let redeem = client.redeem(&endpoints, "c&d", secrets.verifier);
        let basic = format!("Basic {}", STANDARD.encode("moor%3Aline:pla%2Bnted"));
        assert_eq!(login(&redeem).unwrap().as_str(), basic);
        let body = redeem.body.as_str();
        assert!(body.contains("code=c%26d") && body.contains(&format!("code_verifier={}", secrets.verifier)));
        assert!(!body.contains("client"), "{body}");
        known["token_endpoint_auth_methods_supported"] = serde_json::json!(["client_secret_post"]);
        let redeem = client.redeem(&read(&known), "c", "v");
        assert!(login(&redeem).is_none());
        assert!(redeem.body.as_str().ends_with("client_id=moor%3Aline&client_secret=pla%2Bnted"));
        assert!(read_id_token(200, br#"{"access_token": "a"}"#).is_err());
        assert_eq!(read_id_token(200, br#"{"id_token": "a.b.c"}"#).unwrap().as_str(), "a.b.c");
    }
}
