//! Random numbers, for jitter, and a seed that makes them repeatable.
//!
//! In: nothing, or a seed.
//! Out: numbers. They come from the operating system unless a simulation has seeded the thread.
//! With a seed, the same seed gives the same numbers and blocking work runs on the same thread.
//! Nothing secret may depend on them.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};

use tokio::task::JoinHandle;

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Seeds the random numbers of this thread.
pub fn seed(seed: u64) {
    SEED.set(Some(seed));
}

/// Returns the next number.
pub fn next() -> u64 {
    match SEED.get() {
        // Every `RandomState` has its own keys, which come from the operating system's random
        // numbers.
        None => RandomState::new().hash_one(0),
        Some(seed) => {
            SEED.set(Some(seed.wrapping_add(STEP)));
            mixed(seed)
        }
    }
}

/// Runs slow or blocking work on a thread of its own. With a seed it runs on this thread, because
/// the time at which another thread finishes is not repeatable.
pub fn spawn_blocking_deterministic<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    match SEED.get() {
        None => tokio::task::spawn_blocking(job),
        Some(_) => tokio::spawn(async move { job() }),
    }
}

/// Odd, and near 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Two rounds of mixing, as in SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_can_be_had_again_and_is_for_one_thread() {
        let draw = |with: Option<u64>| {
            let drawn = std::thread::spawn(move || {
                with.into_iter().for_each(seed);
                [next(), next(), next()]
            });
            drawn.join().unwrap()
        };
        assert_eq!(draw(Some(7)), draw(Some(7)));
        assert_ne!(draw(Some(7)), draw(Some(8)));
        assert_ne!(draw(None), draw(None));
    }
}
