//! A bound on the values of a label that strangers choose.
//!
//! In: a name that someone else made up, such as a field manager. Out: the same while there are few of them, and
//! `other` from then on: every value of a label is a series that is kept for good, here and in Prometheus.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// What stands for everything beyond the bound.
const OTHER: &str = "other";
/// What stands for an empty name.
const UNKNOWN: &str = "unknown";
/// The most bytes of a name. The API server allows 128 for field managers.
const MAX_BYTES: usize = 128;

/// The names that have been seen, up to a bound.
#[derive(Debug)]
pub(super) struct Distinct {
    limit: usize,
    seen: Mutex<BTreeSet<Box<str>>>,
}

impl Distinct {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, seen: Mutex::default() }
    }

    /// The value of the label for a name.
    pub(super) fn label<'a>(&self, name: &'a str) -> &'a str {
        if name.is_empty() {
            return UNKNOWN;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(name) {
            return name;
        }
        if seen.len() >= self.limit || name.len() > MAX_BYTES {
            return OTHER;
        }
        seen.insert(name.into());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_count_and_the_rest_is_other() {
        let names = Distinct::new(2);
        let long = "x".repeat(MAX_BYTES + 1);
        for (name, expect) in [
            ("kubectl", "kubectl"),
            ("", "unknown"),
            (long.as_str(), "other"),
            ("helm", "helm"),
            ("argocd", "other"),
            ("kubectl", "kubectl"),
        ] {
            assert_eq!(names.label(name), expect);
        }
    }
}
