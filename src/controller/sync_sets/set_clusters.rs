//! The Secrets of clusters that a set selects.
//!
//! In: a generator, and the cluster with the identity of the set. Out: the metadata of every Secret
//! that the labels select, or an error: half a list is no answer. The content is not asked for.

use crate::api::{ClusterGenerator, SyncName};
use crate::cluster::{Cluster, SyncSetRequests};
use crate::controller::reconcile_errors::cluster_error;
use crate::report::{ErrorCause, ReconcileError};
use crate::sync_set::{ListedSecret, MAX_SETS, label_selector};

/// Lists the Secrets that a generator selects in the namespace of its set.
pub(in crate::controller) async fn list_clusters(
    cluster: &Cluster,
    name: &SyncName,
    generator: &ClusterGenerator,
) -> Result<Vec<ListedSecret>, ReconcileError> {
    let selector = label_selector(&generator.selector).map_err(|message| ReconcileError {
        cause: ErrorCause::SpecInvalid,
        message: format!("spec.generators: {message}"),
        problems: Vec::new(),
        permanent: true,
    })?;
    let listed = SyncSetRequests::new(cluster).list_secrets(&name.namespace, &selector, MAX_SETS).await;
    let items = listed.map_err(|failure| {
        let error = cluster_error(&failure);
        let message = format!(
            "the Secrets of clusters in {} cannot be listed with the labels {selector}: {}",
            name.namespace, error.message
        );
        ReconcileError { message, ..error }
    })?;
    items.iter().map(|item| ListedSecret::of(item).ok_or_else(unreadable)).collect()
}

fn unreadable() -> ReconcileError {
    let message = "a Secret in the list of clusters has no name".to_owned();
    ReconcileError { cause: ErrorCause::ClusterUnreachable, message, problems: Vec::new(), permanent: false }
}
