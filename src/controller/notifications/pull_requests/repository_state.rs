//! State of a repository between visits: its open pull requests, and the plans that were written.
//!
//! In: lists of the host, and the Syncs that have plans there.
//! Out: what is left to do. It is a cache: after a restart the comments themselves say what was
//! written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::host_client::VisitError;
use super::open_list::OpenList;
use super::plan_target::PlanTarget;
use crate::api::SyncName;
use crate::clock;
use crate::notifications::pull_requests::{CheckState, LabelGate, OpenRequest};
use crate::report::pull_request::{PlanRecord, PlanSection};

/// First and longest pause after a plan that could not be made or written.
const RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(1800));

/// A repository.
#[derive(Default)]
pub(super) struct RepositoryState {
    /// The open pull requests, as the host lists them.
    pub(super) list: OpenList,
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
    pub(super) files_retry: Retry,
    pub(super) plans: BTreeMap<SyncName, PlanState>,
    pub(super) comment: CommentState,
}

/// The plan of one Sync on one pull request.
#[derive(Default)]
pub(super) struct PlanState {
    /// The inputs of the last plan.
    pub(super) made_of: Option<PlanInputs>,
    /// The pull request touches the Sync, or an earlier commit of it did.
    pub(super) is_touched: bool,
    /// The last plan.
    pub(super) drawn: Option<DrawnPlan>,
    /// The status that a commit has on the host.
    pub(super) check: Option<PlanCheck>,
    pub(super) retry: Retry,
}

/// A plan that was made.
pub(super) struct DrawnPlan {
    pub(super) section: PlanSection,
    pub(super) check: PlanCheck,
}

/// The status of a plan on a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanCheck {
    pub(super) head: Box<str>,
    pub(super) state: CheckState,
    pub(super) description: String,
    pub(super) link: Option<Box<str>>,
}

/// The comment on a pull request.
#[derive(Default)]
pub(super) struct CommentState {
    pub(super) id: Option<u64>,
    /// The plans that the comment has.
    pub(super) written: Option<PlanRecord>,
    /// True if the host was searched for it.
    pub(super) is_searched: bool,
    /// An earlier daemon wrote it, and the statuses with it.
    pub(super) is_of_earlier: bool,
    /// A plan has changed since it was written.
    pub(super) is_dirty: bool,
    pub(super) retry: Retry,
}

/// Pauses after failures.
#[derive(Default)]
pub(super) struct Retry {
    failures: u32,
    not_before: Option<Instant>,
    /// The refusal of the host.
    problem: Option<VisitError>,
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
            let mut state = last.unwrap_or_else(|| OpenState::new(request.clone()));
            let has_label = label.is_some_and(|label| request.labels.iter().any(|one| **one == *label));
            let is_labelled = state.gate.observe(&request.head, has_label);
            state.is_allowed = !request.is_fork || is_labelled;
            (state.has_label, state.request) = (has_label, request);
            // Two pages may both have a pull request that moved between them.
            if self.open.iter().all(|open| open.request.number != state.request.number) {
                self.open.push(state);
            }
        }
    }

    /// Drops the state of other Syncs.
    pub(super) fn retain(&mut self, targets: &BTreeMap<SyncName, Arc<PlanTarget>>) {
        self.reads.retain(|name, _| targets.contains_key(name));
        for open in &mut self.open {
            open.plans.retain(|name, _| targets.contains_key(name));
        }
    }

    /// Returns the first refusal of the host that a person has to end.
    pub(super) fn problem(&self) -> Option<&VisitError> {
        self.open.iter().find_map(|open| {
            let plans = open.plans.values().map(|plan| &plan.retry);
            let problems = plans
                .chain([&open.comment.retry, &open.files_retry])
                .filter_map(|retry| retry.problem.as_ref());
            problems.into_iter().find(|problem| problem.needs_a_person)
        })
    }
}

impl OpenState {
    fn new(request: OpenRequest) -> Self {
        Self {
            request,
            gate: LabelGate::default(),
            is_allowed: false,
            has_label: false,
            files: None,
            files_retry: Retry::default(),
            plans: BTreeMap::new(),
            comment: CommentState::default(),
        }
    }

    /// Returns the sections of its newest commit; empty if there is no plan of it.
    pub(super) fn sections(&self) -> Vec<PlanSection> {
        let head = &self.request.head;
        let drawn = |plan: &PlanState| plan.drawn.as_ref().is_some_and(|drawn| drawn.check.head == *head);
        if !self.plans.values().any(drawn) {
            return Vec::new();
        }
        let section = |(name, plan): (&SyncName, &PlanState)| match &plan.drawn {
            Some(drawn) if drawn.check.head == *head => Some(drawn.section.clone()),
            _ => (plan.is_touched && plan.retry.is_retry())
                .then(|| PlanSection::pending(&name.to_string(), "", None)),
        };
        self.plans.iter().filter_map(section).collect()
    }
}

impl PlanState {
    /// True if a plan of these inputs is to be made now.
    pub(super) fn is_due(&self, inputs: &PlanInputs, now: Instant) -> bool {
        self.made_of.as_ref() != Some(inputs) && self.retry.is_due(now)
    }

    /// Records that a plan was made of these inputs.
    pub(super) fn is_done(&mut self, inputs: PlanInputs) {
        (self.made_of, self.retry) = (Some(inputs), Retry::default());
    }
}

impl CommentState {
    /// True if it is to be written now.
    pub(super) fn is_due(&self, is_retry: bool, now: Instant) -> bool {
        self.is_dirty && self.retry.is_retry() == is_retry && self.retry.is_due(now)
    }

    /// Records that the host has it.
    pub(super) fn is_done(&mut self) {
        (self.is_dirty, self.retry) = (false, Retry::default());
    }
}

impl Retry {
    /// True after a failure.
    pub(super) fn is_retry(&self) -> bool {
        self.failures > 0
    }

    /// True if the pause is over.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|time| time <= now)
    }

    /// Records a failure; another try follows after a pause.
    pub(super) fn has_failed(&mut self, problem: Option<VisitError>) {
        // The next attempt is after its end, and this one is not to blame.
        if problem.as_ref().is_some_and(|problem| problem.limit.is_some()) {
            return;
        }
        self.problem = problem;
        let pause = RETRY.0.saturating_mul(1 << self.failures.min(8)).min(RETRY.1);
        (self.failures, self.not_before) = (self.failures.saturating_add(1), Some(clock::now() + pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64, head: &str, is_fork: bool, labels: &[&str]) -> OpenRequest {
        let labels = labels.iter().copied().map(Box::from).collect();
        OpenRequest { number, head: head.into(), base_branch: "main".into(), is_fork, labels, updated: None }
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
        plan.retry.has_failed(None);
        assert!(!plan.is_due(&inputs("c", "b"), now) && plan.is_due(&inputs("c", "b"), now + RETRY.1));
    }
    #[test]
    fn a_comment_has_the_plans_of_the_newest_commit() {
        let drawn = |head: &str| {
            let (state, description) = (CheckState::Success, String::new());
            let check = PlanCheck { head: head.into(), state, description, link: None };
            DrawnPlan { section: PlanSection::pending("drawn", head, None), check }
        };
        let plan = |head: Option<&str>, is_touched, has_failed| {
            let mut plan = PlanState { is_touched, drawn: head.map(drawn), ..PlanState::default() };
            if has_failed {
                plan.retry.has_failed(None);
            }
            plan
        };
        let waiting = |name: &str| PlanSection::pending(&format!("ns/{name}"), "", None);
        let made = PlanSection::pending("drawn", "a", None);
        for (plans, expect) in [
            (vec![plan(Some("a"), true, false)], vec![made.clone()]),
            (vec![plan(Some("a"), true, true)], vec![made.clone()]),
            // One that has failed at this commit, and one that is not concerned.
            (
                vec![plan(Some("a"), true, false), plan(Some("b"), true, true)],
                vec![made.clone(), waiting("1")],
            ),
            (vec![plan(Some("a"), true, false), plan(None, true, true)], vec![made.clone(), waiting("1")]),
            (vec![plan(Some("a"), true, false), plan(None, false, true)], vec![made.clone()]),
            (vec![plan(Some("a"), true, false), plan(Some("b"), true, false)], vec![made]),
            // There is nothing about this commit.
            (vec![plan(Some("b"), true, true)], vec![]),
            (vec![plan(None, true, true)], vec![]),
        ] {
            let mut open = OpenState::new(request(1, "a", false, &[]));
            let named = plans.into_iter().enumerate();
            open.plans = named.map(|(at, plan)| (SyncName::new("ns", &at.to_string()), plan)).collect();
            assert_eq!(open.sections(), expect);
        }
    }
}
