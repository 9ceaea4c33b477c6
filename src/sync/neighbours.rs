//! The Syncs of one repository, and how far each has come: one that is behind may want what another is about to prune.
//!
//! In: the revision that each Sync has rendered last, and the tries that failed. Out: the Syncs that are behind. An object
//! that moves between two folders in one commit is not pruned before the other Sync has read that commit. A Sync that has not
//! tried it yet is asked to look, and waited for, but not for long; one that tried and failed counts by the evidence of its
//! files; one that is refused, or cannot read the repository, holds nothing. A Sync that waits is woken by every change. A
//! suspended Sync renders on demand and takes nothing.

mod behind;
mod moves;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::tries::Tried;
use crate::api::SyncName;
use crate::clock;
use crate::serve::hooks::{Called, repository_name};
use crate::source::{Address, ObjectHash, Reference};
pub(crate) use behind::Behind;
pub(crate) use moves::Arrival;
use moves::LastLook;

/// The longest that a Sync is waited for that has not tried a commit yet.
const UNTRIED: Duration = Duration::from_secs(10);

/// A Sync of another namespace gets that time anew at most so often: who changes its spec all the time holds up nobody.
const ANEW: Duration = Duration::from_secs(60);

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
    /// Since when it asks for what it asks for now.
    since: Option<Instant>,
    /// The same as it counts in other namespaces.
    since_elsewhere: Option<Instant>,
    /// Since when it holds the commit that it holds.
    came: Option<Instant>,
    /// The last commit that it could not render.
    tried: Option<Tried>,
    /// Its spec cannot be taken up.
    is_refused: bool,
    /// The repository gives it nothing, and waiting does not help.
    is_shut_out: bool,
    /// The last time that its repository gave something.
    looked: Option<LastLook>,
    /// When it was last asked to look for those that move to it.
    called: Option<Instant>,
    bell: Arc<Bell>,
    /// Those who wait for it.
    waiting: BTreeSet<SyncName>,
}

impl Neighbour {
    /// It has something to try, and its time for that begins.
    fn begins(&mut self) {
        let now = clock::now();
        self.since = Some(now);
        if self.since_elsewhere.is_none_or(|last| now.saturating_duration_since(last) >= ANEW) {
            self.since_elsewhere = Some(now);
        }
    }
}

/// All Syncs that this daemon knows of.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    all: Mutex<HashMap<SyncName, Neighbour>>,
    /// Those that move to a Sync which is not there, with that one.
    missing: Mutex<HashMap<SyncName, SyncName>>,
}

impl Neighbours {
    fn lock(&self) -> MutexGuard<'_, HashMap<SyncName, Neighbour>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self) -> MutexGuard<'_, HashMap<SyncName, SyncName>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A Sync is there.
    pub(crate) fn add(&self, sync: &SyncName) {
        let anew = || {
            let mut known = Neighbour::default();
            known.begins();
            known
        };
        let mut all = self.lock();
        if !all.contains_key(sync) {
            all.insert(sync.clone(), anew());
            drop(all);
            self.comes_to_be(sync);
        }
    }

    /// A Sync is gone.
    pub(crate) fn remove(&self, sync: &SyncName) {
        let mut all = self.lock();
        let gone = all.remove(sync);
        self.missing().remove(sync);
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
            known.begins();
            known.tried = None;
        }
        self.anew(sync);
    }

    /// The spec of a Sync is refused, or taken up again. One that is refused may want nothing of the newest commit.
    pub(crate) fn is_refused(&self, sync: &SyncName, refused: bool) {
        self.mark(sync, |known| std::mem::replace(&mut known.is_refused, refused) != refused);
    }

    /// The repository gives a Sync nothing for a reason that stays, or gives it something again.
    pub(crate) fn is_shut_out(&self, sync: &SyncName, shut_out: bool) {
        self.mark(sync, |known| std::mem::replace(&mut known.is_shut_out, shut_out) != shut_out);
    }

    /// A Sync could not render a commit.
    pub(crate) fn tried(&self, sync: &SyncName, asked: u64, tried: Tried) {
        self.mark(sync, |known| {
            let is_news = known.asked <= asked
                && known.tried.as_ref().is_none_or(|last| {
                    (last.commit, &last.evidence, last.is_final)
                        != (tried.commit, &tried.evidence, tried.is_final)
                });
            if is_news {
                known.tried = Some(tried);
            }
            is_news
        });
    }

    /// The last commit that a Sync could not render.
    pub(crate) fn last_tried(&self, sync: &SyncName) -> Option<Tried> {
        self.lock().get(sync)?.tried.clone()
    }

    /// Changes what is known of a Sync, and wakes those that wait for it if that is news.
    fn mark(&self, sync: &SyncName, change: impl FnOnce(&mut Neighbour) -> bool) {
        let mut all = self.lock();
        let Some(known) = all.get_mut(sync) else { return };
        if change(known) {
            let waiting = std::mem::take(&mut known.waiting);
            wake(&all, &waiting);
        }
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
        if let Some(known) = self.lock().get_mut(sync) {
            // A commit that is rendered after all was not tried in vain.
            known.tried = known.tried.take().filter(|tried| at.is_none_or(|at| at.held != tried.commit));
        }
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
        let path = |course: &Course| match course {
            Course::Follows(path) => Some(path.clone()),
            Course::Unknown | Course::Rests => None,
        };
        let (before, now) = (path(&known.course), path(&course));
        if !before.as_ref().zip(now.as_ref()).is_some_and(|(before, now)| before.is_beside(now)) {
            (known.tried, known.is_shut_out, known.looked) = (None, false, None);
        }
        let (before, now) = (before.and_then(|path| path.at), now.and_then(|path| path.at));
        if before != now {
            known.came = Some(clock::now());
        }
        if before.is_some() && now.is_none() {
            // It has to try again, and has its time for that.
            known.begins();
        }
        known.course = course;
        let waiting = std::mem::take(&mut known.waiting);
        wake(&all, &waiting);
    }

    /// The Syncs that follow the same as this one and have not rendered the commit that this one has, as far as they count, by
    /// name. Those that have not tried it are asked to look, and this one is woken when anything about them changes. This one
    /// has waited since it came to the commit, or since `begun`, and at most since the term of this daemon began.
    pub(crate) fn behind(
        &self,
        own: &SyncName,
        begun: Option<Instant>,
        term: Option<Instant>,
    ) -> Vec<Behind> {
        let mut all = self.lock();
        let Some(known) = all.get(own) else { return Vec::new() };
        let Course::Follows(path) = known.course.clone() else { return Vec::new() };
        let (Some(at), came) = (path.at, begun.or(known.came)) else { return Vec::new() };
        let (mut behind, now) = (Vec::new(), clock::now());
        for (name, other) in all.iter_mut().filter(|(name, _)| *name != own) {
            match &other.course {
                Course::Unknown => {}
                Course::Follows(its) if its.is_beside(&path) => {
                    // One that is suspended claims what it does not take before it goes on.
                    if its.suspended {
                        other.waiting.insert(own.clone());
                    }
                    if its.at.is_some_and(|its| its.meets(at)) {
                        continue;
                    }
                }
                Course::Follows(_) | Course::Rests => continue,
            }
            if other.is_refused || other.is_shut_out {
                continue;
            }
            let is_this = |tried: &&Tried| tried.commit == at.held || tried.commit == at.newest;
            match other.tried.as_ref().filter(is_this) {
                Some(tried) => behind.push(Behind::Failed(name.clone(), tried.clone())),
                None => {
                    let is_at_home = name.namespace == own.namespace;
                    let since = if is_at_home { other.since } else { other.since_elsewhere };
                    let until = came.max(since).max(term).unwrap_or(now) + UNTRIED;
                    if until <= now {
                        continue;
                    }
                    other.bell.look.notify_one();
                    behind.push(Behind::Untried(name.clone(), until));
                }
            }
        }
        behind.sort_by(|a, b| a.sync().cmp(b.sync()));
        // One that has not tried is news by itself, and others have come along until then: a hundred Syncs that wait for each
        // other are not woken a hundred times each.
        let untried = behind.iter().find(|one| matches!(one, Behind::Untried(..)));
        let calls = untried.map_or_else(|| behind.iter().collect(), |first| vec![first]);
        for one in calls {
            all.get_mut(one.sync()).into_iter().for_each(|other| {
                other.waiting.insert(own.clone());
            });
        }
        behind
    }
}

impl Neighbours {
    /// Wakes these Syncs.
    pub(crate) fn wake(&self, syncs: &BTreeSet<SyncName>) {
        wake(&self.lock(), syncs);
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
    use crate::object::ObjectId;
    use crate::render::{Contents, Options};
    use crate::sync::evidence::Evidence;
    use crate::sync::tries::FilesHash;
    use crate::tree::FileTree;

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

    /// The first Sync that is behind.
    fn behind(all: &Neighbours, own: &str) -> Option<SyncName> {
        all.behind(&sync(own), None, None).first().map(|behind| behind.sync().clone())
    }

    fn rings(bell: &Notify) -> bool {
        bell.notified().now_or_never().is_some()
    }

    #[test]
    fn who_has_not_rendered_the_same_commit_is_behind_and_is_asked_to_look() {
        let all = two();
        assert_eq!(behind(&all, "b"), None, "who has rendered nothing prunes nothing");
        let bell = all.bell(&sync("b"));
        assert!(!rings(&bell.look));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        assert!(rings(&bell.look));
        all.came_to(&sync("b"), commit("2"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "another commit is not this one");
        all.came_to(&sync("b"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn who_waits_is_woken_by_every_change_and_only_once() {
        let all = two();
        let bell = all.bell(&sync("a"));
        all.came_to(&sync("b"), commit("2"));
        assert!(!rings(&bell.again), "nobody waits yet");
        behind(&all, "a");
        all.came_to(&sync("b"), commit("2"));
        assert!(!rings(&bell.again), "nothing has changed");
        all.came_to(&sync("b"), commit("1"));
        assert!(rings(&bell.again));
        all.anew(&sync("b"));
        assert!(!rings(&bell.again), "nobody waits any more");
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        behind(&all, "a");
        all.remove(&sync("b"));
        assert!(rings(&bell.again), "who is gone is waited for no more");
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn only_who_goes_by_the_same_is_waited_for() {
        let all = two();
        all.follows(&sync("b"), &address("two"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), None);
        all.follows(&sync("b"), &address("one"), &Reference::branch("main").unwrap(), false);
        assert_eq!(behind(&all, "a"), None);
        all.rests(&sync("b"));
        assert_eq!(behind(&all, "a"), None);
        all.add(&sync("c"));
        assert_eq!(behind(&all, "a"), Some(sync("c")), "nothing is known of it yet");
        all.follows(&sync("c"), &address("two"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), None, "it follows something else, whether it comes to it or not");
    }

    #[test]
    fn who_follows_something_else_for_a_while_has_rendered_nothing_of_this() {
        let all = two();
        all.came_to(&sync("b"), commit("1"));
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), None, "the same repository is as far as it was");
        all.follows(&sync("b"), &address("two"), &Reference::Head, false);
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
    }

    #[test]
    fn who_is_suspended_is_behind_until_it_has_rendered_and_wakes_when_it_goes_on() {
        let all = two();
        let one = address("one");
        let is = |suspended| all.follows(&sync("b"), &one, &Reference::Head, suspended);
        all.came_to(&sync("b"), commit("2"));
        is(true);
        let (own, other) = (all.bell(&sync("a")), all.bell(&sync("b")));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        assert!(rings(&other.look), "it is asked all the same");
        all.came_to(&sync("b"), commit("1"));
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None, "what it wants is known");
        is(true);
        assert!(!rings(&own.again), "nothing has changed");
        is(false);
        assert!(rings(&own.again), "it goes on");
        assert_eq!(behind(&all, "a"), Some(sync("b")), "and does not take anything yet");
        all.came_to(&sync("b"), commit("1"));
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None);
        all.follows(&sync("b"), &one, &Reference::branch("main").unwrap(), true);
        assert_eq!(behind(&all, "a"), None, "it follows something else");
    }

    #[test]
    fn who_is_refused_is_behind_whatever_it_rendered_before() {
        let all = two();
        let bell = all.bell(&sync("a"));
        all.came_to(&sync("b"), commit("1"));
        all.anew(&sync("b"));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.is_unreadable(&sync("b"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "it may want what it followed last");
        all.rests(&sync("b"));
        assert!(rings(&bell.again));
        assert_eq!(behind(&all, "a"), None, "it is being deleted");
        all.add(&sync("c"));
        all.is_unreadable(&sync("c"));
        assert_eq!(behind(&all, "a"), None, "it names no repository");
    }

    #[test]
    fn who_is_gone_does_not_come_back_by_what_it_still_does() {
        let all = two();
        all.remove(&sync("b"));
        let bell = all.bell(&sync("b"));
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        all.anew(&sync("b"));
        assert_eq!(behind(&all, "a"), None);
        assert!(!rings(&bell.look));
        all.add(&sync("b"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "it was made anew");
    }

    #[test]
    fn what_was_rendered_as_it_is_asked_for_no_more_does_not_count() {
        let all = two();
        all.asks(&sync("b"), 1);
        all.rendered(&sync("b"), 1, commit("1"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
        all.asks(&sync("b"), 2);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.rendered(&sync("b"), 1, commit("1"), commit("1"));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.rendered(&sync("b"), 2, commit("1"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn who_has_gone_back_waits_neither_for_who_goes_on_nor_for_who_stays() {
        let all = two();
        let behind = |name: &str| behind(&all, name);
        // The first has given up the second commit.
        all.rendered(&sync("a"), 0, commit("1"), commit("2"));
        all.came_to(&sync("b"), commit("1"));
        assert_eq!((behind("a"), behind("b")), (None, None), "the other one waits for it");
        all.came_to(&sync("b"), commit("2"));
        assert_eq!((behind("a"), behind("b")), (None, None), "the other one has taken it up");
        all.came_to(&sync("b"), commit("3"));
        assert_eq!((behind("a"), behind("b")), (Some(sync("b")), Some(sync("a"))));
    }

    /// A try at a commit that holds anything.
    fn tried(all: &Neighbours, digit: &str, files: Option<FilesHash>) {
        tried_with(all, digit, files, Evidence::Anything(Contents::default()));
    }

    fn tried_with(all: &Neighbours, digit: &str, files: Option<FilesHash>, evidence: Evidence) {
        let (commit, evidence) = (commit(digit), Arc::new(evidence));
        let tried = Tried {
            commit,
            evidence,
            memory: None,
            files,
            same_in: Vec::new(),
            is_final: true,
            cluster: None,
        };
        all.tried(&sync("b"), 0, tried.after(all.last_tried(&sync("b")).as_ref()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sync_that_has_not_tried_is_waited_for_but_not_for_long() {
        let all = two();
        assert!(matches!(all.behind(&sync("a"), None, None).as_slice(), [Behind::Untried(..)]));
        tokio::time::advance(UNTRIED).await;
        assert_eq!(behind(&all, "a"), None);
        // It asks for something else now, and has its time anew.
        all.asks(&sync("b"), 1);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        tokio::time::advance(UNTRIED).await;
        assert_eq!(behind(&all, "a"), None);
        all.came_to(&sync("a"), commit("2"));
        assert_eq!(behind(&all, "a"), Some(sync("b")), "another commit is another question");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sync_of_another_namespace_that_changes_all_the_time_holds_up_nobody() {
        let all = two();
        let stranger = SyncName::new("other", "c");
        all.add(&stranger);
        all.follows(&stranger, &address("one"), &Reference::Head, false);
        all.came_to(&sync("b"), commit("1"));
        assert_eq!(behind(&all, "a"), Some(stranger.clone()));
        let mut held = 0;
        for asked in 1..60 {
            tokio::time::advance(Duration::from_secs(5)).await;
            all.asks(&stranger, asked);
            held += usize::from(behind(&all, "a").is_some());
        }
        assert!((5..=15).contains(&held), "for 10 s of each minute: {held} of 59 times");
        // In its own namespace it has its time anew each time.
        tokio::time::advance(UNTRIED).await;
        all.asks(&sync("b"), 1);
        tokio::time::advance(UNTRIED).await;
        all.asks(&sync("b"), 2);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
    }

    #[test]
    fn a_sync_that_is_refused_or_shut_out_holds_nothing() {
        let all = two();
        let own = all.bell(&sync("a"));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.is_refused(&sync("b"), true);
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None);
        all.is_refused(&sync("b"), false);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        all.is_shut_out(&sync("b"), true);
        assert!(rings(&own.again));
        assert_eq!(behind(&all, "a"), None);
        // Another repository may let it in.
        all.follows(&sync("b"), &address("two"), &Reference::Head, false);
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        assert_eq!(behind(&all, "a"), Some(sync("b")));
    }

    #[test]
    fn a_failed_try_counts_until_the_commit_is_rendered_also_of_a_suspended_sync() {
        let all = two();
        let (own, other) = (all.bell(&sync("a")), all.bell(&sync("b")));
        assert_eq!(behind(&all, "a"), Some(sync("b")));
        assert!(rings(&other.look));
        tried(&all, "1", None);
        assert!(rings(&own.again));
        assert!(matches!(all.behind(&sync("a"), None, None).as_slice(), [Behind::Failed(..)]));
        assert!(!rings(&other.look), "it has looked");
        all.follows(&sync("b"), &address("one"), &Reference::Head, true);
        tried(&all, "1", None);
        assert_eq!(behind(&all, "a"), Some(sync("b")), "it may take the object when it goes on");
        all.follows(&sync("b"), &address("one"), &Reference::Head, false);
        all.came_to(&sync("b"), commit("1"));
        assert_eq!(behind(&all, "a"), None);
    }

    #[test]
    fn an_object_has_not_moved_to_files_that_stay_the_same() {
        let all = two();
        let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
        let may_hold = |left: &str| all.last_tried(&sync("b")).unwrap().may_hold(&id, Some(&commit(left)));
        tried(&all, "1", Some([1; 32]));
        tried(&all, "2", Some([1; 32]));
        assert!(!may_hold("1") && may_hold("7"));
        assert!(all.last_tried(&sync("b")).unwrap().may_hold(&id, None), "nobody knows since when");
        tried(&all, "3", Some([1; 32]));
        assert!(!may_hold("1") && !may_hold("2"));
        tried(&all, "4", Some([2; 32]));
        assert!(may_hold("1") && may_hold("3"), "other files may hold it");
        tried(&all, "5", None);
        tried(&all, "6", None);
        assert!(may_hold("5"), "unknown files are not the same");
    }

    #[test]
    fn files_that_stay_the_same_hold_what_they_name() {
        let all = two();
        let text = "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: shop, name: a}\n---\nkind: [\n";
        for evidence in [Evidence::Files, Evidence::Anything] {
            for digit in ["1", "2"] {
                let tree = FileTree::from_texts([("bad.yaml", text)]);
                let contents = Contents::of(&tree, &Options::default());
                tried_with(&all, digit, Some([1; 32]), evidence(contents));
            }
            let may_hold = |id: &str| {
                let id = ObjectId::parse(id).unwrap();
                all.last_tried(&sync("b")).unwrap().may_hold(&id, Some(&commit("1")))
            };
            assert!(may_hold("/ConfigMap|shop/a"), "it was copied there in an earlier commit");
            assert!(!may_hold("/ConfigMap|shop/b"));
        }
    }
}
