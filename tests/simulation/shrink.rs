//! Fewer steps with the same end.
//!
//! In: a story of some steps, and whether it goes wrong. Out: the steps that it takes, as few as a bounded number of attempts
//! finds.

/// Stories that run to find out.
const ATTEMPTS: usize = 60;

/// The steps, of so many, without which it does not go wrong: parts are left out, half of all first.
pub(crate) fn shrink(steps: usize, goes_wrong: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let mut taken: Vec<usize> = (0..steps).collect();
    let (mut part, mut attempts) = (steps / 2, 0);
    while part > 0 && attempts < ATTEMPTS {
        let mut at = 0;
        while at < taken.len() && attempts < ATTEMPTS {
            let end = (at + part).min(taken.len());
            let fewer: Vec<usize> = [&taken[..at], &taken[end..]].concat();
            attempts += 1;
            match goes_wrong(&fewer) {
                true => taken = fewer,
                false => at = end,
            }
        }
        part /= 2;
    }
    taken
}
