//! Proofs of ownership that cannot be copied: a keyed hash over an object's identity and its Sync's
//! uid.
//!
//! In: the daemon's keys, the identity of an object and the uid of its Sync.
//! Out: [`Proof`], the value of an annotation, and its validation. Everyone who may patch an object
//! can write its other annotations; only a holder of the key can write this one. Display and Debug
//! never show a key.

use std::fmt;

use ring::hmac;
use sha2::{Digest as _, Sha256};

/// Length of a key in bytes.
pub const KEY_BYTES: usize = 32;

/// Maximum number of former keys that are accepted.
pub const MAX_FORMER: usize = 16;

/// Prefix of the hashed data, by purpose, so that no hash is valid for another purpose.
const OWNERSHIP: &[u8] = b"moorline proof of ownership v1\n";
const CONTENT: &[u8] = b"moorline hash of content v1\n";

/// Identifier of a key, which reveals nothing about it: 8 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 4]);

/// The annotation: `<key id>:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    key: KeyId,
    mac: [u8; 32],
}

/// The keys of a daemon: the current one for writing, and former ones that are still accepted.
#[derive(Clone)]
pub struct KeyRing {
    current: Key,
    former: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: KeyId,
    bytes: [u8; KEY_BYTES],
    mac: hmac::Key,
}

impl Key {
    fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let [a, b, c, d, ..] = digest;
        Self { id: KeyId([a, b, c, d]), bytes, mac: hmac::Key::new(hmac::HMAC_SHA256, &bytes) }
    }

    fn sign(&self, purpose: &[u8], parts: [&[u8]; 2]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.mac);
        context.update(purpose);
        let [first, second] = parts;
        // The length fixes the border between the two parts.
        context.update(&u64::try_from(first.len()).unwrap_or(u64::MAX).to_be_bytes());
        context.update(first);
        context.update(second);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.sign().as_ref());
        bytes
    }
}

impl KeyRing {
    /// Creates a key ring; `current` is used for writing.
    pub fn new(current: [u8; KEY_BYTES], former: impl IntoIterator<Item = [u8; KEY_BYTES]>) -> Self {
        let former = former.into_iter().take(MAX_FORMER).map(Key::new).collect();
        Self { current: Key::new(current), former }
    }

    /// Returns the current key.
    pub fn current(&self) -> &[u8; KEY_BYTES] {
        &self.current.bytes
    }

    /// Returns the id of the current key.
    pub fn id(&self) -> KeyId {
        self.current.id
    }

    /// True if the key is a former one.
    pub fn is_former(&self, key: &[u8; KEY_BYTES]) -> bool {
        self.former.iter().any(|former| former.bytes == *key)
    }

    /// Returns the ids of all keys, the current one first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.keys().map(|key| key.id)
    }

    /// Creates the proof for the object with this identity, of the Sync with this uid.
    pub fn prove(&self, identity: &str, uid: &str) -> Proof {
        let mac = self.current.sign(OWNERSHIP, [uid.as_bytes(), identity.as_bytes()]);
        Proof { key: self.current.id, mac }
    }

    /// True if the proof is for this identity and this Sync, by the current or a former key.
    pub fn is_valid(&self, proof: &Proof, identity: &str, uid: &str) -> bool {
        let mut named = self.keys().filter(|key| key.id == proof.key);
        named.any(|key| is_same(&key.sign(OWNERSHIP, [uid.as_bytes(), identity.as_bytes()]), &proof.mac))
    }

    /// Returns a keyed hash of a content hash, so that the content cannot be guessed from it. None
    /// if the key with this id is lost.
    pub fn content_hash(&self, key: KeyId, hash: &[u8]) -> Option<[u8; 32]> {
        let key = self.keys().find(|known| known.id == key)?;
        Some(key.sign(CONTENT, [hash, b""]))
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.former)
    }
}

/// Compares in constant time.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

impl Proof {
    /// Parses an annotation.
    pub fn parse(text: &str) -> Option<Self> {
        let (key, mac) = text.split_once(':')?;
        Some(Self { key: KeyId::parse(key)?, mac: hex(mac)? })
    }

    /// Returns the id of its key.
    pub fn key(&self) -> KeyId {
        self.key
    }
}

impl KeyId {
    /// Returns the id as bytes.
    pub fn bytes(self) -> [u8; 4] {
        self.0
    }

    /// Creates an id from its bytes.
    pub fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }

    /// Parses 8 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        hex(text).map(Self)
    }
}

/// Decodes exactly `N` bytes from lower-case hex digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.iter().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.key)?;
        write_hex(f, &self.mac)
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: &str = "ops/web|/ConfigMap|shop/a";

    #[test]
    fn a_proof_is_valid_for_one_identity_and_one_sync() {
        let ring = KeyRing::new([7; 32], []);
        let proof = ring.prove(IDENTITY, "uid-1");
        assert!(ring.is_valid(&proof, IDENTITY, "uid-1"));
        assert!(!ring.is_valid(&proof, IDENTITY, "uid-2"), "another Sync of that name");
        assert!(!ring.is_valid(&proof, "ops/web|/ConfigMap|shop/b", "uid-1"), "a copy on another object");
        assert!(!ring.is_valid(&proof, "ops/api|/ConfigMap|shop/a", "uid-1"));
        assert!(!KeyRing::new([8; 32], []).is_valid(&proof, IDENTITY, "uid-1"), "another key");
        let (moved, whole) = (ring.prove("bc", "a"), ring.prove("c", "ab"));
        assert_ne!(moved, whole, "the border between the parts counts");
    }

    #[test]
    fn a_key_of_before_is_accepted_and_not_written_with() {
        let (old, new) = (KeyRing::new([7; 32], []), KeyRing::new([8; 32], [[7; 32]]));
        assert!(new.is_valid(&old.prove(IDENTITY, "uid"), IDENTITY, "uid"));
        assert_eq!(new.prove(IDENTITY, "uid").key(), new.id());
        assert_ne!(new.id(), old.id());
        assert!(new.is_former(old.current()) && !new.is_former(new.current()));
        assert_eq!(new.content_hash(old.id(), &[1; 32]), old.content_hash(old.id(), &[1; 32]));
        assert_eq!(old.content_hash(new.id(), &[1; 32]), None, "the key is lost");
    }

    #[test]
    fn a_proof_reads_back_as_it_was_written_and_tells_no_key() {
        let ring = KeyRing::new([0xa5; 32], [[0x5a; 32]]);
        let proof = ring.prove(IDENTITY, "uid");
        assert_eq!(Proof::parse(&proof.to_string()), Some(proof));
        assert_eq!(proof.to_string().len(), 8 + 1 + 64);
        for text in [
            "",
            ":",
            "a5a5a5a5",
            "a5a5a5a5:",
            "A5A5A5A5:00",
            "+5a5a5a5:00",
            &format!("a5a5a5a5:{}", "é".repeat(32)),
        ] {
            assert_eq!(Proof::parse(text), None, "{text}");
        }
        assert!(!format!("{ring:?}").contains("a5a5") && !format!("{ring:?}").contains("165"), "{ring:?}");
    }

    #[test]
    fn the_hash_is_hmac_sha_256() {
        // Computed by another implementation of HMAC over purpose, length, uid and identity.
        let expect = "66687aad:3e923eb6a5c3a0c3a27e3fe667def2bf53271ce6741ef1cdd64e2fbcdd21c958";
        assert_eq!(KeyRing::new([0; 32], []).prove("i", "u").to_string(), expect);
    }
}
