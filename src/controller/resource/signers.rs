//! Reads and watches the Secrets and ConfigMaps with the keys, or the trust root, of those who may
//! sign the source and the chart.
//!
//! In: the signatures that the spec requires. Out: the trusted keys; a change of an object wakes
//! the worker at once. Without the object, nobody is trusted.

use std::sync::Arc;

use super::SyncWorker;
use super::read_watch::ReadWatch;
use super::secrets::{WatchedSecret, followed};
use crate::api::ValuesKind;
use crate::cluster::Cluster;
use crate::controller::reconcile::trusted_signers;
use crate::controller::spec::{ValidatedSpec, Verification};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::TrustedKeys;

/// The object with keys or a trust root, watched.
pub(super) enum WatchedSigners {
    Secret(WatchedSecret),
    ConfigMap(WatchedTrustRoot),
}

/// A ConfigMap with a trust root: read once, and again after it changed.
pub(super) struct WatchedTrustRoot {
    verification: Verification,
    /// Impersonated ServiceAccount; none for the daemon itself.
    account: Option<Box<str>>,
    watch: ReadWatch,
    keys: Option<Arc<TrustedKeys>>,
}

/// Keys of those who may sign the source and the chart; none where no signature is required.
#[derive(Clone, Default, PartialEq)]
pub(super) struct SigningKeys {
    pub(super) source: Option<Arc<TrustedKeys>>,
    pub(super) chart: Option<Arc<TrustedKeys>>,
}

/// Returns the trusted keys, if the Sync verifies signatures, and watches their objects from now
/// on.
pub(super) async fn signing_keys(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    cluster: &Cluster,
) -> Result<SigningKeys, ReconcileError> {
    let known = (worker.signers.take(), worker.chart_signers.take());
    let (trusted, source) = read(worker, valid_spec, &valid_spec.verify, known.0, cluster).await;
    worker.signers = trusted;
    let (trusted, chart) = read(worker, valid_spec, &valid_spec.chart_verify, known.1, cluster).await;
    worker.chart_signers = trusted;
    let is_missing = |read: &Result<_, ReconcileError>| {
        let missing = [ErrorCause::SecretMissing, ErrorCause::ValuesMissing];
        read.as_ref().is_err_and(|reconcile_error| missing.contains(&reconcile_error.cause))
    };
    if is_missing(&source) || is_missing(&chart) {
        revoke_keys(worker, valid_spec);
    }
    Ok(SigningKeys { source: source?, chart: chart? })
}

/// Trusts no key until the new keys are read: the previous request may have trusted others, and
/// nothing new may be accepted by them.
pub(super) fn revoke_keys(worker: &SyncWorker, valid_spec: &ValidatedSpec) {
    let Some(requests) = &worker.requests else { return };
    let nobody = |verification: &Option<Verification>| verification.as_ref().map(|_| Arc::default());
    let (keys, chart_keys) = (nobody(&valid_spec.verify), nobody(&valid_spec.chart_verify));
    requests.send_if_modified(|order| {
        let before = &order.valid_spec;
        let is_news = (&before.verify, &before.chart_verify)
            != (&valid_spec.verify, &valid_spec.chart_verify)
            || (&order.keys, &order.chart_keys) != (&keys, &chart_keys);
        if is_news {
            let before = before.clone();
            let order = Arc::make_mut(order);
            order.valid_spec = Arc::new(ValidatedSpec {
                verify: valid_spec.verify.clone(),
                chart_verify: valid_spec.chart_verify.clone(),
                ..ValidatedSpec::clone(&before)
            });
            (order.keys, order.chart_keys) = (keys, chart_keys);
        }
        is_news
    });
}

pub(super) type ReadKeys = Result<Option<Arc<TrustedKeys>>, ReconcileError>;

/// Reads the object of one field; also returns its watch.
pub(super) async fn read(
    worker: &SyncWorker,
    valid_spec: &ValidatedSpec,
    verification: &Option<Verification>,
    known: Option<WatchedSigners>,
    cluster: &Cluster,
) -> (Option<WatchedSigners>, ReadKeys) {
    let Some(verification) = verification else { return (None, Ok(None)) };
    match verification.secret() {
        Some(name) => {
            let known = match known {
                Some(WatchedSigners::Secret(known)) => Some(known),
                Some(WatchedSigners::ConfigMap(_)) | None => None,
            };
            let watched = followed(worker, name, known);
            let data = watched.read(&worker.context.cluster, &worker.name, &worker.inputs_changed).await;
            let keys = data.and_then(|data| trusted_signers::of_secret(verification, &data));
            (Some(WatchedSigners::Secret(watched)), keys.map(Some))
        }
        None => {
            let account = &valid_spec.service_account;
            let is_it =
                |known: &WatchedTrustRoot| known.verification == *verification && known.account == *account;
            let known = match known {
                Some(WatchedSigners::ConfigMap(known)) if is_it(&known) => Some(known),
                Some(_) | None => None,
            };
            let mut watched = known.unwrap_or_else(|| WatchedTrustRoot {
                verification: verification.clone(),
                account: account.clone(),
                watch: ReadWatch::begin(worker, ValuesKind::ConfigMap, &verification.name, cluster),
                keys: None,
            });
            let keys = watched.read(worker, cluster).await;
            (Some(WatchedSigners::ConfigMap(watched)), keys)
        }
    }
}

impl WatchedTrustRoot {
    /// Reads the ConfigMap, unless the last read is still current.
    async fn read(&mut self, worker: &SyncWorker, cluster: &Cluster) -> ReadKeys {
        if !self.watch.is_current() {
            self.watch.reads();
            let found = trusted_signers::config_map(cluster, &worker.name, &self.verification).await;
            let (version, is_read) = match &found {
                Ok(found) => (Some(found.version.clone()), found.keys.is_ok()),
                Err(_) => (None, false),
            };
            self.watch.has_read(version, !is_read, &worker.inputs_changed);
            self.keys = Some(found?.keys?);
        }
        match self.watch.is_forbidden() {
            true => Err(trusted_signers::unwatched(&worker.name, &self.verification)),
            false => Ok(self.keys.clone()),
        }
    }
}
