//! Data keys that Azure Key Vault decrypts.
//!
//! In: the address of a vault, the name and version of a key, the encrypted data key, an access
//! token, and the domains in which the operator allows vaults.
//! Out: the request, and the data key in its answer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::azure::AzureService;
use crate::endpoints::CloudEndpoints;
use crate::exchange::{self, ExchangeError, ExchangeRequest, Method};
use crate::secret::{SecretBytes, SecretText};

/// Version of the API.
const API_VERSION: &str = "7.4";

/// Maximum number of characters of a name.
const MAX_NAME_LENGTH: usize = 255;

/// A key of a vault, in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultKey {
    /// URL of the key, without its version.
    key: String,
    version: Box<str>,
    domain: Box<str>,
}

impl VaultKey {
    /// Reads the parts of a key. The vault has to be in a domain of vaults.
    pub fn new(
        endpoints: &CloudEndpoints,
        (vault, name, version): (&str, &str, &str),
    ) -> Result<Self, ExchangeError> {
        let vault = vault.trim_end_matches('/').to_ascii_lowercase();
        let host = vault.strip_prefix("https://").unwrap_or_default();
        let is_below = |domain: &&str| {
            let front = host.strip_suffix(*domain).and_then(|front| front.strip_suffix('.'));
            let is_vault = front.is_some_and(|name| !name.is_empty() && is_plain(name, b"-"));
            is_vault || (domain.contains(':') && host == *domain)
        };
        let Some(domain) = endpoints.vault_domains().find(is_below) else {
            return Err(ExchangeError::Input(
                "its vault is not https://NAME.vault.azure.net; the setting cloudEndpoints can name another domain (azure-vault)",
            ));
        };
        if !is_plain(name, b"-") || !is_plain(version, b"") {
            return Err(ExchangeError::Input("the file names no key and version of a vault"));
        }
        Ok(Self { key: format!("{vault}/keys/{name}"), version: version.into(), domain: domain.into() })
    }

    /// Returns the service that a token has to be for.
    pub fn service(&self) -> AzureService {
        AzureService::KeyVault(self.domain.clone())
    }

    /// Builds the request that decrypts a data key, which is in base64 for addresses.
    pub fn decrypt(&self, encrypted: &str, token: &SecretText) -> ExchangeRequest {
        ExchangeRequest {
            method: Method::Post,
            url: format!("{}/{}/decrypt?api-version={API_VERSION}", self.key, self.version),
            headers: vec![
                ("authorization", SecretText::new(format!("Bearer {}", token.as_str()))),
                ("content-type", "application/json".into()),
            ],
            body: SecretText::new(json!({"alg": "RSA-OAEP-256", "value": encrypted}).to_string()),
        }
    }

    /// Reads the data key, and checks that this key decrypted it.
    pub fn read_data_key(&self, status: u16, body: &[u8]) -> Result<SecretBytes, ExchangeError> {
        let problem = "the vault does not decrypt it: the application needs the permission to decrypt with the key, and the data key must be of that key";
        exchange::accept(status, problem)?;
        let answer = exchange::json(body)?;
        let key = answer["kid"].as_str().unwrap_or_default().to_ascii_lowercase();
        if key != format!("{}/{}", self.key, self.version).to_ascii_lowercase() {
            return Err(ExchangeError::Answer("answers with another key"));
        }
        let plain = answer["value"].as_str().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        plain.map(SecretBytes::new).ok_or(ExchangeError::Answer("gives no data key"))
    }
}

/// True for letters, digits and some other characters.
fn is_plain(text: &str, others: &[u8]) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    !text.is_empty() && text.len() <= MAX_NAME_LENGTH && text.bytes().all(sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(vault: &str, name: &str, version: &str) -> Result<VaultKey, ExchangeError> {
        let endpoints = CloudEndpoints::new(["azure-vault=localhost:8443"]).unwrap();
        VaultKey::new(&endpoints, (vault, name, version))
    }

    #[test]
    fn a_data_key_is_asked_for_at_its_vault() {
        let found = key("https://Shop.vault.azure.net/", "sops", "0a1b").unwrap();
        let request = found.decrypt("abc-_", &"ey.x".into());
        let id = "https://shop.vault.azure.net/keys/sops/0a1b";
        assert_eq!(request.url, format!("{id}/decrypt?api-version=7.4"));
        assert_eq!(request.body.as_str(), r#"{"alg":"RSA-OAEP-256","value":"abc-_"}"#);
        assert_eq!(found.service().scope(), "https://vault.azure.net/.default");
        let of = |id: &str| format!(r#"{{"kid": "{id}", "value": "{}"}}"#, URL_SAFE_NO_PAD.encode([7; 32]));
        assert_eq!(found.read_data_key(200, of(id).as_bytes()).unwrap().as_bytes(), &[7; 32]);
        for (status, body, expect) in [
            (200, of("https://shop.vault.azure.net/keys/sops/other"), "another key"),
            (403, "planted".to_owned(), "permission to decrypt"),
            (302, "planted".to_owned(), "redirects elsewhere"),
        ] {
            let message = found.read_data_key(status, body.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expect) && !message.contains("planted"), "{message}");
        }
        assert!(key("https://localhost:8443", "sops", "1").is_ok());
    }

    #[test]
    fn a_vault_elsewhere_gets_no_token() {
        for (vault, name, version) in [
            ("https://shop.vault.azure.net.evil.example", "sops", "1"),
            ("https://evilvault.azure.net", "sops", "1"),
            ("https://a.b/.vault.azure.net", "sops", "1"),
            ("https://a@shop.vault.azure.net", "sops", "1"),
            ("http://shop.vault.azure.net", "sops", "1"),
            ("https://vault.azure.net", "sops", "1"),
            ("https://shop.vault.azure.net:8443", "sops", "1"),
            ("https://shop.vault.azure.net", "../secrets", "1"),
            ("https://shop.vault.azure.net", "sops", ""),
            ("https://shop.vault.azure.net", "sops", "1?x"),
            ("https://169.254.169.254", "sops", "1"),
        ] {
            assert!(key(vault, name, version).is_err(), "{vault} {name} {version}");
        }
    }
}
