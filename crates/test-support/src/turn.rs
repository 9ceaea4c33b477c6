//! Turns of the tests of one program: the tests that have a turn are alone with the control plane.
//!
//! In: the name of a test, and true if others may have their turn beside it. Out: a [`Turn`], once
//! every test that it cannot run beside has given its own back.
//! A daemon sees all Syncs of its cluster, so most scenes of one program run one after the other;
//! programs run side by side. A test runs beside others only if its daemons serve an instance of
//! their own, or no Sync, and if it leaves the servers and what belongs to the whole cluster alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::control_plane::running_test;

/// A test that has a turn, and how often.
struct Holder {
    test: String,
    times: usize,
    /// Others may have their turn at the same time, if they say the same.
    beside: bool,
    /// The control plane is ready for it.
    ready: bool,
}

static HOLDERS: Mutex<Vec<Holder>> = Mutex::new(Vec::new());
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Vec<Holder>> {
    HOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The turn of the running test, given back on drop. A test may take it again while it has it.
pub struct Turn {
    test: String,
    is_first: bool,
}

impl Turn {
    /// Waits until no other test has a turn, or with `beside` until all that have one allow it.
    /// The thread waits, so a test takes its turn before it starts tasks.
    pub fn take(beside: bool) -> Self {
        Self::take_for(running_test(), beside)
    }

    fn take_for(test: String, beside: bool) -> Self {
        let is_free = |holders: &mut Vec<Holder>| {
            let fits = |holder: &Holder| holder.test == test || beside && holder.beside && holder.ready;
            holders.iter().all(fits)
        };
        let waited = CHANGED.wait_while(lock(), |holders| {
            holders.iter().all(|holder| holder.test != test) && !is_free(holders)
        });
        let mut holders = waited.unwrap_or_else(PoisonError::into_inner);
        let is_first = holders.is_empty();
        match holders.iter_mut().find(|holder| holder.test == test) {
            Some(holder) => holder.times += 1,
            None => holders.push(Holder { test: test.clone(), times: 1, beside, ready: !is_first }),
        }
        Self { test, is_first }
    }

    /// True if no test had a turn before. Then the control plane may be swept, and others wait
    /// until [`Self::begin`].
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Lets others begin beside this test, if it allows that.
    pub fn begin(&self) {
        lock().iter_mut().filter(|holder| holder.test == self.test).for_each(|holder| holder.ready = true);
        CHANGED.notify_all();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut holders = lock();
        holders.iter_mut().filter(|holder| holder.test == self.test).for_each(|holder| holder.times -= 1);
        holders.retain(|holder| holder.times > 0);
        CHANGED.notify_all();
    }
}

#[test]
fn a_turn_waits_for_that_of_another_test_and_not_for_its_own() {
    let take = |test: &str, beside| Turn::take_for(test.to_owned(), beside);
    let later = |test: &'static str, beside| {
        let (tell, told) = std::sync::mpsc::channel();
        let taken = std::thread::spawn(move || {
            let turn = take(test, beside);
            tell.send(turn.is_first()).expect("somebody listens");
            turn
        });
        (told, taken)
    };
    let pause = std::time::Duration::from_millis(100);
    let (first, again) = (take("first", false), take("first", false));
    assert!(first.is_first() && !again.is_first());
    first.begin();
    let (told, second) = later("second", true);
    drop(first);
    assert!(told.recv_timeout(pause).is_err(), "the turn is held");
    drop(again);
    assert!(told.recv().expect("the other one has it"), "nobody was there before");
    let second = second.join().expect("it has its turn");

    let (told, third) = later("third", true);
    assert!(told.recv_timeout(pause).is_err(), "the second has not begun");
    second.begin();
    assert!(!told.recv().expect("it runs beside the second"));
    let third = third.join().expect("it has its turn");
    let (told, alone) = later("alone", false);
    drop(second);
    assert!(told.recv_timeout(pause).is_err(), "one that runs alone waits for each of them");
    drop(third);
    assert!(told.recv().expect("it has it"));
    drop(alone.join().expect("it has its turn"));
}
