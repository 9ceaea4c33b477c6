//! Tokens of ServiceAccounts for clouds, and the logins that are exchanged for them.
//!
//! In: the spec of a Sync, the cluster as the daemon and as the Sync's own ServiceAccount see it.
//! Out: credentials that hold no token yet. Tokens are requested when a login is needed, by the
//! rights of the daemon. A ServiceAccount that does not act for the Sync is used only if the one
//! that does may request its tokens, too.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;

use super::ChartLogin;
use crate::api::SyncName;
use crate::cluster::{ApiError, Cluster, ServiceAccounts};
use crate::controller::reconcile_errors::source_error;
use crate::controller::spec::identity::{account_name, identity_owner};
use crate::controller::spec::{SourceIdentity, ValidatedSource, ValidatedSpec};
use crate::report::ReconcileError;
use crate::source::{
    AccountFacts, AccountName, AccountTokens, Address, CloudAccount, Credentials, Repositories, SecretText,
    registry_identity, source_identity,
};

/// The cluster as two users see it.
#[derive(Clone, Copy)]
pub(crate) struct TokenClusters<'a> {
    /// The daemon, or the person at the command line.
    pub(crate) daemon: &'a Cluster,
    /// The ServiceAccount that acts for the Sync.
    pub(crate) asker: &'a Cluster,
}

/// Requests tokens of the API server, from a thread that may block.
struct ClusterTokens {
    daemon: Cluster,
    asker: Cluster,
    runtime: Handle,
}

/// Returns a ServiceAccount for clouds.
pub(crate) fn cloud_account(clusters: TokenClusters<'_>, name: AccountName) -> CloudAccount {
    let tokens = ClusterTokens {
        daemon: clusters.daemon.clone(),
        asker: clusters.asker.clone(),
        runtime: Handle::current(),
    };
    CloudAccount::new(name, Arc::new(tokens))
}

/// Returns the credentials that a cloud gives for the source; none if the spec names no cloud.
pub(crate) fn source_credentials(
    repositories: &Repositories,
    clusters: TokenClusters<'_>,
    sync: &SyncName,
    valid_spec: &ValidatedSpec,
) -> Result<Credentials, ReconcileError> {
    let (identity, address) = (valid_spec.identity.as_ref(), &valid_spec.address);
    cloud_credentials(repositories, clusters, sync, valid_spec, (identity, address))
}

/// Returns the credentials that a cloud gives for the source of a mount; none if the mount names
/// no cloud.
pub(crate) fn mount_credentials(
    repositories: &Repositories,
    clusters: TokenClusters<'_>,
    sync: &SyncName,
    valid_spec: &ValidatedSpec,
    source: &ValidatedSource,
) -> Result<Credentials, ReconcileError> {
    let (identity, address) = (source.identity.as_ref(), &source.address);
    cloud_credentials(repositories, clusters, sync, valid_spec, (identity, address))
}

fn cloud_credentials(
    repositories: &Repositories,
    clusters: TokenClusters<'_>,
    sync: &SyncName,
    valid_spec: &ValidatedSpec,
    (identity, address): (Option<&SourceIdentity>, &Address),
) -> Result<Credentials, ReconcileError> {
    let Some(identity) = identity else { return Ok(Credentials::default()) };
    let name = account_name(valid_spec, &sync.namespace, identity.account.as_deref());
    let account = cloud_account(clusters, name);
    source_identity(repositories, (identity.cloud, account), address).map_err(source_error)
}

/// Returns the login that a cloud gives for the server of the chart; none if the spec names no
/// cloud for it.
pub(crate) fn chart_identity(
    repositories: &Repositories,
    clusters: TokenClusters<'_>,
    sync: &SyncName,
    valid_spec: &ValidatedSpec,
) -> Result<Option<ChartLogin>, ReconcileError> {
    let (Some(identity), Some(chart)) = (&valid_spec.chart_identity, &valid_spec.chart) else {
        return Ok(None);
    };
    let name = account_name(valid_spec, &sync.namespace, identity.account.as_deref());
    let account = cloud_account(clusters, name);
    let credentials = registry_identity(repositories, (identity.cloud, account), &chart.authority());
    let credentials = credentials.map_err(source_error)?;
    let owner = format!("{}/{}", sync.namespace, identity_owner(valid_spec, identity)).into();
    Ok(Some(ChartLogin { credentials, owner }))
}

impl ClusterTokens {
    /// Waits for requests, on a thread that may block.
    fn wait<T>(&self, by: Instant, work: impl Future<Output = Result<T, Box<str>>>) -> Result<T, Box<str>> {
        let limited = async { tokio::time::timeout_at(by.into(), work).await };
        let done = self.runtime.block_on(limited);
        done.unwrap_or_else(|_| Err("the API server has not answered in time".into()))
    }

    /// Returns namespace and name; those of the daemon itself if none is named.
    async fn named(&self, account: &AccountName) -> Result<(Box<str>, Box<str>), Box<str>> {
        if let Some(name) = &account.name {
            return Ok((account.namespace.clone(), name.clone()));
        }
        let own = ServiceAccounts::of(&self.daemon).own().await.map_err(|error| refusal("review", &error))?;
        own.ok_or_else(|| {
            "the daemon has no ServiceAccount here; name one in spec.serviceAccountName, or beside provider"
                .into()
        })
    }
}

impl AccountTokens for ClusterTokens {
    fn facts(&self, account: &AccountName, by: Instant) -> Result<AccountFacts, Box<str>> {
        self.wait(by, async {
            let (namespace, name) = self.named(account).await?;
            if let Some(asker) = account.asker.as_ref().filter(|asker| **asker != name) {
                let may = self.asker.access_reviews().may_request_token(&namespace, &name).await;
                if !may.map_err(|error| refusal("review", &error))? {
                    return Err(format!(
                        "the ServiceAccount {asker} that acts for the Sync may not request its tokens; grant it `create` on \
                         serviceaccounts/token of {name} in {namespace}"
                    )
                    .into());
                }
            }
            let found = ServiceAccounts::of(&self.daemon).read(&namespace, &name).await;
            let found = found.map_err(|error| refusal("get it", &error))?;
            let found = found.ok_or_else(|| Box::from("it does not exist"))?;
            let shown = format!("{namespace}/{name}").into();
            Ok(AccountFacts { shown, uid: found.uid, annotations: found.annotations })
        })
    }

    fn token(
        &self,
        _: &AccountName,
        facts: &AccountFacts,
        audience: &str,
        by: Instant,
    ) -> Result<SecretText, Box<str>> {
        self.wait(by, async {
            let (namespace, name) = facts.shown.split_once('/').unwrap_or_default();
            let token = ServiceAccounts::of(&self.daemon).token(namespace, name, audience).await;
            token
                .map(|token| SecretText::new(token.into_text()))
                .map_err(|error| refusal("request its tokens", &error))
        })
    }
}

/// Returns the rest of a sentence about a failed request.
fn refusal(what: &str, error: &ApiError) -> Box<str> {
    match error.code() {
        Some(403) => format!(
            "the daemon may not {what}; add it to the chart value identity.serviceAccounts, or apply what `moorline rbac --sync` prints"
        )
        .into(),
        _ => error.to_string().into(),
    }
}
