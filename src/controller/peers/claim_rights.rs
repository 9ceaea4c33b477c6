//! Caches if a Sync may patch an object; a claim on an object counts only with that right.
//!
//! In: a Sync, the cluster with its identity, and an object.
//! Out: the right to patch that object.
//!
//! Answers are cached for a minute, for a whole kind in a namespace if all of its objects have the
//! same answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Peers;
use super::claim_evidence::PatchRight;
use crate::api::SyncName;
use crate::clock;
use crate::cluster::{Cluster, jitter};
use crate::object::{GroupKind, ObjectId};

/// Time for which an answer is valid.
const FRESH: Duration = Duration::from_secs(60);

/// Time for which a missing answer is valid.
const SILENT: Duration = Duration::from_secs(10);

/// Attempts before the answer is unknown, and the pause between them.
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_millis(300);

/// Most objects of one kind and namespace that are reviewed by name within a minute.
const MAX_NAMED: usize = 32;

/// Number of cached answers above which expired ones are removed.
const MANY: usize = 4096;

/// Cache key: a Sync, and a kind in a namespace.
type ReviewKey = (SyncName, GroupKind, Box<str>);

/// Answers about one kind in one namespace.
#[derive(Debug)]
struct ReviewAnswers {
    /// Answer for all objects of the kind.
    all: (PatchRight, Instant),
    /// Answers for single objects, needed if not all of them may be patched.
    named: HashMap<Box<str>, PatchRight>,
}

/// Cache of all answers.
#[derive(Debug, Default)]
pub(super) struct ClaimRights(HashMap<ReviewKey, ReviewAnswers>);

fn place(sync: &SyncName, id: &ObjectId) -> ReviewKey {
    (sync.clone(), id.group_kind(), id.namespace().unwrap_or_default().into())
}

impl ReviewAnswers {
    fn is_fresh(&self, now: Instant) -> bool {
        let (right, at) = self.all;
        let counts = if right == PatchRight::Unknown { SILENT } else { FRESH };
        now.saturating_duration_since(at) < counts
    }
}

impl ClaimRights {
    /// Returns the cached answer, if one is valid.
    pub(super) fn known(&self, sync: &SyncName, id: &ObjectId) -> Option<PatchRight> {
        let answers = self.0.get(&place(sync, id)).filter(|answers| answers.is_fresh(clock::now()))?;
        match answers.all.0 {
            // A Sync that may patch none of so many objects may patch no other one, except in its
            // own namespace. Otherwise it could delay the deletion of other Syncs' objects by
            // naming many of them.
            PatchRight::No if answers.named.len() >= MAX_NAMED && !answers.named.contains_key(id.name()) => {
                let is_at_home = id.namespace() == Some(&*sync.namespace);
                let may_none = answers.named.values().all(|right| *right == PatchRight::No);
                Some(if may_none && !is_at_home { PatchRight::No } else { PatchRight::Unknown })
            }
            PatchRight::No => answers.named.get(id.name()).copied(),
            right => Some(right),
        }
    }

    /// Returns the cached answer for all objects of the kind, if one is valid.
    fn known_for_kind(&self, key: &ReviewKey) -> Option<PatchRight> {
        let fresh = self.0.get(key).filter(|answers| answers.is_fresh(clock::now()));
        fresh.map(|answers| answers.all.0)
    }

    /// Caches an answer for all objects of the kind.
    fn set_for_kind(&mut self, key: ReviewKey, right: PatchRight) {
        if self.0.len() > MANY {
            self.0.retain(|_, answers| answers.is_fresh(clock::now()));
        }
        self.0.insert(key, ReviewAnswers { all: (right, clock::now()), named: HashMap::new() });
    }

    /// Caches an answer for one object.
    fn set_named(&mut self, key: &ReviewKey, name: &str, right: PatchRight) {
        if let Some(answers) = self.0.get_mut(key) {
            answers.named.insert(name.into(), right);
        }
    }

    /// Removes the answers of a Sync that is gone or has changed its ServiceAccount.
    pub(super) fn forget(&mut self, sync: &SyncName) {
        self.0.retain(|(name, ..), _| name != sync);
    }
}

/// Queries the API server and caches the answer. The lock is not held while it is queried.
pub(super) async fn ask(peers: &Peers, sync: &SyncName, cluster: &Cluster, id: &ObjectId) {
    let key = place(sync, id);
    let known = peers.lock().claim_rights.known_for_kind(&key);
    let right = match known {
        Some(right) => right,
        None => {
            let right = answer(cluster, id, None).await;
            peers.lock().claim_rights.set_for_kind(key.clone(), right);
            right
        }
    };
    if right == PatchRight::No {
        let named = answer(cluster, id, Some(id.name())).await;
        peers.lock().claim_rights.set_named(&key, id.name(), named);
    }
}

async fn answer(cluster: &Cluster, id: &ObjectId, name: Option<&str>) -> PatchRight {
    for attempt in 0..ATTEMPTS {
        match cluster.access_reviews().may_patch(id, name).await {
            Ok(true) => return PatchRight::Yes,
            Ok(false) => return PatchRight::No,
            Err(failure) => {
                tracing::debug!(object = %id, %failure, attempt, "could not check the permission to patch the object");
                tokio::time::sleep(jitter(PAUSE)).await;
            }
        }
    }
    PatchRight::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_may_patch_none_of_many_holds_no_other_one_elsewhere() {
        let (sync, mut rights) = (SyncName::new("tenant", "shop"), ClaimRights::default());
        let id = |namespace: &str| ObjectId::new("", "ConfigMap", namespace, "one-more").unwrap();
        let mut keep = |namespace: &str, last: PatchRight| {
            let mut named: HashMap<Box<str>, PatchRight> =
                (0..MAX_NAMED).map(|at| (format!("a-{at}").into(), PatchRight::No)).collect();
            named.insert("a-0".into(), last);
            let answers = ReviewAnswers { all: (PatchRight::No, clock::now()), named };
            rights.0.insert(place(&sync, &id(namespace)), answers);
            rights.known(&sync, &id(namespace))
        };
        assert_eq!(keep("team", PatchRight::No), Some(PatchRight::No));
        assert_eq!(keep("team", PatchRight::Yes), Some(PatchRight::Unknown), "it may patch some of them");
        assert_eq!(keep("tenant", PatchRight::No), Some(PatchRight::Unknown), "its own namespace");
    }

    #[test]
    fn an_answer_counts_for_a_minute_and_the_want_of_one_for_less() {
        let counts = |right, after| {
            let at = clock::now();
            ReviewAnswers { all: (right, at), named: HashMap::new() }
                .is_fresh(at + Duration::from_secs(after))
        };
        for right in [PatchRight::Yes, PatchRight::No] {
            assert_eq!([59, 60].map(|after| counts(right, after)), [true, false]);
        }
        assert_eq!([9, 10].map(|after| counts(PatchRight::Unknown, after)), [true, false]);
    }
}
