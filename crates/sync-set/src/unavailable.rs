//! The number of Syncs of a stage that may be unavailable at one time.
//!
//! In: `maxUnavailable` of a stage. Out: [`UnavailableLimit`], 1 at least, so that a roll-out never
//! stands still.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A number, or a share of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnavailableLimit {
    Count(usize),
    Percent(usize),
}

impl UnavailableLimit {
    /// Reads the limit; none if it is neither a number from 1 nor a share from 1% to 100%.
    pub(crate) fn of(given: Option<&IntOrString>) -> Option<Self> {
        match given {
            None => Some(Self::Count(1)),
            Some(IntOrString::Int(count)) => {
                usize::try_from(*count).ok().filter(|count| *count > 0).map(Self::Count)
            }
            Some(IntOrString::String(share)) => {
                let percent = share.strip_suffix('%').and_then(|digits| digits.parse().ok());
                percent.filter(|percent| (1..=100).contains(percent)).map(Self::Percent)
            }
        }
    }

    /// Returns the number for a stage with so many Syncs.
    pub(crate) fn of_all(self, all: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (all * percent / 100).max(1),
        }
    }
}
