//! Reads the keys or the trust root of those who may sign, from the object that a Sync names.
//!
//! In: the signatures that the spec requires, and a Secret that the daemon has read, as it reads
//! those with logins; or the cluster, and a ConfigMap is read with the permissions of the Sync.
//! Out: the trusted keys, or the reason why there are none.

use std::sync::Arc;

use super::substitution_values::grant;
use crate::api::{SyncName, ValuesKind};
use crate::cluster::{Cluster, SecretData};
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::spec::Verification;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{SignaturePolicy, TrustedKeys, TrustedKeysError};

/// Entry with the trust root.
const TRUST_ROOT: &str = "trusted_root.json";

/// Keys that were read from a ConfigMap, and its resourceVersion.
pub(crate) struct ReadSigners {
    pub(crate) version: Box<str>,
    pub(crate) keys: Result<Arc<TrustedKeys>, ReconcileError>,
}

/// Returns the trusted keys in the data of a Secret.
pub(crate) fn of_secret(
    verification: &Verification,
    secret: &SecretData,
) -> Result<Arc<TrustedKeys>, ReconcileError> {
    let entries = secret.data.iter().map(|(entry, bytes)| (entry.as_str(), bytes.as_slice()));
    of_entries(verification, entries)
}

/// Reads the trust root in a ConfigMap.
pub(crate) async fn config_map(
    cluster: &Cluster,
    sync: &SyncName,
    verification: &Verification,
) -> Result<ReadSigners, ReconcileError> {
    let (field, name, namespace) = (verification.field, &verification.name, &sync.namespace);
    let found = cluster.substitution_sources().read(ValuesKind::ConfigMap, namespace, name).await;
    let found = found.map_err(|failure| {
        let mut reconcile_error = cluster_error(&failure);
        if reconcile_error.cause == ErrorCause::RightsMissing {
            let (message, grant) = (reconcile_error.message, grant(sync));
            reconcile_error.message = format!(
                "{field} names the ConfigMap {name}, which may not be read: {message}; {grant} grants the permission"
            );
        }
        reconcile_error
    })?;
    let Some(found) = found else {
        return Err(ReconcileError {
            cause: ErrorCause::ValuesMissing,
            message: format!(
                "the ConfigMap {name} that {field} names does not exist in the namespace {namespace}"
            ),
            problems: Vec::new(),
            permanent: false,
        });
    };
    let entries = found.values.iter().map(|(entry, text)| (entry.as_str(), text.as_bytes()));
    Ok(ReadSigners { version: found.version, keys: of_entries(verification, entries) })
}

/// Returns the error for a ConfigMap that may be read but not watched.
pub(crate) fn unwatched(sync: &SyncName, verification: &Verification) -> ReconcileError {
    let (field, name, grant) = (verification.field, &verification.name, grant(sync));
    let message = format!(
        "{field} names the ConfigMap {name}, which may not be watched, so another trust root would go unnoticed; {grant} \
         grants the permission"
    );
    ReconcileError { cause: ErrorCause::RightsMissing, message, problems: Vec::new(), permanent: false }
}

fn of_entries<'a>(
    verification: &Verification,
    mut entries: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Result<Arc<TrustedKeys>, ReconcileError> {
    let keys = match (&verification.identities, verification.signed) {
        (Some(identities), _) => match entries.find(|(entry, _)| *entry == TRUST_ROOT) {
            Some((_, file)) => {
                let identities = identities.iter().map(|identity| (&*identity.issuer, &*identity.subject));
                TrustedKeys::of_identities(identities, file)
            }
            None => Err(TrustedKeysError::TrustRoot("it does not exist".into())),
        },
        (None, SignaturePolicy::Artifact) => TrustedKeys::of_artifacts(entries),
        (None, _) => TrustedKeys::from_secret(entries),
    };
    keys.map(Arc::new).map_err(|error| ReconcileError {
        cause: ErrorCause::KeysInvalid,
        message: format!(
            "the {} {} that {} names: {error}",
            verification.kind.as_str(),
            verification.name,
            verification.field
        ),
        problems: Vec::new(),
        permanent: true,
    })
}
