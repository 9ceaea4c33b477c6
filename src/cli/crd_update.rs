//! Updates the definition of Syncs in the cluster.
//!
//! In: the cluster. Out: the definition of this release, if the daemon may write it, and a log
//! line.

use crate::api;
use crate::cluster::{Cluster, CrdInstallResult};

/// Updates the definition of Syncs if that is permitted. Nothing depends on its success.
pub(super) async fn define(cluster: &Cluster) {
    let Ok(own) = api::definition() else { return };
    let by_hand = "moorline crd | kubectl apply --server-side --force-conflicts -f -";
    match cluster.install_crd(&own).await {
        CrdInstallResult::UpToDate => {}
        CrdInstallResult::Applied => tracing::info!("the definition of Syncs is brought up to date"),
        CrdInstallResult::AppliedBySync(sync) => {
            tracing::info!(
                sync = &*sync,
                "the definition of Syncs is another one, and is left to the Sync that applies it"
            )
        }
        CrdInstallResult::Newer(version) => {
            tracing::info!(version = &*version, "the definition of Syncs is of a newer Moorline, and stays")
        }
        CrdInstallResult::NotUpdated(failure) => {
            tracing::warn!(%failure, "the definition of Syncs is another one, and is served as it is; to bring it up to date: {by_hand}");
        }
        CrdInstallResult::Unreadable(failure) => {
            tracing::info!(%failure, "whether the definition of Syncs is up to date is not known; to bring it there: {by_hand}");
        }
    }
}
