//! Applies an object of ours in another cluster without asking first which cluster it is.
//!
//! In: an object whose uid is proven, or another one.
//! Out: an apply that names the uid, so that no other cluster carries it out; or a check of the
//! cluster's identity, and an apply.

use super::ApplyContext;
use super::apply_object::send;
use crate::cluster::{ApiError, ApplyResult, Force};
use crate::desired::DesiredObject;
use crate::plan::Change;

/// Applies our fields of an object to the very object that we know, if its uid is proven.
/// Otherwise, and after a refusal, the cluster has to be the same as before.
pub(super) async fn send_named(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    force: Force,
    change: Option<&Change>,
) -> Result<ApplyResult, ApiError> {
    let Some(uid) = change.and_then(|_| work.named_uid(&wanted.id)) else {
        work.confirm().await?;
        return send(work, wanted, force, change, None).await;
    };
    match send(work, wanted, force, change, Some(&uid)).await {
        Err(failure) if failure.is_of_other_uid() => {
            // It was deleted and created again, or another cluster has answered.
            work.context.targets.doubt(work.owner, work.cluster);
            work.confirm().await?;
            send(work, wanted, force, change, None).await
        }
        Err(ApiError::Refused(refusal)) => {
            // Requests after a refusal may name no uid.
            work.confirm().await?;
            Err(ApiError::Refused(refusal))
        }
        sent => sent,
    }
}
