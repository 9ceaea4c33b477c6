//! Who else goes by the same repository, and has not come as far: it may want what this Sync is about to prune.
//!
//! In: which revision each Sync has rendered last. Out: the Syncs that are behind. An object that moves between two
//! folders in one commit is pruned by nobody before the other one has read that commit too; whoever is waited for is
//! asked to look, and whoever waits is woken when that has happened.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::api::SyncName;
use crate::source::{Address, ObjectHash, Reference};

/// What a Sync goes by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Course {
    /// It was seen, and nothing more is known.
    #[default]
    Unknown,
    /// It wants nothing new: it is suspended, refused, or being deleted.
    Rests,
    /// It follows a repository; the commit that it has rendered last.
    Follows(Address, Reference, Option<ObjectHash>),
}

/// How a Sync is spoken to.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// Somebody waits until it has looked at its repository.
    pub(crate) look: Notify,
    /// Somebody has come as far as it has.
    pub(crate) again: Notify,
}

#[derive(Debug, Default)]
struct Neighbour {
    course: Course,
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
        self.rests(sync);
        self.lock().remove(sync);
    }

    /// How a Sync is told that it should look, or look again at what it has.
    pub(crate) fn bell(&self, sync: &SyncName) -> Arc<Bell> {
        self.lock().entry(sync.clone()).or_default().bell.clone()
    }

    /// A Sync wants nothing new for now.
    pub(crate) fn rests(&self, sync: &SyncName) {
        self.set(sync, Course::Rests);
    }

    /// A Sync follows this; of the same repository it is as far as it was.
    pub(crate) fn follows(&self, sync: &SyncName, address: &Address, reference: &Reference) {
        let commit = match self.lock().get(sync).map(|known| &known.course) {
            Some(Course::Follows(from, of, commit)) if (from, of) == (address, reference) => *commit,
            _ => None,
        };
        self.set(sync, Course::Follows(address.clone(), reference.clone(), commit));
    }

    /// A Sync has rendered this commit.
    pub(crate) fn came_to(&self, sync: &SyncName, at: ObjectHash) {
        let course = match self.lock().get(sync).map(|known| &known.course) {
            Some(Course::Follows(address, reference, _)) => {
                Course::Follows(address.clone(), reference.clone(), Some(at))
            }
            _ => return,
        };
        self.set(sync, course);
    }

    fn set(&self, sync: &SyncName, course: Course) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(sync).filter(|known| known.course != course) else { return };
        known.course = course;
        let waiting = std::mem::take(&mut known.waiting);
        waiting.iter().filter_map(|one| all.get(one)).for_each(|one| one.bell.again.notify_one());
    }

    /// The first Sync that goes by the same as this one and has not rendered the commit that this one has. It is
    /// asked to look, and this one is woken when anything about it changes.
    pub(crate) fn behind(&self, own: &SyncName) -> Option<SyncName> {
        let mut all = self.lock();
        let course = all.get(own)?.course.clone();
        let Course::Follows(address, reference, Some(at)) = course else { return None };
        let is_behind = |other: &Neighbour| match &other.course {
            Course::Unknown => true,
            Course::Rests => false,
            Course::Follows(from, of, commit) => (from, of) == (&address, &reference) && *commit != Some(at),
        };
        let others = all.iter_mut().filter(|(name, other)| *name != own && is_behind(other));
        let names = others.map(|(name, other)| {
            other.waiting.insert(own.clone());
            other.bell.look.notify_one();
            name.clone()
        });
        names.collect::<BTreeSet<_>>().into_iter().next()
    }
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
            all.follows(&sync(name), &address("one"), &Reference::Head);
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
        all.rests(&sync("b"));
        assert!(!rings(&bell.again), "nobody waits any more");
        all.follows(&sync("b"), &address("one"), &Reference::Head);
        all.behind(&sync("a"));
        all.remove(&sync("b"));
        assert!(rings(&bell.again), "who is gone is waited for no more");
        assert_eq!(all.behind(&sync("a")), None);
    }

    #[test]
    fn only_who_goes_by_the_same_is_waited_for() {
        let all = two();
        all.follows(&sync("b"), &address("two"), &Reference::Head);
        assert_eq!(all.behind(&sync("a")), None);
        all.follows(&sync("b"), &address("one"), &Reference::branch("main").unwrap());
        assert_eq!(all.behind(&sync("a")), None);
        all.rests(&sync("b"));
        assert_eq!(all.behind(&sync("a")), None);
        all.add(&sync("c"));
        assert_eq!(all.behind(&sync("a")), Some(sync("c")), "nothing is known of it yet");
    }

    #[test]
    fn who_follows_something_else_for_a_while_has_rendered_nothing_of_this() {
        let all = two();
        all.came_to(&sync("b"), commit("1"));
        all.follows(&sync("b"), &address("one"), &Reference::Head);
        assert_eq!(all.behind(&sync("a")), None, "the same repository is as far as it was");
        all.follows(&sync("b"), &address("two"), &Reference::Head);
        all.follows(&sync("b"), &address("one"), &Reference::Head);
        assert_eq!(all.behind(&sync("a")), Some(sync("b")));
    }
}
