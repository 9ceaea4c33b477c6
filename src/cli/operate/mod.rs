//! The verbs for who runs a cluster: each asks the API server for Syncs, or changes one, and the daemon does the rest.

pub(super) mod approve;
pub(super) mod delete;
pub(super) mod events;
mod heartbeats;
mod history;
pub(super) mod moves;
pub(super) mod nudge;
pub(super) mod status;
pub(super) mod suspend;
mod table;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::local_helm::LocalHelm;
use super::scratch::Scratch;
use super::{Streams, harmless};
use crate::api::{ConditionType, SyncName, SyncStatus};
use crate::cluster::lease::Permit;
use crate::cluster::{Cluster, Connection, Seen, connect};
use crate::grammar;
use crate::metrics::Metrics;
use crate::render;
use crate::report::Trouble;
use crate::settings::Settings;
use crate::source::{AllowList, Hosts, Repositories};
use crate::sync::inspect::{Inspected, inspect};

/// Which Sync.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The name of the Sync
    name: String,

    /// Its namespace; else the one of the kubeconfig
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,
}

impl Target {
    fn of(&self, connection: &Connection) -> SyncName {
        SyncName::new(self.namespace.as_deref().unwrap_or(&connection.namespace), &self.name)
    }
}

pub(super) fn namespace(text: &str) -> Result<String, &'static str> {
    render::namespace_rule(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// Runs `work` with a connection to the cluster of KUBECONFIG.
pub(super) fn on_cluster(work: impl AsyncFnOnce(Connection) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async { work(connect(None).await?).await })
}

/// The cluster for who only reads, as who asks.
pub(super) fn reading(connection: Connection, metrics: &Metrics) -> Cluster {
    Cluster::new(connection, metrics.clone(), Permit::always(), &Settings::default())
}

/// What a Sync comes to, at its own revision or another; its repository is fetched into a folder that is gone afterwards.
pub(super) async fn look(
    cluster: &Cluster,
    metrics: &Metrics,
    sync: &Seen,
    at: Option<&str>,
    allowed: &AllowList,
) -> anyhow::Result<Inspected> {
    let whole = serde_json::to_value(&sync.whole)?;
    let inspected = look_by(cluster, metrics, &sync.name, whole, at, allowed).await?;
    inspected.map_err(|trouble| anyhow!("{}", trouble.message))
}

/// What a Sync would come to that may not be there yet, or why it comes to nothing.
pub(super) async fn look_by(
    cluster: &Cluster,
    metrics: &Metrics,
    name: &SyncName,
    whole: Value,
    at: Option<&str>,
    allowed: &AllowList,
) -> anyhow::Result<Result<Inspected, Trouble>> {
    let folder = Scratch::new()?;
    let repositories = Repositories::new(folder.path(), None, Hosts::anywhere())?;
    let helm = LocalHelm::find()?;
    Ok(inspect(cluster, (&repositories, allowed, &helm.helm), metrics, name, whole, at).await)
}

/// Writes lines of which parts come from elsewhere.
pub(super) fn write(text: &str, streams: &mut Streams<'_>) -> std::io::Result<()> {
    text.lines().try_for_each(|line| writeln!(streams.data, "{}", harmless(line)))?;
    streams.data.flush()
}

/// Whether a Sync is ready, and why: the status, the reason and the message of that condition.
fn ready(status: &SyncStatus) -> (&str, &str, &str) {
    let ready = status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.to_string());
    ready
        .map_or(("Unknown", "", "no daemon has looked at it yet"), |it| (&it.status, &it.reason, &it.message))
}

/// So many objects, in words.
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
