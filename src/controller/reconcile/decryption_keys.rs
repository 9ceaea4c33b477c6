//! Reads the keys for encrypted files from the Secret that a Sync names.
//!
//! In: the name in the spec, and the cluster as the ServiceAccount of the Sync sees it: a person
//! who can have files decrypted learns their content, so the account must be allowed to read the
//! keys.
//! Out: the keys, or the reason why there are none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream;
use futures::stream::StreamExt as _;

use super::substitution_values::grant;
use crate::api::SyncName;
use crate::chance;
use crate::clock;
use crate::cluster::Cluster;
use crate::controller::credentials::cloud_identity::{TokenClusters, cloud_account};
use crate::controller::credentials::daemon_secret_error;
use crate::controller::reconcile_errors::{cluster_error, too_slow};
use crate::controller::spec::identity::account_name;
use crate::controller::spec::{Decryption, ValidatedSpec};
use crate::decryption::{DecryptedFiles, DecryptionKeys, Refusals, ServiceKeys, WantedKey, decrypt_files};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{CloudAccount, Repositories, kms_decrypt, transit_decrypt};
use crate::tree::FileTree;

/// The keys in a Secret, and its resourceVersion.
pub(crate) struct ReadKeys {
    pub(crate) version: Box<str>,
    pub(crate) keys: Result<Arc<DecryptionKeys>, ReconcileError>,
}

/// Reads the keys once, and returns the spec with them.
pub(crate) async fn filled(
    clusters: TokenClusters<'_>,
    name: &SyncName,
    valid_spec: ValidatedSpec,
) -> Result<ValidatedSpec, ReconcileError> {
    let Some(decryption) = &valid_spec.decryption else { return Ok(valid_spec) };
    let account = account(clusters, name, &valid_spec, decryption);
    let keys = match &decryption.secret {
        Some(secret) => read(clusters.asker, name, secret, &account).await?.keys?,
        None => Arc::new(DecryptionKeys::of_account(account)),
    };
    Ok(with(valid_spec, keys))
}

/// Returns the ServiceAccount for clouds.
pub(crate) fn account(
    clusters: TokenClusters<'_>,
    name: &SyncName,
    valid_spec: &ValidatedSpec,
    decryption: &Decryption,
) -> CloudAccount {
    cloud_account(clusters, account_name(valid_spec, &name.namespace, decryption.account.as_deref()))
}

/// Returns the spec with these keys.
pub(crate) fn with(mut valid_spec: ValidatedSpec, keys: Arc<DecryptionKeys>) -> ValidatedSpec {
    valid_spec.decryption.iter_mut().for_each(|decryption| decryption.keys = Some(keys.clone()));
    valid_spec
}

/// Reads the keys in a Secret.
pub(crate) async fn read(
    cluster: &Cluster,
    name: &SyncName,
    secret: &str,
    account: &CloudAccount,
) -> Result<ReadKeys, ReconcileError> {
    if cluster.notary().is_key_secret(&name.namespace, secret) {
        return Err(daemon_secret_error(secret));
    }
    let found = cluster.syncs().read_secret(&name.namespace, secret).await.map_err(|failure| {
        let mut reconcile_error = cluster_error(&failure);
        if reconcile_error.cause == ErrorCause::RightsMissing {
            let (message, grant) = (reconcile_error.message, grant(name));
            reconcile_error.message = format!(
                "{FIELD} names the Secret {secret}, which may not be read: {message}; {grant} grants the permission"
            );
        }
        reconcile_error
    })?;
    let Some(found) = found else {
        return Err(ReconcileError {
            cause: ErrorCause::SecretMissing,
            message: format!(
                "the Secret {secret} that {FIELD} names does not exist in the namespace {}",
                name.namespace
            ),
            problems: Vec::new(),
            permanent: false,
        });
    };
    if found.holds_keys {
        return Err(daemon_secret_error(secret));
    }
    let entries = found.data.iter().map(|(entry, bytes)| (entry.as_str(), bytes.as_slice()));
    let keys = DecryptionKeys::from_entries(entries).map(|keys| Arc::new(keys.with_account(account.clone())));
    let keys = keys.map_err(|error| ReconcileError {
        cause: ErrorCause::KeysInvalid,
        message: format!("the Secret {secret} that {FIELD} names: {error}"),
        problems: Vec::new(),
        permanent: true,
    });
    Ok(ReadKeys { version: found.version, keys })
}

/// Returns the error for a Secret that may be read but not watched.
pub(crate) fn unwatched(name: &SyncName, secret: &str) -> ReconcileError {
    let grant = grant(name);
    let message = format!(
        "{FIELD} names the Secret {secret}, which may not be watched, so new keys would go unnoticed; {grant} grants the permission"
    );
    ReconcileError { cause: ErrorCause::RightsMissing, message, problems: Vec::new(), permanent: false }
}

/// Name of the field in messages.
const FIELD: &str = "spec.decryption.sops.secretRef";

/// Data keys that servers were asked for during one preparation. They are asked while no memory is
/// reserved for the render.
#[derive(Debug, Default)]
pub(crate) struct DataKeyFetches {
    wanted: BTreeSet<WantedKey>,
    refusals: Refusals,
    /// A refused one may be granted later.
    is_transient: bool,
}

impl DataKeyFetches {
    /// True if servers have to be asked before the render can go on.
    pub(super) fn is_wanting(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Decrypts the encrypted files of a tree, on a thread where it blocks no other task.
    pub(super) async fn decrypted(
        &mut self,
        files: FileTree,
        valid_spec: &ValidatedSpec,
        by: Instant,
    ) -> Result<FileTree, ReconcileError> {
        let keys = valid_spec.decryption.as_ref().and_then(|decryption| decryption.keys.clone());
        let Some(keys) = keys else { return Ok(files) };
        let refusals = self.refusals.clone();
        let decrypting = chance::spawn_blocking_deterministic(move || {
            let _turn = files.memory_limit().wait_for_processor();
            decrypt_files(&files, &keys, &refusals)
        });
        let done = tokio::time::timeout_at(by.into(), decrypting).await.map_err(|_| too_slow())?;
        let done = done.map_err(|_| stopped("decrypting was stopped".to_owned()))?;
        // The limit knows how much is missing, and the caller tries again with more.
        let DecryptedFiles { tree, wanted } = done.map_err(|no_room| stopped(no_room.to_string()))?;
        self.wanted = wanted;
        match self.is_wanting() {
            // This error is never shown: the render starts again once the keys are there.
            true => Err(stopped("data keys are being fetched".to_owned())),
            false => Ok(tree),
        }
    }

    /// Asks servers for the data keys that are wanted, once each.
    pub(super) async fn fetch(
        &mut self,
        repositories: &Repositories,
        asker: &str,
        valid_spec: &ValidatedSpec,
        by: Instant,
    ) {
        let wanted = std::mem::take(&mut self.wanted);
        let keys = valid_spec.decryption.as_ref().and_then(|decryption| decryption.keys.clone());
        let Some(services) = keys.as_ref().map(|keys| keys.services()) else { return };
        // A server that does not answer must leave time for a render of the other files.
        let by = by.min(clock::now() + MAX_FETCH);
        let asks = wanted.into_iter().map(async |wanted| {
            let refusal = ask(repositories, services, &wanted, asker, by).await.err();
            (wanted, refusal)
        });
        let answers: Vec<_> = stream::iter(asks).buffer_unordered(MAX_FETCHES).collect().await;
        for (wanted, refusal) in answers {
            if let Some((reason, is_transient)) = refusal {
                self.is_transient |= is_transient;
                self.refusals.insert(wanted, reason);
            }
        }
    }

    /// Returns the error of a render. It is tried again if a server may answer later.
    pub(super) fn judged(&self, reconcile_error: ReconcileError) -> ReconcileError {
        ReconcileError { permanent: reconcile_error.permanent && !self.is_transient, ..reconcile_error }
    }
}

/// Asks a server for a data key and keeps it. An error is the reason, and true if the same question
/// may be answered later.
async fn ask(
    repositories: &Repositories,
    services: &ServiceKeys,
    wanted: &WantedKey,
    asker: &str,
    by: Instant,
) -> Result<(), (Box<str>, bool)> {
    match wanted {
        WantedKey::Vault(ciphertext) => {
            let Some(login) = services.vault() else { return Ok(()) };
            let answer = transit_decrypt(repositories, ciphertext, login, asker, by).await;
            let answer = answer.map_err(|error| (error.to_string().into(), error.is_transient()))?;
            services.keep(wanted.clone(), answer.reveal());
        }
        WantedKey::Cloud(ciphertext) => {
            let answer = kms_decrypt(repositories, ciphertext, services.clouds(), asker, by).await;
            let answer = answer.map_err(|error| (error.to_string().into(), error.is_transient()))?;
            services.keep(wanted.clone(), answer.as_bytes());
        }
    }
    Ok(())
}

/// Most servers that are asked at a time.
const MAX_FETCHES: usize = 8;
/// Longest that servers are asked for the data keys of one render.
const MAX_FETCH: Duration = Duration::from_secs(30);

fn stopped(message: String) -> ReconcileError {
    ReconcileError { cause: ErrorCause::Stopped, message, problems: Vec::new(), permanent: false }
}
