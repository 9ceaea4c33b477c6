//! Summary of the health of the objects of a Sync.

use crate::Health;
use moorline_core::object::ObjectId;

/// Health of the objects of a Sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthSummary {
    /// Number of objects that may report health.
    pub objects: usize,
    /// Number of objects that were not read yet, or not since they were last applied.
    pub unread: usize,
    /// Number of progressing objects.
    pub progressing: usize,
    /// Number of degraded objects.
    pub degraded: usize,
    /// Number of objects with unknown health.
    pub unknown: usize,
    /// The first unhealthy objects, the worst first, each with its sentence.
    pub worst: Vec<(ObjectId, Health)>,
}

impl HealthSummary {
    /// True if every object was read and is healthy.
    pub fn is_healthy(&self) -> bool {
        self.unread + self.progressing + self.degraded + self.unknown == 0
    }

    /// True if every object was read.
    pub fn is_known(&self) -> bool {
        self.unread == 0
    }

    /// True if both summaries have the same states; numbers and objects may differ.
    pub fn has_same_states(&self, other: &Self) -> bool {
        let word = |of: &Self| [of.unread, of.progressing, of.degraded, of.unknown].map(|count| count > 0);
        word(self) == word(other)
    }
}
