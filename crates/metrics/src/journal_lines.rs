//! Counts lines of the journal.
//!
//! In: lines, and failures to write them. Out: the metrics about them.

use super::{Metrics, NONE};

impl Metrics {
    /// Counts a line of the journal that was written, or a change that is not in it.
    pub fn journal_line(&self, written: bool) {
        let result = if written { "written" } else { "lost" };
        self.0.journal.with_label_values(&[result]).inc();
    }

    /// Records that the journal cannot be written.
    pub fn journal_failing(&self, failing: bool) {
        self.0.journal_failing.with_label_values(NONE).set(i64::from(failing));
    }
}
