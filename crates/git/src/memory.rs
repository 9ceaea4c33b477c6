//! Memory budgets shared by all Syncs, and the queue for them.
//!
//! In: the memory limit of this process, from the setting `memory` or from its cgroup.
//! Out: [`MemoryShare`]s, each returned on drop. Memory for work in progress is waited for in a
//! queue, and never while waiting for something that a server could withhold; memory for kept
//! objects and for packs is granted at once or not at all. A request larger than the budget is
//! refused.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fs;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use moorline_core::tree::{MemoryBacking, MemoryLimit};

/// Memory assumed for a process without a limit.
const WITHOUT_BOUND: u64 = 4 * 1024 * 1024 * 1024;

/// Minimum memory of a daemon.
const LEAST: u64 = 64 * 1024 * 1024;

/// A limit of this size means none: kernels write a number near their maximum.
const NO_BOUND: u64 = 1 << 60;

/// Budgets in percent: work in progress, kept objects of all Syncs, and unpacking of packs. The
/// rest is for the process itself, and for fragmentation.
const WORK: u64 = 40;
const KEPT: u64 = 20;
const PACKS: u64 = 15;

/// Interval at which a waiting caller checks its deadline.
const LOOK: Duration = Duration::from_millis(200);

/// Memory of this process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    work: Arc<Ledger>,
    kept: Arc<Ledger>,
    packs: Arc<Ledger>,
    turns: Arc<Ledger>,
    /// The shares of each Sync in the memory for kept objects.
    holders: Mutex<HashMap<Box<str>, Holder>>,
}

/// The shares of one Sync.
#[derive(Debug, Default)]
struct Holder {
    /// Reserved and not used yet.
    reserved: Option<MemoryShare>,
    /// Used for its last kept objects, while they exist.
    kept: Weak<MemoryShare>,
}

/// A granted amount of memory, returned on drop.
#[derive(Debug)]
pub struct MemoryShare {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Memory {
    /// Creates the budgets from a limit; without one, from the limit of this process's cgroup.
    pub fn new(bytes: Option<u64>) -> Self {
        let all = bytes.or_else(of_cgroup).unwrap_or(WITHOUT_BOUND).max(LEAST);
        let part = |hundredths: u64| Ledger::of(all / 100 * hundredths);
        // One processor is reserved for work other than on untrusted input.
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let turns = Ledger::of(cores.saturating_sub(1).max(1));
        let (work, kept, packs) = (part(WORK), part(KEPT), part(PACKS));
        Self(Arc::new(Parts { work, kept, packs, turns, holders: Mutex::default() }))
    }

    /// Maximum memory for one piece of work.
    pub fn most_for_work(&self) -> u64 {
        self.0.work.all
    }

    /// Maximum memory for the kept objects of all Syncs.
    pub fn most_kept(&self) -> u64 {
        self.0.kept.all
    }

    /// Maximum memory for unpacking one pack.
    pub fn most_for_packs(&self) -> u64 {
        self.0.packs.all
    }

    /// Backs a limit with memory if nobody waits in the queue; false if there is not enough memory.
    /// For callers that hold a lock: a Sync that already has memory may be waiting for that lock.
    pub(super) fn back_now(&self, limit: &MemoryLimit) -> bool {
        limit.is_backed() || self.backs(limit, Ledger::in_turn(&self.0.work, limit.limit()))
    }

    /// Backs a limit with memory, and waits for the memory in the queue; false at the deadline.
    pub(super) async fn back(&self, limit: &MemoryLimit, by: Instant) -> bool {
        if limit.is_backed() {
            return true;
        }
        let share = tokio::time::timeout_at(by.into(), Ledger::wait_async(&self.0.work, limit.limit())).await;
        self.backs(limit, share.ok().flatten())
    }

    fn backs(&self, limit: &MemoryLimit, share: Option<MemoryShare>) -> bool {
        let found = share.is_some();
        let memory = self.clone();
        share
            .into_iter()
            .for_each(|share| limit.set_backing(Backing { memory: memory.clone(), _share: share }));
        found
    }

    /// Waits in a queue for a processor for work on untrusted input.
    pub(super) fn turn(&self, go_on: impl Fn() -> bool) -> Option<MemoryShare> {
        Ledger::wait(&self.0.turns, 1, go_on)
    }

    /// Takes memory for kept objects, if it is available. The reservation of `who` and its last
    /// kept objects count as free, because the new ones replace them.
    pub fn take_kept(&self, who: &str, bytes: u64) -> Option<Arc<MemoryShare>> {
        let mut holders = self.holders();
        let holder = holders.entry(who.into()).or_default();
        let reserved = holder.reserved.as_ref().map_or(0, |share| share.bytes);
        let last = holder.kept.upgrade().map_or(0, |share| share.bytes);
        let share = Arc::new(Ledger::try_take(&self.0.kept, reserved.saturating_add(last), bytes)?);
        (holder.reserved, holder.kept) = (None, Arc::downgrade(&share));
        Some(share)
    }

    /// Reserves memory for the objects that `who` will keep, if it is available, and `who` has no
    /// reservation or kept objects yet.
    pub fn reserve_kept(&self, who: &str, bytes: u64) {
        let mut holders = self.holders();
        let holder = holders.entry(who.into()).or_default();
        if holder.reserved.is_none() && holder.kept.strong_count() == 0 {
            holder.reserved = Ledger::try_take(&self.0.kept, 0, bytes);
        }
    }

    /// Removes the reservation of `who`, which was deleted.
    pub fn release_holder(&self, who: &str) {
        self.holders().remove(who);
    }

    fn holders(&self) -> MutexGuard<'_, HashMap<Box<str>, Holder>> {
        self.0.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes memory for a pack, if it is available now.
    pub(super) fn unpack(&self, bytes: u64) -> Option<MemoryShare> {
        Ledger::try_take(&self.0.packs, 0, bytes)
    }
}

/// The memory behind a limit.
struct Backing {
    memory: Memory,
    _share: MemoryShare,
}

impl MemoryBacking for Backing {
    fn wait_for_processor(&self, go_on: &dyn Fn() -> bool) -> Option<Box<dyn Any + Send>> {
        self.memory.turn(go_on).map(|share| Box::new(share) as Box<dyn Any + Send>)
    }
}

/// A budget that is given out in shares.
#[derive(Debug)]
struct Ledger {
    all: u64,
    given: Mutex<Given>,
    changed: Condvar,
    /// Notifies waiting tasks, as `changed` notifies waiting threads.
    notify: Notify,
}

#[derive(Debug, Default)]
struct Given {
    bytes: u64,
    /// Tickets in the queue, first one first.
    queue: VecDeque<u64>,
    next: u64,
}

impl Ledger {
    fn of(all: u64) -> Arc<Self> {
        Arc::new(Self { all, given: Mutex::default(), changed: Condvar::new(), notify: Notify::new() })
    }

    /// Takes a share, if there is enough after `back` bytes, which are about to be returned.
    fn try_take(this: &Arc<Self>, back: u64, bytes: u64) -> Option<MemoryShare> {
        let mut given = this.given.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = given.bytes.checked_add(bytes).filter(|sum| sum.saturating_sub(back) <= this.all)?;
        given.bytes = sum;
        Some(MemoryShare { ledger: this.clone(), bytes })
    }

    /// Takes a share, if there is enough and no queue.
    fn in_turn(this: &Arc<Self>, bytes: u64) -> Option<MemoryShare> {
        let mut given = this.given.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = given.bytes.checked_add(bytes).filter(|sum| *sum <= this.all && given.queue.is_empty())?;
        given.bytes = sum;
        Some(MemoryShare { ledger: this.clone(), bytes })
    }

    /// Waits in the queue, without blocking a thread; none if the budget is too small.
    async fn wait_async(this: &Arc<Self>, bytes: u64) -> Option<MemoryShare> {
        if bytes > this.all {
            return None;
        }
        let ticket = Ticket::of(this);
        loop {
            let mut notified = pin!(this.notify.notified());
            notified.as_mut().enable();
            let found = {
                let mut given = this.given.lock().unwrap_or_else(PoisonError::into_inner);
                ticket.redeem(&mut given, bytes)
            };
            match found {
                Some(share) => return Some(share),
                None => notified.await,
            }
        }
    }

    fn tell(&self) {
        self.changed.notify_all();
        self.notify.notify_waiters();
    }

    /// Waits in the queue, while `go_on` is true.
    fn wait(this: &Arc<Self>, bytes: u64, go_on: impl Fn() -> bool) -> Option<MemoryShare> {
        if bytes > this.all {
            return None;
        }
        let ticket = Ticket::of(this);
        // Unlocked before the ticket is dropped, which locks it again.
        let mut given = this.given.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(share) = ticket.redeem(&mut given, bytes) {
                return Some(share);
            }
            if !go_on() {
                return None;
            }
            let waited = this.changed.wait_timeout(given, LOOK);
            given = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A place in the queue of a budget, until it is dropped.
struct Ticket {
    ledger: Arc<Ledger>,
    turn: u64,
}

impl Ticket {
    fn of(ledger: &Arc<Ledger>) -> Self {
        let mut given = ledger.given.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = given.next;
        given.next += 1;
        given.queue.push_back(turn);
        Self { ledger: ledger.clone(), turn }
    }

    /// Takes the share, if the ticket is first in the queue and there is enough.
    fn redeem(&self, given: &mut Given, bytes: u64) -> Option<MemoryShare> {
        let is_due = given.queue.front() == Some(&self.turn) && self.ledger.all - given.bytes >= bytes;
        is_due.then(|| {
            given.bytes += bytes;
            MemoryShare { ledger: self.ledger.clone(), bytes }
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut given = self.ledger.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.queue.retain(|other| *other != self.turn);
        drop(given);
        self.ledger.tell();
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        let mut given = self.ledger.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.bytes = given.bytes.saturating_sub(self.bytes);
        drop(given);
        self.ledger.tell();
    }
}

/// Returns the memory limit of this process's cgroup; none without a limit.
fn of_cgroup() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    places(&own).iter().filter_map(|place| bound(&fs::read_to_string(place).ok()?)).min()
}

/// Returns the files with the limits: of this process's group and of all its parents, in both
/// cgroup versions.
fn places(own: &str) -> Vec<String> {
    let mut places = Vec::new();
    for line in own.lines() {
        let mut words = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            some if some.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = path.trim_matches('/');
        let ends = path.match_indices('/').map(|(at, _)| at).chain([0, path.len()]);
        places.extend(ends.map(|end| format!("{root}/{}/{file}", &path[..end])));
    }
    places
}

/// Parses the limit in such a file.
fn bound(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < NO_BOUND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use moorline_runtime::clock;

    #[test]
    fn memory_is_given_in_turn() {
        let ledger = Ledger::of(10);
        let first = Ledger::try_take(&ledger, 0, 8).unwrap();
        assert!(Ledger::try_take(&ledger, 0, 3).is_none() && Ledger::wait(&ledger, 11, || true).is_none());
        assert!(Ledger::wait(&ledger, 3, || false).is_none());
        std::thread::scope(|scope| {
            let large = scope.spawn(|| Ledger::wait(&ledger, 9, || true));
            while ledger.given.lock().unwrap().queue.is_empty() {
                std::thread::yield_now();
            }
            // A small request does not overtake one that waits for more.
            let small = scope.spawn(|| Ledger::wait(&ledger, 2, || true));
            while ledger.given.lock().unwrap().queue.len() < 2 {
                std::thread::yield_now();
            }
            assert_eq!(ledger.given.lock().unwrap().bytes, 8);
            drop(first);
            drop(large.join().unwrap().unwrap());
            assert!(small.join().unwrap().is_some());
        });
        assert_eq!(ledger.given.lock().unwrap().bytes, 0);
    }

    #[test]
    fn what_is_reserved_is_there_for_who_comes_for_it_and_for_nobody_else() {
        let memory = Memory::new(Some(100 << 20));
        let all = memory.most_kept();
        let given = || memory.0.kept.given.lock().unwrap().bytes;
        memory.reserve_kept("good", all / 2);
        memory.reserve_kept("good", all / 4);
        assert_eq!(given(), all / 2, "once");
        memory.reserve_kept("greedy", all);
        assert_eq!(given(), all / 2, "nothing is reserved that is not there");
        assert!(memory.take_kept("bomb", all / 2 + 1).is_none());
        let other = memory.take_kept("other", all / 2).unwrap();
        assert!(memory.take_kept("good", all / 2 + 1).is_none(), "more than was reserved");
        let own = memory.take_kept("good", all / 2).unwrap();
        assert_eq!(given(), all / 2 * 2);
        // The next share of the same holder replaces this one.
        let next = memory.take_kept("good", all / 2).unwrap();
        assert!(memory.take_kept("bomb", 1).is_none());
        drop(own);
        assert_eq!(given(), all / 2 * 2);
        assert!(memory.take_kept("good", all / 2 + 1).is_none());
        drop(other);
        memory.reserve_kept("good", all / 2);
        assert_eq!(given(), all / 2, "a new term reserves nothing for who keeps something");
        drop(next);
        assert_eq!(given(), 0);
        memory.reserve_kept("gone", all);
        memory.release_holder("gone");
        assert_eq!(given(), 0);
    }

    #[test]
    fn the_bound_of_a_cgroup_is_that_of_all_above_it() {
        let two =
            ["/sys/fs/cgroup/a/memory.max", "/sys/fs/cgroup//memory.max", "/sys/fs/cgroup/a/b/memory.max"];
        assert_eq!(places("0::/a/b\n"), two);
        let one = places("5:cpu,memory:/\n6:pids:/x\n");
        assert!(one.iter().all(|place| place == "/sys/fs/cgroup/memory//memory.limit_in_bytes"), "{one:?}");
        let table =
            [("max\n", None), ("536870912\n", Some(536_870_912)), ("9223372036854771712", None), ("", None)];
        table.iter().for_each(|(text, expect)| assert_eq!(bound(text), *expect, "{text}"));
    }

    #[tokio::test]
    async fn a_limit_is_backed_once() {
        let memory = Memory::new(Some(100 << 20));
        let limit = MemoryLimit::with_bytes(memory.most_for_work());
        assert!(memory.back(&limit, clock::now() + Duration::from_secs(5)).await);
        assert!(memory.back(&limit, clock::now()).await && memory.back_now(&limit));
        let other = MemoryLimit::with_bytes(1);
        assert!(!memory.back_now(&other) && !memory.back(&other, clock::now()).await);
        drop(limit);
        assert!(memory.back_now(&other));
    }

    #[tokio::test]
    async fn who_waits_without_a_thread_is_not_overtaken_and_leaves_no_place_behind() {
        let ledger = Ledger::of(10);
        let first = Ledger::try_take(&ledger, 0, 8).unwrap();
        let of = ledger.clone();
        let large = tokio::spawn(async move { Ledger::wait_async(&of, 9).await });
        let of = ledger.clone();
        let given_up = tokio::spawn(async move { Ledger::wait_async(&of, 10).await });
        while ledger.given.lock().unwrap().queue.len() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(Ledger::in_turn(&ledger, 1).is_none(), "others have waited longer");
        given_up.abort();
        drop(first);
        drop(large.await.unwrap().unwrap());
        assert!(given_up.await.is_err());
        assert!(Ledger::in_turn(&ledger, 10).is_some());
        assert!(Ledger::wait_async(&ledger, 11).await.is_none());
    }
}
