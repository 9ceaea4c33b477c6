//! What a pass came to: outcomes, and all that the status says beside them.

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

/// What a pass came to.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What was asked for, by its number.
    pub(crate) order: u64,
    pub(crate) revision: Option<Revision>,
    /// The commits of which this pass has learned author and subject.
    pub(crate) commits: Vec<Commit>,
    /// How long it took since the revision was seen, until it is applied.
    pub(crate) took: Option<Duration>,
    /// What was read for it, as the id of the tree at the path.
    pub(crate) tree: Option<String>,
    /// The digest of what was wanted.
    pub(crate) digest: Option<SetDigest>,
    /// The value of the annotation that this pass answers.
    pub(crate) request: Option<String>,
    /// What was wanted.
    pub(crate) set: Option<Arc<DesiredSet>>,
    /// Its hooks for the end of the Sync.
    pub(crate) last_hooks: Vec<String>,
    /// Where the Sync may own objects now.
    pub(crate) scope: Option<Scope>,
    /// Every object about which there is something to say.
    pub(crate) outcomes: BTreeMap<ObjectId, Outcome>,
    /// Objects that others had deleted and that were created again.
    pub(crate) restored: BTreeSet<ObjectId>,
    /// The namespace of objects that name none, likewise.
    pub(crate) restored_namespace: Option<Box<str>>,
    /// What is to be said of objects that are applied.
    pub(crate) remarks: Vec<Remark>,
    /// What is to be said of the fence behind which a chart was rendered.
    pub(crate) caution: Option<Arc<str>>,
    /// Objects that are as they should be, or will be verified.
    pub(crate) kept: usize,
    pub(crate) desired: usize,
    /// What would approve the prunes that wait.
    pub(crate) approval: Option<String>,
    /// The approval that the Sync has.
    pub(crate) approved: Option<String>,
    /// Why there is no plan.
    pub(crate) trouble: Option<Trouble>,
    /// The newest commit or spec, if it cannot be applied and this pass has kept the revision before it.
    pub(crate) refused: Option<Refused>,
    /// The revision that rendered completely, as the status names it.
    pub(crate) held: Option<HeldRevision>,
    /// Kinds of which not everything is known.
    pub(crate) blind: Vec<(GroupKind, Failure)>,
    /// Rights that are missing, one a line.
    pub(crate) rights: Vec<String>,
    /// It was stopped before its end.
    pub(crate) stopped: bool,
    /// Its commit is not rendered yet, and gives way to repairs.
    pub(crate) gave_way: bool,
    /// Some objects are still being compared, so that not all drift is known.
    pub(crate) pending: bool,
    /// What people added to objects.
    pub(crate) added: Vec<Added>,
    /// What is tried again, and when.
    pub(crate) tries: Tries,
    /// What has come to its end.
    pub(crate) finished: Vec<Finished>,
    /// Where something may have to wait until others are well: what was not, and what had failed, when it was decided.
    pub(crate) gate: Option<Unwell>,
}

/// A commit or a spec that cannot be applied.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The commit; none if the spec is refused, or if no newer commit is known.
    pub(crate) revision: Option<Revision>,
    /// The name of what is refused, while something newer than the kept revision is known.
    pub(crate) newer: Option<Box<str>>,
    /// It was tried in this very pass.
    pub(crate) was_tried: bool,
    /// Why it cannot be applied; none if that is told elsewhere.
    pub(crate) trouble: Option<Trouble>,
}

impl Report {
    /// Takes in what a round came to: what was wrong before is found out anew.
    pub(super) fn adds(&mut self, outcomes: impl Iterator<Item = (ObjectId, Outcome)>) {
        self.outcomes.retain(|_, outcome| !matches!(outcome, Outcome::Held(_) | Outcome::Failed(_)));
        self.outcomes.extend(outcomes);
    }

    /// Notes the author and the subject of a commit.
    pub(in crate::sync) fn names(&mut self, revision: &Revision, words: CommitWords) {
        let CommitWords { subject, author } = words;
        self.commits.push(Commit { revision: revision.to_string(), subject, author });
    }

    /// Notes which of the objects that were created again others had deleted. A hook is created for every run.
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

    /// The commit that this pass was to apply and could not, and why. A pass that did not try it again has none.
    pub(in crate::sync) fn refusal(&self) -> Option<(&Trouble, &Revision)> {
        let refused = self.refused.as_ref().filter(|refused| refused.was_tried)?;
        Some((refused.trouble.as_ref()?, refused.revision.as_ref()?))
    }

    /// Leaves out what may be a value that nobody may see.
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
