//! Limit of the distinct values of a label that outsiders choose.
//!
//! In: a name from outside, such as a field manager.
//! Out: the same name while there are few of them, and `other` afterwards: every value of a label
//! is a series that is kept permanently, here and in Prometheus.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Label value of every name beyond the limit.
const OTHER: &str = "other";
/// Label value of an empty name.
const UNKNOWN: &str = "unknown";
/// Maximum length of a name in bytes. The API server allows 128 for field managers.
const MAX_BYTES: usize = 128;

/// The names seen so far, up to a limit.
#[derive(Debug)]
pub(super) struct LabelLimiter {
    limit: usize,
    seen: Mutex<BTreeSet<Box<str>>>,
}

impl LabelLimiter {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, seen: Mutex::default() }
    }

    /// Returns the label value for a name.
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
        let names = LabelLimiter::new(2);
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
