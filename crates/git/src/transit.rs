//! Asks the transit engine of Vault or OpenBao to decrypt a data key.
//!
//! In: the key and the ciphertext as a file names them, a token, and the addresses that the
//! operator allows. Out: the data key, or [`TransitError`]. One request, without redirects: a file
//! in a repository must not decide where a token is sent.

use std::io::Read as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::address::{Address, HttpAddress, Kind};
use super::allow_list::AllowList;
use super::credentials::{Credentials, Sensitive};
use super::error::Error;
use super::http::{HttpClient, SharedNetwork};

/// Most bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;
/// Most bytes of a ciphertext.
const MAX_CIPHERTEXT_BYTES: usize = 64 * 1024;

/// A data key, as a file names it and the key that encrypted it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransitCiphertext {
    /// Address of the server.
    pub address: Box<str>,
    /// Path of the engine, such as `transit`.
    pub engine_path: Box<str>,
    /// Name of the key.
    pub key_name: Box<str>,
    /// The encrypted data key, such as `vault:v1:…`.
    pub ciphertext: Box<str>,
}

/// Token for a server, and certificates by which it is recognised.
#[derive(Debug, Clone)]
pub struct TransitLogin {
    token: Sensitive<String>,
    authorities: Option<Sensitive<Vec<u8>>>,
}

impl TransitLogin {
    /// Creates a login from a token, and certificates (PEM) beside those of the system.
    pub fn new(token: String, authorities: Option<Vec<u8>>) -> Self {
        Self { token: Sensitive::new(token), authorities: authorities.map(Sensitive::new) }
    }
}

/// Error of asking for a data key. It quotes nothing of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitError {
    /// The operator does not allow the address.
    #[error("the daemon asks no server at {address}: its setting vaultAddresses has no entry for it")]
    NotListed {
        /// The address.
        address: Box<str>,
    },
    /// The parts do not make an address.
    #[error(
        "the address, the engine's path and the key's name do not make the URL of a key (https://host/path)"
    )]
    Form,
    /// The token is refused.
    #[error(
        "{server} refuses the token for this key; renew sops.vault-token, or grant it `update` on the path"
    )]
    Denied {
        /// The server.
        server: Box<str>,
    },
    /// The server has no such key, or did not encrypt this.
    #[error(
        "{server} cannot decrypt it (status {status}): there is no such key, or another key encrypted it"
    )]
    Refused {
        /// The server.
        server: Box<str>,
        /// The HTTP status.
        status: u16,
    },
    /// The server answers by a redirect.
    #[error("{server} redirects elsewhere, which is not followed; encrypt the file for the final address")]
    Redirect {
        /// The server.
        server: Box<str>,
    },
    /// The server is broken, sealed or overloaded.
    #[error("{server} returned status {status}")]
    Status {
        /// The server.
        server: Box<str>,
        /// The HTTP status.
        status: u16,
    },
    /// The answer has no data key.
    #[error("{server} does not answer as the transit engine of Vault")]
    Invalid {
        /// The server.
        server: Box<str>,
    },
    /// There is no answer.
    #[error(transparent)]
    Server(Error),
}

impl TransitError {
    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Denied { .. } | Self::Status { .. } => true,
            Self::Server(error) => !error.needs_new_input(),
            Self::NotListed { .. }
            | Self::Form
            | Self::Refused { .. }
            | Self::Redirect { .. }
            | Self::Invalid { .. } => false,
        }
    }
}

/// Returns the address of a request, if it is allowed.
pub(super) fn judged(wanted: &TransitCiphertext, allowed: &AllowList) -> Result<HttpAddress, TransitError> {
    let TransitCiphertext { address, engine_path, key_name, .. } = wanted;
    let is_plain = |text: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        let leads_away = text.split('/').any(|part| matches!(part, "." | ".."));
        !text.is_empty() && !leads_away && text.bytes().all(known)
    };
    if !is_plain(engine_path) || !is_plain(key_name) || key_name.contains('/') {
        return Err(TransitError::Form);
    }
    let base = address.trim_end_matches('/');
    let url = format!("{base}/v1/{}/decrypt/{key_name}", engine_path.trim_matches('/'));
    let whole = Address::remote(&url).map_err(|_| TransitError::Form)?;
    if !allowed.allows(&whole) {
        return Err(TransitError::NotListed { address: shown(base) });
    }
    match whole.kind() {
        Kind::Http(http) if http.tls => Ok(http.clone()),
        Kind::Http(_) | Kind::Ssh(_) | Kind::Local(_) | Kind::Registry(_) => Err(TransitError::Form),
    }
}

/// Returns an address as it may be shown: without a user, and on one line.
fn shown(address: &str) -> Box<str> {
    const MAX_CHARS: usize = 200;
    let address = address.rsplit_once('@').map_or(address, |(_, host)| host);
    address.chars().filter(|char| char.is_ascii_graphic()).take(MAX_CHARS).collect()
}

/// Asks for a data key.
pub(super) fn decrypt(
    at: &HttpAddress,
    wanted: &TransitCiphertext,
    login: &TransitLogin,
    network: &SharedNetwork,
    by: Instant,
) -> Result<Sensitive<Vec<u8>>, TransitError> {
    if wanted.ciphertext.len() > MAX_CIPHERTEXT_BYTES {
        return Err(TransitError::Form);
    }
    let credentials = Credentials { authorities: login.authorities.clone(), ..Credentials::default() };
    let server: Box<str> = at.server().into();
    let invalid = || TransitError::Invalid { server: server.clone() };
    let failed = |error| match error {
        Error::InvalidResponse { .. } => invalid(),
        error => TransitError::Server(error),
    };
    let client = HttpClient::new(&at.host, &credentials, network).map_err(failed)?;
    let body = json!({"ciphertext": wanted.ciphertext}).to_string();
    let mut token = http::HeaderValue::from_str(login.token.reveal()).map_err(|_| TransitError::Form)?;
    token.set_sensitive(true);
    let request = http::Request::post(at.to_string())
        .header("Content-Type", "application/json")
        .header("X-Vault-Request", "true")
        .header("X-Vault-Token", token)
        .body(body.as_bytes());
    let answer = client.send(request, at.server(), None, by).map_err(failed)?;
    match answer.status {
        200 => {}
        401 | 403 => return Err(TransitError::Denied { server }),
        400 | 404 | 405 => return Err(TransitError::Refused { server, status: answer.status }),
        300..400 => return Err(TransitError::Redirect { server }),
        status => return Err(TransitError::Status { server, status }),
    }
    let mut text = Vec::new();
    answer.body.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut text).map_err(|_| invalid())?;
    if text.len() as u64 > MAX_ANSWER_BYTES {
        return Err(invalid());
    }
    let answer: Value = serde_json::from_slice(&text).map_err(|_| invalid())?;
    let plain = answer.pointer("/data/plaintext").and_then(Value::as_str).ok_or_else(invalid)?;
    STANDARD.decode(plain).map(Sensitive::new).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str, engine_path: &str, key_name: &str) -> Result<String, String> {
        let allowed =
            AllowList::new("vaultAddresses", ["https://vault.example", "https://b.example:8200/team"]);
        let wanted = TransitCiphertext {
            address: address.into(),
            engine_path: engine_path.into(),
            key_name: key_name.into(),
            ciphertext: "vault:v1:c2hvcA==".into(),
        };
        judged(&wanted, &allowed.unwrap()).map(|at| at.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_keys_of_listed_servers_are_asked_for() {
        let good = "https://vault.example/v1/transit/decrypt/shop".to_owned();
        assert_eq!(at("https://vault.example", "transit", "shop"), Ok(good.clone()));
        assert_eq!(at("https://VAULT.example/", "/transit/", "shop"), Ok(good));
        assert_eq!(
            at("https://b.example:8200/team", "teams/sops", "k").as_deref(),
            Ok("https://b.example:8200/team/v1/teams/sops/decrypt/k")
        );
        for address in [
            "https://other.example",
            "https://vault.example.evil",
            "https://vault.example:8200",
            "http://vault.example",
            "https://b.example:8200",
            "https://169.254.169.254",
        ] {
            let told = at(address, "transit", "shop").unwrap_err();
            assert!(told.contains("its setting vaultAddresses has no entry"), "{address}: {told}");
        }
        for (address, engine, key) in [
            ("https://user:planted@vault.example", "transit", "shop"),
            ("https://vault.example", "../sys", "shop"),
            ("https://vault.example", "transit", "../../sys/raw"),
            ("https://vault.example", "transit", "a?b"),
            ("https://vault.example", "transit/%2e%2e", "shop"),
            ("https://vault.example", "", "shop"),
            ("vault.example", "transit", "shop"),
            ("https://vault.example#", "transit", "shop"),
        ] {
            let told = at(address, engine, key).unwrap_err();
            assert!(told.starts_with("the address, the engine's path"), "{address} {engine} {key}: {told}");
            assert!(!told.contains("planted"));
        }
    }
}
