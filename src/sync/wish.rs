//! Stub; replaced.
use crate::plan::Policy;
use crate::render::Options;
use crate::source::{Address, Reference};
use std::time::Duration;

/// What a Sync asks for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Address.
    pub address: Address,
    /// Reference.
    pub reference: Reference,
    /// Options.
    pub options: Options,
    /// Target.
    pub target_namespace: String,
    /// Policy.
    pub policy: Policy,
    /// Interval.
    pub interval: Duration,
    /// Timeout.
    pub timeout: Duration,
    /// Suspended.
    pub suspend: bool,
    /// Conflicts.
    pub conflicts: super::carry_out::Conflicts,
}
