//! Private keys of ssh as identities of age: Ed25519 without a passphrase.
//!
//! In: a private key in the format of OpenSSH, and a stanza for an ssh key. Out: the key of an age
//! file. The key is moved to X25519 as age defines it, and mixed with the public key of ssh.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, STANDARD_NO_PAD};
use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::digest;
use zeroize::Zeroizing;

use super::{FILE_KEY_BYTES, derive, open_in_place};

pub(super) const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
pub(super) const END: &str = "-----END OPENSSH PRIVATE KEY-----";
/// First bytes of a decoded key.
const MAGIC: &[u8] = b"openssh-key-v1\0";
const KIND: &[u8] = b"ssh-ed25519";
const INFO: &str = "age-encryption.org/v1/ssh-ed25519";
/// Length of the tag by which a stanza names its key.
const TAG_BYTES: usize = 4;

/// An Ed25519 key of ssh.
pub(super) struct SshIdentity {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
    /// The public key as ssh sends it.
    wire: Vec<u8>,
}

impl SshIdentity {
    /// Reads a key from the lines between the first and the last one.
    pub(super) fn read(lines: &str) -> Result<Self, &'static str> {
        let text: Zeroizing<String> = Zeroizing::new(lines.split_whitespace().collect());
        let bytes = Zeroizing::new(BASE64.decode(&*text).map_err(|_| DAMAGED)?);
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(DAMAGED)?;
        let (cipher, derivation) = (part(&mut rest)?, part(&mut rest)?);
        if (cipher, derivation) != (b"none", b"none") {
            return Err("ssh keys with a passphrase are not served; remove it with ssh-keygen -p");
        }
        let (_, count) = (part(&mut rest)?, number(&mut rest)?);
        let (wire, mut private) = (part(&mut rest)?, part(&mut rest)?);
        if count != 1 {
            return Err(DAMAGED);
        }
        let checks = (number(&mut private)?, number(&mut private)?);
        if part(&mut private)? != KIND {
            return Err("of ssh keys, only ed25519 is served");
        }
        let (public, secret) = (part(&mut private)?, part(&mut private)?);
        let seed =
            secret.get(..32).filter(|_| secret.len() == 64 && secret.ends_with(public)).ok_or(DAMAGED)?;
        if checks.0 != checks.1 {
            return Err(DAMAGED);
        }
        let hash = digest::digest(&digest::SHA512, seed);
        let scalar: [u8; 32] =
            hash.as_ref().get(..32).and_then(|half| half.try_into().ok()).ok_or(DAMAGED)?;
        let secret = Zeroizing::new(scalar);
        let public = X25519_BASEPOINT.mul_clamped(*secret).to_bytes();
        Ok(Self { secret, public, wire: wire.to_vec() })
    }

    /// Returns the recipient, such as `ssh-ed25519 …`.
    pub(super) fn recipient(&self) -> String {
        format!("ssh-ed25519 {}", BASE64.encode(&self.wire))
    }

    /// Returns the key of an age file if its stanza is for this identity.
    pub(super) fn unwrap(
        &self,
        tag: &str,
        share: &[u8; 32],
        body: &[u8; 32],
    ) -> Option<Zeroizing<[u8; FILE_KEY_BYTES]>> {
        let hash = digest::digest(&digest::SHA256, &self.wire);
        if tag != STANDARD_NO_PAD.encode(hash.as_ref().get(..TAG_BYTES)?) {
            return None;
        }
        let shared = Zeroizing::new(MontgomeryPoint(*share).mul_clamped(*self.secret).to_bytes());
        if *shared == [0; 32] {
            return None;
        }
        let tweak = derive(&self.wire, &[], INFO)?;
        let shared = Zeroizing::new(MontgomeryPoint(*shared).mul_clamped(*tweak).to_bytes());
        let mut salt = [0; 64];
        salt[..32].copy_from_slice(share);
        salt[32..].copy_from_slice(&self.public);
        let wrap = derive(&salt, &*shared, INFO)?;
        let mut sealed = Zeroizing::new(*body);
        let opened = open_in_place(&wrap, [0; 12], &mut *sealed)?;
        Some(Zeroizing::new(<[u8; FILE_KEY_BYTES]>::try_from(&*opened).ok()?))
    }
}

const DAMAGED: &str = "this is no ssh key in the format of OpenSSH";

/// Takes a number of four bytes.
fn number(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let (bytes, after) = rest.split_first_chunk::<4>().ok_or(DAMAGED)?;
    *rest = after;
    Ok(u32::from_be_bytes(*bytes))
}

/// Takes a text with its length in front.
fn part<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    let length = number(rest)? as usize;
    let (part, after) = rest.split_at_checked(length).ok_or(DAMAGED)?;
    *rest = after;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::super::{AgeIdentities, KeyHolder as _, KeySource};

    /// A key of ssh-keygen, and a data key that the library of SOPS encrypted for it.
    const KEY: &str = include_str!("../../tests/files/ssh/ed25519.key");
    const RECIPIENT: &str = include_str!("../../tests/files/ssh/ed25519.pub");
    const SEALED: &str = include_str!("../../tests/files/ssh/ed25519.age");
    const LOCKED: &str = include_str!("../../tests/files/ssh/locked.key");

    #[test]
    fn an_ssh_key_decrypts_what_is_for_it() {
        let (x25519, recipient) = super::super::tests::identity(1);
        let keys = AgeIdentities::read(&format!("{x25519}\n# of a machine\n{KEY}")).expect("has identities");
        let known: Vec<&str> = keys.recipients().collect();
        assert_eq!(known, [recipient.as_str(), RECIPIENT.trim()]);
        let source = KeySource::Age { recipient: RECIPIENT.trim().into(), enc: SEALED.into() };
        let found = keys.decrypt(&source).expect("is served").expect("is for it");
        assert_eq!(found.as_bytes(), [7; 32]);
        let other = AgeIdentities::read(&x25519).expect("has an identity").decrypt(&source);
        assert!(matches!(other, Ok(None)));
    }

    #[test]
    fn keys_that_cannot_be_used_are_refused_in_words() {
        let refused = |text: &str| AgeIdentities::read(text).expect_err(text).to_string();
        assert!(refused(LOCKED).starts_with("line 1: ssh keys with a passphrase"));
        let cut: String = KEY.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!(refused(&cut), "line 1: the ssh key has no last line");
        let damaged = KEY.replacen("b3BlbnNz", "b3BlbnNy", 1);
        assert_eq!(refused(&damaged), "line 1: this is no ssh key in the format of OpenSSH");
        assert!(
            refused("-----BEGIN RSA PRIVATE KEY-----\nAAAA").starts_with("line 1: this kind of private key")
        );
    }
}
