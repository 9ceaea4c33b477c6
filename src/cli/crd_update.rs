//! Updates the definitions of Syncs and Notifiers in the cluster.
//!
//! In: the cluster. Out: the definitions of this release, if the daemon may write it, and a log
//! line.

use serde_json::Value;

use crate::api;
use crate::cluster::{Cluster, CrdInstallResult, install_crd};

/// Updates the definitions if that is permitted. Nothing depends on its success.
pub(super) async fn define(cluster: &Cluster) {
    if let Ok([syncs, notifiers]) = api::definitions() {
        update(cluster, "Sync", &syncs).await;
        update(cluster, "Notifier", &notifiers).await;
    }
}

async fn update(cluster: &Cluster, kind: &str, own: &Value) {
    let by_hand = "moorline crd | kubectl apply --server-side --force-conflicts -f -";
    match install_crd(cluster, own).await {
        CrdInstallResult::UpToDate => {}
        CrdInstallResult::Applied => tracing::info!("the CustomResourceDefinition of {kind} was updated"),
        CrdInstallResult::AppliedBySync(sync) => {
            tracing::info!(
                sync = &*sync,
                "the CustomResourceDefinition of {kind} differs, and is left to the Sync that applies it"
            )
        }
        CrdInstallResult::Newer(version) => {
            tracing::info!(
                version = &*version,
                "the CustomResourceDefinition of {kind} is from a newer Moorline, and is kept"
            )
        }
        CrdInstallResult::NotUpdated(failure) => {
            tracing::warn!(%failure, "the CustomResourceDefinition of {kind} differs and cannot be updated; to update it: {by_hand}");
        }
        // Without it nobody is told, which is a choice.
        CrdInstallResult::Unreadable(failure) if kind == "Notifier" && failure.code() == Some(404) => {}
        CrdInstallResult::Unreadable(failure) => {
            tracing::info!(%failure, "cannot check if the CustomResourceDefinition of {kind} is up to date; to update it: {by_hand}");
        }
    }
}
