//! Ed25519 keys of ssh: moved to X25519 as age defines it, and mixed with the public key of ssh.
//!
//! In: the private part of a key in the format of OpenSSH, and a sealed file key.
//! Out: the file key.

use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;
use ring::digest;
use zeroize::Zeroizing;

use super::ssh::{DAMAGED, part};
use super::{FILE_KEY_BYTES, derive, open_in_place};

const INFO: &str = "age-encryption.org/v1/ssh-ed25519";

/// An Ed25519 key of ssh.
pub(super) struct Ed25519Key {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl Ed25519Key {
    /// Takes a key from the fields behind its kind.
    pub(super) fn read(private: &mut &[u8]) -> Result<Self, &'static str> {
        let (public, secret) = (part(private)?, part(private)?);
        let seed =
            secret.get(..32).filter(|_| secret.len() == 64 && secret.ends_with(public)).ok_or(DAMAGED)?;
        let hash = digest::digest(&digest::SHA512, seed);
        let scalar: [u8; 32] =
            hash.as_ref().get(..32).and_then(|half| half.try_into().ok()).ok_or(DAMAGED)?;
        let secret = Zeroizing::new(scalar);
        let public = X25519_BASEPOINT.mul_clamped(*secret).to_bytes();
        Ok(Self { secret, public })
    }

    /// Returns the key of an age file; `wire` is the public key as ssh sends it.
    pub(super) fn unwrap(
        &self,
        wire: &[u8],
        share: &[u8; 32],
        body: &[u8; 32],
    ) -> Option<Zeroizing<[u8; FILE_KEY_BYTES]>> {
        let shared = Zeroizing::new(MontgomeryPoint(*share).mul_clamped(*self.secret).to_bytes());
        if *shared == [0; 32] {
            return None;
        }
        let tweak = derive(wire, &[], INFO)?;
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
