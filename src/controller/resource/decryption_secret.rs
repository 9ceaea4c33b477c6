//! The Secret with the keys for encrypted files: read once, and again after it changed.
//!
//! In: the spec, and the cluster with the identity of the Sync. Out: the spec with the keys. While
//! nothing changes, no request is sent.

use std::sync::Arc;

use super::SyncWorker;
use super::read_watch::ReadWatch;
use crate::api::ValuesKind;
use crate::cluster::Cluster;
use crate::controller::credentials::cloud_identity::TokenClusters;
use crate::controller::reconcile::decryption_keys;
use crate::controller::spec::ValidatedSpec;
use crate::decryption::DecryptionKeys;
use crate::report::ReconcileError;
use crate::source::CloudAccount;

/// The Secret with the keys, watched.
pub(super) struct WatchedKeys {
    /// The Secret; none if only clouds decrypt.
    secret: Option<(Box<str>, ReadWatch)>,
    /// The ServiceAccount for clouds, with the one that is impersonated.
    account: CloudAccount,
    keys: Option<Arc<DecryptionKeys>>,
}

/// Returns the spec with the keys for encrypted files, and watches their Secret from now on.
pub(super) async fn with_keys(
    worker: &mut SyncWorker,
    valid_spec: ValidatedSpec,
    cluster: &Cluster,
) -> Result<ValidatedSpec, ReconcileError> {
    let known = worker.decryption.take();
    let Some(decryption) = &valid_spec.decryption else { return Ok(valid_spec) };
    let clusters = TokenClusters { daemon: &worker.context.cluster, asker: cluster };
    let account = decryption_keys::account(clusters, &worker.name, &valid_spec, decryption);
    let named = |known: &WatchedKeys| known.secret.as_ref().map(|(name, _)| name.clone());
    let is_it = |known: &WatchedKeys| named(known) == decryption.secret && known.account == account;
    let watched = known.filter(is_it).unwrap_or_else(|| {
        let watch = |name: &str| ReadWatch::begin(worker, ValuesKind::Secret, name, cluster);
        let secret = decryption.secret.as_ref().map(|name| (name.clone(), watch(name)));
        let keys = secret.is_none().then(|| Arc::new(DecryptionKeys::of_account(account.clone())));
        WatchedKeys { secret, account, keys }
    });
    let again = worker.inputs_changed.clone();
    let WatchedKeys { secret, account, keys } = worker.decryption.insert(watched);
    if let Some((secret, watch)) = secret {
        if !watch.is_current() {
            watch.reads();
            let found = decryption_keys::read(cluster, &worker.name, secret, account).await;
            let (version, is_read) = match &found {
                Ok(found) => (Some(found.version.clone()), found.keys.is_ok()),
                Err(_) => (None, false),
            };
            watch.has_read(version, !is_read, &again);
            let read = found?.keys?;
            // Equal keys are kept with what they have decrypted.
            if keys.as_ref() != Some(&read) {
                *keys = Some(read);
            }
        }
        if watch.is_forbidden() {
            return Err(decryption_keys::unwatched(&worker.name, secret));
        }
    }
    match keys.clone() {
        Some(keys) => Ok(decryption_keys::with(valid_spec, keys)),
        None => Ok(valid_spec),
    }
}
