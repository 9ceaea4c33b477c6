//! The verbs for operators: each reads or changes Syncs on the API server; the daemon does the
//! rest.

pub(super) mod sync;

pub(super) mod approve;
pub(super) mod delete;
pub(super) mod events;
mod fleet;
pub(super) mod heartbeats;
mod history;
pub(super) mod moves;
pub(super) mod overrides;
pub(super) mod rollback;
pub(super) mod status;
pub(super) mod suspend;
pub(super) mod table;
pub(super) mod windows;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::local_helm::LocalHelm;
use super::temporary_folder::TemporaryFolder;
use super::{Streams, sanitize};
use crate::api::SyncName;
use crate::cluster::lease::WritePermit;
use crate::cluster::{Cluster, ConnectError, Connection, SyncResource, connect};
use crate::controller::inspect::{Inspected, render_sync};
use crate::grammar;
use crate::metrics::Metrics;
use crate::name_rules;
use crate::report::ReconcileError;
pub(super) use crate::report::ready;
use crate::settings::Settings;
use crate::source::{AllowList, HostPolicy, Repositories};

/// The Sync to act on.
#[derive(Debug, Args)]
pub(super) struct SyncTarget {
    /// The name of the Sync
    name: String,

    /// Its namespace [default: that of the kubeconfig]
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,
}

impl SyncTarget {
    fn of(&self, connection: &Connection) -> SyncName {
        SyncName::new(self.namespace.as_deref().unwrap_or(&connection.namespace), &self.name)
    }
}

pub(super) fn namespace(text: &str) -> Result<String, &'static str> {
    name_rules::namespace(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Runs `work` with a connection to the cluster of KUBECONFIG.
pub(super) fn on_cluster(work: impl AsyncFnOnce(Connection) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    with_or_without_cluster(async |connection| work(connection?).await)
}

/// Runs `work` with a connection to the cluster of KUBECONFIG, or with the reason why there is
/// none.
pub(super) fn with_or_without_cluster(
    work: impl AsyncFnOnce(Result<Connection, ConnectError>) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    on_runtime(async { work(connect(None, false).await).await })
}

/// Runs `work` on this thread.
pub(super) fn on_runtime(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(work)
}

/// A cluster that is only read, with the rights of the user.
pub(super) fn reading(connection: Connection, metrics: &Metrics) -> Cluster {
    Cluster::new(connection, metrics.clone(), WritePermit::unlimited(), &Settings::default())
}

/// Renders and inspects a Sync at its own or another revision. The repository is fetched into a
/// temporary folder.
pub(super) async fn inspect_existing(
    cluster: &Cluster,
    metrics: &Metrics,
    sync: &SyncResource,
    at: Option<&str>,
    allowed: &AllowList,
) -> anyhow::Result<Inspected> {
    let whole = serde_json::to_value(&sync.resource)?;
    let inspected = inspect_manifest(cluster, metrics, &sync.name, whole, at, allowed).await?;
    inspected.map_err(|reconcile_error| anyhow!("{}", reconcile_error.message))
}

/// Inspects a Sync that may not exist yet; the inner error says why it cannot be applied.
pub(super) async fn inspect_manifest(
    cluster: &Cluster,
    metrics: &Metrics,
    name: &SyncName,
    whole: Value,
    at: Option<&str>,
    allowed: &AllowList,
) -> anyhow::Result<Result<Inspected, ReconcileError>> {
    let folder = TemporaryFolder::new()?;
    let repositories = Repositories::new(folder.path(), None, HostPolicy::allow_all())?;
    let helm = LocalHelm::find()?;
    Ok(render_sync(cluster, (&repositories, allowed, &helm.helm), metrics, name, whole, at).await)
}

/// Prints text that may contain control characters of other parties: sanitizes each line.
pub(super) fn write(text: &str, streams: &mut Streams<'_>) -> std::io::Result<()> {
    text.lines().try_for_each(|line| writeln!(streams.data, "{}", sanitize(line)))?;
    streams.data.flush()
}

/// A number of objects as text.
fn counted(count: i64) -> String {
    grammar::counted(count, "object")
}

#[cfg(test)]
mod tests {
    use crate::api::short_revision;

    #[test]
    fn revisions_are_shortened() {
        let commit = "1f0c".repeat(10);
        assert_eq!(short_revision(&format!("main@{commit}")), "main@1f0c1f0c");
        assert_eq!(short_revision(&commit), "1f0c1f0c");
        assert_eq!(short_revision(""), "");
    }
}
