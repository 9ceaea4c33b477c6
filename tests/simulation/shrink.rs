//! Fewer steps with the same end.
//!
//! In: a seed whose story goes wrong. Out: the steps that it takes, as few as a bounded number of attempts finds.

use super::alone::tell_alone;
use super::steps::STEPS;

/// Stories that are told to find out.
const ATTEMPTS: usize = 60;

/// The steps that are needed.
pub(crate) fn shrink(seed: u64) -> Vec<usize> {
    let mut taken: Vec<usize> = (0..STEPS).collect();
    let (mut part, mut attempts) = (STEPS / 2, 0);
    while part > 0 && attempts < ATTEMPTS {
        let mut at = 0;
        while at < taken.len() && attempts < ATTEMPTS {
            let end = (at + part).min(taken.len());
            let fewer: Vec<usize> = [&taken[..at], &taken[end..]].concat();
            attempts += 1;
            match tell_alone(seed, Some(&fewer)).wrong {
                Some(_) => taken = fewer,
                None => at = end,
            }
        }
        part /= 2;
    }
    taken
}
