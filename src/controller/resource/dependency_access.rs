//! Checks that a Sync may depend on the Syncs of other namespaces that it names.
//!
//! In: the validated spec. Out: nothing, or the missing permission. A Sync that waits for another
//! one discloses the health of that one; so the ServiceAccount of the Sync must be able to read it.

use std::time::{Duration, Instant};

use super::SyncWorker;
use crate::api::SyncName;
use crate::clock;
use crate::cluster::Cluster;
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::spec::ValidatedSpec;
use crate::report::{ErrorCause, ReconcileError};

/// Validity of a positive answer: the check runs at each event of the Sync.
const STANDS: Duration = Duration::from_secs(60);

/// Syncs that an account may read, from the last check.
#[derive(Debug)]
pub(super) struct Readable {
    account: Box<str>,
    syncs: Vec<SyncName>,
    at: Instant,
}

pub(super) async fn may_depend(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    cluster: &Cluster,
) -> Result<(), ReconcileError> {
    // The daemon may read all Syncs.
    let Some(account) = &valid_spec.service_account else { return Ok(()) };
    let elsewhere = valid_spec.depends_on.keys().filter(|other| other.namespace != worker.name.namespace);
    let syncs: Vec<SyncName> = elsewhere.cloned().collect();
    let is_current = |known: &Readable| {
        (&known.account, &known.syncs) == (account, &syncs) && clock::since(known.at) < STANDS
    };
    if syncs.is_empty() || worker.readable.as_ref().is_some_and(is_current) {
        return Ok(());
    }
    for other in &syncs {
        let may = cluster.access_reviews().may_read_sync(&other.namespace, &other.name).await;
        if !may.map_err(|failure| cluster_error(&failure))? {
            return Err(forbidden(other, account));
        }
    }
    worker.readable = Some(Readable { account: account.clone(), syncs, at: clock::now() });
    Ok(())
}

fn forbidden(other: &SyncName, account: &str) -> ReconcileError {
    let message = format!(
        "spec.dependsOn names the Sync {other}, which the ServiceAccount {account} may not read: grant it get on \
         syncs.moorline.dev in {}, or depend only on Syncs in the same namespace",
        other.namespace
    );
    ReconcileError { cause: ErrorCause::RightsMissing, message, problems: Vec::new(), permanent: false }
}
