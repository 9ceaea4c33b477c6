//! The Secret with the keys for encrypted files: read once, and again after it changed.
//!
//! In: the spec, and the cluster with the identity of the Sync. Out: the spec with the keys. While
//! nothing changes, no request is sent.

use std::sync::Arc;

use super::SyncWorker;
use super::read_watch::ReadWatch;
use crate::api::ValuesKind;
use crate::cluster::Cluster;
use crate::controller::reconcile::decryption_keys;
use crate::controller::spec::{Decryption, ValidatedSpec};
use crate::decryption::DecryptionKeys;
use crate::report::ReconcileError;

/// The Secret with the keys, watched.
pub(super) struct WatchedKeys {
    name: Box<str>,
    /// Impersonated ServiceAccount; none for the daemon itself.
    account: Option<Box<str>>,
    watch: ReadWatch,
    keys: Option<Arc<DecryptionKeys>>,
}

/// Returns the spec with the keys for encrypted files, and watches their Secret from now on.
pub(super) async fn with_keys(
    worker: &mut SyncWorker,
    valid_spec: ValidatedSpec,
    cluster: &Cluster,
) -> Result<ValidatedSpec, ReconcileError> {
    let known = worker.decryption.take();
    let Some(Decryption { secret, .. }) = &valid_spec.decryption else { return Ok(valid_spec) };
    let is_it = |known: &WatchedKeys| known.name == *secret && known.account == valid_spec.service_account;
    let watched = known.filter(is_it).unwrap_or_else(|| WatchedKeys {
        name: secret.clone(),
        account: valid_spec.service_account.clone(),
        watch: ReadWatch::begin(worker, ValuesKind::Secret, secret, cluster),
        keys: None,
    });
    let again = worker.rotated.clone();
    let watched = worker.decryption.insert(watched);
    if !watched.watch.is_current() {
        watched.watch.reads();
        let found = decryption_keys::read(cluster, &worker.name, secret).await;
        let (version, is_read) = match &found {
            Ok(found) => (Some(found.version.clone()), found.keys.is_ok()),
            Err(_) => (None, false),
        };
        watched.watch.has_read(version, !is_read, &again);
        let keys = found?.keys?;
        // Equal keys are kept with what they have decrypted.
        if watched.keys.as_ref() != Some(&keys) {
            watched.keys = Some(keys);
        }
    }
    if watched.watch.is_forbidden() {
        return Err(decryption_keys::unwatched(&worker.name, secret));
    }
    match watched.keys.clone() {
        Some(keys) => Ok(decryption_keys::with(valid_spec, keys)),
        None => Ok(valid_spec),
    }
}
