//! ConfigMaps and Secrets with the variables of a Sync: each is read once, and again after it
//! changed.
//!
//! In: the spec, and the cluster with the identity of the Sync. Out: the spec with the values of
//! all variables. While nothing changes, no request is sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::SyncWorker;
use super::versions::Versions;
use crate::api::SyncName;
use crate::cluster::{Cluster, SubstitutionValues, ValuesWatchEvent, WatchGuard};
use crate::controller::reconcile::substitution_values;
use crate::controller::spec::{ValidatedSpec, ValuesSource};
use crate::report::ReconcileError;

/// One ConfigMap or Secret that is watched.
pub(super) struct Source {
    values: ValuesSource,
    /// Impersonated ServiceAccount; none for the daemon itself.
    account: Option<Box<str>>,
    held: Arc<Mutex<Held>>,
    texts: Option<SubstitutionValues>,
    #[expect(dead_code, reason = "the watch ends when it is dropped")]
    following: WatchGuard,
}

/// State of the object, shared with its watch.
#[derive(Default)]
struct Held {
    versions: Versions,
    /// The last read failed, or the object is missing.
    failed: bool,
    /// It may not be watched, so that a change would stay undetected.
    forbidden: bool,
}

impl Held {
    /// Refuses an object that may not be watched: its values count only while a change would be
    /// detected.
    fn seen(&self, name: &SyncName, named: &ValuesSource) -> Result<(), ReconcileError> {
        if self.forbidden { Err(substitution_values::unwatched(name, named)) } else { Ok(()) }
    }
}

/// Returns the spec with the values of all variables, and watches their objects from now on.
pub(super) async fn filled(
    worker: &mut SyncWorker,
    valid_spec: ValidatedSpec,
    cluster: &Cluster,
) -> Result<ValidatedSpec, ReconcileError> {
    let mut known = std::mem::take(&mut worker.values);
    for values in &valid_spec.values {
        let is_it =
            |source: &Source| source.values == *values && source.account == valid_spec.service_account;
        let source = match known.iter().position(is_it) {
            Some(at) => known.swap_remove(at),
            None => follows(worker, values, valid_spec.service_account.clone(), cluster),
        };
        worker.values.push(source);
    }
    let rotated = worker.rotated.clone();
    // All objects are watched, also after one that cannot be read: its appearance is detected.
    for source in &mut worker.values {
        source.read(cluster, &worker.name, &rotated).await?;
    }
    Ok(substitution_values::with(valid_spec, worker.values.iter().map(|source| source.texts.as_ref())))
}

fn follows(
    worker: &SyncWorker,
    values: &ValuesSource,
    account: Option<Box<str>>,
    cluster: &Cluster,
) -> Source {
    let held = Arc::<Mutex<Held>>::default();
    let (of_watch, rotated) = (held.clone(), worker.rotated.clone());
    let tell = move |event: ValuesWatchEvent<'_>| {
        let mut held = of_watch.lock().unwrap_or_else(PoisonError::into_inner);
        let was_forbidden = held.forbidden;
        held.forbidden = matches!(event, ValuesWatchEvent::Forbidden);
        if let ValuesWatchEvent::Version(version) = event {
            held.versions.watched = Some(version.map(Box::from));
        }
        if held.versions.is_another() || held.forbidden != was_forbidden {
            rotated.notify_one();
        }
    };
    let following =
        cluster.substitution_sources().watch(values.kind, &worker.name.namespace, &values.name, tell);
    Source { values: values.clone(), account, held, texts: None, following }
}

impl Source {
    /// Reads the object, unless the last read is still current.
    async fn read(
        &mut self,
        cluster: &Cluster,
        name: &SyncName,
        again: &Notify,
    ) -> Result<(), ReconcileError> {
        {
            let mut held = self.lock();
            if held.versions.read.is_some() && !held.failed && !held.versions.is_another() {
                return held.seen(name, &self.values);
            }
            *held = Held { forbidden: held.forbidden, ..Held::default() };
        }
        let found = substitution_values::texts(cluster, name, &self.values).await;
        let version = match &found {
            Ok(Some(texts)) => Some(texts.version.clone()),
            Ok(None) | Err(_) => None,
        };
        let mut held = self.lock();
        (held.versions.read, held.failed) = (Some(version), found.is_err());
        if held.versions.is_another() {
            // It has changed while it was read.
            again.notify_one();
        }
        drop(held);
        self.texts = found?;
        self.lock().seen(name, &self.values)
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
