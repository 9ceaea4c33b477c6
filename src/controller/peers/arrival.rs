//! Decides when the Sync that receives moved objects has rendered its newest commit.
//!
//! In: the polls of Syncs, and the commits that they have rendered. Out: true once the named Sync
//! has polled its repository since a given time, and completely rendered the commit that it found.
//! Before that it is unknown which of the objects it claims. A poll is requested, and the waiting
//! Sync is woken at each change.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::sources::{Peer, PeerSource, PeerSources, PeerState, RenderedCommits, wake};
use crate::api::SyncName;
use crate::clock;
use crate::source::ObjectHash;

/// Pause between two requested polls of a receiving Sync. It equals the shortest allowed interval,
/// so that no Sync makes another team's Sync poll more often than that one could itself.
const PAUSE: Duration = Duration::from_secs(5);

/// The last poll of a Sync that found a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastPoll {
    /// Time at which the repository was polled.
    asked: Instant,
    found: ObjectHash,
}

/// State of the Sync that receives moved objects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has polled, and rendered the commit that it found.
    Come,
    /// It has not, or it does not exist. If the last requested poll is too recent, the next is at
    /// this time.
    Awaited(Option<Instant>),
}

impl Peer {
    /// Returns the rendered commits, if they are of its newest spec.
    fn at(&self) -> Option<RenderedCommits> {
        match &self.course {
            PeerState::Follows(PeerSource { at, .. }) => *at,
            PeerState::Unknown | PeerState::Rests => None,
        }
    }

    fn has_come(&self, since: Instant) -> bool {
        let rendered = self.at().filter(|_| !self.is_refused).zip(self.last_poll);
        rendered.is_some_and(|(at, last_poll)| last_poll.asked >= since && last_poll.found == at.newest)
    }
}

impl PeerSources {
    /// Records the poll of a Sync, its own or that of a peer: the commit that was found, and the
    /// time of the request.
    pub(super) fn on_polled(&mut self, sync: &SyncName, asked: Instant, found: ObjectHash) {
        self.mark(sync, |known| {
            // Only a Sync that moves objects to it waits for the poll, and it is woken once: each
            // wake requests a poll, so that further wakes would never end.
            let has_come = |known: &Peer| known.called.is_some_and(|called| known.has_come(called));
            let had_come = has_come(known);
            if known.last_poll.is_none_or(|last| last.asked <= asked) {
                known.last_poll = Some(LastPoll { asked, found });
            }
            !had_come && has_come(known)
        });
    }

    /// Returns the state of the Sync `to` since `own` has applied its commit, or since `begun`, and
    /// since the term of this daemon began.
    pub(super) fn arrival(
        &mut self,
        (own, to): (&SyncName, Option<&SyncName>),
        begun: Option<Instant>,
        term: Instant,
    ) -> Arrival {
        let (all, missing) = (&mut self.all, &mut self.missing);
        let came = all.get(own).and_then(|known| known.at().and(known.came));
        missing.remove(own);
        let (Some(since), Some(to)) = (begun.or(came), to) else { return Arrival::Awaited(None) };
        let since = since.max(term);
        let Some(other) = all.get_mut(to) else {
            missing.insert(own.clone(), to.clone());
            return Arrival::Awaited(None);
        };
        if other.has_come(since) {
            return Arrival::Come;
        }
        other.waiting.insert(own.clone());
        let now = clock::now();
        match other.called.filter(|called| *called >= since || now < *called + PAUSE) {
            Some(called) if called >= since => Arrival::Awaited(None),
            Some(called) => Arrival::Awaited(Some(called + PAUSE)),
            None => {
                other.called = Some(now);
                other.bell.called.notify_one();
                Arrival::Awaited(None)
            }
        }
    }

    /// Wakes the Syncs that wait for a Sync which did not exist.
    pub(super) fn comes_to_be(&mut self, sync: &SyncName) {
        let (all, missing) = (&self.all, &mut self.missing);
        let waiting: BTreeSet<SyncName> =
            missing.iter().filter(|(_, to)| *to == sync).map(|(own, _)| own.clone()).collect();
        missing.retain(|own, _| !waiting.contains(own));
        wake(all, &waiting);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::Notify;

    use super::super::Peers;
    use super::*;
    use crate::source::{Address, Reference};

    const SECOND: Duration = Duration::from_secs(1);

    fn sync(name: &str) -> SyncName {
        SyncName::new("ops", name)
    }

    fn commit(digit: &str) -> ObjectHash {
        ObjectHash::parse(&digit.repeat(40)).unwrap()
    }

    fn follows(all: &Peers, name: &str, repository: &str, suspended: bool) {
        let address = Address::remote(&format!("https://host/{repository}")).unwrap();
        all.set_source(&sync(name), &address, &Reference::Head, suspended);
    }

    fn rings(bell: &Notify) -> bool {
        bell.notified().now_or_never().is_some()
    }

    #[test]
    fn a_look_that_finds_nothing_new_wakes_nobody_who_only_waits_for_a_commit() {
        let all = Peers::default();
        for (name, digit) in [("a", "2"), ("b", "1")] {
            all.add(&sync(name));
            follows(&all, name, "one", false);
            all.set_rendered_commit(&sync(name), commit(digit));
        }
        let (own, other) = (all.wakeups(&sync("a")), all.wakeups(&sync("b")));
        assert_eq!(all.lagging_peers(&sync("a"), None, None).len(), 1);
        assert!(rings(&other.look), "it is asked to look");
        rings(&own.again);
        all.on_polled(&sync("b"), clock::now(), commit("1"));
        assert!(!rings(&own.again), "it would ask again at once, and for ever");
    }

    /// `old` has rendered a commit of one repository, and `new` one of another, which it has polled
    /// before.
    struct Move {
        all: Peers,
        term: Instant,
    }

    impl Move {
        async fn new() -> Self {
            let (all, term) = (Peers::default(), clock::now());
            for (name, repository, at) in [("new", "two", "2"), ("old", "one", "1")] {
                all.add(&sync(name));
                follows(&all, name, repository, false);
                if name == "new" {
                    all.on_polled(&sync(name), clock::now(), commit(at));
                }
                all.set_rendered_commit(&sync(name), commit(at));
                tokio::time::advance(SECOND).await;
            }
            Self { all, term }
        }

        fn arrival(&self, to: &str) -> Arrival {
            self.all.arrival((&sync("old"), Some(&sync(to))), None, self.term)
        }

        fn looks(&self, found: &str) {
            self.all.on_polled(&sync("new"), clock::now(), commit(found));
        }
    }

    const AWAITED: Arrival = Arrival::Awaited(None);

    #[tokio::test(start_paused = true)]
    async fn who_has_looked_before_is_asked_to_look_once_more_and_wakes_who_waits() {
        let it = Move::new().await;
        let (old, new) = (it.all.wakeups(&sync("old")), it.all.wakeups(&sync("new")));
        assert_eq!(it.arrival("new"), AWAITED);
        assert!(rings(&new.called) && !rings(&old.again));
        assert_eq!(it.arrival("new"), AWAITED);
        assert!(!rings(&new.called), "it was asked");
        tokio::time::advance(SECOND).await;
        it.looks("2");
        assert!(rings(&old.again), "nothing is new, so that it has rendered it");
        assert_eq!(it.arrival("new"), Arrival::Come);
        it.looks("2");
        assert!(!rings(&old.again), "nobody waits any more");
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_has_found_is_to_be_rendered_by_its_newest_spec() {
        let it = Move::new().await;
        let (old, new) = (it.all.wakeups(&sync("old")), sync("new"));
        assert_eq!(it.arrival("new"), AWAITED);
        it.looks("3");
        assert!(!rings(&old.again), "that says nothing yet");
        assert_eq!(it.arrival("new"), AWAITED);
        it.all.set_rendered_commit(&new, commit("3"));
        assert!(rings(&old.again));
        assert_eq!(it.arrival("new"), Arrival::Come);
        // It has another spec, which cannot be applied, or not yet.
        it.all.set_request(&new, 1);
        assert_eq!(it.arrival("new"), AWAITED);
        it.all.set_rendered(&new, 1, commit("3"), commit("3"));
        assert_eq!(it.arrival("new"), Arrival::Come);
        it.all.set_refused(&new, true);
        assert_eq!(it.arrival("new"), AWAITED);
        it.all.set_refused(&new, false);
        assert_eq!(it.arrival("new"), Arrival::Come);
        // It has rolled back the newest commit, and applies the one before.
        it.looks("4");
        it.all.set_rendered(&new, 1, commit("3"), commit("4"));
        assert_eq!(it.arrival("new"), Arrival::Come);
        // Its newest commit waits for something else, and the one before stays applied meanwhile.
        it.looks("5");
        it.all.set_rendered(&new, 1, commit("4"), commit("4"));
        assert_eq!(it.arrival("new"), AWAITED);
    }

    #[tokio::test(start_paused = true)]
    async fn what_leaves_later_asks_for_another_look_but_not_too_often() {
        let it = Move::new().await;
        let new = it.all.wakeups(&sync("new"));
        assert_eq!(it.arrival("new"), AWAITED);
        it.looks("2");
        assert!(rings(&new.called));
        tokio::time::advance(SECOND).await;
        it.all.set_rendered_commit(&sync("old"), commit("7"));
        assert_eq!(it.arrival("new"), Arrival::Awaited(Some(clock::now() + PAUSE - SECOND)));
        assert!(!rings(&new.called));
        tokio::time::advance(PAUSE - SECOND).await;
        assert_eq!(it.arrival("new"), AWAITED);
        assert!(rings(&new.called));
        it.looks("2");
        assert_eq!(it.arrival("new"), Arrival::Come);
        // So does the end of a term, in which another daemon may have changed its claims, and a
        // deletion.
        let later = clock::now() + SECOND;
        let soon = Arrival::Awaited(Some(clock::now() + PAUSE));
        assert_eq!(it.all.arrival((&sync("old"), Some(&sync("new"))), None, later), soon);
        assert_eq!(it.all.arrival((&sync("old"), Some(&sync("new"))), Some(later), it.term), soon);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_at_another_repository_or_before_its_deletion_does_not_count() {
        let it = Move::new().await;
        let come = || {
            it.looks("2");
            it.all.set_rendered_commit(&sync("new"), commit("2"));
            assert_eq!(it.arrival("new"), Arrival::Come);
        };
        follows(&it.all, "new", "three", false);
        it.all.set_rendered_commit(&sync("new"), commit("2"));
        assert_eq!(it.arrival("new"), AWAITED);
        come();
        it.all.mark_deleting(&sync("new"));
        assert_eq!(it.arrival("new"), AWAITED);
        // The state is the same while its own deletion looks for claims of others.
        follows(&it.all, "new", "three", false);
        it.all.set_rendered_commit(&sync("new"), commit("2"));
        assert_eq!(it.arrival("new"), AWAITED);
        // A suspended Sync polls on request, and then counts by the commit that it has rendered.
        come();
        follows(&it.all, "new", "three", true);
        assert_eq!(it.arrival("new"), AWAITED);
        come();
    }

    #[tokio::test(start_paused = true)]
    async fn a_sync_that_is_not_there_is_waited_for_and_wakes_when_it_comes() {
        let it = Move::new().await;
        let old = it.all.wakeups(&sync("old"));
        assert_eq!(it.arrival("other"), AWAITED);
        it.all.add(&sync("third"));
        assert!(!rings(&old.again));
        it.all.add(&sync("other"));
        assert!(rings(&old.again));
        assert_eq!(it.arrival("other"), AWAITED, "nothing is known of it yet");
        it.all.add(&sync("other"));
        assert!(!rings(&old.again), "it was there");
        it.all.remove(&sync("other"));
        assert!(rings(&old.again));
        assert_eq!(it.arrival("other"), AWAITED, "it is gone");
        // A Sync that names another one, or is removed, does not wait for it any more.
        assert_eq!(it.arrival("new"), AWAITED);
        it.all.add(&sync("other"));
        assert!(!rings(&old.again));
        assert_eq!(it.arrival("fourth"), AWAITED);
        it.all.remove(&sync("old"));
        assert!(it.all.lock().sources.missing.is_empty());
        let nobody = it.all.arrival((&sync("new"), None), None, it.term);
        assert_eq!(nobody, AWAITED, "a value that names nobody");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_rendered_nothing_asks_nobody_to_look() {
        let it = Move::new().await;
        it.all.invalidate(&sync("old"));
        assert_eq!(it.arrival("new"), AWAITED);
        assert!(!rings(&it.all.wakeups(&sync("new")).called));
        it.all.set_rendered_commit(&sync("old"), commit("1"));
        assert_eq!(it.arrival("new"), AWAITED);
        assert!(rings(&it.all.wakeups(&sync("new")).called));
    }
}
