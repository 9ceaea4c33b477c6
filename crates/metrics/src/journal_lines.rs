//! Counts lines of the journal, and notifications.
//!
//! In: lines, failures to write them, and results of deliveries. Out: the metrics about them.

use super::{Metrics, NONE};

impl Metrics {
    /// Counts a line of the journal that was written, or a change that is not in it.
    pub fn journal_line(&self, written: bool) {
        let result = if written { "written" } else { "lost" };
        self.0.journal.with_label_values(&[result]).inc();
    }

    /// Counts lines that the collector of the journal has taken, or that did not reach it.
    pub fn journal_exported(&self, taken: bool, count: u64) {
        let result = if taken { "exported" } else { "dropped" };
        self.0.journal.with_label_values(&[result]).inc_by(count);
    }

    /// Records that the journal cannot be written.
    pub fn journal_failing(&self, failing: bool) {
        self.0.journal_failing.with_label_values(NONE).set(i64::from(failing));
    }

    /// Counts notifications with a result: `sent`, `given_up` or `dropped`.
    pub fn notifications(&self, result: &'static str, count: u64) {
        self.0.notifications.with_label_values(&[result]).inc_by(count);
    }
}
