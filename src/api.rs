//! The names that Moorline and its users share on a cluster: labels, annotations and the field manager.
//!
//! This is the only place where they are spelled.

/// Label on every object of a Sync, and the selector of the daemon's watches.
pub const SYNC_LABEL: &str = "moorline.dev/sync";

/// Annotation on every object of a Sync: which Sync applied which object. A copy of the object carries the
/// identity of the original and is recognised by that.
pub const ID_ANNOTATION: &str = "moorline.dev/id";

/// Annotation on every object of a Sync: the hash of the object as rendered.
pub const SPEC_HASH_ANNOTATION: &str = "moorline.dev/spec-hash";

/// Annotation: the wave in which an object is applied (an integer, 0 when absent).
pub const WAVE_ANNOTATION: &str = "moorline.dev/wave";

/// Argo CD's annotation for the same purpose, understood where ours is absent.
pub const ARGO_WAVE_ANNOTATION: &str = "argocd.argoproj.io/sync-wave";

/// Annotation: `disabled` keeps Moorline from pruning the object.
pub const PRUNE_ANNOTATION: &str = "moorline.dev/prune";

/// Annotation: `disabled` keeps Moorline from touching the object at all.
pub const RECONCILE_ANNOTATION: &str = "moorline.dev/reconcile";

/// Annotation: `once` creates the object and leaves it alone from then on.
pub const APPLY_ANNOTATION: &str = "moorline.dev/apply";

/// Every field manager of Moorline begins with this.
pub const MANAGER_PREFIX: &str = "moorline/";

/// The most characters that the value of a label may have.
const MAX_LABEL_VALUE: usize = 63;

/// A Sync by namespace and name: the owner of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SyncName {
    /// The namespace of the Sync.
    pub namespace: Box<str>,
    /// The name of the Sync.
    pub name: Box<str>,
}

impl SyncName {
    /// A Sync's name from its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The field manager under which the objects of this Sync are applied. One for each Sync, so that two
    /// Syncs never overwrite each other silently.
    pub fn manager(&self) -> String {
        format!("{MANAGER_PREFIX}{}/{}", self.namespace, self.name)
    }

    /// The value of [`SYNC_LABEL`]: `<namespace>.<name>`, or `h-` and 40 hex digits where that is too long.
    pub fn label(&self) -> String {
        use sha2::{Digest, Sha256};
        let plain = format!("{}.{}", self.namespace, self.name);
        if plain.len() <= MAX_LABEL_VALUE {
            return plain;
        }
        let digest = Sha256::digest(plain.as_bytes());
        digest[..20].iter().fold("h-".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// The value of [`ID_ANNOTATION`] for an object, given the text of its id.
    pub fn identity(&self, object_id: &str) -> String {
        format!("{}/{}|{object_id}", self.namespace, self.name)
    }
}

impl std::fmt::Display for SyncName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_hashed_for_the_label_only() {
        let short = SyncName::new("shop", "web");
        assert_eq!(short.label(), "shop.web");
        assert_eq!(short.manager(), "moorline/shop/web");
        assert_eq!(short.identity("/Service|shop/web"), "shop/web|/Service|shop/web");
        let long = SyncName::new(&"n".repeat(63), "web");
        assert_eq!(long.label().len(), 42);
        assert!(long.label().starts_with("h-"));
        assert!(long.identity("/Service|a/b").starts_with(&"n".repeat(63)));
    }
}
