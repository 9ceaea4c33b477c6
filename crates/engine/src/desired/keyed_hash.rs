//! Hashes that cover values of Secrets: they are recorded with a key, so that a value cannot be
//! guessed from them.
//!
//! In: the hashes of objects and of a set, and the keys of the daemon.
//! Out: the form to record, and the comparison with a recorded one. A hash is compared in the form
//! and with the key in which it was recorded, so that neither the first key nor a rotation of keys
//! counts as a change of the object.

use std::sync::Arc;

use super::DesiredObject;
use super::hook::HALF;
use crate::proof::{KeyId, KeyRing};
use moorline_api::{CanonicalForm, SpecHash};

/// Keys for recorded hashes.
#[derive(Debug, Clone)]
pub enum HashKeys {
    /// The hash covers no value of a Secret.
    NotNeeded,
    /// There are no keys: the hash is not recorded.
    Missing,
    /// The keys of the daemon.
    Available {
        /// Current and former keys.
        ring: Arc<KeyRing>,
        /// True for the commit that was recorded last: a hook whose record uses a lost key counts
        /// as done for it.
        trusts_lost: bool,
    },
}

/// Result of the comparison of a recorded hash with a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashMatch {
    /// The record is of this set.
    Same,
    /// The record is of another set.
    Other,
    /// The key of the record is lost.
    KeyLost,
}

/// Digest of a set.
#[derive(Debug, Clone)]
pub struct SetDigest {
    /// For comparisons in memory.
    pub hash: SpecHash,
    keys: HashKeys,
}

impl SetDigest {
    pub(super) fn of(hash: SpecHash, objects: &[DesiredObject]) -> Self {
        let secret = objects.iter().find(|object| object.contains_secret);
        Self { hash, keys: secret.map_or(HashKeys::NotNeeded, |object| object.hash_keys.clone()) }
    }

    /// Returns the form that is written to the cluster.
    pub fn recorded_hash(&self) -> Option<SpecHash> {
        self.keys.recorded_hash(|ring| ring.content_hash(ring.id(), &self.hash.digest), self.hash)
    }

    /// Compares a recorded digest with this set.
    pub fn matches(&self, recorded: &SpecHash) -> HashMatch {
        let is_same = match (recorded.form, &self.keys) {
            (CanonicalForm::V1, _) => self.hash == *recorded,
            (CanonicalForm::Keyed(_), HashKeys::NotNeeded) => false,
            (CanonicalForm::Keyed(_), HashKeys::Missing) => return HashMatch::KeyLost,
            (CanonicalForm::Keyed(key), HashKeys::Available { ring, .. }) => {
                match ring.content_hash(KeyId::from_bytes(key), &self.hash.digest) {
                    Some(digest) => digest == recorded.digest,
                    None => return HashMatch::KeyLost,
                }
            }
        };
        if is_same { HashMatch::Same } else { HashMatch::Other }
    }
}

/// For a digest that covers no value of a Secret.
impl From<SpecHash> for SetDigest {
    fn from(hash: SpecHash) -> Self {
        Self { hash, keys: HashKeys::NotNeeded }
    }
}

impl HashKeys {
    fn recorded_hash(
        &self,
        keyed: impl FnOnce(&KeyRing) -> Option<[u8; 32]>,
        plain: SpecHash,
    ) -> Option<SpecHash> {
        match self {
            Self::NotNeeded => Some(plain),
            Self::Missing => None,
            Self::Available { ring, .. } => {
                Some(SpecHash { form: CanonicalForm::Keyed(ring.id().bytes()), digest: keyed(ring)? })
            }
        }
    }
}

impl DesiredObject {
    /// Returns the hash as it is recorded. None if it needs a key and there is none.
    pub fn recorded_hash(&self) -> Option<SpecHash> {
        self.hash_keys.recorded_hash(|ring| self.keyed(ring, ring.id()), self.hash)
    }

    /// True if `recorded` is the hash of this object, in either form.
    pub fn is_recorded_as(&self, recorded: &SpecHash) -> bool {
        match (recorded.form, &self.hash_keys) {
            (CanonicalForm::V1, _) => self.hash == *recorded,
            (CanonicalForm::Keyed(_), HashKeys::NotNeeded | HashKeys::Missing) => false,
            (CanonicalForm::Keyed(key), HashKeys::Available { ring, trusts_lost }) => {
                match self.keyed(ring, KeyId::from_bytes(key)) {
                    Some(digest) => digest == recorded.digest,
                    None => *trusts_lost && self.is_same_hook(recorded),
                }
            }
        }
    }

    /// True if `recorded` is of a run of this hook, for this or another set.
    pub fn is_same_hook(&self, recorded: &SpecHash) -> bool {
        let own = match (recorded.form, &self.hash_keys) {
            (CanonicalForm::Keyed(_), HashKeys::NotNeeded | HashKeys::Missing) if self.contains_secret => {
                None
            }
            (CanonicalForm::Keyed(key), HashKeys::Available { ring, .. }) if self.contains_secret => {
                self.keyed(ring, KeyId::from_bytes(key))
            }
            // The hook's own half is recorded without a key if the hook itself contains no value of
            // a Secret.
            (CanonicalForm::V1 | CanonicalForm::Keyed(_), _) => Some(self.hash.digest),
        };
        self.annotations.hook.is_some() && own.is_some_and(|own| own[..HALF] == recorded.digest[..HALF])
    }

    /// Returns the hash under one key. The halves of a hook's hash stay separate: the hook itself,
    /// and its set.
    fn keyed(&self, ring: &KeyRing, key: KeyId) -> Option<[u8; 32]> {
        let plain = &self.hash.digest;
        if self.annotations.hook.is_none() {
            return ring.content_hash(key, plain);
        }
        let mut halves = *plain;
        if self.contains_secret {
            halves[..HALF].copy_from_slice(&ring.content_hash(key, &plain[..HALF])?[..HALF]);
        }
        halves[HALF..].copy_from_slice(&ring.content_hash(key, &plain[HALF..])?[..HALF]);
        Some(halves)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::desired::{DesiredSet, Scopes, build_desired_set};
    use moorline_core::tree::FileTree;
    use moorline_render::{RenderOptions, Rendered, render};

    /// A Secret, a ConfigMap, and a Job that is a hook.
    fn set(password: &str) -> DesiredSet {
        let hook = json!({"helm.sh/hook": "pre-upgrade"});
        let all: [Value; 3] = [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"p": password}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}),
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "up", "annotations": hook}}),
        ];
        let files: Vec<_> =
            all.iter().enumerate().map(|(at, it)| (format!("{at}.json"), it.to_string())).collect();
        let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            panic!("it is sound")
        };
        build_desired_set(complete, "shop", &Scopes::builtin()).unwrap()
    }

    fn ring(current: u8, former: &[u8]) -> Arc<KeyRing> {
        Arc::new(KeyRing::new([current; 32], former.iter().map(|key| [*key; 32])))
    }

    fn recorded(set: &DesiredSet, kind: &str) -> SpecHash {
        object(set, kind).recorded_hash().unwrap()
    }

    fn object<'a>(set: &'a DesiredSet, kind: &str) -> &'a DesiredObject {
        set.objects().iter().find(|object| object.id.kind() == kind).unwrap()
    }

    #[test]
    fn only_hashes_that_values_of_secrets_went_into_need_a_key() {
        let bare = set("a");
        assert!(object(&bare, "Secret").recorded_hash().is_none(), "it is not written without a key");
        assert!(object(&bare, "Job").recorded_hash().is_none() && bare.digest().recorded_hash().is_none());
        assert!(recorded(&bare, "ConfigMap").to_string().starts_with("v1:"));
        let keyed = bare.with_keys(&ring(7, &[]), false);
        for hash in
            [recorded(&keyed, "Secret"), recorded(&keyed, "Job"), keyed.digest().recorded_hash().unwrap()]
        {
            let text = hash.to_string();
            assert!(text.starts_with("k1:"), "{text}");
            assert_ne!(hash.digest, object(&keyed, "Secret").hash.digest);
        }
        assert!(recorded(&keyed, "ConfigMap").to_string().starts_with("v1:"));
        let other = set("a").with_keys(&ring(8, &[]), false);
        assert_ne!(
            recorded(&keyed, "Secret").digest,
            recorded(&other, "Secret").digest,
            "guessing needs the key"
        );
    }

    #[test]
    fn neither_the_first_key_nor_another_one_is_a_change() {
        let plain = set("a");
        let (first, rotated) =
            (plain.with_keys(&ring(7, &[]), false), set("a").with_keys(&ring(8, &[7]), false));
        let changed = set("b").with_keys(&ring(8, &[7]), false);
        for kind in ["Secret", "Job"] {
            assert!(
                object(&first, kind).is_recorded_as(&object(&plain, kind).hash),
                "{kind}, of before the upgrade"
            );
            assert!(
                object(&rotated, kind).is_recorded_as(&recorded(&first, kind)),
                "{kind}, of before the rotation"
            );
            assert!(!object(&changed, kind).is_recorded_as(&recorded(&first, kind)), "{kind}");
        }
        let digest = first.digest().recorded_hash().unwrap();
        assert_eq!(rotated.digest().matches(&digest), HashMatch::Same);
        assert_eq!(changed.digest().matches(&digest), HashMatch::Other);
    }

    #[test]
    fn with_a_lost_key_hooks_have_run_for_the_commit_that_was_recorded_last() {
        let before = set("a").with_keys(&ring(7, &[]), false);
        let (job, secret) = (recorded(&before, "Job"), recorded(&before, "Secret"));
        let check = |trusts, expect| {
            let after = set("a").with_keys(&ring(8, &[]), trusts);
            assert_eq!(object(&after, "Job").is_recorded_as(&job), expect);
            assert!(object(&after, "Job").is_same_hook(&job));
            assert!(!object(&after, "Secret").is_recorded_as(&secret), "it is applied once more");
            assert_eq!(after.digest().matches(&before.digest().recorded_hash().unwrap()), HashMatch::KeyLost);
        };
        check(true, true);
        check(false, false);
    }
}
