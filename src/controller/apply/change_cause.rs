//! Causes of writes, for the journal.
//!
//! In: a Sync, its revision and a step of its plan. Out: an [`Entry`] without the object, which the
//! cluster adds to each line. Names of fields are in it, never values.

use super::ApplyContext;
use crate::api::SyncName;
use crate::controller::reconcile::prepare::PreparedRevision;
use crate::controller::spec::ValidatedSpec;
use crate::journal::{DriftNote, Entry, Reason};
use crate::observed::Drift;
use crate::plan::{Action, Change, Step};
use crate::source::{Revision, SignaturePolicy};

/// Changed fields of one object that a line names.
const MAX_FIELDS: usize = 20;

/// Returns the cause of writes for a revision. `reason` is that of objects which the revision
/// creates or changes.
pub(crate) fn cause_of_revision(
    owner: &SyncName,
    valid_spec: &ValidatedSpec,
    prepared: &PreparedRevision,
    reason: Reason,
) -> Entry {
    let (revision, digest) = (&prepared.revision, prepared.digest.recorded_hash());
    Entry {
        reason,
        commit: Some(revision.commit.to_string()),
        revision: Some(Revision { chart: None, ..revision.clone() }.to_string()),
        tree: prepared.tree.map(|tree| tree.to_string()),
        chart: revision.chart.as_ref().map(ToString::to_string),
        render: digest.map(|digest| digest.to_string()),
        verified: valid_spec.verify.as_ref().map(|asked| {
            let what = match asked.signed {
                SignaturePolicy::Commit => "commit",
                SignaturePolicy::Tag => "tag",
                SignaturePolicy::Both => "commit and tag",
                SignaturePolicy::Artifact => "artifact",
            };
            format!("{what} by {:?}/{}", asked.kind, asked.name)
        }),
        ..cause_of_sync(owner, valid_spec, reason)
    }
}

/// Returns the cause of writes for a Sync without a revision, as while it is deleted.
pub(crate) fn cause_of_sync(owner: &SyncName, valid_spec: &ValidatedSpec, reason: Reason) -> Entry {
    let account = valid_spec.service_account.as_ref();
    let actor = account.map(|account| format!("system:serviceaccount:{}:{account}", owner.namespace));
    Entry { reason, sync: Some(owner.to_string()), actor, ..Entry::default() }
}

/// Returns the cause of the writes of a step.
pub(super) fn cause_of_step(work: &ApplyContext<'_>, step: &Step) -> Entry {
    let cause = work.cluster.cause();
    let (approval, approver) = match work.deletions.consented.contains_key(&step.id) {
        true => (work.deletions.approval.clone(), work.deletions.approver.clone()),
        false => (cause.approval.clone(), cause.approver.clone()),
    };
    let reason = match &step.action {
        // Hooks of a deletion run because of it.
        _ if cause.reason == Reason::Deleted => Reason::Deleted,
        Action::Create | Action::Adopt { .. } | Action::ReplaceHookRuns { .. } => cause.reason,
        Action::Update(Change::Committed | Change::RerunHook) => match cause.reason {
            Reason::DriftRepaired => Reason::Commit,
            reason => reason,
        },
        Action::Update(
            Change::Drifted(_) | Change::EntryLost | Change::Unverified | Change::MaybeDrifted,
        ) => Reason::DriftRepaired,
        Action::HandOver { .. } => Reason::HandOver,
        Action::Prune { .. } => Reason::Pruned,
    };
    let (mut other, mut drift) = (None, None);
    match &step.action {
        Action::HandOver { to } => other = Some(to.to_string()),
        Action::Update(Change::Drifted(found)) => drift = Some(note(work, step, found)),
        _ => {}
    }
    Entry { reason, approval, approver, other, drift, ..cause }
}

fn note(work: &ApplyContext<'_>, step: &Step, drift: &Drift) -> DriftNote {
    let hides = work.desired.is_redacted(&step.id, None);
    let fields = drift.fields.iter().filter(|_| !hides).take(MAX_FIELDS).cloned().collect();
    DriftNote { manager: drift.manager.clone(), fields }
}
