//! Shrinks a failed story: fewer steps with the same failure.
//!
//! In: the steps of a failed story, and a function that runs some of them. Out: the fewest steps
//! with that failure that a bounded number of attempts finds.

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
