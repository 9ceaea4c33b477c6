//! Public keys, and signatures by them.
//!
//! In: a key in PEM, or in the DER of a certificate or trust root.
//! Out: [`PublicKey`]. A signature names no algorithm: those that cosign uses with a kind of key
//! are tried.

use ring::digest::{SHA256, digest};
use ring::signature::{self as ring_signature, UnparsedPublicKey, VerificationAlgorithm};

use crate::artifact::hex;
use crate::der::{self, BIT_STRING, OBJECT_ID, SEQUENCE};
use crate::pem;

const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// Algorithm of a key of RSA: the object identifier, and no parameters.
const RSA_ALGORITHM: &[u8] = &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 5, 0];

type Algorithms = &'static [&'static dyn VerificationAlgorithm];

const WITH_P256: Algorithms =
    &[&ring_signature::ECDSA_P256_SHA256_ASN1, &ring_signature::ECDSA_P256_SHA384_ASN1];
/// Version 2 of cosign uses SHA-256 with every key, version 3 that of the key's size.
const WITH_P384: Algorithms =
    &[&ring_signature::ECDSA_P384_SHA384_ASN1, &ring_signature::ECDSA_P384_SHA256_ASN1];
const WITH_ED25519: Algorithms = &[&ring_signature::ED25519];
const WITH_RSA: Algorithms = &[
    &ring_signature::RSA_PKCS1_2048_8192_SHA256,
    &ring_signature::RSA_PKCS1_2048_8192_SHA384,
    &ring_signature::RSA_PKCS1_2048_8192_SHA512,
    &ring_signature::RSA_PSS_2048_8192_SHA256,
    &ring_signature::RSA_PSS_2048_8192_SHA384,
    &ring_signature::RSA_PSS_2048_8192_SHA512,
];

/// A public key.
#[derive(Clone)]
pub struct PublicKey {
    algorithms: Algorithms,
    bits: Vec<u8>,
    info: Vec<u8>,
}

/// A key that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A private key.
    #[error(
        "found {0}, but a public key is needed: write it with `cosign public-key`, and keep the private key elsewhere"
    )]
    Private(Box<str>),
    /// Not a key in PEM.
    #[error("a public key must be in PEM, and begin with `-----BEGIN PUBLIC KEY-----`")]
    Form,
    /// A key of another kind.
    #[error("only keys of ECDSA P-256 and P-384, Ed25519, and RSA of 2048 to 8192 bits are supported")]
    Kind,
}

impl PublicKey {
    /// Reads a public key in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let text = std::str::from_utf8(pem).map_err(|_| KeyError::Form)?;
        let (label, bytes, rest) = pem::section(text).ok_or(KeyError::Form)?;
        if !rest.trim().is_empty() {
            return Err(KeyError::Form);
        }
        match label {
            "PUBLIC KEY" => Self::from_der(&bytes).ok_or(KeyError::Kind),
            "RSA PUBLIC KEY" => Self::from_pkcs1(&bytes).ok_or(KeyError::Kind),
            label if label.ends_with("PRIVATE KEY") => Err(KeyError::Private(crate::error::shown(label))),
            _ => Err(KeyError::Form),
        }
    }

    /// The SHA-256 of the key, as `openssl pkey -pubin -outform DER | sha256sum` prints it.
    pub fn fingerprint(&self) -> String {
        hex(&self.id())
    }

    /// Reads the `SubjectPublicKeyInfo` of a key.
    pub(crate) fn from_der(info: &[u8]) -> Option<Self> {
        let mut fields = der::open_only(info, SEQUENCE)?;
        let mut algorithm = fields.open(SEQUENCE)?;
        let kind = algorithm.content(OBJECT_ID)?;
        let algorithms = match kind {
            EC => match algorithm.content(OBJECT_ID)? {
                P256 => WITH_P256,
                P384 => WITH_P384,
                _ => return None,
            },
            ED25519 => WITH_ED25519,
            RSA => WITH_RSA,
            _ => return None,
        };
        // Keys are whole bytes: no bits of the last one are unused.
        let bits = fields.content(BIT_STRING)?.strip_prefix(&[0])?;
        fields.is_at_end().then(|| Self { algorithms, bits: bits.to_vec(), info: info.to_vec() })
    }

    /// Reads the `RSAPublicKey` of PKCS#1.
    pub(crate) fn from_pkcs1(key: &[u8]) -> Option<Self> {
        let bits = der::write(BIT_STRING, &[&[0], key].concat());
        Self::from_der(&der::write(SEQUENCE, &[RSA_ALGORITHM, &bits].concat()))
    }

    /// The SHA-256 of the key: its identity in logs.
    pub(crate) fn id(&self) -> Vec<u8> {
        digest(&SHA256, &self.info).as_ref().to_vec()
    }

    /// True if the key made this signature.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let by = |algorithm: &&'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(*algorithm, &self.bits).verify(message, signature).is_ok()
        };
        self.algorithms.iter().any(by)
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.info == other.info
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PublicKey({})", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_public_key_is_named() {
        let section =
            |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        let read = |text: &str| PublicKey::from_pem(text.as_bytes()).map(|_| ());
        assert!(matches!(
            read(&section("ENCRYPTED SIGSTORE PRIVATE KEY", "aGk=")),
            Err(KeyError::Private(_))
        ));
        assert_eq!(read(&section("PUBLIC KEY", "aGk=")), Err(KeyError::Kind));
        assert_eq!(read(&section("RSA PUBLIC KEY", "aGk=")), Ok(()));
        for form in ["", "hello", &section("CERTIFICATE", "aGk="), &section("PUBLIC KEY", "aGk").repeat(2)] {
            assert_eq!(read(form), Err(KeyError::Form), "{form}");
        }
        assert_eq!(PublicKey::from_pem(&[0xff]).map(|_| ()), Err(KeyError::Form));
    }
}
