//! Reads and watches the Secret of the cluster in which a Sync has its objects.
//!
//! In: the validated spec. Out: that cluster. If the Secret is missing, refused or may not be used,
//! the Sync stops: it neither continues with the previous access nor uses another identity.

use super::SyncWorker;
use super::secrets::followed;
use super::stand_down::withdraw_claims;
use crate::cluster::Cluster;
use crate::cluster::remote::is_same_cluster;
use crate::controller::spec::{TargetSecret, ValidatedSpec};
use crate::controller::targets::{check_home, check_use, connect_target};
use crate::report::{ErrorCause, ReconcileError};

/// Returns the cluster of the Sync's objects, and watches its Secret from now on.
pub(super) async fn target(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    home: &Cluster,
) -> Result<Cluster, ReconcileError> {
    let found = match &valid_spec.cluster {
        None => check_home(&worker.resource_recorder).map(|()| home.clone()),
        Some(secret) => connected(worker, valid_spec, secret, home).await,
    };
    // If the home cluster does not answer, no right was revoked.
    let says_nothing = |cause| matches!(cause, ErrorCause::ClusterUnreachable | ErrorCause::Progressing);
    if found.as_ref().is_err_and(|error| !says_nothing(error.cause)) {
        withdraw_claims(worker).await;
    }
    found
}

async fn connected(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    secret: &TargetSecret,
    home: &Cluster,
) -> Result<Cluster, ReconcileError> {
    let known = worker.cluster_secret.take();
    let followed = worker.cluster_secret.insert(followed(worker, &secret.name, known));
    let data = followed.read(&worker.context.cluster, &worker.name, &worker.inputs_changed).await;
    let account = valid_spec.service_account.as_deref();
    check_use(&worker.context, &worker.name, (secret, account), home).await?;
    let found = connect_target(&worker.context, &worker.resource_recorder, secret, data?).await;
    if found.is_err() {
        // The previous access has ended, also if the new one cannot be tried now.
        withdraw_claims(worker).await;
    }
    found
}

/// Ends the last request if the Secret of its cluster is gone or gives another access now, although
/// the newest spec is refused for another reason.
pub(super) async fn end_with_secret(worker: &mut SyncWorker) {
    let Some(last) = worker.requests.as_ref().map(|requests| requests.borrow().clone()) else { return };
    if last.valid_spec.cluster.is_none() {
        return;
    }
    let found = target(worker, &last.valid_spec, &last.home).await;
    if found.is_ok_and(|now| !is_same_cluster(&now, &last.cluster)) {
        withdraw_claims(worker).await;
    }
}
