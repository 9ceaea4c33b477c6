//! Manages the signing keys of the daemon: reads them before the first Sync is served, creates
//! missing ones, and follows their Secret.
//!
//! In: the Secret that holds the keys.
//! Out: the keys in the [`Notary`](crate::cluster::Notary) of the cluster.
//!
//! A key that is removed while the daemon runs is restored. A key that is moved to the previous
//! ones is replaced by a new one. Without any key objects are applied and repaired, and nothing is
//! pruned without approval.

use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::mpsc;

use super::Context;
use crate::api::{SyncName, ValuesKind};
use crate::cluster::key_secret::{self, CURRENT, ID, KeyData};
use crate::cluster::{ApiError, Cluster, SharedWatch, ValuesWatchEvent, jitter};
use crate::proof::{KEY_BYTES, KeyRing};

/// Location of the keys.
#[derive(Debug, Clone)]
pub struct KeyLocation {
    /// Namespace of the Secret.
    pub namespace: Box<str>,
    /// Name of the Secret.
    pub name: Box<str>,
    /// Run without a Sync, whose id is stored beside the keys.
    pub run: Option<SyncName>,
}

/// Time that the first reconcile waits for the keys.
const BEGIN: Duration = Duration::from_secs(10);

/// First and longest pause between failed attempts.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The keys of a daemon, and the state of their Secret.
pub struct KeyManager {
    cluster: Cluster,
    place: KeyLocation,
    versions: mpsc::UnboundedReceiver<Option<Box<str>>>,
    _following: SharedWatch,
    version: Option<Box<str>>,
    /// Last error that was logged, so that it is logged once.
    reconcile_error: Option<String>,
}

impl KeyManager {
    /// Starts without keys, so that nothing is proven before they are read, and watches the Secret.
    pub fn new(context: &Context, place: KeyLocation) -> Self {
        let cluster = context.cluster.in_any_term();
        cluster.notary().set_keys(None);
        cluster.notary().set_key_secret(&place.namespace, &place.name);
        let (send, versions) = mpsc::unbounded_channel();
        let following = cluster.substitution_sources().watch(
            ValuesKind::Secret,
            &place.namespace,
            &place.name,
            move |news| {
                if let ValuesWatchEvent::Version(version) = news {
                    let _ = send.send(version.map(Box::from));
                }
            },
        );
        Self { cluster, place, versions, _following: following, version: None, reconcile_error: None }
    }

    /// Reads the keys. Returns without any if the Secret does not exist and may not be created, or
    /// if the server does not answer in time: repairs wait for no key.
    ///
    /// # Guarantees
    ///
    /// A key that the Secret has already is never overwritten.
    ///
    /// # Cancellation
    ///
    /// After the timeout the daemon runs without keys, and [`Self::follow`] retries.
    pub async fn begin(&mut self, context: &Context) {
        let mut beat = tokio::time::interval(crate::controller::manager::BEAT);
        let in_time = tokio::time::timeout(BEGIN, async {
            let settled = self.settle();
            tokio::pin!(settled);
            loop {
                tokio::select! {
                    () = &mut settled => return,
                    _ = beat.tick() => context.reporting.health.beat(),
                }
            }
        });
        if in_time.await.is_err() {
            self.complain(&KeyError::Slow);
        }
    }

    /// Follows the Secret, forever.
    pub async fn follow(&mut self) {
        loop {
            // No watch reports that the daemon has got the permission to create the Secret.
            let again = async {
                match self.reconcile_error {
                    Some(_) => tokio::time::sleep(jitter(RETRY.1)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                version = self.versions.recv() => match version {
                    Some(version) if version == self.version && self.reconcile_error.is_none() => {}
                    Some(_) => self.settle().await,
                    None => std::future::pending().await,
                },
                () = again => self.settle().await,
            }
        }
    }

    /// Reads the keys and creates missing ones, until that succeeds or cannot succeed.
    async fn settle(&mut self) {
        let mut retry = RETRY.0;
        loop {
            match self.attempt().await {
                Ok(data) => {
                    self.take(data);
                    return;
                }
                Err(failure) => {
                    self.complain(&failure);
                    if matches!(failure, KeyError::Missing | KeyError::Forbidden(_)) {
                        return;
                    }
                }
            }
            tokio::time::sleep(jitter(retry)).await;
            retry = (retry * 2).min(RETRY.1);
        }
    }

    async fn attempt(&self) -> Result<KeyData, KeyError> {
        let KeyLocation { namespace, name, run } = &self.place;
        let Some(found) = key_secret::key_data(&self.cluster, namespace, name).await.map_err(KeyError::of)?
        else {
            let (key, id) = (self.key_to_fill(&[])?, random::<16>()?);
            let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut fill: Vec<(&str, &[u8])> = vec![(CURRENT, &key)];
            fill.extend(run.as_ref().map(|_| (ID, id.as_bytes())));
            return match key_secret::create_key_secret(&self.cluster, namespace, name, &fill).await {
                // A daemon that may not create the Secret waits for the chart to do so.
                Err(failure) if failure.code() == Some(403) => Err(KeyError::Missing),
                made => made.map_err(KeyError::Failed),
            };
        };
        let (key, id) = (self.key_to_fill(&found.previous)?, random::<16>()?);
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut fill: Vec<(&str, &[u8])> = Vec::new();
        fill.extend(found.current.is_none().then_some((CURRENT, &key[..])));
        fill.extend((run.is_some() && found.id.is_none()).then_some((ID, id.as_bytes())));
        if fill.is_empty() && found.is_labelled {
            return Ok(found);
        }
        if fill.is_empty() {
            // The keys are valid without the marker, which only other daemons need.
            return Ok(key_secret::fill_keys(&self.cluster, namespace, name, &found.version, &[])
                .await
                .unwrap_or(found));
        }
        key_secret::fill_keys(&self.cluster, namespace, name, &found.version, &fill)
            .await
            .map_err(KeyError::of)
    }

    /// Returns the key for a Secret without one: the key of this daemon, unless it is one of the
    /// previous keys now.
    fn key_to_fill(&self, previous: &[[u8; KEY_BYTES]]) -> Result<[u8; KEY_BYTES], KeyError> {
        match self.cluster.notary().keys() {
            Some(keys) if !previous.contains(keys.current()) => Ok(*keys.current()),
            Some(_) | None => random(),
        }
    }

    fn take(&mut self, data: KeyData) {
        let KeyLocation { namespace, name, run } = &self.place;
        let Some(current) = data.current else { return };
        self.version = Some(data.version);
        if let (Some(run), Some(id)) = (run, &data.id) {
            self.cluster.notary().set_uid(run, id);
        }
        let keys = KeyRing::new(current, data.previous);
        let before = self.cluster.notary().keys();
        if before.is_none_or(|before| !before.ids().eq(keys.ids())) {
            tracing::info!(secret = %format!("{namespace}/{name}"), keys = ?keys, "proofs are made with these keys");
            self.cluster.notary().set_keys(Some(keys));
            self.cluster.wake_all();
        }
        self.reconcile_error = None;
    }

    fn complain(&mut self, reconcile_error: &KeyError) {
        let KeyLocation { namespace, name, .. } = &self.place;
        let text = match reconcile_error {
            KeyError::Missing => format!(
                "it does not exist, and this daemon may not create it: create it as the chart does, or allow the daemon to create secrets in {namespace} and to get, watch and patch {name}; until then prunes need approval"
            ),
            KeyError::Forbidden(failure) => {
                format!("{failure}; until it can be read, prunes need approval")
            }
            KeyError::Failed(failure) => failure.to_string(),
            KeyError::Slow => {
                "the API server does not answer; until it does, prunes need approval".to_owned()
            }
            KeyError::NoChance => "the operating system provides no random numbers".to_owned(),
        };
        if self.reconcile_error.as_ref() != Some(&text) {
            tracing::error!(secret = %format!("{namespace}/{name}"), "the Secret with the signing keys of the daemon: {text}");
            self.reconcile_error = Some(text);
        }
    }
}

/// Reason for missing keys.
enum KeyError {
    Missing,
    Forbidden(ApiError),
    Failed(ApiError),
    NoChance,
    Slow,
}

impl KeyError {
    fn of(failure: ApiError) -> Self {
        match failure.code() {
            Some(403) => Self::Forbidden(failure),
            _ => Self::Failed(failure),
        }
    }
}

/// Returns unpredictable random bytes.
fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::NoChance)?;
    Ok(bytes)
}

/// Creates keys and ids that exist only in this process, for an API server in the same process.
pub fn use_temporary_keys(cluster: &Cluster, run: Option<&SyncName>) {
    let (Ok(key), Ok(id)) = (random(), random::<16>()) else { return };
    cluster.notary().set_keys(Some(KeyRing::new(key, [])));
    if let Some(run) = run {
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        cluster.notary().set_uid(run, &id);
    }
}
