//! Credentials for the repository of a Sync and for the server of its chart: checks that a Secret
//! may be sent to the host.
//!
//! In: the spec of the Sync, and the cluster as the ServiceAccount of the Sync sees it.
//! Out: the credentials.
//!
//! The daemon can read more Secrets than the author of a Sync, and the Sync names the host that
//! receives the credentials. Therefore the ServiceAccount that acts for the Sync has to be allowed
//! to read the Secret, or the Secret itself lists the hosts that may receive it. A Sync in the
//! namespace of the daemon may do everything that the daemon may.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{ChartLogin, parse_credentials};
use crate::api::{HOSTS_ANNOTATION, SyncName};
use crate::clock;
use crate::cluster::{Cluster, SecretData};
use crate::controller::Context;
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::spec::ValidatedSpec;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{Address, Credentials};

/// Time for which the permission of the ServiceAccount is valid.
const FRESH: Duration = Duration::from_secs(60);

/// Permission of a ServiceAccount to read a Secret, which allows sending its credentials.
#[derive(Debug)]
pub(crate) struct SecretPermission {
    account: Box<str>,
    secret: Box<str>,
    host: Box<str>,
    /// Time of the last confirmation by the API server.
    at: Mutex<Instant>,
}

impl SecretPermission {
    /// Returns the permission of an account to send a Secret to a host, which the API server has
    /// just confirmed.
    fn confirmed(account: &str, secret: &str, host: &str) -> Self {
        let (account, secret, host) = (account.into(), secret.into(), host.into());
        Self { account, secret, host, at: Mutex::new(clock::now()) }
    }

    /// Returns true if this is a recently confirmed permission to send the Secret to the host.
    fn allows(&self, account: &str, secret: &str, host: &str) -> bool {
        (&*self.account, &*self.secret, &*self.host) == (account, secret, host) && !self.is_old()
    }

    /// Returns true if the permission has to be confirmed again.
    pub(in crate::controller) fn is_old(&self) -> bool {
        clock::since(*self.at.lock().unwrap_or_else(PoisonError::into_inner)) >= FRESH
    }

    /// Confirms an old permission, so that a revoked one is noticed. An API server that does not
    /// answer has revoked nothing.
    pub(in crate::controller) async fn holds(
        &self,
        cluster: &Cluster,
        sync: &SyncName,
    ) -> Result<(), ReconcileError> {
        if !self.is_old() {
            return Ok(());
        }
        match cluster.access_reviews().may_get_secret(&sync.namespace, &self.secret).await {
            Ok(true) => {
                *self.at.lock().unwrap_or_else(PoisonError::into_inner) = clock::now();
                Ok(())
            }
            Ok(false) => Err(not_allowed(sync, &self.secret, &self.account, &self.host)),
            Err(failure) => match cluster_error(&failure) {
                reconcile_error if reconcile_error.cause == ErrorCause::RightsMissing => Err(reconcile_error),
                _ => Ok(()),
            },
        }
    }
}

/// Returns the credentials in the Secret that a Sync names for its repository; `known` is the last
/// permission.
pub(crate) async fn repository_login(
    context: &Context,
    cluster: &Cluster,
    sync: &SyncName,
    valid_spec: &ValidatedSpec,
    (secret, data): (&str, SecretData),
    known: &mut Option<Arc<SecretPermission>>,
) -> Result<Credentials, ReconcileError> {
    let account = valid_spec.service_account.as_deref();
    source_login(context, cluster, (sync, account), &valid_spec.address, (secret, data), known).await
}

/// Returns the credentials in a Secret for a source; `known` is the last permission.
pub(crate) async fn source_login(
    context: &Context,
    cluster: &Cluster,
    (sync, account): (&SyncName, Option<&str>),
    address: &Address,
    (secret, data): (&str, SecretData),
    known: &mut Option<Arc<SecretPermission>>,
) -> Result<Credentials, ReconcileError> {
    let (credentials, hosts) = parse_credentials(data, address)?;
    let host = address.host().unwrap_or_default();
    may_send(context, cluster, (sync, account), (secret, hosts, host), known).await?;
    Ok(credentials)
}

/// Returns the credentials in the Secret that a Sync names for the server of its chart; `known` is
/// the last permission.
pub(crate) async fn chart_login(
    context: &Context,
    cluster: &Cluster,
    sync: &SyncName,
    valid_spec: &ValidatedSpec,
    (secret, data): (&str, SecretData),
    known: &mut Option<Arc<SecretPermission>>,
) -> Result<ChartLogin, ReconcileError> {
    let Some(chart) = &valid_spec.chart else { return Ok(ChartLogin::default()) };
    let hosts = data.hosts.clone();
    let login = ChartLogin::from_secret(sync, secret, data, chart)?;
    let (host, account) = (chart.host(), valid_spec.service_account.as_deref());
    may_send(context, cluster, (sync, account), (secret, hosts, &host), known).await?;
    Ok(login)
}

/// Checks that a Secret may be sent to a host on behalf of the account of a Sync.
pub(in crate::controller) async fn may_send(
    context: &Context,
    cluster: &Cluster,
    (sync, account): (&SyncName, Option<&str>),
    (secret, hosts, host): (&str, Option<Box<str>>, &str),
    known: &mut Option<Arc<SecretPermission>>,
) -> Result<(), ReconcileError> {
    let before = known.take();
    let Some(account) = account else { return Ok(()) };
    let is_own = context.process.is_own(&sync.namespace);
    if is_own || hosts.is_some_and(|hosts| lists_host(&hosts, host)) {
        return Ok(());
    }
    if let Some(permission) = before.filter(|known| known.allows(account, secret, host)) {
        *known = Some(permission);
        return Ok(());
    }
    match cluster.access_reviews().may_get_secret(&sync.namespace, secret).await {
        Ok(true) => {
            *known = Some(Arc::new(SecretPermission::confirmed(account, secret, host)));
            Ok(())
        }
        Ok(false) => Err(not_allowed(sync, secret, account, host)),
        Err(failure) => Err(cluster_error(&failure)),
    }
}

fn not_allowed(sync: &SyncName, secret: &str, account: &str, host: &str) -> ReconcileError {
    let SyncName { namespace, name, .. } = sync;
    let message = format!(
        "the Secret {secret} is not sent to {host}: the ServiceAccount {account} of this Sync may not get it, and the Secret \
         does not list that host; `moorline rbac --sync {name} -n {namespace} | kubectl apply -f -` grants it, or `kubectl annotate secret \
         {secret} -n {namespace} {HOSTS_ANNOTATION}={host}` lets every Sync of the namespace use it for that host"
    );
    ReconcileError { cause: ErrorCause::SecretNotAllowed, message, problems: Vec::new(), permanent: false }
}

/// Returns true if the annotation lists a host: literally, or as `*.` and a parent domain.
pub(crate) fn lists_host(hosts: &str, host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let is_it = |named: &str| match named.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|front| front.len() > 1 && front.ends_with('.')),
        None => !host.is_empty() && named == host,
    };
    let hosts = hosts.to_ascii_lowercase();
    hosts.split([',', ' ', '\n', '\t']).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_as_it_is_or_by_what_lies_above() {
        for (hosts, host, expect) in [
            ("git.example.com", "git.example.com", true),
            ("a.example, Git.Example.com", "git.example.com", true),
            ("git.example.com", "evil.git.example.com", false),
            ("git.example.com", "example.com", false),
            ("*.example.com", "git.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("*.example.com", ".example.com", false),
            ("::1", "[::1]", true),
            ("", "", false),
            ("*", "git.example.com", false),
            ("", "git.example.com", false),
        ] {
            assert_eq!(lists_host(hosts, host), expect, "{hosts:?} {host}");
        }
    }
}
