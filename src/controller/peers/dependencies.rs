//! Dependencies between Syncs: `spec.dependsOn`.
//!
//! In: the dependencies of each Sync, the commit that each has applied, and the time since which it
//! is healthy. Out: the reason why a Sync has to wait, if it has to; it is woken when that may have
//! changed. A waiting Sync continues to reconcile its current commit: only the next one waits.
//! Deletions run in the opposite order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::healthy_span::HealthySpan;
use crate::api::SyncName;
use crate::source::{Address, ObjectHash, Reference};
use crate::{clock, duration};

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
    /// Another Sync is ready, and has to stay healthy until this moment.
    Until(String, Instant),
    /// The Syncs wait for each other in a cycle, which only a person can resolve.
    Cycle(String),
}

#[derive(Debug, Default)]
struct DependencyEntry {
    /// The other Syncs, each with the time for which it has to be healthy.
    on: BTreeMap<SyncName, Duration>,
    applied: Option<AppliedCommit>,
    /// None unless all objects are known to be healthy.
    healthy: Option<HealthySpan>,
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
    pub(super) fn set_dependencies(&mut self, sync: &SyncName, on: &BTreeMap<SyncName, Duration>) {
        let all = &mut self.syncs;
        let Some(entry) = all.get_mut(sync).filter(|entry| entry.on != *on) else { return };
        entry.on.clone_from(on);
        // Any cycle may have appeared or disappeared.
        all.values().for_each(|entry| entry.again.notify_one());
    }

    /// Records the commit that a Sync has completely applied, none if it has not, and since when it
    /// is healthy.
    pub(super) fn set_applied(
        &mut self,
        sync: &SyncName,
        applied: Option<AppliedCommit>,
        healthy: Option<HealthySpan>,
    ) {
        let all = &mut self.syncs;
        let Some(entry) = all.get_mut(sync) else { return };
        let (is_other, has_changed) = (entry.applied != applied, entry.healthy != healthy);
        (entry.applied, entry.healthy) = (applied, healthy);
        if is_other {
            wake(all, sync);
        } else if has_changed {
            let waits = |entry: &&DependencyEntry| entry.on.get(sync).is_some_and(|time| !time.is_zero());
            all.values().filter(waits).for_each(|entry| entry.again.notify_one());
        }
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
        let unmet = |other: &SyncName| match all.get(other) {
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
        };
        let reason = entry.on.keys().find_map(unmet).map(WaitReason::For);
        // The times run side by side, and only once all the others are ready.
        reason.or_else(|| entry.on.iter().find_map(|(other, time)| health_wait(all, other, *time)))
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
        for entry in self.syncs.values().filter(|entry| entry.on.contains_key(sync)) {
            (stay, leave) = (stay || !entry.leaving, leave || entry.leaving);
        }
        (stay, leave)
    }
}

/// Wakes the Syncs that depend on a Sync.
fn wake(all: &HashMap<SyncName, DependencyEntry>, sync: &SyncName) {
    all.values().filter(|entry| entry.on.contains_key(sync)).for_each(|entry| entry.again.notify_one());
}

/// Returns the reason why a dependency was not healthy for long enough.
fn health_wait(
    all: &HashMap<SyncName, DependencyEntry>,
    other: &SyncName,
    time: Duration,
) -> Option<WaitReason> {
    if time.is_zero() {
        return None;
    }
    let text = duration::format(time);
    match all.get(other).and_then(|entry| entry.healthy.as_ref()) {
        None => Some(WaitReason::For(format!(
            "it waits until the Sync {other} is healthy; it has to stay healthy for {text} then"
        ))),
        Some(healthy) => (healthy.end(time) > clock::now()).then(|| {
            let until = healthy.end_text(time);
            let message = format!("it waits until {until}: the Sync {other} has to be healthy for {text}");
            WaitReason::Until(message, healthy.end(time))
        }),
    }
}

/// Returns the path from a Sync back to itself, if there is one.
fn cycle(all: &HashMap<SyncName, DependencyEntry>, sync: &SyncName) -> Option<Vec<SyncName>> {
    let (mut ways, mut seen) = (vec![vec![sync.clone()]], BTreeSet::new());
    while let Some(way) = ways.pop() {
        let on = way.last().and_then(|last| all.get(last)).map(|entry| entry.on.clone()).unwrap_or_default();
        for other in on.into_keys() {
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
        all.set_dependencies(&name("b"), &on(&["a"]));
        all
    }

    fn on(names: &[&str]) -> BTreeMap<SyncName, Duration> {
        names.iter().map(|one| (name(one), Duration::ZERO)).collect()
    }

    fn why(all: &Peers, sync: &str, next: &AppliedCommit) -> String {
        match all.waiting_reason(&name(sync), next) {
            Some(WaitReason::For(why) | WaitReason::Until(why, _)) => why,
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
        all.set_applied(&name("a"), Some(at("y", "1")), None);
        assert!(woken.notified().now_or_never().is_some());
        assert_eq!(why(&all, "b", &next), "", "another repository has other commits");
        all.set_applied(&name("a"), Some(at("x", "1")), None);
        assert!(why(&all, "b", &next).contains("has applied 2222"));
        all.set_applied(&name("a"), Some(next.clone()), None);
        assert_eq!(why(&all, "b", &next), "");
        assert_eq!(why(&all, "a", &next), "", "it depends on nobody");
        all.remove(&name("a"));
        assert!(why(&all, "b", &next).contains("which does not exist"));
    }

    #[test]
    fn a_cycle_is_named() {
        let (all, next) = (pair(), at("x", "1"));
        ["a", "c"].iter().for_each(|one| all.add(&name(one)));
        all.set_dependencies(&name("a"), &on(&["c"]));
        all.set_dependencies(&name("c"), &on(&["b", "d"]));
        let expect = "cycle: it waits for itself: ops/b -> ops/a -> ops/c -> ops/b; remove one of them from spec.dependsOn";
        assert_eq!(why(&all, "b", &next), expect);
        all.add(&name("e"));
        all.set_dependencies(&name("e"), &on(&["b"]));
        assert!(why(&all, "e", &next).contains("ops/b"), "it is in no cycle itself");
        all.set_dependencies(&name("c"), &BTreeMap::new());
        assert!(!why(&all, "b", &next).contains("cycle"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dependency_has_to_stay_healthy_for_the_whole_time() {
        let (all, next) = (pair(), at("x", "2"));
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        all.set_dependencies(&name("b"), &[(name("a"), 10 * minute)].into());
        all.add(&name("c"));
        all.set_dependencies(&name("c"), &on(&["a"]));
        all.add(&name("a"));
        let (woken, other) = (all.dependency_notify(&name("b")), all.dependency_notify(&name("c")));
        let is_woken = |notify: &Notify| notify.notified().now_or_never().is_some();
        let reason = || all.waiting_reason(&name("b"), &next);
        // The commit comes first: health with an older one is no evidence.
        let span = |wall| HealthySpan::begin(clock::now(), wall);
        all.set_applied(&name("a"), Some(at("x", "1")), Some(span(hour)));
        assert!(why(&all, "b", &next).contains("has applied 2222"));
        all.set_applied(&name("a"), Some(next.clone()), None);
        assert!(is_woken(&woken) && is_woken(&other));
        let told = "it waits until the Sync ops/a is healthy; it has to stay healthy for 10m then";
        assert_eq!(reason(), Some(WaitReason::For(told.to_owned())));
        all.set_applied(&name("a"), Some(next.clone()), Some(span(hour)));
        assert!(is_woken(&woken) && !is_woken(&other), "only who waits for the time is woken");
        let told = "it waits until 1970-01-01T01:10:00Z: the Sync ops/a has to be healthy for 10m";
        let end = clock::now() + 10 * minute;
        assert_eq!(reason(), Some(WaitReason::Until(told.to_owned(), end)));
        tokio::time::advance(9 * minute).await;
        assert_eq!(reason(), Some(WaitReason::Until(told.to_owned(), end)), "the text stays the same");
        // An interruption starts it again.
        all.set_applied(&name("a"), Some(next.clone()), Some(span(hour + 9 * minute)));
        tokio::time::advance(9 * minute).await;
        assert!(why(&all, "b", &next).contains("1970-01-01T01:19:00Z"));
        tokio::time::advance(minute).await;
        assert_eq!(reason(), None);
        assert_eq!(why(&all, "c", &next), "", "the other one needs no time");
        // A time before the start of the daemon counts.
        let resumed = HealthySpan::resume(clock::now(), hour, hour - 4 * minute);
        all.set_applied(&name("a"), Some(next.clone()), Some(resumed));
        tokio::time::advance(6 * minute - Duration::from_millis(1)).await;
        assert!(why(&all, "b", &next).contains("1970-01-01T01:06:00Z"));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(reason(), None);
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
