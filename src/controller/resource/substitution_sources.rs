//! ConfigMaps and Secrets with the variables and chart values of a Sync: each is read once, and
//! again after it changed.
//!
//! In: the spec, and the cluster with the identity of the Sync. Out: the spec with all variables
//! and values. While nothing changes, no request is sent.

use tokio::sync::Notify;

use super::SyncWorker;
use super::read_watch::ReadWatch;
use crate::api::SyncName;
use crate::cluster::{Cluster, SubstitutionValues};
use crate::controller::reconcile::substitution_values;
use crate::controller::spec::{ValidatedSpec, ValuesSource};
use crate::report::ReconcileError;

/// One ConfigMap or Secret that is watched.
pub(super) struct Source {
    values: ValuesSource,
    /// Impersonated ServiceAccount; none for the daemon itself.
    account: Option<Box<str>>,
    watch: ReadWatch,
    texts: Option<SubstitutionValues>,
}

/// Returns the spec with all variables and values, and watches their objects from now on.
pub(super) async fn filled(
    worker: &mut SyncWorker,
    valid_spec: ValidatedSpec,
    cluster: &Cluster,
) -> Result<ValidatedSpec, ReconcileError> {
    let mut known = std::mem::take(&mut worker.values);
    for values in valid_spec.values_sources() {
        let is_it =
            |source: &Source| source.values == *values && source.account == valid_spec.service_account;
        let source = match known.iter().position(is_it) {
            Some(at) => known.swap_remove(at),
            None => Source {
                values: values.clone(),
                account: valid_spec.service_account.clone(),
                watch: ReadWatch::begin(worker, values.kind, &values.name, cluster),
                texts: None,
            },
        };
        worker.values.push(source);
    }
    let inputs_changed = worker.inputs_changed.clone();
    // All objects are watched, also after one that cannot be read: its appearance is detected.
    for source in &mut worker.values {
        source.read(cluster, &worker.name, &inputs_changed).await?;
    }
    substitution_values::with(valid_spec, worker.values.iter().map(|source| source.texts.as_ref()))
}

impl Source {
    /// Reads the object, unless the last read is still current.
    async fn read(
        &mut self,
        cluster: &Cluster,
        name: &SyncName,
        again: &Notify,
    ) -> Result<(), ReconcileError> {
        if !self.watch.is_current() {
            self.watch.reads();
            let found = substitution_values::texts(cluster, name, &self.values).await;
            let version = match &found {
                Ok(Some(texts)) => Some(texts.version.clone()),
                Ok(None) | Err(_) => None,
            };
            self.watch.has_read(version, found.is_err(), again);
            self.texts = found?;
        }
        // The values of an object count only while a change of it would be detected.
        match self.watch.is_forbidden() {
            true => Err(substitution_values::unwatched(name, &self.values)),
            false => Ok(()),
        }
    }
}
