//! Data keys that Google Cloud KMS decrypts, and keys of service accounts of Google.
//!
//! In: the name of a key, the encrypted data key, an access token; the file of a service account.
//! Out: the requests, and what their answers say. The addresses in the file of a service account
//! are not used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;

use crate::endpoints::CloudEndpoints;
use crate::exchange::{self, ExchangeError, ExchangeRequest, Method};
use crate::gcp;
use crate::secret::{SecretBytes, SecretText};
use crate::signing_key::SigningKey;

/// Address in the claim `aud` of an assertion.
const TOKEN_AUDIENCE: &str = "https://oauth2.googleapis.com/token";

/// Lifetime of an assertion.
const ASSERTION_SECONDS: i64 = 600;

/// Maximum number of characters of a resource.
const MAX_RESOURCE_LENGTH: usize = 512;

/// Builds the request that decrypts a data key, which is in base64.
pub fn decrypt(
    endpoints: &CloudEndpoints,
    (resource, encrypted): (&str, &str),
    token: &SecretText,
) -> Result<ExchangeRequest, ExchangeError> {
    let parts: Vec<&str> = resource.split('/').collect();
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let plain = |name: &&str| !name.is_empty() && !matches!(*name, "." | "..") && name.bytes().all(sound);
    let is_key = match parts[..] {
        ["projects", project, "locations", location, "keyRings", ring, "cryptoKeys", key] => {
            [project, location, ring, key].iter().all(plain)
        }
        _ => false,
    };
    if !is_key || resource.len() > MAX_RESOURCE_LENGTH {
        return Err(ExchangeError::Input("the key is not projects/P/locations/L/keyRings/R/cryptoKeys/K"));
    }
    let base = endpoints.base("gcp-kms", || "https://cloudkms.googleapis.com".to_owned());
    Ok(ExchangeRequest {
        method: Method::Post,
        url: format!("{base}/v1/{resource}:decrypt"),
        headers: vec![
            ("authorization", SecretText::new(format!("Bearer {}", token.as_str()))),
            ("content-type", "application/json".into()),
        ],
        body: SecretText::new(json!({"ciphertext": encrypted}).to_string()),
    })
}

/// Reads the data key.
pub fn read_data_key(status: u16, body: &[u8]) -> Result<SecretBytes, ExchangeError> {
    let problem = "KMS does not decrypt it: the account needs roles/cloudkms.cryptoKeyDecrypter on the key, and the data key must be of that key";
    exchange::accept(status, problem)?;
    let answer = exchange::json(body)?;
    let plain = answer["plaintext"].as_str().and_then(|text| STANDARD.decode(text).ok());
    plain.map(SecretBytes::new).ok_or(ExchangeError::Answer("gives no data key"))
}

/// The key of a service account, as Google writes it into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcpKeyFile {
    email: Box<str>,
    key: SigningKey,
}

impl GcpKeyFile {
    /// Reads the file, which is JSON.
    pub fn new(text: &str) -> Result<Self, ExchangeError> {
        let wrong = ExchangeError::Input("it is not the file of a service account's key of Google");
        let file: serde_json::Value = serde_json::from_str(text).map_err(|_| wrong)?;
        let field = |name: &str| file[name].as_str().ok_or(wrong);
        let email = field("client_email")?;
        let is_account = field("type")? == "service_account" && email.ends_with(".gserviceaccount.com");
        let key = SigningKey::from_pem(field("private_key")?.as_bytes()).filter(|_| is_account);
        Ok(Self { email: email.into(), key: key.ok_or(wrong)? })
    }

    /// Returns what a token depends on, for the key of a cache.
    pub fn identity(&self) -> [&[u8]; 2] {
        [self.email.as_bytes(), self.key.fingerprint()]
    }

    /// Builds the request for an access token; [`gcp::read_token`] reads its answer.
    pub fn exchange(
        &self,
        endpoints: &CloudEndpoints,
        now: Timestamp,
    ) -> Result<ExchangeRequest, ExchangeError> {
        let seconds = now.as_second();
        let assertion = self.key.sign(&json!({
            "iss": self.email, "scope": gcp::SCOPE, "aud": TOKEN_AUDIENCE,
            "iat": seconds, "exp": seconds.saturating_add(ASSERTION_SECONDS),
        }))?;
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.as_str()),
        ];
        let base = endpoints.base("gcp-oauth", || "https://oauth2.googleapis.com".to_owned());
        Ok(ExchangeRequest::form(format!("{base}/token"), &fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "projects/shop/locations/global/keyRings/a/cryptoKeys/b";

    #[test]
    fn a_data_key_is_asked_for_by_its_name() {
        let request = decrypt(&CloudEndpoints::default(), (KEY, "CiQA"), &"ya29.x".into()).unwrap();
        assert_eq!(request.url, format!("https://cloudkms.googleapis.com/v1/{KEY}:decrypt"));
        assert_eq!(request.body.as_str(), r#"{"ciphertext":"CiQA"}"#);
        assert!(!format!("{request:?}").contains("ya29"));
        let answer = format!(r#"{{"plaintext": "{}"}}"#, STANDARD.encode([7; 32]));
        assert_eq!(read_data_key(200, answer.as_bytes()).unwrap().as_bytes(), &[7; 32]);
        for (status, expect) in [(403, "cryptoKeyDecrypter"), (302, "redirects"), (200, "no JSON")] {
            let message = read_data_key(status, b"planted").unwrap_err().to_string();
            assert!(message.contains(expect) && !message.contains("planted"), "{message}");
        }
        for wrong in [
            "",
            "projects/shop",
            "projects/a/locations/b/keyRings/../cryptoKeys/d",
            "projects/a/locations/b/keyRings/c/cryptoKeys/d?x",
            "projects/a/locations/b/keyRings/c/cryptoKeys/d/e",
        ] {
            assert!(decrypt(&CloudEndpoints::default(), (wrong, "a"), &"t".into()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_no_key_is_refused_and_not_quoted() {
        for text in [
            "",
            "{}",
            r#"{"type": "service_account", "client_email": "a@b.gserviceaccount.com", "private_key": "planted"}"#,
        ] {
            let message = GcpKeyFile::new(text).unwrap_err().to_string();
            assert!(message.starts_with("it is not the file") && !message.contains("planted"), "{message}");
        }
    }
}
