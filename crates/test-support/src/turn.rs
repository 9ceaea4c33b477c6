//! Turns of the tests of one program: the test that has the turn is alone with the control plane.
//!
//! In: the name of a test. Out: a [`Turn`], once every other test has given its own back.
//! A daemon sees all Syncs of its cluster, so scenes of one program run one after the other;
//! programs run side by side.

use std::sync::{Condvar, Mutex, PoisonError};

use super::control_plane::running_test;

/// The test that has the turn, and how often.
struct Holder {
    test: String,
    times: usize,
}

static HOLDER: Mutex<Option<Holder>> = Mutex::new(None);
static GIVEN_BACK: Condvar = Condvar::new();

/// The turn of the running test, given back on drop. A test may take it again while it has it.
pub struct Turn {
    is_first: bool,
}

impl Turn {
    /// Waits until no other test has the turn. The thread waits, so a test takes its turn before it
    /// starts tasks.
    pub fn take() -> Self {
        let test = running_test();
        let holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |holder: &mut Option<Holder>| holder.as_ref().is_none_or(|holder| holder.test == test);
        let mut holder =
            GIVEN_BACK.wait_while(holder, |holder| !is_free(holder)).unwrap_or_else(PoisonError::into_inner);
        let times = holder.as_ref().map_or(0, |holder| holder.times);
        *holder = Some(Holder { test, times: times + 1 });
        Self { is_first: times == 0 }
    }

    /// True unless the test had the turn already.
    pub fn is_first(&self) -> bool {
        self.is_first
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut holder = HOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        let left = holder.take().filter(|holder| holder.times > 1);
        *holder = left.map(|holder| Holder { times: holder.times - 1, ..holder });
        GIVEN_BACK.notify_all();
    }
}

#[test]
fn a_turn_waits_for_that_of_another_test_and_not_for_its_own() {
    let (first, again) = (Turn::take(), Turn::take());
    assert!(first.is_first() && !again.is_first());
    let (tell, told) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || tell.send(Turn::take().is_first()));
    drop(first);
    assert!(told.recv_timeout(std::time::Duration::from_millis(100)).is_err(), "the turn is held");
    drop(again);
    assert!(told.recv().expect("the other one has it"));
    other.join().expect("it ends").expect("it told");
}
