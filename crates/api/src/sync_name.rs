//! Namespace and name of a Sync, and the texts by which its objects name it.

use crate::{MANAGER_PREFIX, TARGET_LABEL, sync_target};

/// Maximum number of characters of a label value.
const MAX_LABEL_VALUE: usize = 63;

/// Namespace and name of a Sync: the owner of objects. Names are compared by namespace and name
/// alone; the mark of another cluster does not count.
#[derive(Debug, Clone)]
pub struct SyncName {
    /// The namespace of the Sync.
    pub namespace: Box<str>,
    /// The name of the Sync.
    pub name: Box<str>,
    /// Mark of another cluster in which the objects live.
    pub(crate) target: Option<Box<str>>,
}

impl PartialEq for SyncName {
    fn eq(&self, other: &Self) -> bool {
        (&self.namespace, &self.name) == (&other.namespace, &other.name)
    }
}

impl Eq for SyncName {}

impl PartialOrd for SyncName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SyncName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (&self.namespace, &self.name).cmp(&(&other.namespace, &other.name))
    }
}

impl std::hash::Hash for SyncName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.namespace, &self.name).hash(state);
    }
}

impl SyncName {
    /// Creates a name from namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into(), target: None }
    }

    /// Returns the field manager that applies the objects of this Sync. Each Sync has its own, so
    /// that two Syncs never overwrite each other silently.
    pub fn manager(&self) -> String {
        format!("{MANAGER_PREFIX}{}", self.owner())
    }

    /// Returns the value of [`SYNC_LABEL`](crate::SYNC_LABEL): `<namespace>.<name>`, or `h-`
    /// and 40 hex digits if that is too long. On objects in another cluster it begins with `r_`,
    /// the mark and a dot.
    pub fn label(&self) -> String {
        use sha2::{Digest, Sha256};
        let front = self.target().map(|mark| format!("{TARGET_LABEL}{mark}.")).unwrap_or_default();
        let plain = format!("{}.{}", self.namespace, self.name);
        if front.len() + plain.len() <= MAX_LABEL_VALUE {
            return front + &plain;
        }
        format!("{front}h-{}", sync_target::hex(&Sha256::digest(plain.as_bytes())[..20]))
    }

    /// Returns the value of [`ID_ANNOTATION`](crate::ID_ANNOTATION) for an object, given the
    /// text of its id.
    pub fn identity(&self, object_id: &str) -> String {
        format!("{}|{object_id}", self.owner())
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
