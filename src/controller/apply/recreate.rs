//! Deletes an object and creates it again, if its change needs that and an annotation allows it.
//!
//! In: an apply that was refused because a field is immutable.
//! Out: the object as Git has it, or a failure that says how to ask for the replacement.
//!
//! The deletion of the old object passes the checks of a prune: the Sync is read once more, and an
//! object that is pruned only by approval is replaced only by approval. Volumes, namespaces and
//! CRDs are never recreated.

use std::time::Duration;

use super::ApplyContext;
use super::apply_object::{create_new, refused};
use crate::api::RECREATE_ANNOTATION;
use crate::clock;
use crate::cluster::{ApiError, Force, classify_error};
use crate::desired::DesiredObject;
use crate::object::ObjectId;
use crate::observed::{InstallationRole, Observed, Ownership};
use crate::plan::{
    Failure, FailureReason, Hold, Outcome, PruneGuard, Replacement, deletes_others, metadata_protection,
    needs_body_check,
};

/// Kinds that are never recreated.
const NEVER: [(&str, &str); 4] = [
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Longest wait for the deletion of the old object.
const GOING: Duration = Duration::from_secs(60);
/// First and longest pause between checks if it is gone.
const LOOK: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Recreates an object, if its annotation allows it.
pub(crate) async fn recreate(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    refused: ApiError,
) -> Result<Outcome, ApiError> {
    let refusal = classify_error(&refused, wanted.contains_secret).message;
    let fail = |how: &str, manifest: bool| {
        let message = format!("{refusal}; {how}");
        Ok(Outcome::Failed(Failure { reason: FailureReason::Immutable, message, manifest }))
    };
    if is_never_recreated(&wanted.id) {
        return fail("objects of this kind are never recreated automatically: delete it by hand", true);
    }
    if !wanted.annotations.recreate {
        let how = format!(
            "to have it deleted and created again, annotate it in Git with {RECREATE_ANNOTATION}: enabled"
        );
        return fail(&how, true);
    }
    replace(work, wanted, &refusal).await
}

/// Deletes a hook that has run for another revision, and runs it again.
pub(crate) async fn run_again(work: &ApplyContext<'_>, id: &ObjectId) -> Result<Outcome, ApiError> {
    let Some(wanted) = work.desired.get(id) else { return Ok(Outcome::Held(Hold::UnknownKind)) };
    match replace(work, wanted, "it runs again").await {
        Err(failure) => refused(work, wanted, failure).await,
        done => done,
    }
}

/// Deletes the runs of a hook under its older names; returns an outcome if one of them cannot
/// go.
pub(crate) async fn delete_previous_runs(
    work: &ApplyContext<'_>,
    runs: &[ObjectId],
) -> Result<Option<Outcome>, ApiError> {
    if let Some(held) = held_by_refusal(work).filter(|_| !runs.is_empty()) {
        return Ok(Some(held));
    }
    for run in runs {
        // Another Sync may have claimed it since the plan was made.
        if let Some(sync) = work.claimed(run) {
            return Ok(Some(Outcome::Held(Hold::ClaimedBy(sync))));
        }
        let Some(live) = work.cluster.observe_object(run, work.owner).await? else { continue };
        if live.ownership != Ownership::Ours
            || !live.applied_by_us
            || !live.proven
            || live.controlled
            || live.installation_role == InstallationRole::Keys
        {
            continue;
        }
        if live.prune_disabled || live.reconcile_disabled {
            return Ok(Some(Outcome::Held(Hold::WaitsFor(run.clone()))));
        }
        if let Err(instead) = work.asked.check(work.context).await {
            return Ok(Some(instead));
        }
        tracing::info!(sync = %work.owner, object = %run, "deleted the previous run of a hook");
        let gone = work.cluster.delete(run, work.owner, &live.uid, &live.resource_version).await?;
        if !gone && !goes(work, run, &live.uid).await? {
            return Ok(Some(Outcome::Held(Hold::WaitsFor(run.clone()))));
        }
    }
    Ok(None)
}

/// Deletes an object that this Sync has applied, and creates it again.
async fn replace(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    refusal: &str,
) -> Result<Outcome, ApiError> {
    let fail = |how: &str, manifest: bool| {
        let message = format!("{refusal}; {how}");
        Ok(Outcome::Failed(Failure { reason: FailureReason::Immutable, message, manifest }))
    };
    // The keys would be lost with it.
    if work.cluster.notary().key_secret().as_ref() == Some(&wanted.id) {
        return Ok(Outcome::Held(Hold::DaemonKeys));
    }
    let Some(live) = work.cluster.observe_object(&wanted.id, work.owner).await? else {
        return create_again(work, wanted).await;
    };
    if live.installation_role == InstallationRole::Keys {
        return Ok(Outcome::Held(Hold::DaemonKeys));
    }
    if live.ownership != Ownership::Ours || !live.applied_by_us || live.controlled {
        return fail("it is not deleted, because this Sync did not apply it", true);
    }
    if live.prune_disabled || live.reconcile_disabled {
        return fail("it is not deleted, because an annotation on the live object keeps it", true);
    }
    if let Some(why) = needs_approval(work, &wanted.id, &live).await? {
        let replacement = Replacement { uid: live.uid.clone(), hash: wanted.hash, why };
        return Ok(Outcome::Held(Hold::ReplacementWaits(Box::new(replacement))));
    }
    if let Err(instead) = work.asked.check(work.context).await {
        return Ok(instead);
    }
    tracing::info!(sync = %work.owner, object = %wanted.id, "deleted, will be created again: {refusal}");
    let gone = work.cluster.delete(&wanted.id, work.owner, &live.uid, &live.resource_version).await?;
    if !gone && !goes(work, &wanted.id, &live.uid).await? {
        return fail("it was deleted but still exists", false);
    }
    create_again(work, wanted).await
}

/// Returns the reason for an approval, unless the deletion is approved already.
async fn needs_approval(
    work: &ApplyContext<'_>,
    id: &ObjectId,
    live: &Observed,
) -> Result<Option<Hold>, ApiError> {
    if work.deletions.consented.get(id) == Some(&live.uid) {
        return Ok(None);
    }
    if let Some(newer) = work.refused {
        return Ok(Some(Hold::NewerRefused(newer.into())));
    }
    if let Some(hold) = metadata_protection(&work.deletions.protected, id, live) {
        return Ok(Some(hold));
    }
    let kind = id.group_kind();
    if !needs_body_check(&kind) {
        return Ok(None);
    }
    let whole = work.cluster.objects().read_whole(id, None).await?;
    let takes_more = whole.is_some_and(|whole| deletes_others(&kind, &whole.body));
    Ok(takes_more.then_some(Hold::Guarded(PruneGuard::CascadingDelete)))
}

/// Returns the hold on deletions while a newer commit or spec cannot be applied.
fn held_by_refusal(work: &ApplyContext<'_>) -> Option<Outcome> {
    work.refused.map(|newer| Outcome::Held(Hold::NewerRefused(newer.into())))
}

/// Creates the object that was deleted, or is missing.
async fn create_again(work: &ApplyContext<'_>, wanted: &DesiredObject) -> Result<Outcome, ApiError> {
    let created = match &wanted.created_as {
        Some(_) => create_new(work, wanted).await?.is_some(),
        None => false,
    };
    if !created {
        work.cluster.apply(wanted, work.owner, Force::Yes).await?;
    }
    Ok(Outcome::Recreated)
}

/// Waits until the object with this uid is gone. An earlier apply would only change the old
/// object.
async fn goes(work: &ApplyContext<'_>, id: &ObjectId, uid: &str) -> Result<bool, ApiError> {
    let until = clock::now() + GOING;
    let mut pause = LOOK.0;
    while clock::now() < until && !work.stop.is_cancelled() {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK.1);
        let live = work.cluster.observe_object(id, work.owner).await?;
        if live.is_none_or(|live| *live.uid != *uid) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_never_recreated(id: &ObjectId) -> bool {
    NEVER.iter().any(|(group, kind)| id.is_kind(group, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_data_or_others_is_never_recreated() {
        let check = |id: &str, never: bool| {
            assert_eq!(is_never_recreated(&ObjectId::parse(id).unwrap()), never, "{id}");
        };
        check("/PersistentVolumeClaim|shop/data", true);
        check("/PersistentVolume|/data", true);
        check("/Namespace|/shop", true);
        check("apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com", true);
        check("apps/Deployment|shop/web", false);
        check("batch/Job|shop/migrate", false);
        check("/ConfigMap|shop/a", false);
        // A kind is only identified together with its group.
        check("example.com/Namespace|shop/a", false);
    }
}
