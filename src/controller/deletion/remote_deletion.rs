//! Deletes the objects of a Sync that live in another cluster than the Sync.
//!
//! In: a Sync that is being deleted. Out: the objects that stay.
//!
//! A cluster that does not answer, or refuses the access, is waited for without end: only a person
//! may say that its objects are left. The end of the Sync's own namespace leaves them, as at home.

use tokio::time::{sleep, timeout_at};

use super::orphans::Orphans;
use super::{DeletionContext, GRACE, delete, status_texts, terminating_parent};
use crate::clock;
use crate::controller::chance;
use crate::controller::spec::ValidatedSpec;

/// Deletes the objects, and returns those that stay.
///
/// # Guarantees
///
/// Objects stay only after the cluster has answered since.
pub(super) async fn delete_remote(going: &DeletionContext<'_>, valid_spec: &ValidatedSpec) -> Orphans {
    let (context, name) = (going.context, going.resource_recorder.name());
    let (mut pauses, first) = (context.pauses().cluster, clock::now() + valid_spec.timeout);
    let _ = timeout_at(first.into(), context.peers.wait_for_dependents(name, GRACE)).await;
    loop {
        if let Ok(Some(why)) = terminating_parent(context, name).await {
            return Orphans::all(None, name, why);
        }
        let until = clock::now() + valid_spec.timeout;
        let failure = match delete(going, valid_spec, until).await {
            Ok(orphans) if is_empty(&orphans) => return orphans,
            Ok(orphans) => match failure_now(going, valid_spec).await {
                None => return orphans,
                Some(failure) => failure,
            },
            Err(failure) => failure.to_string(),
        };
        going.report_status(status_texts::away(name, &failure));
        sleep(pauses.failed(chance())).await;
    }
}

fn is_empty(orphans: &Orphans) -> bool {
    orphans.objects.is_empty() && orphans.all.is_none()
}

/// Returns the reason for which the cluster cannot be asked now.
async fn failure_now(going: &DeletionContext<'_>, valid_spec: &ValidatedSpec) -> Option<String> {
    let name = going.resource_recorder.name();
    match going.context.target_of(name, valid_spec).await {
        Err(error) => Some(error.message),
        Ok(cluster) => cluster.discovery().refresh().await.err().map(|failure| failure.to_string()),
    }
}
