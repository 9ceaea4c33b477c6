//! Credentials that a Sync names: Secrets, and logins that a cloud gives.
//!
//! In: names in the spec of a Sync, and the home cluster.
//! Out: the login for the server of a source, or the reason why there is none.
//! `secret_permission.rs` checks that a Secret may be sent to a host; `cloud_identity.rs` exchanges
//! tokens of ServiceAccounts.

pub(in crate::controller) mod cloud_identity;
pub(crate) mod secret_permission;

use crate::api::SyncName;
use crate::cluster::{Cluster, SecretData};
use crate::controller::reconcile_errors::{cluster_error, source_error};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Address, ChartRequest, Credentials};

/// Login for the server of a published chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChartLogin {
    pub(crate) credentials: Credentials,
    /// The Secret, as `namespace/name`; empty without one. Fetched charts are shared by the Syncs
    /// that name the same Secret.
    pub(crate) owner: Box<str>,
}

impl ChartLogin {
    /// Reads the login for the server of a chart from a Secret.
    pub(crate) fn from_secret(
        sync: &SyncName,
        secret: &str,
        data: SecretData,
        chart: &ChartRequest,
    ) -> Result<Self, ReconcileError> {
        let credentials = Credentials::for_registry(data.data, &chart.login_target());
        let credentials = credentials.map_err(|error| source_error(error.into()))?;
        Ok(Self { credentials, owner: format!("{}/{secret}", sync.namespace).into() })
    }
}

/// Reads the credentials for a source from a Secret.
pub(super) async fn read_credentials(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    address: &Address,
) -> Result<Credentials, ReconcileError> {
    parse_credentials(read_secret(cluster, namespace, name).await?, address)
        .map(|(credentials, _)| credentials)
}

/// Returns the credentials in a Secret for a source, with the hosts that the Secret names.
fn parse_credentials(
    secret: SecretData,
    address: &Address,
) -> Result<(Credentials, Option<Box<str>>), ReconcileError> {
    let read = Credentials::for_source(secret.data, address).map_err(|error| source_error(error.into()))?;
    Ok((read, secret.hosts))
}

/// Reads a Secret that a Sync names.
pub(super) async fn read_secret(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<SecretData, ReconcileError> {
    if cluster.notary().is_key_secret(namespace, name) {
        return Err(daemon_secret_error(name));
    }
    let found =
        cluster.syncs().read_secret(namespace, name).await.map_err(|failure| cluster_error(&failure))?;
    if found.as_ref().is_some_and(|found| found.holds_keys) {
        return Err(daemon_secret_error(name));
    }
    found.ok_or_else(|| ReconcileError {
        cause: ErrorCause::SecretMissing,
        message: format!("the Secret {name} does not exist in the namespace {namespace}"),
        problems: Vec::new(),
        permanent: false,
    })
}

/// Returns the error for a Secret with the keys of the daemon, by which objects are proven: no Sync
/// may read them.
pub(super) fn daemon_secret_error(name: &str) -> ReconcileError {
    ReconcileError {
        cause: ErrorCause::SpecInvalid,
        message: format!(
            "the Secret {name} holds the keys of the daemon, which no Sync may use; name another Secret"
        ),
        problems: Vec::new(),
        permanent: true,
    }
}
