//! The plan of a revision that a Sync does not take up, for a viewer.
//!
//! In: a plan that nobody executes. Out: [`NextPlan`]: the changes by name, without values.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::object::GroupKind;
use crate::plan::{Plan, RevisionChanges};

/// The most lines of a plan.
const MAX_LINES: usize = 200;

/// The plan of the newest revision of a Sync that is suspended or held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextPlan {
    /// The revision.
    pub revision: String,
    /// Its changes.
    pub changes: RevisionChanges,
    /// The number of objects that would be held, by reason.
    pub held: BTreeMap<&'static str, usize>,
    /// Kinds that could not be listed: deletions of their objects are missing.
    pub unobserved: BTreeSet<String>,
    /// Time at which it was made.
    pub made_at: Timestamp,
}

impl NextPlan {
    /// Returns what a viewer sees of a plan.
    pub fn new(revision: String, plan: &Plan, unobserved: &[GroupKind], made_at: Timestamp) -> Self {
        let mut held = BTreeMap::new();
        // A deletion that waits for approval is among the changes.
        for (_, hold) in plan.held.iter().filter(|(_, hold)| !hold.is_prune_to_approve()) {
            *held.entry(hold.reason()).or_default() += 1;
        }
        Self {
            revision,
            changes: RevisionChanges::of(plan, MAX_LINES),
            held,
            unobserved: unobserved.iter().map(ToString::to_string).collect(),
            made_at,
        }
    }
}
