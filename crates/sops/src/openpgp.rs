//! Private keys of OpenPGP, which decrypt data keys.
//!
//! In: armored private keys without a passphrase, and a data key as an armored message. Out: the
//! data key. Served are the algorithms of the crate `pgp`, among them RSA and X25519.

use std::io::Read as _;

use pgp::composed::{DecryptionOptions, Deserializable as _, Message, SignedSecretKey, TheRing};
use pgp::errors::Error;
use pgp::types::{KeyDetails as _, Password};
use zeroize::Zeroizing;

use super::key_groups::{KeyHolder, KeyRefusal};
use super::key_source::KeySource;
use super::secret::SecretBytes;

/// First and last line of a private key.
const BEGIN: &str = "-----BEGIN PGP PRIVATE KEY BLOCK-----";
const END: &str = "-----END PGP PRIVATE KEY BLOCK-----";
/// Most private keys in one file.
const MAX_PRIVATE_KEYS: usize = 100;
/// Most bytes of a decrypted data key.
const MAX_DATA_KEY_BYTES: usize = 1024;

/// Private keys of OpenPGP.
pub struct OpenPgpKeys {
    keys: Vec<SignedSecretKey>,
}

/// A file without an OpenPGP key that can be used. It quotes nothing of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenPgpKeyError(&'static str);

impl OpenPgpKeys {
    /// Reads armored private keys, one block after the other.
    pub fn read(text: &str) -> Result<Self, OpenPgpKeyError> {
        let mut keys = Vec::new();
        for block in text.split_inclusive(END) {
            let Some(block) = block.find(BEGIN).and_then(|at| block.get(at..)) else { continue };
            let unreadable = || OpenPgpKeyError("this is no private key of OpenPGP that can be read");
            let (read, _) = SignedSecretKey::from_armor_many(block.as_bytes()).map_err(|_| unreadable())?;
            for key in read {
                let key = key.map_err(|_| unreadable())?;
                if keys.len() == MAX_PRIVATE_KEYS {
                    return Err(OpenPgpKeyError("the file has more than 100 private keys"));
                }
                if !has_open_part(&key) {
                    return Err(OpenPgpKeyError(
                        "the private key has a passphrase, which is not served; export it without one",
                    ));
                }
                keys.push(key);
            }
        }
        match keys.is_empty() {
            true => Err(OpenPgpKeyError("the file has no private key of OpenPGP")),
            false => Ok(Self { keys }),
        }
    }

    /// Returns the fingerprints of the keys.
    pub fn fingerprints(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(|key| format!("{}", key.fingerprint()).to_uppercase())
    }

    /// Decrypts an armored message; none if it is for other keys.
    fn open(&self, enc: &str) -> Result<Option<SecretBytes>, &'static str> {
        let damaged = |_| "the encrypted data key is no message of OpenPGP";
        let (message, _) = Message::from_armor(enc.as_bytes()).map_err(damaged)?;
        let password = Password::empty();
        let ring = TheRing {
            secret_keys: self.keys.iter().collect(),
            key_passwords: vec![&password],
            decrypt_options: DecryptionOptions::new().enable_gnupg_aead(),
            ..TheRing::default()
        };
        if !message.is_encrypted() {
            return Err("the encrypted data key is a message that is not encrypted");
        }
        let message = match message.decrypt_the_ring(ring, true) {
            Ok((message, _)) => message,
            Err(Error::MissingKey) => return Ok(None),
            Err(_) => return Err("the encrypted data key was changed, or is of a kind that is not served"),
        };
        let message = match message.is_compressed() {
            true => message.decompress().map_err(damaged)?,
            false => message,
        };
        if !message.is_literal() {
            return Err("the encrypted data key is a message of an unknown form");
        }
        let mut plain = Zeroizing::new(Vec::with_capacity(MAX_DATA_KEY_BYTES + 1));
        let read = message.take(MAX_DATA_KEY_BYTES as u64 + 1).read_to_end(&mut plain);
        read.map_err(|_| "the encrypted data key was changed")?;
        match plain.len() > MAX_DATA_KEY_BYTES {
            true => Err("the encrypted data key is longer than a data key"),
            false => Ok(Some(SecretBytes::new(std::mem::take(&mut *plain)))),
        }
    }
}

impl KeyHolder for OpenPgpKeys {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        let KeySource::Pgp { enc, .. } = source else { return Ok(None) };
        self.open(enc).map_err(|problem| KeyRefusal(problem.into()))
    }
}

impl std::fmt::Debug for OpenPgpKeys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.fingerprints()).finish()
    }
}

/// True if a part of the key has no passphrase.
fn has_open_part(key: &SignedSecretKey) -> bool {
    let subkeys = key.secret_subkeys.iter().map(|subkey| subkey.secret_params());
    subkeys.chain([key.primary_key.secret_params()]).any(|secret| !secret.is_encrypted())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and messages that GnuPG made for these tests.
    const CURVE: (&str, &str) = (
        include_str!("../tests/files/openpgp/curve.asc"),
        include_str!("../tests/files/openpgp/curve.message.asc"),
    );
    const RSA: (&str, &str) = (
        include_str!("../tests/files/openpgp/rsa.asc"),
        include_str!("../tests/files/openpgp/rsa.message.asc"),
    );
    const LOCKED: &str = include_str!("../tests/files/openpgp/locked.asc");

    fn opened(keys: &str, enc: &str) -> Result<Option<Vec<u8>>, String> {
        let keys = OpenPgpKeys::read(keys).expect("has keys");
        let source = KeySource::Pgp { fingerprint: "F".into(), enc: enc.into() };
        let found = keys.decrypt(&source).map_err(|refusal| refusal.to_string())?;
        Ok(found.map(|found| found.as_bytes().to_vec()))
    }

    #[test]
    fn the_right_key_decrypts() {
        for (keys, enc) in [CURVE, RSA] {
            assert_eq!(opened(keys, enc), Ok(Some(vec![7; 32])));
        }
        assert_eq!(opened(CURVE.0, RSA.1), Ok(None));
        let both = format!("# words\n{}\n{}", CURVE.0, RSA.0);
        assert_eq!(opened(&both, RSA.1), Ok(Some(vec![7; 32])));
        let keys = OpenPgpKeys::read(&both).expect("has keys");
        assert_eq!(keys.fingerprints().count(), 2);
        assert!(!format!("{keys:?}").contains("secret"));
        let other = KeySource::Age { recipient: "age1".into(), enc: CURVE.1.into() };
        assert!(matches!(keys.decrypt(&other), Ok(None)));
    }

    #[test]
    fn what_is_no_open_key_is_refused_in_words() {
        let refused = |text: &str| OpenPgpKeys::read(text).expect_err(text).to_string();
        assert_eq!(refused("hunter2"), "the file has no private key of OpenPGP");
        assert!(refused(LOCKED).starts_with("the private key has a passphrase"));
        let cut = CURVE.0.replace("\n\n", "\n\nAAAA");
        assert_eq!(refused(&cut), "this is no private key of OpenPGP that can be read");
    }

    #[test]
    fn a_changed_message_opens_to_no_other_key() {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let lines: Vec<&str> = CURVE.1.lines().filter(|line| !line.starts_with(['-', '='])).collect();
        let good = STANDARD.decode(lines.concat()).expect("is base64");
        for bit in (0..good.len() * 8).step_by(7) {
            let mut changed = good.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let text = STANDARD.encode(changed);
            let enc = format!("-----BEGIN PGP MESSAGE-----\n\n{text}\n-----END PGP MESSAGE-----\n");
            assert!(!matches!(opened(CURVE.0, &enc), Ok(Some(key)) if key != [7; 32]), "bit {bit}");
        }
    }
}
