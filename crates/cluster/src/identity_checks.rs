//! Writes that no other cluster can carry out, although nobody asked which one answers.
//!
//! In: checks of a cluster's identity, by number; and the uids that our own applies returned.
//! Out: proven uids, which [`Cluster::apply_named`] may name. Such an apply changes this very
//! object, or the server refuses it. A uid is proven by a check that began after our apply had
//! returned it: the apply itself might have reached another cluster.
//!
//! The home cluster is never checked, so nothing is proven there and no apply names a uid.

use std::collections::BTreeSet;

use super::{Cluster, WatchRequirements};
use crate::api_error::ApiError;
use moorline_api::SyncName;
use moorline_core::object::{GroupKind, ObjectId};
use moorline_engine::observed::{Observed, ObservedSet, Verification};

/// Numbers of the checks of one cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdentityChecks {
    /// The last one that has begun.
    pub(super) begun: u32,
    /// The newest one by which the cluster is the same as before.
    pub(super) good: u32,
}

impl IdentityChecks {
    /// True if a check has shown that the object with this uid is in the cluster.
    fn proves(self, seen: &Observed) -> bool {
        seen.written_after.is_some_and(|check| check < self.good) && !seen.uid.is_empty()
    }
}

/// Begins a check of a cluster's identity; returns its number.
pub fn begin_identity_check(cluster: &Cluster) -> u32 {
    cluster.0.store.checks(|checks| {
        checks.begun += 1;
        checks.begun
    })
}

/// Records that the cluster is the same as before, by the check of this number.
pub fn end_identity_check(cluster: &Cluster, number: u32) {
    cluster.0.store.checks(|checks| checks.good = checks.good.max(number));
}

/// Returns the uid of an object of a Sync, if it is proven.
pub fn proven_uid(cluster: &Cluster, owner: &SyncName, id: &ObjectId) -> Option<Box<str>> {
    let checks = cluster.0.store.checks(|checks| *checks);
    cluster.read_observed(owner, |set| Some(set.get(id).filter(|seen| checks.proves(seen))?.uid.clone()))
}

/// True if an object of the Sync with a proven uid, unchanged since its verification, is observed
/// in each of these places: all that is observed there is of the checked cluster. A list of
/// another one would not have the object.
pub fn is_observed_in(cluster: &Cluster, owner: &SyncName, need: &WatchRequirements) -> bool {
    let checks = cluster.0.store.checks(|checks| *checks);
    cluster.read_observed(owner, |set| has_proof_of_each(set, need, checks))
}

fn has_proof_of_each(set: &ObservedSet, need: &WatchRequirements, checks: IdentityChecks) -> bool {
    let mut found: BTreeSet<(GroupKind, Option<Box<str>>)> = BTreeSet::new();
    for (id, seen) in set.iter() {
        if checks.proves(seen) && seen.verification == Verification::Verified {
            found.insert((id.group_kind(), id.namespace().map(Box::from)));
        }
    }
    let is_found =
        |kind: &GroupKind, namespace: Option<&str>| found.contains(&(kind.clone(), namespace.map(Box::from)));
    let has_proof = |kind: &GroupKind| {
        is_found(kind, None)
            || !need.namespaces.is_empty() && need.namespaces.iter().all(|place| is_found(kind, Some(place)))
    };
    !need.kinds.is_empty() && need.kinds.iter().all(has_proof)
}

impl ApiError {
    /// True if an apply named a uid that the object does not have.
    pub fn is_of_other_uid(&self) -> bool {
        let Self::Refused(refusal) = self else { return false };
        match refusal.code {
            // There is an object with another uid.
            422 => refusal.causes.iter().any(|cause| &*cause.field == "metadata.uid"),
            // There is no object.
            409 => refusal.causes.is_empty() && refusal.message.contains("uid mismatch"),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_error::{ApiStatus, StatusCause};

    fn set(objects: &[(&str, Option<u32>, Verification)]) -> ObservedSet {
        let mut set = ObservedSet::default();
        for (id, written_after, verification) in objects {
            let (written_after, verification) = (*written_after, verification.clone());
            let seen = Observed { written_after, verification, ..Observed::new("u", "7") };
            set.insert(ObjectId::parse(id).unwrap(), seen);
        }
        set
    }

    fn need(kinds: &[&str], namespaces: &[&str]) -> WatchRequirements {
        WatchRequirements {
            kinds: kinds.iter().map(|kind| GroupKind::new("", kind)).collect(),
            namespaces: namespaces.iter().map(|it| Box::from(*it)).collect(),
        }
    }

    #[test]
    fn a_uid_is_proven_by_a_check_that_begins_after_the_apply() {
        let proves = |begun, good, written_after| {
            IdentityChecks { begun, good }.proves(&Observed { written_after, ..Observed::new("u", "1") })
        };
        assert!(proves(3, 3, Some(2)) && proves(9, 3, Some(2)));
        assert!(!proves(3, 2, Some(2)), "the check has not ended, or not well");
        assert!(!proves(2, 2, Some(2)), "the check may have ended before the apply");
        assert!(!proves(9, 9, None), "no apply of ours returned it");
        assert!(
            !IdentityChecks { begun: 9, good: 9 }
                .proves(&Observed { written_after: Some(1), ..Observed::new("", "1") })
        );
    }

    #[test]
    fn a_server_says_that_it_has_no_object_with_the_uid() {
        // As a kube-apiserver answers.
        let answer = |code, message: &str, fields: &[(&str, &str)]| {
            let cause = |(field, reason): &(&str, &str)| StatusCause {
                field: (*field).into(),
                reason: (*reason).into(),
                message: Box::default(),
            };
            ApiError::Refused(Box::new(ApiStatus {
                code,
                reason: Box::default(),
                message: message.into(),
                causes: fields.iter().map(cause).collect(),
                retry_after: None,
            }))
        };
        let absent = "Operation cannot be fulfilled on configmaps \"x\": uid mismatch: the provided object specified uid 1, and no existing object was found";
        assert!(answer(409, absent, &[]).is_of_other_uid());
        assert!(answer(422, "", &[("metadata.uid", "FieldValueInvalid")]).is_of_other_uid());
        assert!(!answer(409, absent, &[(".data.uid mismatch", "FieldManagerConflict")]).is_of_other_uid());
        assert!(!answer(409, "the object has been modified", &[]).is_of_other_uid());
        assert!(!answer(422, "", &[("spec.selector", "FieldValueInvalid")]).is_of_other_uid());
        assert!(!ApiError::NotLeader.is_of_other_uid());
    }

    #[test]
    fn each_kind_and_namespace_needs_a_proof() {
        use Verification::{Believed, Unverified, Verified};
        let checks = IdentityChecks { begun: 2, good: 2 };
        let one = set(&[("/ConfigMap|a/x", Some(1), Verified), ("/ConfigMap|b/x", Some(1), Verified)]);
        let has = |set: &ObservedSet, kinds: &[&str], places: &[&str]| {
            has_proof_of_each(set, &need(kinds, places), checks)
        };
        assert!(has(&one, &["ConfigMap"], &["a", "b"]) && has(&one, &["ConfigMap"], &["a"]));
        assert!(!has(&one, &["ConfigMap"], &["a", "c"]) && !has(&one, &["ConfigMap", "Secret"], &["a"]));
        assert!(!has(&one, &[], &["a"]) && !has(&one, &["ConfigMap"], &[]));
        for (written_after, standing) in
            [(Some(2), Verified), (None, Verified), (Some(1), Believed), (Some(1), Unverified)]
        {
            let other = set(&[("/ConfigMap|a/x", written_after, standing.clone())]);
            assert!(!has(&other, &["ConfigMap"], &["a"]), "{written_after:?} {standing:?}");
        }
        let mut whole = ObservedSet::default();
        let seen = Observed { written_after: Some(1), verification: Verified, ..Observed::new("u", "7") };
        whole.insert(ObjectId::new("", "Namespace", "", "a").unwrap(), seen);
        assert!(has(&whole, &["Namespace"], &[]) && has(&whole, &["Namespace"], &["a"]));
    }
}
