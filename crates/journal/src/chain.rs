//! The chain of lines: each carries the hash of the line before.
//!
//! In: entries. Out: lines, and the [`Head`] of the chain.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::entry::Entry;

/// SHA-256 of a line, without its line break.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is no head, or no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not a number, a colon and 64 hex digits")]
pub struct InvalidHeadError;

impl FromStr for Hash {
    type Err = InvalidHeadError;

    fn from_str(text: &str) -> Result<Self, InvalidHeadError> {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = Some(text.as_bytes()).filter(|digits| digits.len() == 64 && digits.iter().all(is_hex));
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.ok_or(InvalidHeadError)?.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| InvalidHeadError)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| InvalidHeadError)?;
        }
        Ok(Self(hash))
    }
}

/// The last line of a chain: its number and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// Number of the line; 0 before the first one.
    pub seq: u64,
    /// Hash of the line; zeros before the first one.
    pub hash: Hash,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Head {
    type Err = InvalidHeadError;

    fn from_str(text: &str) -> Result<Self, InvalidHeadError> {
        let (seq, hash) = text.split_once(':').ok_or(InvalidHeadError)?;
        Ok(Self { seq: seq.parse().map_err(|_| InvalidHeadError)?, hash: hash.parse()? })
    }
}

/// A chain that lines are appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain(Head);

impl Chain {
    /// Continues after a line.
    pub fn after(head: Head) -> Self {
        Self(head)
    }

    /// Returns the last line.
    pub fn head(&self) -> Head {
        self.0
    }

    /// Appends an entry, and returns its line without a line break.
    pub fn append(&mut self, entry: &Entry) -> String {
        // An entry has no maps with other keys than texts, so this cannot fail.
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        value["seq"] = self.0.seq.saturating_add(1).into();
        value["prev"] = Value::String(self.0.hash.to_string());
        let line = value.to_string();
        self.0 = Head { seq: self.0.seq.saturating_add(1), hash: Hash::of(line.as_bytes()) };
        line
    }
}
