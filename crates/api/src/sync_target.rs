//! Names of a Sync on objects in another cluster than its own.
//!
//! In: the id of the home cluster, and the Secret through which the other one is reached.
//! Out: the mark of the target, and the text by which objects name their owner. A daemon in the
//! target may serve a Sync of the same name: neither label, field manager, identity nor proof is
//! the same.

use sha2::{Digest, Sha256};

use crate::SyncName;

/// Maximum number of characters of namespace and name together, for a Sync with `spec.cluster`:
/// the field manager has a limit of 128 bytes.
pub const MAX_TARGET_NAME: usize = 100;

/// Number of bytes of a mark.
const MARK_BYTES: usize = 8;

/// Character in front of the mark of a target. No namespace begins with it.
const TARGET_SIGN: char = '@';

/// Returns the mark of the cluster behind a Secret of the home cluster with this id.
pub fn target_mark(home: &str, namespace: &str, secret: &str, key: &str) -> String {
    let digest = Sha256::digest(format!("{home}\n{namespace}\n{secret}\n{key}"));
    hex(&digest[..MARK_BYTES])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

impl SyncName {
    /// Returns the name of a Sync whose objects live in the cluster with this mark.
    pub fn in_target(&self, mark: &str) -> Self {
        Self { target: Some(mark.into()), ..self.clone() }
    }

    /// Returns the mark of the cluster in which the objects live; none at home.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// True if the objects of both Syncs live in the same cluster, reached through the same Secret.
    pub fn shares_target(&self, other: &Self) -> bool {
        self.target == other.target
    }

    /// Returns the text by which objects name this Sync as their owner.
    pub fn owner(&self) -> String {
        match &self.target {
            None => format!("{}/{}", self.namespace, self.name),
            Some(mark) => format!("{TARGET_SIGN}{mark}/{}.{}", self.namespace, self.name),
        }
    }

    /// Parses the text by which an object names its owner.
    pub fn parse_owner(text: &str) -> Option<Self> {
        let (front, rest) = text.split_once('/')?;
        let Some(mark) = front.strip_prefix(TARGET_SIGN) else { return Some(Self::new(front, rest)) };
        let (namespace, name) = rest.split_once('.')?;
        Some(Self::new(namespace, name).in_target(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_has_other_marks_in_another_cluster() {
        let mark = target_mark("uid", "ops", "east-kubeconfig", "");
        let (home, away) = (SyncName::new("ops", "shop"), SyncName::new("ops", "shop").in_target(&mark));
        assert_eq!(home, away, "one Sync of the registry");
        assert!(home.shares_target(&home.clone()) && !home.shares_target(&away));
        for (one, other) in [
            (home.label(), away.label()),
            (home.manager(), away.manager()),
            (home.owner(), away.owner()),
            (home.identity("/ConfigMap|a/b"), away.identity("/ConfigMap|a/b")),
        ] {
            assert_ne!(one, other);
        }
        for name in [&home, &away] {
            let read = SyncName::parse_owner(&name.owner()).unwrap();
            assert_eq!((&read, read.target()), (name, name.target()));
            assert_eq!(name.manager(), format!("moorline/{}", name.owner()));
        }
        assert_eq!(SyncName::parse_owner("@0123456789abcdef/none"), None);
        let others = [("other", "ops", "a", ""), ("uid", "dev", "a", ""), ("uid", "ops", "a", "k")];
        let marks = others.map(|(home, namespace, name, key)| target_mark(home, namespace, name, key));
        assert!(!marks.contains(&target_mark("uid", "ops", "a", "")));
    }

    #[test]
    fn the_longest_names_fit_what_the_server_takes() {
        let long =
            SyncName::new(&"n".repeat(63), &"s".repeat(MAX_TARGET_NAME - 63)).in_target(&"a".repeat(16));
        assert!(long.manager().len() <= 128, "{}", long.manager().len());
        assert!(long.label().len() <= 63, "{}", long.label());
    }
}
