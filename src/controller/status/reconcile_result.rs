//! Result of a reconcile: outcomes of the objects, and everything else that the status shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::{FinishedObject, HeldByWindow, HeldRevision, OverriddenRevision, RevisionHold, Scope};
use crate::cluster::ApiError;
use crate::desired::{DesiredSet, SetDigest};
use crate::object::{GroupKind, ObjectId};
use crate::plan::{Outcome, RevisionRequest};
use crate::report::{CommitDescription, ObjectRemark, PendingRetries, ReconcileError};
use crate::source::{CommitSummary, Revision};

/// Unhealthy objects, and those of them that have failed.
pub(crate) type UnhealthySnapshot = (BTreeSet<ObjectId>, BTreeSet<ObjectId>);

/// An object, and the text about the fields that were added to it.
pub(crate) type ReportedExtraFields = (ObjectId, Box<str>);

/// Result of a reconcile.
#[derive(Debug, Default)]
pub(crate) struct ReconcileResult {
    /// Number of the spec revision.
    pub(crate) spec_revision: u64,
    pub(crate) revision: Option<Revision>,
    /// Commits of which this reconcile has read author and subject.
    pub(crate) commits: Vec<CommitDescription>,
    /// Time from the discovery of the revision until it was applied.
    pub(crate) took: Option<Duration>,
    /// Git id of the tree at the path.
    pub(crate) tree: Option<String>,
    /// Digest of the desired set.
    pub(crate) digest: Option<SetDigest>,
    /// Value of the annotation that requested this reconcile.
    pub(crate) request: Option<String>,
    /// The desired set.
    pub(crate) set: Option<Arc<DesiredSet>>,
    /// Delete hooks of the set.
    pub(crate) last_hooks: Vec<String>,
    /// Kinds and namespaces in which the Sync may own objects now.
    pub(crate) scope: Option<Scope>,
    /// Outcome of every object that has one to report.
    pub(crate) outcomes: BTreeMap<ObjectId, Outcome>,
    /// Objects that another actor had deleted and that were created again.
    pub(crate) restored: BTreeSet<ObjectId>,
    /// The target namespace, if it was created again likewise.
    pub(crate) restored_namespace: Option<Box<str>>,
    /// Remarks on applied objects.
    pub(crate) remarks: Vec<ObjectRemark>,
    /// Warning about the isolation in which helm rendered a chart.
    pub(crate) caution: Option<Arc<str>>,
    /// Number of objects that are in sync, or will be verified.
    pub(crate) kept: usize,
    pub(crate) desired: usize,
    /// Value that would approve the pending deletions.
    pub(crate) approval: Option<String>,
    /// The approval that the Sync has.
    pub(crate) approved: Option<String>,
    /// The revision that waits for approval.
    pub(crate) request_of_approval: Option<Arc<RevisionRequest>>,
    /// The revision that a closed window holds.
    pub(crate) held_by_window: Option<Arc<HeldByWindow>>,
    /// The override of a closed window that was taken up.
    pub(crate) overridden: Option<OverriddenRevision>,
    /// The revision that a person holds the Sync at.
    pub(crate) hold: Option<RevisionHold>,
    /// Reason for a missing plan.
    pub(crate) reconcile_error: Option<ReconcileError>,
    /// The newest commit or spec, if it cannot be applied and the revision before it was kept.
    pub(crate) refused: Option<RefusedUpdate>,
    /// The completely rendered revision, as the status names it.
    pub(crate) held: Option<HeldRevision>,
    /// Kinds that could not be observed completely.
    pub(crate) unobserved: Vec<(GroupKind, ApiError)>,
    /// Missing permissions, one per line.
    pub(crate) rights: Vec<String>,
    /// True if the reconcile was stopped before its end.
    pub(crate) stopped: bool,
    /// True if the render of the commit was put off for the repair of drift.
    pub(crate) deferred: bool,
    /// True while objects are still being compared: drift counts are incomplete.
    pub(crate) pending: bool,
    /// Extra fields that people added to objects.
    pub(crate) added: Vec<ReportedExtraFields>,
    /// Next attempts.
    pub(crate) tries: PendingRetries,
    /// Objects that have completed.
    pub(crate) finished: Vec<FinishedObject>,
    /// Unhealthy and failed objects when the plan was made, if a rollout may have to wait for them.
    pub(crate) gate: Option<UnhealthySnapshot>,
}

/// A commit or a spec that cannot be applied.
#[derive(Debug, Clone)]
pub(crate) struct RefusedUpdate {
    /// The commit; `None` if the spec is refused, or if no newer commit is known.
    pub(crate) revision: Option<Revision>,
    /// Name of the refused commit or spec, while something newer than the held revision is known.
    pub(crate) newer: Option<Box<str>>,
    /// True if it was tried in this reconcile.
    pub(crate) was_tried: bool,
    /// Reason for the refusal; `None` if it is reported elsewhere.
    pub(crate) reconcile_error: Option<ReconcileError>,
}

impl ReconcileResult {
    /// Adds the outcomes of a round; holds and failures of earlier rounds are dropped.
    pub(in crate::controller) fn adds(&mut self, outcomes: impl Iterator<Item = (ObjectId, Outcome)>) {
        self.outcomes.retain(|_, outcome| !matches!(outcome, Outcome::Held(_) | Outcome::Failed(_)));
        self.outcomes.extend(outcomes);
    }

    /// Records the author and the subject of a commit.
    pub(in crate::controller) fn names(&mut self, revision: &Revision, words: CommitSummary) {
        let CommitSummary { subject, author } = words;
        self.commits.push(CommitDescription { revision: revision.to_string(), subject, author });
    }

    /// Records the created objects that another actor had deleted. Hooks do not count: they are
    /// created for every run.
    pub(in crate::controller) fn restores(
        &mut self,
        desired: &DesiredSet,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        were_deleted: impl Fn(&ObjectId) -> bool,
    ) {
        let is_hook = |id: &ObjectId| desired.get(id).is_none_or(|wanted| wanted.annotations.hook.is_some());
        let created = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Created);
        let restored = created.map(|(id, _)| id).filter(|id| were_deleted(id) && !is_hook(id));
        self.restored.extend(restored.cloned());
    }

    /// Returns the commit that this reconcile failed to apply, with the error. A reconcile that did
    /// not try it again has none.
    pub(in crate::controller) fn refusal(&self) -> Option<(&ReconcileError, &Revision)> {
        let refused = self.refused.as_ref().filter(|refused| refused.was_tried)?;
        Some((refused.reconcile_error.as_ref()?, refused.revision.as_ref()?))
    }

    /// Redacts the texts of objects that may contain secret values.
    pub(in crate::controller) fn redact(&mut self) {
        let Some(set) = &self.set else { return };
        let tainted = self.outcomes.iter_mut().filter(|(id, _)| set.is_tainted(id));
        tainted.for_each(|(_, outcome)| outcome.redact());
    }
}
