//! Reads and watches the Secrets that a Sync names: credentials for the repository and for the
//! server of the chart, and those with signing keys.
//!
//! In: the validated spec. Out: the content of the Secrets; a change of one wakes the worker at
//! once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::super::credentials::read_secret;
use super::SyncWorker;
use super::versions::Versions;
use crate::api::{SyncName, ValuesKind};
use crate::clock;
use crate::cluster::{Cluster, SecretData, SharedWatch, ValuesWatchEvent};
use crate::controller::credentials::ChartLogin;
use crate::controller::credentials::cloud_identity::{TokenClusters, chart_identity, source_credentials};
use crate::controller::credentials::secret_permission::{chart_login, repository_login};
use crate::controller::spec::ValidatedSpec;
use crate::report::ReconcileError;
use crate::source::Credentials;

/// A Secret that is watched.
pub(in crate::controller) struct WatchedSecret {
    name: Box<str>,
    versions: Arc<Mutex<Versions>>,
    following: SharedWatch,
    /// The content that was read last.
    data: Mutex<Option<Arc<SecretData>>>,
}

/// Returns the credentials from the Secret that the Sync names, and watches the Secret from now
/// on.
pub(super) async fn credentials(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    cluster: &Cluster,
) -> Result<Credentials, ReconcileError> {
    let known = worker.secret.take();
    let Some(name) = &valid_spec.secret else {
        worker.permission = None;
        let (context, sync) = (&worker.context, &worker.name);
        let clusters = TokenClusters { daemon: &context.cluster, asker: cluster };
        return source_credentials(&context.sources.repositories, clusters, sync, valid_spec);
    };
    let followed = worker.secret.insert(followed(worker, name, known));
    let data = followed.read(&worker.context.cluster, &worker.name, &worker.inputs_changed).await?;
    let login = (&**name, SecretData::clone(&data));
    repository_login(&worker.context, cluster, &worker.name, valid_spec, login, &mut worker.permission).await
}

/// Returns the login for the server of the chart that the Sync names, and watches its Secret from
/// now on.
pub(super) async fn chart_credentials(
    worker: &mut SyncWorker,
    valid_spec: &ValidatedSpec,
    cluster: &Cluster,
) -> Result<ChartLogin, ReconcileError> {
    let known = worker.chart_secret.take();
    let Some(name) = &valid_spec.chart_secret else {
        worker.chart_permission = None;
        let (context, sync) = (&worker.context, &worker.name);
        let clusters = TokenClusters { daemon: &context.cluster, asker: cluster };
        let given = chart_identity(&context.sources.repositories, clusters, sync, valid_spec)?;
        return Ok(given.unwrap_or_default());
    };
    let followed = worker.chart_secret.insert(followed(worker, name, known));
    let data = followed.read(&worker.context.cluster, &worker.name, &worker.inputs_changed).await?;
    let (login, permission) = ((&**name, SecretData::clone(&data)), &mut worker.chart_permission);
    chart_login(&worker.context, cluster, &worker.name, valid_spec, login, permission).await
}

/// Watches a Secret for a Sync, or keeps the existing watch of the same one.
pub(super) fn followed(worker: &SyncWorker, name: &str, known: Option<WatchedSecret>) -> WatchedSecret {
    let place = (&*worker.name.namespace, name);
    follow(&worker.context.cluster, place, &worker.inputs_changed, known)
}

/// Watches a Secret, or keeps the existing watch of the same one. A change notifies
/// `inputs_changed`.
pub(in crate::controller) fn follow(
    cluster: &Cluster,
    (namespace, name): (&str, &str),
    inputs_changed: &Arc<Notify>,
    known: Option<WatchedSecret>,
) -> WatchedSecret {
    known.filter(|known| *known.name == *name).unwrap_or_else(|| {
        let versions = Arc::<Mutex<Versions>>::default();
        let (of_watch, inputs_changed) = (versions.clone(), inputs_changed.clone());
        let tell = move |event: ValuesWatchEvent<'_>| {
            let ValuesWatchEvent::Version(version) = event else { return };
            let mut versions = lock(&of_watch);
            versions.watched = Some(version.map(Box::from));
            if versions.is_another() {
                inputs_changed.notify_one();
            }
        };
        let following = cluster.substitution_sources().watch(ValuesKind::Secret, namespace, name, tell);
        WatchedSecret { name: name.into(), versions, following, data: Mutex::default() }
    })
}

impl WatchedSecret {
    /// Returns the content of the Secret, which all Syncs that follow it share. It is read unless
    /// the watch says that it is the same as before. Notifies `again` if it has changed meanwhile.
    pub(in crate::controller) async fn read(
        &self,
        cluster: &Cluster,
        sync: &SyncName,
        again: &Notify,
    ) -> Result<Arc<SecretData>, ReconcileError> {
        let asked = clock::now();
        let (mut known, mut turn) = (self.following.secret(asked), None);
        if known.is_none() {
            // Another Sync may read it meanwhile.
            turn = Some(self.following.read_turn().await);
            known = self.following.secret(asked);
        }
        if let Some(known) = known {
            let mut versions = lock(&self.versions);
            versions.read = Some(Some(known.version.clone()));
            if versions.is_another() {
                again.notify_one();
            }
            drop(versions);
            *self.data.lock().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
            return Ok(known);
        }
        *lock(&self.versions) = Versions::default();
        let began = clock::now();
        let found = read_secret(cluster, &sync.namespace, &self.name).await.map(Arc::new);
        if let Ok(data) = &found {
            self.following.offer(data, began);
        }
        *self.data.lock().unwrap_or_else(PoisonError::into_inner) = found.as_ref().ok().cloned();
        // The next one finds the content.
        drop(turn);
        let mut versions = lock(&self.versions);
        versions.read = Some(found.as_ref().ok().map(|data| data.version.clone()));
        if versions.is_another() {
            again.notify_one();
        }
        drop(versions);
        found
    }
}

fn lock(versions: &Mutex<Versions>) -> MutexGuard<'_, Versions> {
    versions.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::future::join_all;
    use serde_json::json;

    use super::*;
    use crate::cluster::Connection;
    use crate::cluster::lease::WritePermit;
    use crate::metrics::Metrics;
    use crate::sandbox::{FaultRates, Options, Sandbox};
    use crate::settings::Settings;

    const SECRETS: &str = "/api/v1/namespaces/shop/secrets";

    fn write(sandbox: &Sandbox, token: &str) {
        let metadata = json!({"name": "east", "namespace": "shop"});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": token}});
        sandbox.apply(SECRETS, &secret, "test").unwrap();
    }

    /// Reads the Secret for each of these at once; returns the number of requests for it.
    async fn read_all(sandbox: &Sandbox, cluster: &Cluster, all: &[WatchedSecret], expect: &str) -> usize {
        sandbox.take_requests();
        let (sync, again) = (SyncName::new("shop", "web"), Notify::new());
        let found = join_all(all.iter().map(|watched| watched.read(cluster, &sync, &again))).await;
        for data in found {
            let data = data.unwrap_or_else(|error| panic!("{}", error.message));
            assert!(data.data.iter().any(|(_, value)| value == expect.as_bytes()), "another content");
        }
        let place = format!("{SECRETS}/east");
        sandbox.take_requests().iter().filter(|request| request.uri == place).count()
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_start_at_once_read_their_secret_a_few_times_and_later_not_at_all() {
        let sandbox = Sandbox::new(&Options { record_requests: true, ..Options::default() });
        let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        sandbox.apply("/api/v1/namespaces", &shop, "test").unwrap();
        write(&sandbox, "one");
        // Requests take a moment, as everywhere.
        let longest = Duration::from_millis(200);
        sandbox.faults().set(FaultRates { latency: 1000, longest, ..FaultRates::default() });
        let connection = Connection::from_client(sandbox.client(), "moorline");
        let (metrics, permit) = (Metrics::new().unwrap(), WritePermit::unlimited());
        let cluster = Cluster::new(connection, metrics, permit, &Settings::default());
        let inputs_changed = Arc::<Notify>::default();
        let new = |_| follow(&cluster, ("shop", "east"), &inputs_changed, None);
        let all: Vec<WatchedSecret> = (0..100).map(new).collect();
        let count = read_all(&sandbox, &cluster, &all, "one").await;
        assert!((1..=8).contains(&count), "{count} reads");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(read_all(&sandbox, &cluster, &all, "one").await, 0, "the watch says that it is the same");
        while tokio::time::timeout(Duration::from_millis(1), inputs_changed.notified()).await.is_ok() {}
        write(&sandbox, "two");
        tokio::time::timeout(Duration::from_secs(5), inputs_changed.notified()).await.expect("it is noticed");
        let count = read_all(&sandbox, &cluster, &all, "two").await;
        assert!((1..=8).contains(&count), "{count} reads of the new content");
    }
}
