//! Shares one watch of a ConfigMap or Secret among all who follow it.
//!
//! In: an object, and a function for its changes; the content of a Secret that was read.
//! Out: [`SharedWatch`]. The request ends when the last one is dropped. A later follower gets at
//! once what the others know, and the content while it is current. A watch that is broken vouches
//! for nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::task::AbortHandle;

use crate::substitution_sources::ValuesWatchEvent;
use crate::syncs::SecretData;
use moorline_api::ValuesKind;
use moorline_runtime::clock;
use moorline_runtime::fair_queue::{FairQueue, SlotGuard};

/// Kind, namespace and name of an object.
pub(super) type WatchedObject = (ValuesKind, Box<str>, Box<str>);

/// Function that is called for each change; it must not call the watches.
type Tell = Box<dyn FnMut(ValuesWatchEvent<'_>) + Send>;

/// Secrets that are read at the same time: thousands of Syncs start at once.
const READS: usize = 8;

/// All watches of one identity.
#[derive(Clone)]
pub(super) struct SharedWatches {
    table: Arc<Mutex<WatchTable>>,
    /// Turns to read a Secret, fair among namespaces.
    reads: FairQueue,
}

impl Default for SharedWatches {
    fn default() -> Self {
        Self { table: Arc::default(), reads: FairQueue::new(READS) }
    }
}

#[derive(Default)]
struct WatchTable {
    objects: BTreeMap<WatchedObject, Followers>,
    /// Number of the next watch or follower.
    next: u64,
}

/// Followers of one object.
struct Followers {
    /// Number of the watch: events of an earlier one do not count.
    watch: u64,
    task: AbortHandle,
    last: LastEvent,
    /// Time at which the watch broke last: changes since then may be unknown.
    broke: Option<Instant>,
    tell: BTreeMap<u64, Tell>,
    /// The content that was read last, while a follower keeps it.
    secret: Weak<SecretData>,
    read: Option<ReadTimes>,
}

/// Begin and end of a read.
#[derive(Clone, Copy)]
struct ReadTimes {
    began: Instant,
    ended: Instant,
}

impl Followers {
    /// True if a content that was read then is current for somebody who asked at `asked`.
    fn is_current(&self, secret: &SecretData, read: ReadTimes, asked: Instant) -> bool {
        let says_same = match &self.last {
            LastEvent::Version(version) => version.as_ref() == Some(&secret.version),
            // The watch will say whether it has changed since.
            LastEvent::None if self.broke.is_none() => read.ended >= asked,
            LastEvent::None | LastEvent::Forbidden => false,
        };
        let is_vouched_for = says_same && self.broke.is_none_or(|broke| read.began >= broke);
        is_vouched_for || read.began >= asked
    }
}

/// The last event of a watch.
enum LastEvent {
    None,
    Version(Option<Box<str>>),
    Forbidden,
}

/// A share in a watch, given back when it is dropped.
pub struct SharedWatch {
    watches: SharedWatches,
    object: WatchedObject,
    follower: u64,
}

impl SharedWatches {
    fn lock(&self) -> MutexGuard<'_, WatchTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows an object. `start` begins the watch of the first follower, which reports with the
    /// number that it is given.
    pub(super) fn follow(
        &self,
        object: WatchedObject,
        mut tell: Tell,
        start: impl FnOnce(u64) -> AbortHandle,
    ) -> SharedWatch {
        let mut table = self.lock();
        let follower = table.next;
        table.next += 2;
        let watched = table.objects.entry(object.clone()).or_insert_with(|| Followers {
            watch: follower + 1,
            task: start(follower + 1),
            last: LastEvent::None,
            broke: None,
            tell: BTreeMap::new(),
            secret: Weak::new(),
            read: None,
        });
        match &watched.last {
            LastEvent::None => {}
            LastEvent::Version(version) => tell(ValuesWatchEvent::Version(version.as_deref())),
            LastEvent::Forbidden => tell(ValuesWatchEvent::Forbidden),
        }
        watched.tell.insert(follower, tell);
        drop(table);
        SharedWatch { watches: self.clone(), object, follower }
    }

    /// Tells all followers of an object an event of the watch with this number.
    pub(super) fn tell(&self, object: &WatchedObject, watch: u64, event: ValuesWatchEvent<'_>) {
        let mut table = self.lock();
        let Some(watched) = table.objects.get_mut(object).filter(|known| known.watch == watch) else {
            return;
        };
        watched.last = match event {
            ValuesWatchEvent::Version(version) => LastEvent::Version(version.map(Box::from)),
            ValuesWatchEvent::Forbidden => LastEvent::Forbidden,
        };
        watched.tell.values_mut().for_each(|tell| tell(event));
    }

    /// Notes that the watch with this number is broken, each time that it fails.
    pub(super) fn note_broken(&self, object: &WatchedObject, watch: u64) {
        let mut table = self.lock();
        if let Some(watched) = table.objects.get_mut(object).filter(|known| known.watch == watch) {
            watched.broke = Some(clock::now());
        }
    }
}

impl SharedWatch {
    /// Returns the content of the Secret that another follower has read, if it was read since
    /// `asked`, or if the watch says that it has not changed since.
    pub fn secret(&self, asked: Instant) -> Option<Arc<SecretData>> {
        let table = self.watches.lock();
        let watched = table.objects.get(&self.object)?;
        let read = watched.read?;
        watched.secret.upgrade().filter(|secret| watched.is_current(secret, read, asked))
    }

    /// Waits for a turn to read the Secret.
    pub async fn read_turn(&self) -> SlotGuard {
        self.watches.reads.acquire(&self.object.1).await
    }

    /// Offers the content of the Secret to all followers, for as long as somebody keeps it. `began`
    /// is the time just before it was asked for.
    pub fn offer(&self, secret: &Arc<SecretData>, began: Instant) {
        let mut table = self.watches.lock();
        let Some(watched) = table.objects.get_mut(&self.object) else { return };
        // A slow read does not replace the content of a later one.
        if watched.read.is_some_and(|last| last.began > began) && watched.secret.strong_count() > 0 {
            return;
        }
        watched.secret = Arc::downgrade(secret);
        watched.read = Some(ReadTimes { began, ended: clock::now() });
    }
}

impl Drop for SharedWatch {
    fn drop(&mut self) {
        let mut table = self.watches.lock();
        let Some(watched) = table.objects.get_mut(&self.object) else { return };
        let own = watched.tell.remove(&self.follower);
        let last = if watched.tell.is_empty() { table.objects.remove(&self.object) } else { None };
        drop(table);
        // The function of a follower is dropped without the lock.
        drop(own);
        if let Some(last) = last {
            last.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: std::time::Duration = std::time::Duration::from_secs(9);

    fn data(version: &str) -> Arc<SecretData> {
        Arc::new(SecretData { data: Vec::new(), hosts: None, version: version.into(), holds_keys: false })
    }

    fn object() -> WatchedObject {
        (ValuesKind::Secret, "shop".into(), "east".into())
    }

    /// Follows; returns what is heard, and counts the watches that begin.
    fn follow(watches: &SharedWatches, begun: &mut Vec<u64>) -> (SharedWatch, Arc<Mutex<Vec<String>>>) {
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let told = heard.clone();
        let tell = move |event: ValuesWatchEvent<'_>| told.lock().unwrap().push(format!("{event:?}"));
        let share = watches.follow(object(), Box::new(tell), |watch| {
            begun.push(watch);
            tokio::spawn(std::future::pending::<()>()).abort_handle()
        });
        (share, heard)
    }

    #[tokio::test]
    async fn followers_share_a_watch_and_what_was_read() {
        let (watches, mut begun) = (SharedWatches::default(), Vec::new());
        let (first, heard_first) = follow(&watches, &mut begun);
        watches.tell(&object(), begun[0], ValuesWatchEvent::Version(Some("1")));
        let (second, heard_second) = follow(&watches, &mut begun);
        assert_eq!((begun.len(), heard_second.lock().unwrap().len()), (1, 1), "told at once what is known");

        let (old, new) = (data("1"), data("2"));
        let (begun_at, later) = (clock::now(), clock::now() + SOON);
        assert!(second.secret(begun_at).is_none());
        first.offer(&old, begun_at);
        assert!(second.secret(later).is_some_and(|found| Arc::ptr_eq(&found, &old)));
        for (event, is_current) in [
            (ValuesWatchEvent::Version(Some("2")), false),
            (ValuesWatchEvent::Version(Some("1")), true),
            (ValuesWatchEvent::Version(None), false),
            (ValuesWatchEvent::Forbidden, false),
        ] {
            watches.tell(&object(), begun[0], event);
            assert_eq!(second.secret(later).is_some(), is_current, "{event:?}");
        }
        assert!(second.secret(begun_at).is_some(), "it was read since");
        watches.tell(&object(), begun[0], ValuesWatchEvent::Version(Some("2")));
        first.offer(&new, clock::now());
        assert!(second.secret(later).is_some());
        drop(new);
        assert!(second.secret(later).is_none(), "nobody keeps it");
        assert_eq!(*heard_first.lock().unwrap(), *heard_second.lock().unwrap());

        let task = watches.lock().objects[&object()].task.clone();
        drop(first);
        let heard = heard_first.lock().unwrap().len();
        watches.tell(&object(), begun[0], ValuesWatchEvent::Version(Some("3")));
        assert_eq!(heard_first.lock().unwrap().len(), heard, "it has left");
        drop(second);
        tokio::task::yield_now().await;
        assert!(task.is_finished() && watches.lock().objects.is_empty());

        let (_third, heard) = follow(&watches, &mut begun);
        watches.tell(&object(), begun[0], ValuesWatchEvent::Version(Some("4")));
        assert!(heard.lock().unwrap().is_empty(), "an event of the earlier watch");
        watches.tell(&object(), begun[1], ValuesWatchEvent::Version(Some("5")));
        assert_eq!(heard.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_broken_vouches_for_no_content() {
        let (watches, mut begun) = (SharedWatches::default(), Vec::new());
        let (share, _) = follow(&watches, &mut begun);
        let wait = async || tokio::time::advance(SOON).await;
        let version = |text| watches.tell(&object(), begun[0], ValuesWatchEvent::Version(Some(text)));
        let kept = data("1");
        let read = clock::now();
        wait().await;
        let asked_meanwhile = clock::now();
        wait().await;
        share.offer(&kept, read);
        assert!(share.secret(asked_meanwhile).is_some(), "the watch will say if it has changed");
        version("1");
        wait().await;
        assert!(share.secret(clock::now()).is_some());
        // A broken watch reports no change, so a content counts only if it was read since.
        watches.note_broken(&object(), begun[0] + 1);
        assert!(share.secret(clock::now()).is_some(), "that is another watch");
        watches.note_broken(&object(), begun[0]);
        assert!(share.secret(clock::now()).is_none());
        wait().await;
        share.offer(&kept, clock::now());
        wait().await;
        assert!(share.secret(clock::now()).is_some(), "it was read after the watch broke");
        watches.note_broken(&object(), begun[0]);
        assert!(share.secret(clock::now()).is_none(), "it is still broken");
        share.offer(&kept, clock::now());
        wait().await;
        version("2");
        assert!(share.secret(clock::now()).is_none(), "the watch works again");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watch_a_content_counts_only_if_its_read_began_since() {
        for is_forbidden in [true, false] {
            let (watches, mut begun) = (SharedWatches::default(), Vec::new());
            let (share, _) = follow(&watches, &mut begun);
            match is_forbidden {
                true => watches.tell(&object(), begun[0], ValuesWatchEvent::Forbidden),
                false => watches.note_broken(&object(), begun[0]),
            }
            let (kept, began) = (data("1"), clock::now());
            tokio::time::advance(SOON).await;
            // The Secret may have changed between the begin of the read and this question.
            let asked = clock::now();
            share.offer(&kept, began);
            assert!(share.secret(asked).is_none() && share.secret(began).is_some(), "{is_forbidden}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_read_replaces_no_later_one_and_eight_are_under_way() {
        let (watches, mut begun) = (SharedWatches::default(), Vec::new());
        let (share, _) = follow(&watches, &mut begun);
        let (early, old, new) = (clock::now(), data("1"), data("2"));
        tokio::time::advance(SOON).await;
        let late = clock::now();
        share.offer(&new, late);
        share.offer(&old, early);
        assert!(share.secret(late).is_some_and(|found| Arc::ptr_eq(&found, &new)));
        drop(new);
        share.offer(&old, early);
        assert!(share.secret(early).is_some(), "nobody keeps the later one");

        let mut turns = Vec::new();
        for _ in 0..READS {
            turns.push(share.read_turn().await);
        }
        let more = || tokio::time::timeout(SOON, share.read_turn());
        assert!(more().await.is_err(), "{READS} are under way");
        turns.pop();
        assert!(more().await.is_ok());
    }
}
