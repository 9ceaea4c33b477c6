//! RSA keys of ssh: a file key is encrypted by RSA-OAEP with SHA-256.
//!
//! In: the numbers of a private key, in the format of OpenSSH or PKCS#1, and an encrypted file key.
//! Out: the file key. A wrong padding and a wrong length are one answer, and decryption is blinded.

use ring::rand::{SecureRandom as _, SystemRandom};
use rsa::errors::Error as RsaError;
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::rand_core::{TryCryptoRng, TryRng};
use rsa::sha2::Sha256;
use rsa::traits::{PaddingScheme as _, PublicKeyParts as _};
use rsa::{BoxedUint, Oaep, RsaPrivateKey};
use zeroize::Zeroizing;

use super::FILE_KEY_BYTES;
use super::ssh::{DAMAGED, part};

const LABEL: &str = "age-encryption.org/v1/ssh-rsa";
/// Smallest key: age encrypts for no smaller one.
const MIN_BITS: u32 = 2048;
/// Largest key: larger ones take longer than a render may.
const MAX_BITS: u32 = 8192;
/// Most bytes of the modulus, before its bits are counted.
const MAX_MODULUS_BYTES: usize = MAX_BITS as usize / 8;
/// Most bytes of a key in PKCS#1; one of the largest size has fewer.
const MAX_DER_BYTES: usize = 8 * 1024;

const UNFIT: &str = "the numbers of this RSA key do not fit each other";
const SIZE: &str = "RSA keys of 2048 to 8192 bits are served";

/// An RSA key of ssh.
pub(super) struct RsaKey {
    key: RsaPrivateKey,
}

impl RsaKey {
    /// Problem of bytes that are no key in PKCS#1.
    pub(super) const NOT_PKCS1: &str = "this is no RSA key in PKCS#1";

    /// Takes a key from the fields behind its kind; also returns the public key as ssh sends it.
    pub(super) fn read(private: &mut &[u8]) -> Result<(Vec<u8>, Self), &'static str> {
        let mut fields = [[].as_slice(); 6];
        for field in &mut fields {
            *field = part(private)?;
        }
        let [n, e, d, _, p, q] = fields.map(without_zeros);
        if n.len() > MAX_MODULUS_BYTES {
            return Err(SIZE);
        }
        // All have the size of the modulus, because a smaller one is not calculated with.
        let bits = u32::try_from(n.len() * 8).map_err(|_| UNFIT)?;
        let number = |bytes| BoxedUint::from_be_slice(bytes, bits).map_err(|_| UNFIT);
        let primes = vec![number(p)?, number(q)?];
        let key = RsaPrivateKey::from_components(number(n)?, number(e)?, number(d)?, primes);
        Self::new(key.map_err(|_| UNFIT)?)
    }

    /// Reads a key in PKCS#1; also returns the public key as ssh sends it.
    pub(super) fn from_pkcs1(der: &[u8]) -> Result<(Vec<u8>, Self), &'static str> {
        if der.len() > MAX_DER_BYTES {
            return Err(SIZE);
        }
        Self::new(RsaPrivateKey::from_pkcs1_der(der).map_err(|_| Self::NOT_PKCS1)?)
    }

    fn new(key: RsaPrivateKey) -> Result<(Vec<u8>, Self), &'static str> {
        if !(MIN_BITS..=MAX_BITS).contains(&key.n().bits_vartime()) {
            return Err(SIZE);
        }
        let mut wire = Vec::new();
        for field in [b"ssh-rsa".to_vec(), signed(&key.e_bytes()), signed(&key.n_bytes())] {
            wire.extend(u32::try_from(field.len()).map_err(|_| DAMAGED)?.to_be_bytes());
            wire.extend(field);
        }
        Ok((wire, Self { key }))
    }

    /// Returns the key of an age file.
    pub(super) fn unwrap(&self, body: &[u8]) -> Option<Zeroizing<[u8; FILE_KEY_BYTES]>> {
        let padding = Oaep::<Sha256>::new_with_label(LABEL.as_bytes());
        let opened = padding.decrypt(Some(&mut Blinding(SystemRandom::new())), &self.key, body).ok()?;
        let opened = Zeroizing::new(opened);
        Some(Zeroizing::new(<[u8; FILE_KEY_BYTES]>::try_from(opened.as_slice()).ok()?))
    }
}

/// Removes zeros at the beginning of a number.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

/// Returns a number as ssh sends it: the first bit is no sign.
fn signed(bytes: &[u8]) -> Vec<u8> {
    let bytes = without_zeros(bytes);
    match bytes.first() {
        Some(0x80..) => [[0].as_slice(), bytes].concat(),
        _ => bytes.to_vec(),
    }
}

/// Random numbers that hide the duration of a decryption.
struct Blinding(SystemRandom);

impl TryRng for Blinding {
    type Error = RsaError;

    fn try_next_u32(&mut self) -> Result<u32, RsaError> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, RsaError> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), RsaError> {
        self.0.fill(bytes).map_err(|_| RsaError::Rng)
    }
}

impl TryCryptoRng for Blinding {}
