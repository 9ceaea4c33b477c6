//! Dependencies between Syncs: `spec.dependsOn`.
//!
//! In: the dependencies of each Sync, and the commit that each has applied. Out: the reason why a
//! Sync has to wait, if it has to; it is woken when that may have changed. A waiting Sync continues
//! to reconcile its current commit: only the next one waits. Deletions run in the opposite order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::Notify;

use crate::api::SyncName;
use crate::source::{Address, ObjectHash, Reference};

/// Source of a Sync, and the commit of it that is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedCommit {
    pub(crate) address: Address,
    pub(crate) reference: Reference,
    pub(crate) commit: ObjectHash,
}

/// Reason why a Sync waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// Another Sync is not ready.
    For(String),
    /// The Syncs wait for each other in a cycle, which only a person can resolve.
    Cycle(String),
}

#[derive(Debug, Default)]
struct DependencyEntry {
    on: BTreeSet<SyncName>,
    applied: Option<AppliedCommit>,
    leaving: bool,
    /// Notified when a dependency may be fulfilled.
    again: Arc<Notify>,
}

/// All Syncs that this daemon knows.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    syncs: HashMap<SyncName, DependencyEntry>,
    /// Notified when a Sync is gone or begins its deletion.
    pub(super) parting: Arc<Notify>,
}

impl Dependencies {
    /// Adds a Sync.
    pub(super) fn add(&mut self, sync: &SyncName) {
        let all = &mut self.syncs;
        if !all.contains_key(sync) {
            all.insert(sync.clone(), DependencyEntry::default());
            wake(all, sync);
        }
    }

    /// Removes a Sync.
    pub(super) fn remove(&mut self, sync: &SyncName) {
        let all = &mut self.syncs;
        all.remove(sync);
        wake(all, sync);
        self.parting.notify_waiters();
    }

    /// Returns the notify that wakes a waiting Sync.
    pub(super) fn dependency_notify(&self, sync: &SyncName) -> Arc<Notify> {
        self.syncs.get(sync).map(|entry| entry.again.clone()).unwrap_or_default()
    }

    /// Sets the dependencies of a Sync.
    pub(super) fn set_dependencies(&mut self, sync: &SyncName, on: &BTreeSet<SyncName>) {
        let all = &mut self.syncs;
        let Some(entry) = all.get_mut(sync).filter(|entry| entry.on != *on) else { return };
        entry.on.clone_from(on);
        // Any cycle may have appeared or disappeared.
        all.values().for_each(|entry| entry.again.notify_one());
    }

    /// Records the commit that a Sync has completely applied; none if it has not.
    pub(super) fn set_applied(&mut self, sync: &SyncName, applied: Option<AppliedCommit>) {
        let all = &mut self.syncs;
        let Some(entry) = all.get_mut(sync).filter(|entry| entry.applied != applied) else { return };
        entry.applied = applied;
        wake(all, sync);
    }

    /// Returns the reason why a Sync does not accept a commit yet.
    pub(super) fn waiting_reason(&self, sync: &SyncName, next: &AppliedCommit) -> Option<WaitReason> {
        let all = &self.syncs;
        let entry = all.get(sync).filter(|entry| !entry.on.is_empty())?;
        if let Some(cycle) = cycle(all, sync) {
            let names: Vec<String> = cycle.iter().map(ToString::to_string).collect();
            return Some(WaitReason::Cycle(format!(
                "it waits for itself: {}; remove one of them from spec.dependsOn",
                names.join(" -> ")
            )));
        }
        let unmet = entry.on.iter().find_map(|other| match all.get(other) {
            None => Some(format!(
                "it waits for the Sync {other}, which does not exist, or is served by another daemon"
            )),
            Some(DependencyEntry { applied: None, .. }) => {
                Some(format!("it waits for the Sync {other}, whose newest commit is not applied yet"))
            }
            Some(DependencyEntry { applied: Some(applied), .. }) => {
                let same_source = (&applied.address, &applied.reference) == (&next.address, &next.reference);
                let behind = same_source && applied.commit != next.commit;
                behind.then(|| format!("it waits until the Sync {other} has applied {} as well", next.commit))
            }
        });
        unmet.map(WaitReason::For)
    }

    /// Records that a Sync begins its deletion.
    pub(super) fn begin_departure(&mut self, sync: &SyncName) {
        if let Some(entry) = self.syncs.get_mut(sync) {
            entry.leaving = true;
        }
        self.parting.notify_waiters();
    }

    /// Records that the deletion of a Sync waits for a person, so that no Sync waits for its end.
    pub(super) fn cancel_departure(&mut self, sync: &SyncName) {
        if let Some(entry) = self.syncs.get_mut(sync) {
            entry.leaving = false;
        }
        self.parting.notify_waiters();
    }

    /// Returns whether some Syncs that depend on this one stay, and whether some are being deleted.
    pub(super) fn dependents(&self, sync: &SyncName) -> (bool, bool) {
        let (mut stay, mut leave) = (false, false);
        for entry in self.syncs.values().filter(|entry| entry.on.contains(sync)) {
            (stay, leave) = (stay || !entry.leaving, leave || entry.leaving);
        }
        (stay, leave)
    }
}

/// Wakes the Syncs that depend on a Sync.
fn wake(all: &HashMap<SyncName, DependencyEntry>, sync: &SyncName) {
    all.values().filter(|entry| entry.on.contains(sync)).for_each(|entry| entry.again.notify_one());
}

/// Returns the path from a Sync back to itself, if there is one.
fn cycle(all: &HashMap<SyncName, DependencyEntry>, sync: &SyncName) -> Option<Vec<SyncName>> {
    let (mut ways, mut seen) = (vec![vec![sync.clone()]], BTreeSet::new());
    while let Some(way) = ways.pop() {
        let on = way.last().and_then(|last| all.get(last)).map(|entry| entry.on.clone()).unwrap_or_default();
        for other in on {
            let mut longer = way.clone();
            longer.push(other.clone());
            if other == *sync {
                return Some(longer);
            }
            if seen.insert(other) {
                ways.push(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::super::Peers;
    use super::*;

    fn name(name: &str) -> SyncName {
        SyncName::new("ops", name)
    }

    fn at(repository: &str, digit: &str) -> AppliedCommit {
        let address = Address::remote(&format!("https://host/{repository}")).unwrap();
        let commit = ObjectHash::parse(&digit.repeat(40)).unwrap();
        AppliedCommit { address, reference: Reference::Head, commit }
    }

    /// Returns two Syncs, of which `b` depends on `a`.
    fn pair() -> Peers {
        let all = Peers::default();
        all.add(&name("b"));
        all.set_dependencies(&name("b"), &[name("a")].into());
        all
    }

    fn why(all: &Peers, sync: &str, next: &AppliedCommit) -> String {
        match all.waiting_reason(&name(sync), next) {
            Some(WaitReason::For(why)) => why,
            Some(WaitReason::Cycle(why)) => format!("cycle: {why}"),
            None => String::new(),
        }
    }

    #[test]
    fn it_waits_for_one_that_is_there_and_has_applied_as_much() {
        let (all, next) = (pair(), at("x", "2"));
        assert!(why(&all, "b", &next).contains("which does not exist"));
        let woken = all.dependency_notify(&name("b"));
        all.add(&name("a"));
        assert!(woken.notified().now_or_never().is_some());
        assert!(why(&all, "b", &next).contains("is not applied yet"));
        all.set_applied(&name("a"), Some(at("y", "1")));
        assert!(woken.notified().now_or_never().is_some());
        assert_eq!(why(&all, "b", &next), "", "another repository has other commits");
        all.set_applied(&name("a"), Some(at("x", "1")));
        assert!(why(&all, "b", &next).contains("has applied 2222"));
        all.set_applied(&name("a"), Some(next.clone()));
        assert_eq!(why(&all, "b", &next), "");
        assert_eq!(why(&all, "a", &next), "", "it depends on nobody");
        all.remove(&name("a"));
        assert!(why(&all, "b", &next).contains("which does not exist"));
    }

    #[test]
    fn a_cycle_is_named() {
        let (all, next) = (pair(), at("x", "1"));
        ["a", "c"].iter().for_each(|one| all.add(&name(one)));
        all.set_dependencies(&name("a"), &[name("c")].into());
        all.set_dependencies(&name("c"), &[name("b"), name("d")].into());
        let expect = "cycle: it waits for itself: ops/b -> ops/a -> ops/c -> ops/b; remove one of them from spec.dependsOn";
        assert_eq!(why(&all, "b", &next), expect);
        all.add(&name("e"));
        all.set_dependencies(&name("e"), &[name("b")].into());
        assert!(why(&all, "e", &next).contains("ops/b"), "it is in no cycle itself");
        all.set_dependencies(&name("c"), &BTreeSet::new());
        assert!(!why(&all, "b", &next).contains("cycle"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_others_depend_on_goes_last() {
        let all = pair();
        all.add(&name("a"));
        let second = std::time::Duration::from_secs(1);
        all.wait_for_dependents(&name("b"), second).await;
        all.wait_for_dependents(&name("a"), std::time::Duration::ZERO).await;
        all.begin_departure(&name("b"));
        let first = name("a");
        let mut waiting = std::pin::pin!(all.wait_for_dependents(&first, second));
        assert!(waiting.as_mut().now_or_never().is_none());
        all.remove(&name("b"));
        waiting.await;
    }
}
