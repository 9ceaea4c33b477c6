//! Reads and watches the Secrets that the mounts of a Sync name.
//!
//! In: the validated spec. Out: the sources of the mounts, each with its own login and its own
//! keys. An error names the mount.

use std::sync::Arc;

use super::SyncWorker;
use super::secrets::{WatchedSecret, followed};
use super::signers;
use super::signers::WatchedSigners;
use crate::cluster::{Cluster, SecretData};
use crate::controller::credentials::cloud_identity::{TokenClusters, mount_credentials};
use crate::controller::credentials::secret_permission::{SecretPermission, source_login};
use crate::controller::reconcile::mounts::{MountSource, name_mount};
use crate::controller::spec::{ValidatedMount, ValidatedSpec};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::TrustedKeys;

/// The Secrets that a mount names, and the permission to send the first one.
#[derive(Default)]
pub(super) struct WatchedMount {
    secret: Option<WatchedSecret>,
    trusted: Option<WatchedSigners>,
    permission: Option<Arc<SecretPermission>>,
}

/// Returns the sources of the mounts of a Sync, and watches their Secrets from now on.
pub(super) async fn mounts(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    cluster: &Cluster,
) -> Result<Arc<[MountSource]>, ReconcileError> {
    if worker.requests.as_ref().is_some_and(|requests| has_other_keys(&requests.borrow().mounts, valid_spec))
    {
        // Until the new keys are read, no revision may be accepted with the old ones.
        revoke_keys(worker);
    }
    let mut known = std::mem::take(&mut worker.mounts).into_iter();
    let mut found = Vec::new();
    for (at, mount) in valid_spec.mounts.iter().enumerate() {
        let mut watched = known.next().unwrap_or_default();
        let source = source(worker, valid_spec, (at, mount), &mut watched, cluster).await;
        // Also after an error: its Secret may change.
        worker.mounts.push(watched);
        found.push(source.map_err(|error| name_mount(at, mount, error))?);
    }
    Ok(found.into())
}

async fn source(
    worker: &SyncWorker,
    valid_spec: &ValidatedSpec,
    (at, mount): (usize, &ValidatedMount),
    watched: &mut WatchedMount,
    cluster: &Cluster,
) -> Result<MountSource, ReconcileError> {
    let (context, sync) = (&worker.context, &worker.name);
    let credentials = match &mount.source.secret {
        Some(name) => {
            let data = read(worker, name, &mut watched.secret).await?;
            let of = (sync, valid_spec.service_account.as_deref());
            let to = &mount.source.address;
            source_login(context, cluster, of, to, (name, data), &mut watched.permission).await?
        }
        None => {
            (watched.secret, watched.permission) = (None, None);
            let clusters = TokenClusters { daemon: &context.cluster, asker: cluster };
            let repositories = &context.sources.repositories;
            mount_credentials(repositories, clusters, sync, valid_spec, &mount.source)?
        }
    };
    let known = watched.trusted.take();
    let (trusted, keys) = signers::read(worker, valid_spec, &mount.source.verify, known, cluster).await;
    watched.trusted = trusted;
    let missing = [ErrorCause::SecretMissing, ErrorCause::ValuesMissing];
    if keys.as_ref().is_err_and(|error| missing.contains(&error.cause)) {
        revoke_keys(worker);
    }
    let keys = keys?;
    let login = (credentials, watched.permission.clone());
    MountSource::open(&context.sources.repositories, (sync, valid_spec), (at, mount), login, keys)
}

async fn read(
    worker: &SyncWorker,
    name: &str,
    known: &mut Option<WatchedSecret>,
) -> Result<SecretData, ReconcileError> {
    let before = known.take();
    let followed = known.insert(followed(worker, name, before));
    let data = followed.read(&worker.context.cluster, &worker.name, &worker.inputs_changed).await?;
    Ok(SecretData::clone(&data))
}

/// True if a newer spec asks for other signatures of a mount.
fn has_other_keys(mounts: &[MountSource], newer: &ValidatedSpec) -> bool {
    let signed = |mount: &ValidatedMount| (mount.path.clone(), mount.source.verify.clone());
    let old = mounts.iter().map(|source| signed(&source.mount));
    !old.eq(newer.mounts.iter().map(signed))
}

/// Trusts no key of a mount until the new keys are read.
fn revoke_keys(worker: &SyncWorker) {
    let Some(requests) = &worker.requests else { return };
    requests.send_if_modified(|order| {
        let nobody = TrustedKeys::default();
        let trusts = |source: &MountSource| source.keys.as_deref().is_some_and(|keys| *keys != nobody);
        let is_news = order.mounts.iter().any(trusts);
        if is_news {
            let nobody = Arc::new(nobody);
            let without = |source: &MountSource| source.trusting(&nobody);
            let order = Arc::make_mut(order);
            order.mounts = order.mounts.iter().map(without).collect();
        }
        is_news
    });
}
