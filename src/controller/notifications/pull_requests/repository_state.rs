//! State of a repository between visits: its open pull requests, and the plans that were written.
//!
//! In: lists of the host, and the Syncs that have plans there.
//! Out: what is left to do. It is a cache: after a restart the comments themselves say what was
//! written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::plan_target::PlanTarget;
use crate::api::SyncName;
use crate::clock;
use crate::notifications::pull_requests::{LabelGate, OpenRequest};
use crate::report::pull_request::PlanRecord;

/// First and longest pause after a plan that could not be made.
const RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(1800));

/// A repository.
#[derive(Default)]
pub(super) struct RepositoryState {
    /// The ETag of the first page of the list.
    pub(super) etag: Option<String>,
    /// The account of the token.
    pub(super) user: Option<Box<str>>,
    /// The open pull requests, the ones that changed last first.
    pub(super) open: Vec<OpenState>,
    /// The files outside of its path that each Sync reads, and the base that they are of.
    pub(super) reads: KnownReads,
}

/// Paths that Syncs read, each with the base that they are of.
pub(super) type KnownReads = BTreeMap<SyncName, (Box<str>, Vec<Box<str>>)>;

/// Paths of changed files; none if there are too many to read.
pub(super) type ChangedFiles = Option<Vec<Box<str>>>;

/// An open pull request.
pub(super) struct OpenState {
    pub(super) request: OpenRequest,
    pub(super) gate: LabelGate,
    /// Its commit may be planned.
    pub(super) is_allowed: bool,
    pub(super) has_label: bool,
    /// The changed files of a commit.
    pub(super) files: Option<(Box<str>, ChangedFiles)>,
    pub(super) plans: BTreeMap<SyncName, PlanState>,
}

/// The plan of one Sync on one pull request.
#[derive(Default)]
pub(super) struct PlanState {
    /// The inputs of the last plan.
    pub(super) made_of: Option<PlanInputs>,
    /// The plan that stands on the host.
    pub(super) written: Option<PlanRecord>,
    /// The comment.
    pub(super) comment: Option<u64>,
    failures: u32,
    not_before: Option<Instant>,
}

/// Inputs of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanInputs {
    pub(super) head: Box<str>,
    pub(super) base: Box<str>,
    pub(super) is_allowed: bool,
}

impl RepositoryState {
    /// Takes up a list of open pull requests. State of those that are closed is dropped.
    pub(super) fn set_open(&mut self, listed: Vec<OpenRequest>, label: Option<&str>) {
        let mut known: BTreeMap<u64, OpenState> =
            self.open.drain(..).map(|open| (open.request.number, open)).collect();
        for request in listed {
            let last = known.remove(&request.number);
            let (mut gate, files, plans) =
                last.map(|last| (last.gate, last.files, last.plans)).unwrap_or_default();
            let has_label = label.is_some_and(|label| request.labels.iter().any(|one| **one == *label));
            let is_labelled = gate.observe(&request.head, has_label);
            let is_allowed = !request.is_fork || is_labelled;
            // Two pages may both have a pull request that moved between them.
            if self.open.iter().all(|open| open.request.number != request.number) {
                self.open.push(OpenState { request, gate, is_allowed, has_label, files, plans });
            }
        }
    }

    /// Drops what is of other Syncs.
    pub(super) fn retain(&mut self, targets: &BTreeMap<SyncName, Arc<PlanTarget>>) {
        self.reads.retain(|name, _| targets.contains_key(name));
        for open in &mut self.open {
            open.plans.retain(|name, _| targets.contains_key(name));
        }
    }
}

impl PlanState {
    /// True if a plan of these inputs is to be made now.
    pub(super) fn is_due(&self, inputs: &PlanInputs, now: Instant) -> bool {
        self.made_of.as_ref() != Some(inputs) && self.not_before.is_none_or(|time| time <= now)
    }

    /// Records that a plan was made of these inputs.
    pub(super) fn is_done(&mut self, inputs: PlanInputs) {
        (self.made_of, self.failures, self.not_before) = (Some(inputs), 0, None);
    }

    /// Records that no plan could be made; it is tried again after a pause.
    pub(super) fn has_failed(&mut self) {
        let pause = RETRY.0.saturating_mul(1 << self.failures.min(8)).min(RETRY.1);
        (self.failures, self.not_before) = (self.failures.saturating_add(1), Some(clock::now() + pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64, head: &str, is_fork: bool, labels: &[&str]) -> OpenRequest {
        let labels = labels.iter().copied().map(Box::from).collect();
        OpenRequest { number, head: head.into(), base_branch: "main".into(), is_fork, labels }
    }

    #[test]
    fn a_list_decides_what_may_be_planned() {
        let mut state = RepositoryState::default();
        let mut allowed = |listed: Vec<OpenRequest>, label| {
            state.set_open(listed, label);
            state.open.iter().map(|open| (open.request.number, open.is_allowed)).collect::<Vec<_>>()
        };
        let own = || request(1, "a", false, &[]);
        assert_eq!(allowed(vec![own(), request(2, "b", true, &[])], Some("plan")), [(1, true), (2, false)]);
        assert_eq!(
            allowed(vec![request(2, "b", true, &["plan"]), own()], Some("plan")),
            [(2, true), (1, true)]
        );
        assert_eq!(allowed(vec![request(2, "c", true, &["plan"])], Some("plan")), [(2, false)]);
        // One that was closed in between is new.
        assert_eq!(allowed(vec![], Some("plan")), []);
        assert_eq!(allowed(vec![request(2, "b", true, &["plan"])], Some("plan")), [(2, false)]);
        // Without a label in the spec there is none for forks; a page may repeat one.
        assert_eq!(allowed(vec![request(3, "b", true, &[]), own(), own()], None), [(3, false), (1, true)]);
        assert_eq!(allowed(vec![request(3, "b", true, &["plan"])], None), [(3, false)]);
    }

    #[test]
    fn a_plan_is_made_once_for_its_inputs() {
        let inputs =
            |head: &str, base: &str| PlanInputs { head: head.into(), base: base.into(), is_allowed: true };
        let (mut plan, now) = (PlanState::default(), clock::now());
        assert!(plan.is_due(&inputs("a", "b"), now));
        plan.is_done(inputs("a", "b"));
        assert!(!plan.is_due(&inputs("a", "b"), now));
        assert!(plan.is_due(&inputs("c", "b"), now) && plan.is_due(&inputs("a", "c"), now));
        plan.has_failed();
        assert!(!plan.is_due(&inputs("c", "b"), now) && plan.is_due(&inputs("c", "b"), now + RETRY.1));
    }
}
