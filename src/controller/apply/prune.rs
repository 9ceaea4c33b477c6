//! Prunes one object.
//!
//! In: the object that the plan means, by id and uid.
//! Out: a delete request, or the reason why the object stays.

use super::ApplyContext;
use super::non_empty_guard::non_empty_hold;
use crate::cluster::ApiError;
use crate::object::ObjectId;
use crate::observed::{InstallationRole, Ownership};
use crate::plan::{Hold, Outcome};

/// Reads the object once more, and deletes it if it is still the one that the plan meant and
/// the Sync still asks for it.
pub(super) async fn prune(
    work: &ApplyContext<'_>,
    id: &ObjectId,
    uid: &str,
    version: &str,
) -> Result<Outcome, ApiError> {
    // Another Sync may have claimed it since the plan was made.
    if let Some(sync) = work.claimed(id) {
        return Ok(Outcome::Held(Hold::ClaimedBy(sync)));
    }
    let Some(live) = work.cluster.observe_object(id, work.owner).await? else {
        return Ok(Outcome::Pruned { gone: true });
    };
    let is_meant = *live.uid == *uid && live.ownership == Ownership::Ours && live.applied_by_us;
    if live.installation_role == InstallationRole::Keys {
        return Ok(Outcome::Held(Hold::DaemonKeys));
    }
    if !is_meant || live.controlled || live.prune_disabled || live.reconcile_disabled {
        return Ok(Outcome::Held(Hold::NotAppliedByUs));
    }
    if !live.proven && work.deletions.consented.get(id).is_none_or(|consented| **consented != *uid) {
        return Ok(Outcome::Held(Hold::Unproven));
    }
    if let Some(hold) = non_empty_hold(work, id).await? {
        return Ok(Outcome::Held(hold));
    }
    if let Err(instead) = work.asked.check(work.context).await {
        return Ok(instead);
    }
    let version = if live.resource_version.is_empty() { version } else { &live.resource_version };
    // Noted before the watch reports the deletion.
    work.context.peers.note_pruned(uid);
    let gone = work.cluster.delete(id, work.owner, uid, version).await?;
    Ok(Outcome::Pruned { gone })
}
