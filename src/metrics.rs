//! Stub; replaced.

use std::time::Duration;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Objects of Syncs.
    Object,
    /// The status of Syncs.
    Status,
    /// Leases.
    Lease,
    /// Watches and what they begin with.
    Watch,
    /// Looks that write nothing.
    Verify,
}

/// Handle.
#[derive(Debug, Clone, Default)]
pub struct Metrics;

impl Metrics {
    /// A request was answered.
    pub fn request(&self, _class: Class, _verb: &str, _code: u16, _took: Duration) {}
    /// A watch began anew.
    pub fn watch_restarted(&self, _kind: &str, _why: &str) {}
}
