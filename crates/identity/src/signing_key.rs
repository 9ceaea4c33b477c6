//! An RSA key that signs JSON web tokens.
//!
//! In: PEM, as GitHub (PKCS#1) and openssl (PKCS#8) write it.
//! Out: [`SigningKey`], which signs by RS256. The key cannot be formatted.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;

use crate::exchange::ExchangeError;
use crate::secret::SecretText;

/// A private key, recognised by its fingerprint; cheap to clone.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<RsaKeyPair>,
    fingerprint: [u8; 32],
}

impl SigningKey {
    /// Reads PEM. `None` for anything but an RSA key of 2048 to 4096 bits without a password.
    pub fn from_pem(pem: &[u8]) -> Option<Self> {
        let der = PrivateKeyDer::from_pem_slice(pem).ok()?;
        let pair = match &der {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            _ => return None,
        };
        let hash = digest(&SHA256, der.secret_der());
        Some(Self { pair: Arc::new(pair.ok()?), fingerprint: hash.as_ref().try_into().ok()? })
    }

    /// Returns the SHA-256 of the key, which is the same for no other key.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Signs claims as a JSON web token by RS256.
    pub(crate) fn sign(&self, claims: &Value) -> Result<SecretText, ExchangeError> {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(r#"{"alg":"RS256","typ":"JWT"}"#), part(&claims.to_string()));
        let mut signature = vec![0; self.pair.public().modulus_len()];
        self.pair
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| ExchangeError::Input("the private key cannot sign"))?;
        Ok(SecretText::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

impl PartialEq for SigningKey {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}
