//! Chance, for pauses that are not to fall on the same moment, and which of two threads is first.
//!
//! In: nothing, or a seed. Out: numbers. They come from the operating system's chance, unless a simulation has given
//! the thread a seed: then the same seed gives the same numbers, and nothing runs aside. Nothing secret may depend on them.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};

use tokio::task::JoinHandle;

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From now on what is drawn on this thread follows from a seed.
pub fn seed(seed: u64) {
    SEED.set(Some(seed));
}

/// The next number.
pub fn next() -> u64 {
    match SEED.get() {
        // Every `RandomState` has keys of its own, which the operating system's chance has made.
        None => RandomState::new().hash_one(0),
        Some(seed) => {
            SEED.set(Some(seed.wrapping_add(STEP)));
            mixed(seed)
        }
    }
}

/// Runs what takes long or blocks on a thread of its own; under a seed on this one, since nobody knows when a thread is done.
pub fn aside<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match SEED.get() {
        None => tokio::task::spawn_blocking(job),
        Some(_) => tokio::spawn(async move { job() }),
    }
}

/// Odd, and near the golden ratio's part of all numbers.
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
