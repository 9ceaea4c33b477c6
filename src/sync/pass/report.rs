//! Result of a reconcile: outcomes of the objects, and everything else that the status shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::super::additions::Added;
use super::super::last_hooks;
use super::super::prepare::Prepared;
use super::super::rollout::Unwell;
use crate::api::{Finished, HeldRevision, Scope};
use crate::cluster::Failure;
use crate::desired::{DesiredSet, SetDigest};
use crate::object::{GroupKind, ObjectId};
use crate::plan::Outcome;
use crate::report::{Commit, Remark, Tries, Trouble};
use crate::source::{CommitWords, Revision};

/// Result of a reconcile.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Number of the spec revision.
    pub(crate) order: u64,
    pub(crate) revision: Option<Revision>,
    /// Commits of which this reconcile has read author and subject.
    pub(crate) commits: Vec<Commit>,
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
    pub(crate) remarks: Vec<Remark>,
    /// Warning about the isolation in which helm rendered a chart.
    pub(crate) caution: Option<Arc<str>>,
    /// Number of objects that are in sync, or will be verified.
    pub(crate) kept: usize,
    pub(crate) desired: usize,
    /// Value that would approve the pending deletions.
    pub(crate) approval: Option<String>,
    /// The approval that the Sync has.
    pub(crate) approved: Option<String>,
    /// Reason for a missing plan.
    pub(crate) trouble: Option<Trouble>,
    /// The newest commit or spec, if it cannot be applied and the revision before it was kept.
    pub(crate) refused: Option<Refused>,
    /// The completely rendered revision, as the status names it.
    pub(crate) held: Option<HeldRevision>,
    /// Kinds that could not be observed completely.
    pub(crate) blind: Vec<(GroupKind, Failure)>,
    /// Missing permissions, one per line.
    pub(crate) rights: Vec<String>,
    /// True if the reconcile was stopped before its end.
    pub(crate) stopped: bool,
    /// True if the commit is not rendered yet and gave way to repairs.
    pub(crate) gave_way: bool,
    /// True while objects are still being compared: drift counts are incomplete.
    pub(crate) pending: bool,
    /// Extra fields that people added to objects.
    pub(crate) added: Vec<Added>,
    /// Next attempts.
    pub(crate) tries: Tries,
    /// Objects that have completed.
    pub(crate) finished: Vec<Finished>,
    /// Unhealthy and failed objects when the plan was made, if a rollout may have to wait for them.
    pub(crate) gate: Option<Unwell>,
}

/// A commit or a spec that cannot be applied.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The commit; `None` if the spec is refused, or if no newer commit is known.
    pub(crate) revision: Option<Revision>,
    /// Name of the refused commit or spec, while something newer than the held revision is known.
    pub(crate) newer: Option<Box<str>>,
    /// True if it was tried in this reconcile.
    pub(crate) was_tried: bool,
    /// Reason for the refusal; `None` if it is reported elsewhere.
    pub(crate) trouble: Option<Trouble>,
}

impl Report {
    /// Adds the outcomes of a round; holds and failures of earlier rounds are dropped.
    pub(super) fn adds(&mut self, outcomes: impl Iterator<Item = (ObjectId, Outcome)>) {
        self.outcomes.retain(|_, outcome| !matches!(outcome, Outcome::Held(_) | Outcome::Failed(_)));
        self.outcomes.extend(outcomes);
    }

    /// Records the author and the subject of a commit.
    pub(in crate::sync) fn names(&mut self, revision: &Revision, words: CommitWords) {
        let CommitWords { subject, author } = words;
        self.commits.push(Commit { revision: revision.to_string(), subject, author });
    }

    /// Records the created objects that another actor had deleted. Hooks do not count: they are
    /// created for every run.
    pub(super) fn restores(
        &mut self,
        desired: &DesiredSet,
        outcomes: &BTreeMap<ObjectId, Outcome>,
        were_deleted: impl Fn(&ObjectId) -> bool,
    ) {
        let is_hook = |id: &ObjectId| desired.get(id).is_none_or(|wanted| wanted.switches.hook.is_some());
        let created = outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Created);
        let restored = created.map(|(id, _)| id).filter(|id| were_deleted(id) && !is_hook(id));
        self.restored.extend(restored.cloned());
    }

    /// Returns the commit that this reconcile failed to apply, with the error. A reconcile that did
    /// not try it again has none.
    pub(in crate::sync) fn refusal(&self) -> Option<(&Trouble, &Revision)> {
        let refused = self.refused.as_ref().filter(|refused| refused.was_tried)?;
        Some((refused.trouble.as_ref()?, refused.revision.as_ref()?))
    }

    /// Redacts the texts of objects that may contain secret values.
    pub(in crate::sync) fn veil(&mut self) {
        let Some(set) = &self.set else { return };
        let tainted = self.outcomes.iter_mut().filter(|(id, _)| set.is_tainted(id));
        tainted.for_each(|(_, outcome)| outcome.veil());
    }

    pub(super) fn is_of(&mut self, prepared: &Prepared) {
        self.commits.clear();
        self.names(&prepared.revision, prepared.words.clone());
        self.set = Some(prepared.desired.clone());
        self.last_hooks = last_hooks::named(&prepared.desired);
        self.desired = prepared.desired.len();
        self.digest = Some(prepared.digest.clone());
        self.tree = prepared.tree.map(|id| id.to_string());
        self.caution.clone_from(&prepared.caution);
    }
}
