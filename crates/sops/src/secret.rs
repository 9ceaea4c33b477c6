//! Bytes that are never printed and are wiped when they are dropped.

use std::fmt;

use zeroize::{Zeroize, Zeroizing};

/// Decrypted bytes. They can be read, but not formatted, compared or copied by accident.
#[derive(Default)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes over the bytes; they are wiped with the result.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Creates an empty buffer.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds bytes at the end. A buffer that becomes too small is wiped when it is replaced.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let needed = self.0.len().saturating_add(bytes.len());
        if needed > self.0.capacity() {
            let mut larger = Vec::with_capacity(needed.saturating_mul(2));
            larger.extend_from_slice(&self.0);
            self.0.zeroize();
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    /// Returns the bytes as text if they are UTF-8.
    pub(crate) fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Keeps the first bytes only; the others are wiped.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        if let Some(rest) = self.0.get_mut(bytes..) {
            rest.zeroize();
        }
        self.0.truncate(bytes);
    }

    /// Returns the bytes for decryption in place.
    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl From<&str> for SecretBytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretBytes(..)")
    }
}

/// The key of a file's values.
pub struct DataKey(Zeroizing<[u8; Self::BYTES]>);

impl DataKey {
    /// Length of the key.
    pub(crate) const BYTES: usize = 32;

    /// Takes over a decrypted key; none if its length is wrong.
    pub fn new(bytes: &SecretBytes) -> Option<Self> {
        let bytes: [u8; Self::BYTES] = bytes.as_bytes().try_into().ok()?;
        Some(Self(Zeroizing::new(bytes)))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("DataKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let secret = SecretBytes::from("hunter2");
        assert_eq!(format!("{secret:?}"), "SecretBytes(..)");
        let key = DataKey::new(&SecretBytes::new(vec![7; 32])).expect("has 32 bytes");
        assert_eq!(format!("{key:?}"), "DataKey(..)");
        assert!(DataKey::new(&SecretBytes::new(vec![7; 31])).is_none());
    }

    #[test]
    fn buffers_grow_and_shrink() {
        let mut secret = SecretBytes::with_capacity(1);
        secret.push(b"abc");
        secret.push(b"def");
        secret.truncate(4);
        secret.truncate(9);
        assert_eq!(secret.as_bytes(), b"abcd");
    }
}
