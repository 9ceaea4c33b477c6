//! Plain bytes of a file that was encrypted.
//!
//! In: decrypted bytes. Out: a part of a tree that cannot be formatted, and that wipes them when
//! its last copy is dropped.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroize;

/// Plain bytes of an encrypted file; all clones share them.
#[derive(Clone, PartialEq, Eq)]
pub struct DecryptedBytes(Arc<Wiped>);

#[derive(PartialEq, Eq)]
struct Wiped(Arc<[u8]>);

impl DecryptedBytes {
    /// Takes a copy of decrypted bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Arc::new(Wiped(bytes.into())))
    }

    /// Returns the bytes. They are wiped only if the result is dropped before the tree.
    pub(super) fn bytes(&self) -> Arc<[u8]> {
        self.0.0.clone()
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        if let Some(bytes) = Arc::get_mut(&mut self.0) {
            bytes.zeroize();
        }
    }
}

impl fmt::Debug for DecryptedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecryptedBytes(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FileTree, TreeEntry, TreeError};
    use super::*;

    fn tree() -> FileTree {
        let plain = TreeEntry::Decrypted(DecryptedBytes::new(b"hunter2"));
        let closed = TreeEntry::Encrypted { bytes: (*b"sops").into(), error: "b.yaml:3: no key".into() };
        let link = TreeEntry::Link("a.yaml".into());
        [("a.yaml", plain), ("b.yaml", closed), ("c.yaml", link)].into_iter().collect()
    }

    #[test]
    fn a_decrypted_file_is_read_like_any_other_and_never_formatted() {
        let tree = tree();
        assert_eq!(tree.read("c.yaml").as_deref(), Ok(&b"hunter2"[..]));
        assert!(tree.is_decrypted("a.yaml") && tree.is_decrypted("c.yaml") && tree.has_decrypted());
        assert!(!tree.is_decrypted("b.yaml") && !FileTree::default().has_decrypted());
        let shown = format!("{tree:?}");
        assert!(shown.contains("DecryptedBytes(..)") && !shown.contains("104, 117"), "{shown}");
    }

    #[test]
    fn a_file_that_stays_encrypted_is_there_and_says_why_it_is_not_read() {
        let tree = tree();
        assert!(tree.is_file("b.yaml"));
        assert_eq!(tree.read("b.yaml"), Err(TreeError::Encrypted { error: "b.yaml:3: no key".into() }));
    }
}
