//! Order of resourceVersions.
//!
//! In: two resourceVersions. Out: their order, if they are numbers.

use std::cmp::Ordering;

/// Compares two resource versions if they are numbers, which may exceed any integer type.
pub(super) fn age(one: &str, other: &str) -> Option<Ordering> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (number(one) && number(other)).then(|| {
        let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
        one.len().cmp(&other.len()).then_with(|| one.cmp(other))
    })
}
