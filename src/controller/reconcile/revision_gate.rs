//! Keeps a revision from being applied that no person has approved, where the spec asks for that.
//!
//! In: a revision with its rendered objects, the approvals of the status, and the annotation.
//! Out: nothing if it may be applied; else an error, and the question in the memory of the Sync.
//!
//! Nothing is written before this decision. An approval is in the status before the first write of
//! its revision, so that the next daemon keeps exactly that revision.

use super::prepare::PreparedRevision;
use super::refused_commit::{ask_first, forget_refusal};
use super::{Aim, ReconcileContext};
use crate::api::{APPROVE_ANNOTATION, ApprovedRevision, SyncStatus};
use crate::cluster::WatchRequirements;
use crate::controller::memory::SyncMemory;
use crate::controller::reconcile::inventory_scope::unwritten;
use crate::controller::spec::ValidatedSpec;
use crate::controller::status::StatusRecorder;
use crate::controller::status::approvals::{
    applied_before, approved_revisions, has_approvals, record_approvals,
};
use crate::plan::{Policy, RenderedRevision, RevisionRequest, plan, request_revision};
use crate::report::{ErrorCause, ReconcileError, RevisionUse, add_approval, covering_approval};

/// Checks that a revision may be applied.
///
/// # Errors
///
/// Returns `ApprovalRequired` if a person has to approve it first.
pub(super) async fn check_approval(
    inputs: &ReconcileContext,
    memory: &mut SyncMemory,
    prepared: &PreparedRevision,
    need: &WatchRequirements,
) -> Result<(), ReconcileError> {
    let Some(recorder) = inputs.resource_recorder.as_ref() else { return Ok(()) };
    if !inputs.order.valid_spec.asks_first {
        // The revision that is applied now counts as approved when approvals are required again.
        if has_approvals(recorder) {
            record(inputs, recorder, Vec::new()).await?;
        }
        return Ok(());
    }
    let (approved, why) = (approved_revisions(recorder), usage(inputs));
    let revision = inputs.revision.to_string();
    let rendered = rendered(inputs, &revision, prepared);
    if covering_approval(&approved, rendered, why).is_some() {
        forget_refusal(inputs, memory);
        return Ok(());
    }
    if why == RevisionUse::Held {
        return Err(not_approved(format!("what {revision} renders to was not approved")));
    }
    // Only with everything observed does the plan name all deletions.
    let blind = inputs.cluster().ensure_watches(&inputs.owner, need, inputs.valid_spec().timeout).await;
    let Some(request) = ask(inputs, rendered, prepared) else { return Err(keyless()) };
    if inputs.order.approved.as_deref() != Some(&*request.hash) || !blind.is_empty() {
        let error = not_approved(question(&request, inputs.order.approved.as_deref(), blind.len()));
        ask_first(inputs, memory, error.clone(), request);
        return Err(error);
    }
    let new = ApprovedRevision {
        revision: revision.clone(),
        source: inputs.record.source.clone(),
        spec: inputs.record.spec.clone(),
        digest: prepared.digest.recorded_hash().map(|digest| digest.to_string()),
        approval: Some(request.hash),
    };
    record(inputs, recorder, add_approval(approved, new, why)).await?;
    forget_refusal(inputs, memory);
    Ok(())
}

/// Checks that the delete hooks of a revision may run.
///
/// # Errors
///
/// Returns `ApprovalRequired` if nobody has approved what it renders to now.
pub(crate) fn check_deletion(
    status: &SyncStatus,
    valid_spec: &ValidatedSpec,
    prepared: &PreparedRevision,
) -> Result<(), ReconcileError> {
    let mut approved = status.revision.as_ref().map(|revision| revision.approved.clone()).unwrap_or_default();
    if approved.is_empty() {
        approved = applied_before(status);
    }
    // A status that has applied nothing has no delete hooks either.
    if !valid_spec.asks_first || approved.is_empty() {
        return Ok(());
    }
    let (revision, digest) = (&*prepared.revision.to_string(), &prepared.digest);
    let rendered = RenderedRevision { revision, source: "", spec: "", digest };
    match covering_approval(&approved, rendered, RevisionUse::Held) {
        Some(_) => Ok(()),
        None => {
            Err(not_approved(format!("the delete hooks of {revision} were not approved as they are now")))
        }
    }
}

/// Returns the approval that a person gave for the revision of a reconcile.
pub(super) fn approval_of_revision(inputs: &ReconcileContext, prepared: &PreparedRevision) -> Option<String> {
    let recorder = inputs.resource_recorder.as_ref().filter(|_| inputs.order.valid_spec.asks_first)?;
    let (approved, revision) = (approved_revisions(recorder), inputs.revision.to_string());
    let rendered = rendered(inputs, &revision, prepared);
    covering_approval(&approved, rendered, usage(inputs))?.approval.clone()
}

pub(super) fn rendered<'a>(
    inputs: &'a ReconcileContext,
    revision: &'a str,
    prepared: &'a PreparedRevision,
) -> RenderedRevision<'a> {
    let (source, spec) = (&*inputs.record.source, &*inputs.record.spec);
    RenderedRevision { revision, source, spec, digest: &prepared.digest }
}

/// Returns the reason why this revision would be written.
pub(super) fn usage(inputs: &ReconcileContext) -> RevisionUse {
    let is_way_back = inputs.order.hold.is_some() || !inputs.newest.has_same_files(&inputs.revision);
    match (&inputs.aim, is_way_back) {
        (Aim::Keep { .. }, _) => RevisionUse::Held,
        (Aim::Apply, true) => RevisionUse::WayBack,
        (Aim::Apply, false) => RevisionUse::Newest,
    }
}

/// Returns the question about a revision, from a plan that nobody executes.
pub(super) fn ask(
    inputs: &ReconcileContext,
    rendered: RenderedRevision<'_>,
    prepared: &PreparedRevision,
) -> Option<RevisionRequest> {
    let uid = inputs.cluster().notary().uid(&inputs.owner)?;
    let policy = Policy { suspended: false, rollout: None, ..inputs.valid_spec().policy(None) };
    let plan =
        inputs.cluster().read_observed(&inputs.owner, |observed| plan(&prepared.desired, observed, &policy));
    request_revision(&uid, rendered, &plan)
}

/// Waits until the status has these approvals.
async fn record(
    inputs: &ReconcileContext,
    recorder: &StatusRecorder,
    approved: Vec<ApprovedRevision>,
) -> Result<(), ReconcileError> {
    match record_approvals(recorder, approved, inputs.valid_spec().timeout).await {
        true => Ok(()),
        false => Err(unwritten()),
    }
}

/// The question as a sentence.
fn question(request: &RevisionRequest, given: Option<&str>, blind: usize) -> String {
    let RevisionRequest { revision, hash, created, changed, pruned, .. } = request;
    let plan = format!("{created} to create, {changed} to change, {pruned} to prune");
    if blind > 0 {
        return format!(
            "{revision} waits for approval: {plan}; it can be approved once {blind} kinds can be listed"
        );
    }
    let other = given.map(|_| format!("; the value of {APPROVE_ANNOTATION} does not match"));
    format!(
        "{revision} waits for approval: {plan}; to apply it, annotate the Sync with {APPROVE_ANNOTATION}={hash}{}",
        other.unwrap_or_default()
    )
}

fn not_approved(message: String) -> ReconcileError {
    ReconcileError { cause: ErrorCause::ApprovalRequired, message, problems: Vec::new(), permanent: true }
}

/// The error while values of Secrets cannot be hashed: nothing could be approved then.
pub(super) fn keyless() -> ReconcileError {
    let message = "the revision cannot be approved while the daemon has no keys".to_owned();
    ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false }
}
