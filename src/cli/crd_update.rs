//! Updates the definition of Syncs in the cluster.
//!
//! In: the cluster. Out: the definition of this release, if the daemon may write it, and a log
//! line.

use crate::api;
use crate::cluster::{Cluster, CrdInstallResult, install_crd};

/// Updates the definition of Syncs if that is permitted. Nothing depends on its success.
pub(super) async fn define(cluster: &Cluster) {
    let Ok(own) = api::definition() else { return };
    let by_hand = "moorline crd | kubectl apply --server-side --force-conflicts -f -";
    match install_crd(cluster, &own).await {
        CrdInstallResult::UpToDate => {}
        CrdInstallResult::Applied => tracing::info!("the CustomResourceDefinition of Sync was updated"),
        CrdInstallResult::AppliedBySync(sync) => {
            tracing::info!(
                sync = &*sync,
                "the CustomResourceDefinition of Sync differs, and is left to the Sync that applies it"
            )
        }
        CrdInstallResult::Newer(version) => {
            tracing::info!(
                version = &*version,
                "the CustomResourceDefinition of Sync is from a newer Moorline, and is kept"
            )
        }
        CrdInstallResult::NotUpdated(failure) => {
            tracing::warn!(%failure, "the CustomResourceDefinition of Sync differs and cannot be updated; to update it: {by_hand}");
        }
        CrdInstallResult::Unreadable(failure) => {
            tracing::info!(%failure, "cannot check if the CustomResourceDefinition of Sync is up to date; to update it: {by_hand}");
        }
    }
}
