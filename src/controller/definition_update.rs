//! Updates the definition of a kind beside Sync, once its resources were listed.
//!
//! In: a definition of this release. Out: the same in the cluster, if the daemon may write it, and
//! a log line. Nothing depends on its success.

use serde_json::Value;

use crate::cluster::{Cluster, CrdInstallResult, install_crd};

/// Updates a definition, which exists, if that is permitted.
pub(super) async fn update_definition(cluster: &Cluster, own: Result<Value, serde_json::Error>) {
    let Ok(own) = own else { return };
    let text = |pointer: &str| own.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/spec/names/kind");
    match install_crd(cluster, &own).await {
        CrdInstallResult::Applied => {
            tracing::info!("the CustomResourceDefinition of {kind} was updated")
        }
        CrdInstallResult::NotUpdated(failure) => {
            let plural = text("/spec/names/plural");
            let by_hand =
                format!("moorline crd {plural} | kubectl apply --server-side --force-conflicts -f -");
            tracing::warn!(%failure, "the CustomResourceDefinition of {kind} differs and cannot be updated; to update it: {by_hand}");
        }
        other => tracing::debug!(?other, "the CustomResourceDefinition of {kind} is left as it is"),
    }
}
