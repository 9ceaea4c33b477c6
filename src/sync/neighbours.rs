//! Who else goes by the same repository, and has not come as far: it may want what this Sync is about to prune.
//!
//! In: which revision each Sync has rendered last. Out: the Syncs that are behind. An object that moves between two
//! folders in one commit is pruned by nobody before the other one has read that commit too; whoever is waited for is
//! asked to look, and whoever waits is woken when that has happened. A Sync that is suspended renders what it is asked
//! for and takes nothing; one that is refused, or that another daemon serves, is behind for as long as that lasts.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::api::SyncName;
use crate::serve::hooks::{Called, repository_name};
use crate::source::{Address, ObjectHash, Reference};

/// What a Sync goes by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Course {
    /// It was seen, and nothing more is known.
    #[default]
    Unknown,
    /// It wants nothing, and never will: it is being deleted, or names no repository.
    Rests,
    /// It follows a repository.
    Follows(Path),
}

/// How far a Sync has come with what it follows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    address: Address,
    reference: Reference,
    /// It renders only when somebody asks, and takes nothing.
    suspended: bool,
    /// What it has rendered last, as its newest spec wants it.
    at: Option<At>,
}

/// What a Sync has rendered: the commit that it holds, and the newest that it has read. They differ where that one was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    held: ObjectHash,
    newest: ObjectHash,
}

impl At {
    /// True if both are of one commit. Who waits for a Sync that has gone back never reads the one that was given up, and is
    /// of the commit that both hold.
    fn meets(self, other: Self) -> bool {
        let one = |commit| commit == other.held || commit == other.newest;
        one(self.held) || one(self.newest)
    }
}

impl Path {
    fn is_beside(&self, other: &Self) -> bool {
        (&self.address, &self.reference) == (&other.address, &other.reference)
    }
}

/// How a Sync is spoken to.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// Somebody waits until it has looked at its repository.
    pub(crate) look: Notify,
    /// Somebody has come as far as it has.
    pub(crate) again: Notify,
    /// Its repository is said to have changed, whatever was seen of it a moment ago.
    pub(crate) called: Notify,
}

#[derive(Debug, Default)]
struct Neighbour {
    course: Course,
    /// How often what it asks for has changed.
    asked: u64,
    bell: Arc<Bell>,
    /// Those who wait for it.
    waiting: BTreeSet<SyncName>,
}

/// All Syncs that this daemon knows of.
#[derive(Debug, Default)]
pub(crate) struct Neighbours(Mutex<HashMap<SyncName, Neighbour>>);

impl Neighbours {
    fn lock(&self) -> MutexGuard<'_, HashMap<SyncName, Neighbour>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Sync is there.
    pub(crate) fn add(&self, sync: &SyncName) {
        self.lock().entry(sync.clone()).or_default();
    }

    /// A Sync is gone.
    pub(crate) fn remove(&self, sync: &SyncName) {
        let mut all = self.lock();
        let gone = all.remove(sync);
        wake(&all, &gone.map(|known| known.waiting).unwrap_or_default());
    }

    /// How a Sync is told that it should look, or look again at what it has. One that is gone is told nothing: it is
    /// not made known anew by a task of it that has not ended yet.
    pub(crate) fn bell(&self, sync: &SyncName) -> Arc<Bell> {
        self.lock().get(sync).map(|known| known.bell.clone()).unwrap_or_default()
    }

    /// A Sync is being deleted: it wants nothing any more.
    pub(crate) fn rests(&self, sync: &SyncName) {
        self.change(sync, |_| Course::Rests);
    }

    /// A Sync follows this; if that is what it did, it is as far as it was.
    pub(crate) fn follows(&self, sync: &SyncName, address: &Address, reference: &Reference, suspended: bool) {
        let (address, reference) = (address.clone(), reference.clone());
        let path = Path { address, reference, suspended, at: None };
        self.change(sync, |it| match &it.course {
            Course::Follows(known) if known.is_beside(&path) && known.suspended == suspended => {
                Course::Follows(known.clone())
            }
            _ => Course::Follows(path),
        });
    }

    /// A Sync is refused, and it cannot be read what it follows: what it followed last is what it may want.
    pub(crate) fn is_unreadable(&self, sync: &SyncName) {
        self.change(sync, |it| match &it.course {
            Course::Follows(path) => Course::Follows(Path { at: None, ..path.clone() }),
            Course::Unknown | Course::Rests => Course::Rests,
        });
    }

    /// A Sync asks for something else than before, for the so many-th time: what it has rendered is not what it wants.
    pub(crate) fn asks(&self, sync: &SyncName, asked: u64) {
        if let Some(known) = self.lock().get_mut(sync) {
            known.asked = asked;
        }
        self.anew(sync);
    }

    /// A Sync has rendered the commit that it holds as it asked for it that time, which may not be the last one any more.
    /// `newest` was given up for it, where that is another one.
    pub(crate) fn rendered(&self, sync: &SyncName, asked: u64, held: ObjectHash, newest: ObjectHash) {
        self.come(sync, asked, Some(At { held, newest }));
    }

    /// What a Sync has rendered is not what it wants now, or not for certain.
    pub(crate) fn anew(&self, sync: &SyncName) {
        self.come(sync, u64::MAX, None);
    }

    /// A Sync has rendered this commit.
    pub(crate) fn came_to(&self, sync: &SyncName, at: ObjectHash) {
        self.come(sync, u64::MAX, Some(At { held: at, newest: at }));
    }

    /// Has all Syncs look that follow a repository of these names; how many there are.
    pub(crate) fn called(&self, names: &Called) -> usize {
        let all = self.lock();
        let follows = |known: &&Neighbour| match &known.course {
            Course::Follows(path) if !path.suspended => {
                repository_name(&path.address.to_string()).is_some_and(|name| names.contains(&name))
            }
            Course::Follows(_) | Course::Unknown | Course::Rests => false,
        };
        all.values().filter(follows).map(|known| known.bell.called.notify_one()).count()
    }

    fn come(&self, sync: &SyncName, asked: u64, at: Option<At>) {
        self.change(sync, |known| match &known.course {
            Course::Follows(path) if known.asked <= asked => Course::Follows(Path { at, ..path.clone() }),
            other => other.clone(),
        });
    }

    fn change(&self, sync: &SyncName, to: impl FnOnce(&Neighbour) -> Course) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(sync) else { return };
        let course = to(known);
        if known.course == course {
            return;
        }
        known.course = course;
        let waiting = std::mem::take(&mut known.waiting);
        wake(&all, &waiting);
    }

    /// The first Sync that goes by the same as this one and has not rendered the commit that this one has, for
    /// whatever reason: it is suspended or refused as well. It is asked to look, and this one is woken when anything
    /// about it changes.
    pub(crate) fn behind(&self, own: &SyncName) -> Option<SyncName> {
        let mut all = self.lock();
        let Course::Follows(path) = all.get(own)?.course.clone() else { return None };
        let at = path.at?;
        let mut behind = BTreeSet::new();
        for (name, other) in all.iter_mut().filter(|(name, _)| *name != own) {
            let (is_behind, suspended) = match &other.course {
                Course::Unknown => (true, false),
                Course::Follows(its) if its.is_beside(&path) => {
                    (!its.at.is_some_and(|its| its.meets(at)), its.suspended)
                }
                Course::Follows(_) | Course::Rests => continue,
            };
            // One that is suspended claims what it does not take before it goes on.
            if is_behind || suspended {
                other.waiting.insert(own.clone());
            }
            if is_behind {
                other.bell.look.notify_one();
                behind.insert(name.clone());
            }
        }
        behind.pop_first()
    }
}

/// Wakes those who have waited.
fn wake(all: &HashMap<SyncName, Neighbour>, waiting: &BTreeSet<SyncName>) {
    waiting.iter().filter_map(|one| all.get(one)).for_each(|one| one.bell.again.notify_one());
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn sync(name: &str) -> SyncName {
        SyncName::new("ops", name)
    }

    fn address(repository: &str) -> Address {
        Address::remote(&format!("https://host/{repository}")).unwrap()
    }

    fn commit(digit: &str) -> ObjectHash {
        ObjectHash::parse(&digit.repeat(40)).unwrap()
    }

    /// Two Syncs of one repository, of which the first has rendered a commit.
    fn two() -> Neighbours {
        let all = Neighbours::default();
        for name in ["a", "b"] {
            all.add(&sync(name));
            all.follows(&sync(name), &address("one"), &Reference::Head, false);
        }
        all.came_to(&sync("a"), commit("1"));
        all
    }

    fn rings(bell: &Notify) -> bool {
        bell.notified().now_or_never().is_some()
    }

    #[test]
    fn who_has_not_rendered_the_same_commit_is_behind_and_is_asked_to_look() {
        let all = two();
        assert_eq!(all.behind(&sync("b")), None, "who has rendered nothing prunes nothing");
        let bell = all.bell(&sync("b"));
        assert!(!rings(&bell.look));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
        assert!(rings(&bell.look));
        all.came_to(&sync("b"), commit("2"));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")), "another commit is not this one");
        all.came_to(&sync("b"), commit("1"));
        assert_eq!(all.behind(&sync("a")), None);
    }

    #[test]
    fn who_waits_is_woken_by_every_change_and_only_once() {
        let all = two();
        let bell = all.bell(&sync("a"));
        all.came_to(&sync("b"), commit("2"));
        assert!(!rings(&bell.again), "nobody waits yet");
        all.behind(&sync("a"));
        all.came_to(&sync("b"), commit("2"));
        assert!(!rings(&bell.again), "nothing has changed");
        all.came_to(&sync("b"), commit("1"));
        assert!(rings(&bell.again));
        all.anew(&sync("b"));
        assert!(!rings(&bell.again), "nobody waits any more");
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        all.behind(&sync("a"));
        all.remove(&sync("b"));
        assert!(rings(&bell.again), "who is gone is waited for no more");
        assert_eq!(all.behind(&sync("a")), None);
    }

    #[test]
    fn only_who_goes_by_the_same_is_waited_for() {
        let all = two();
        all.follows(&sync("b"), &address("two"), &Reference::Head, false);
        assert_eq!(all.behind(&sync("a")), None);
        all.follows(&sync("b"), &address("one"), &Reference::branch("main").unwrap(), false);
        assert_eq!(all.behind(&sync("a")), None);
        all.rests(&sync("b"));
        assert_eq!(all.behind(&sync("a")), None);
        all.add(&sync("c"));
        assert_eq!(all.behind(&sync("a")), Some(sync("c")), "nothing is known of it yet");
        all.follows(&sync("c"), &address("two"), &Reference::Head, false);
        assert_eq!(all.behind(&sync("a")), None, "it follows something else, whether it comes to it or not");
    }

    #[test]
    fn who_follows_something_else_for_a_while_has_rendered_nothing_of_this() {
        let all = two();
        all.came_to(&sync("b"), commit("1"));
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(all.behind(&sync("a")), None, "the same repository is as far as it was");
        all.follows(&sync("b"), &address("two"), &Reference::Head, false);
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
    }

    #[test]
    fn who_is_suspended_is_behind_until_it_has_rendered_and_wakes_when_it_goes_on() {
        let all = two();
        let one = address("one");
        let is = |suspended| all.follows(&sync("b"), &one, &Reference::Head, suspended);
        all.came_to(&sync("b"), commit("2"));
        is(true);
        let (own, other) = (all.bell(&sync("a")), all.bell(&sync("b")));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
        assert!(rings(&other.look), "it is asked all the same");
        all.came_to(&sync("b"), commit("1"));
        assert!(rings(&own.again));
        assert_eq!(all.behind(&sync("a")), None, "what it wants is known");
        is(true);
        assert!(!rings(&own.again), "nothing has changed");
        is(false);
        assert!(rings(&own.again), "it goes on");
        assert_eq!(all.behind(&sync("a")), Some(sync("b")), "and does not take anything yet");
        all.came_to(&sync("b"), commit("1"));
        assert!(rings(&own.again));
        assert_eq!(all.behind(&sync("a")), None);
        all.follows(&sync("b"), &one, &Reference::branch("main").unwrap(), true);
        assert_eq!(all.behind(&sync("a")), None, "it follows something else");
    }

    #[test]
    fn who_is_refused_is_behind_whatever_it_rendered_before() {
        let all = two();
        let bell = all.bell(&sync("a"));
        all.came_to(&sync("b"), commit("1"));
        all.anew(&sync("b"));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
        all.is_unreadable(&sync("b"));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")), "it may want what it followed last");
        all.rests(&sync("b"));
        assert!(rings(&bell.again));
        assert_eq!(all.behind(&sync("a")), None, "it is being deleted");
        all.add(&sync("c"));
        all.is_unreadable(&sync("c"));
        assert_eq!(all.behind(&sync("a")), None, "it names no repository");
    }

    #[test]
    fn who_is_gone_does_not_come_back_by_what_it_still_does() {
        let all = two();
        all.remove(&sync("b"));
        let bell = all.bell(&sync("b"));
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        all.anew(&sync("b"));
        assert_eq!(all.behind(&sync("a")), None);
        assert!(!rings(&bell.look));
        all.add(&sync("b"));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")), "it was made anew");
    }

    #[test]
    fn what_was_rendered_as_it_is_asked_for_no_more_does_not_count() {
        let all = two();
        all.asks(&sync("b"), 1);
        all.rendered(&sync("b"), 1, commit("1"), commit("1"));
        assert_eq!(all.behind(&sync("a")), None);
        all.asks(&sync("b"), 2);
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
        all.rendered(&sync("b"), 1, commit("1"), commit("1"));
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
        all.rendered(&sync("b"), 2, commit("1"), commit("1"));
        assert_eq!(all.behind(&sync("a")), None);
    }

    #[test]
    fn who_has_gone_back_waits_neither_for_who_goes_on_nor_for_who_stays() {
        let all = two();
        let behind = |name: &str| all.behind(&sync(name));
        // The first has given up the second commit.
        all.rendered(&sync("a"), 0, commit("1"), commit("2"));
        all.came_to(&sync("b"), commit("1"));
        assert_eq!((behind("a"), behind("b")), (None, None), "the other one waits for it");
        all.came_to(&sync("b"), commit("2"));
        assert_eq!((behind("a"), behind("b")), (None, None), "the other one has taken it up");
        all.came_to(&sync("b"), commit("3"));
        assert_eq!((behind("a"), behind("b")), (Some(sync("b")), Some(sync("a"))));
    }
}
