//! Identities of age, which decrypt data keys.
//!
//! In: a file of identities, and a data key encrypted for a recipient. Out: the data key. Served
//! are X25519 identities (`AGE-SECRET-KEY-1…`), and Ed25519 and RSA keys of ssh; all other kinds
//! are named in the refusal.

mod armor;
mod bech32;
mod header;
mod payload;
mod ssh;
mod ssh_ed25519;
mod ssh_rsa;

use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::{aead, hkdf, hmac};
use zeroize::Zeroizing;

use super::key_groups::{KeyHolder, KeyRefusal};
use super::key_source::KeySource;
use super::secret::SecretBytes;
use header::{Header, Stanza};
use ssh::SshIdentity;

/// Most identities in one file.
const MAX_IDENTITIES: usize = 200;
/// Length of the key of one age file.
const FILE_KEY_BYTES: usize = 16;

/// Identities of age: X25519, and Ed25519 and RSA keys of ssh.
pub struct AgeIdentities {
    keys: Vec<Identity>,
    ssh: Vec<SshIdentity>,
    recipients: Vec<String>,
    unserved: Vec<AgeKeyError>,
}

struct Identity {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

/// A line of an identity file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct AgeKeyError {
    line: usize,
    problem: &'static str,
}

impl AgeIdentities {
    /// Reads a file of identities, one a line; comments begin with `#`.
    ///
    /// Kinds that are not served are kept as a reason for refusals, unless the file has no other.
    pub fn read(text: &str) -> Result<Self, AgeKeyError> {
        let mut found =
            Self { keys: Vec::new(), ssh: Vec::new(), recipients: Vec::new(), unserved: Vec::new() };
        let mut lines = text.lines().map(str::trim).enumerate();
        while let Some((at, line)) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = |problem| AgeKeyError { line: at + 1, problem };
            if found.recipients.len() == MAX_IDENTITIES {
                return Err(fault("the file has more than 200 identities"));
            }
            if let Some(end) = ssh::last_line(line) {
                let inner: Vec<&str> =
                    lines.by_ref().map(|(_, line)| line).take_while(|line| *line != end).collect();
                if !text.lines().skip(at).any(|line| line.trim() == end) {
                    return Err(fault("the ssh key has no last line"));
                }
                let identity = SshIdentity::read(line, &inner).map_err(fault)?;
                found.recipients.push(identity.recipient());
                found.ssh.push(identity);
                continue;
            }
            if let Some(problem) = unserved_kind(line) {
                found.unserved.push(fault(problem));
                // All lines below belong to the key.
                if line.starts_with("-----") {
                    break;
                }
                continue;
            }
            let identity = Identity::read(line)
                .ok_or_else(|| fault("this is not an identity of age (AGE-SECRET-KEY-1…)"))?;
            found.recipients.push(bech32::encode("age", &identity.public));
            found.keys.push(identity);
        }
        match (found.recipients.first(), found.unserved.first()) {
            (None, Some(unserved)) => Err(unserved.clone()),
            (None, None) => Err(AgeKeyError { line: 1, problem: "the file has no identity of age" }),
            (Some(_), _) => Ok(found),
        }
    }

    /// Returns the recipients of the identities, such as `age1…` and `ssh-ed25519 …`.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.recipients.iter().map(String::as_str)
    }

    /// Returns the lines with a kind of identity that is not served.
    pub fn unserved(&self) -> &[AgeKeyError] {
        &self.unserved
    }

    /// Decrypts an armored file of age with the first identity that fits.
    fn open(&self, enc: &str) -> Result<Option<SecretBytes>, &'static str> {
        let file = armor::decode(enc)?;
        let (header, rest) = header::read(&file)?;
        for stanza in &header.stanzas {
            let file_key = match stanza {
                Stanza::X25519 { share, body } => self.keys.iter().find_map(|key| key.unwrap(share, body)),
                Stanza::SshEd25519 { .. } | Stanza::SshRsa { .. } => {
                    self.ssh.iter().find_map(|key| key.unwrap(stanza))
                }
                Stanza::Other => None,
            };
            let Some(file_key) = file_key else { continue };
            if !mac_fits(&header, &file_key) {
                return Err("the encrypted data key was changed");
            }
            return payload::decrypt(&file_key, rest).map(Some);
        }
        Ok(None)
    }
}

impl KeyHolder for AgeIdentities {
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
        let KeySource::Age { recipient, enc } = source else { return Ok(None) };
        if let Some(problem) = unserved_recipient(recipient) {
            return Err(KeyRefusal(problem.into()));
        }
        self.open(enc).map_err(|problem| KeyRefusal(problem.into()))
    }
}

impl std::fmt::Debug for AgeIdentities {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.recipients()).finish()
    }
}

impl Identity {
    fn read(line: &str) -> Option<Self> {
        let (prefix, bytes) = bech32::decode(line)?;
        let secret: [u8; 32] = bytes.as_bytes().try_into().ok()?;
        if prefix != "age-secret-key-" {
            return None;
        }
        let secret = Zeroizing::new(secret);
        let public = X25519_BASEPOINT.mul_clamped(*secret).to_bytes();
        Some(Self { secret, public })
    }

    /// Returns the key of an age file if its stanza is for this identity.
    fn unwrap(&self, share: &[u8; 32], body: &[u8; 32]) -> Option<Zeroizing<[u8; FILE_KEY_BYTES]>> {
        let shared = Zeroizing::new(MontgomeryPoint(*share).mul_clamped(*self.secret).to_bytes());
        if *shared == [0; 32] {
            return None;
        }
        let mut salt = [0; 64];
        salt[..32].copy_from_slice(share);
        salt[32..].copy_from_slice(&self.public);
        let wrap = derive(&salt, &*shared, "age-encryption.org/v1/X25519")?;
        let mut sealed = Zeroizing::new(*body);
        let opened = open_in_place(&wrap, [0; 12], &mut *sealed)?;
        Some(Zeroizing::new(<[u8; FILE_KEY_BYTES]>::try_from(&*opened).ok()?))
    }
}

/// Names a kind of identity that is not served.
fn unserved_kind(line: &str) -> Option<&'static str> {
    let upper = line.to_ascii_uppercase();
    match () {
        () if upper.starts_with("AGE-SECRET-KEY-PQ-1") => Some(
            "post-quantum identities of age are not served yet; encrypt for an X25519 recipient (age1…), too",
        ),
        () if upper.starts_with("AGE-PLUGIN-") => Some("plugins of age are not served"),
        () if line.starts_with("-----BEGIN AGE ENCRYPTED FILE") => {
            Some("identities behind a passphrase are not served")
        }
        () if line.starts_with("-----BEGIN") => Some(
            "this kind of private key is not served; of ssh keys, Ed25519 and RSA keys in the format of OpenSSH are",
        ),
        () => None,
    }
}

/// Names a kind of recipient that is not served.
fn unserved_recipient(recipient: &str) -> Option<&'static str> {
    let x25519 =
        recipient.starts_with("age1") && bech32::decode(recipient).is_some_and(|(kind, _)| kind == "age");
    match () {
        () if x25519 || recipient.starts_with("ssh-ed25519 ") || recipient.starts_with("ssh-rsa ") => None,
        () if recipient.starts_with("age1pq1") || recipient.starts_with("age1tagpq1") => {
            Some("post-quantum recipients are not served yet")
        }
        () if recipient.starts_with("ssh-") => Some("of ssh keys, only those of ed25519 and rsa are served"),
        () => Some("this kind of recipient is not served"),
    }
}

/// True if the header has the MAC of its key.
fn mac_fits(header: &Header<'_>, file_key: &[u8; FILE_KEY_BYTES]) -> bool {
    derive(&[], file_key, "header").is_some_and(|key| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*key);
        hmac::verify(&key, header.signed, &header.mac).is_ok()
    })
}

/// Derives a key of 32 bytes.
fn derive(salt: &[u8], secret: &[u8], info: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut key = Zeroizing::new([0; 32]);
    let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    let info = [info.as_bytes()];
    let expanded = extracted.expand(&info, hkdf::HKDF_SHA256).ok()?;
    expanded.fill(&mut *key).ok()?;
    Some(key)
}

/// Decrypts with ChaCha20-Poly1305 in place; returns the plain part.
fn open_in_place<'b>(key: &[u8; 32], nonce: [u8; 12], sealed: &'b mut [u8]) -> Option<&'b mut [u8]> {
    let key = aead::LessSafeKey::new(aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key).ok()?);
    let nonce = aead::Nonce::assume_unique_for_key(nonce);
    key.open_in_place(nonce, aead::Aad::empty(), sealed).ok()
}

#[cfg(test)]
pub(crate) mod tests;
