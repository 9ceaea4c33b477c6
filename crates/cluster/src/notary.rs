//! Creates and checks ownership proofs for the objects of this daemon's Syncs.
//!
//! In: the keys of the daemon, and the uid of each Sync.
//! Out: the proof for an object, and true if that of a live object is valid. A tool without keys
//! checks nothing and treats every object as proven; a daemon that lacks its keys treats none as
//! proven.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ring::rand::{SecureRandom as _, SystemRandom};

use moorline_api::SyncName;
use moorline_core::object::ObjectId;
use moorline_engine::observed::{Observed, Ownership};
use moorline_engine::proof::{KEY_BYTES, KeyRing, Proof};

/// Keys of a daemon and uids of its Syncs; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Notary(Arc<RwLock<NotaryState>>);

#[derive(Debug, Default)]
struct NotaryState {
    keys: Keys,
    /// Number of changes of the keys.
    turn: u64,
    uids: HashMap<SyncName, Arc<str>>,
    /// The Secret with the keys.
    place: Option<ObjectId>,
}

#[derive(Debug, Default)]
enum Keys {
    /// This program only reads; the daemon checks the proofs.
    #[default]
    Unchecked,
    /// The daemon has no key. Hashes that need one use a temporary key of this process.
    Missing(Option<Arc<KeyRing>>),
    Held(Arc<KeyRing>),
}

/// The keys and the uid that proofs were checked with; a result is valid while they are unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProofBasis {
    turn: u64,
    uid: Option<Arc<str>>,
}

impl Notary {
    fn read(&self) -> RwLockReadGuard<'_, NotaryState> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, NotaryState> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the keys that proofs are written and checked with; without keys, no object is proven.
    pub fn set_keys(&self, keys: Option<KeyRing>) {
        let mut state = self.write();
        state.turn += 1;
        state.keys = keys.map_or_else(|| Keys::Missing(passing()), |keys| Keys::Held(Arc::new(keys)));
    }

    /// Sets the Secret with the keys.
    pub fn set_key_secret(&self, namespace: &str, name: &str) {
        self.write().place = ObjectId::new("", "Secret", namespace, name).ok();
    }

    /// Returns the Secret with the keys, which no Sync may change, delete or read.
    pub fn key_secret(&self) -> Option<ObjectId> {
        self.read().place.clone()
    }

    /// True for the Secret with the keys.
    pub fn is_key_secret(&self, namespace: &str, name: &str) -> bool {
        let is_it = |place: &ObjectId| place.namespace() == Some(namespace) && place.name() == name;
        self.read().place.as_ref().is_some_and(is_it)
    }

    /// Returns the keys of this daemon.
    pub fn keys(&self) -> Option<Arc<KeyRing>> {
        match &self.read().keys {
            Keys::Held(keys) => Some(keys.clone()),
            Keys::Unchecked | Keys::Missing(_) => None,
        }
    }

    /// Returns the keys for hashes of content with values of Secrets.
    pub fn content_keys(&self) -> Option<Arc<KeyRing>> {
        match &self.read().keys {
            Keys::Held(keys) => Some(keys.clone()),
            Keys::Missing(passing) => passing.clone(),
            Keys::Unchecked => None,
        }
    }

    /// Records the uid of a Sync.
    pub fn set_uid(&self, sync: &SyncName, uid: &str) {
        let mut state = self.write();
        if state.uids.get(sync).is_none_or(|known| **known != *uid) {
            state.uids.insert(sync.clone(), uid.into());
        }
    }

    /// Returns the uid of a Sync.
    pub fn uid(&self, sync: &SyncName) -> Option<Arc<str>> {
        self.read().uids.get(sync).cloned()
    }

    /// Removes a deleted Sync.
    pub fn remove_uid(&self, sync: &SyncName) {
        self.write().uids.remove(sync);
    }

    /// Returns the proof for an object of a Sync.
    pub fn prove(&self, owner: &SyncName, id: &ObjectId) -> Option<Proof> {
        let state = self.read();
        match &state.keys {
            Keys::Held(keys) => Some(keys.prove(&owner.identity(id.as_str()), state.uids.get(owner)?)),
            Keys::Unchecked | Keys::Missing(_) => None,
        }
    }

    /// True if the proof is valid for this object of an existing Sync.
    pub fn is_valid(&self, owner: &SyncName, id: &ObjectId, proof: Option<&Proof>) -> bool {
        let state = self.read();
        match (&state.keys, proof) {
            (Keys::Unchecked, _) => true,
            (Keys::Held(keys), Some(proof)) => {
                let uid = state.uids.get(owner);
                uid.is_some_and(|uid| keys.is_valid(proof, &owner.identity(id.as_str()), uid))
            }
            (Keys::Missing(_), _) | (Keys::Held(_), None) => false,
        }
    }

    /// Records in `seen` if the proof of an object is valid for a Sync.
    pub fn check_proof(&self, owner: &SyncName, id: &ObjectId, seen: &mut Observed) {
        // Without checks, the other ownership marks are all that is known.
        let is_of_another =
            matches!(seen.ownership, Ownership::OtherSync(_)) && matches!(self.read().keys, Keys::Unchecked);
        seen.proven = !is_of_another && self.is_valid(owner, id, seen.proof.as_deref());
    }

    /// Returns the basis of checks for a Sync: the keys and its uid.
    pub(super) fn checked(&self, owner: &SyncName) -> ProofBasis {
        let state = self.read();
        ProofBasis { turn: state.turn, uid: state.uids.get(owner).cloned() }
    }
}

/// Returns a random key that is not stored.
fn passing() -> Option<Arc<KeyRing>> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut key).ok()?;
    Some(Arc::new(KeyRing::new(key, [])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_proven_by_the_key_for_a_sync_that_lives() {
        let (web, id) = (SyncName::new("ops", "web"), ObjectId::parse("/ConfigMap|shop/a").unwrap());
        let notary = Notary::default();
        assert!(notary.prove(&web, &id).is_none() && notary.is_valid(&web, &id, None), "nothing is checked");
        notary.set_keys(None);
        assert!(!notary.is_valid(&web, &id, None), "a daemon without a key believes nothing");
        notary.set_keys(Some(KeyRing::new([7; 32], [])));
        assert!(notary.prove(&web, &id).is_none(), "nobody knows the Sync");
        notary.set_uid(&web, "1");
        let before = notary.checked(&web);
        let proof = notary.prove(&web, &id);
        assert!(notary.is_valid(&web, &id, proof.as_ref()));
        notary.set_uid(&web, "2");
        assert!(!notary.is_valid(&web, &id, proof.as_ref()), "another Sync of that name");
        assert_ne!(notary.checked(&web), before);
    }
}
