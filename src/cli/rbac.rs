//! `moorline rbac`: the rights that a Sync needs.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::exit::Exit;
use super::manifests::{self, Selection};
use super::operate::{look, namespace, on_cluster, reading};
use super::{Streams, harmless};
use crate::api::SyncName;
use crate::cluster::Connection;
use crate::desired::{DesiredSet, Scopes};
use crate::metrics::Metrics;
use crate::rights::{Plurals, Rights, Subject, manifests as roles};
use crate::yaml;

/// Print the rights that a Sync needs
///
/// Roles and bindings for the ServiceAccount that acts for the Sync: what its objects need, with the rights that Roles
/// among them grant, because nobody may grant what they do not hold. Rules that are worth as much as
/// cluster-admin are marked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline rbac --sync shop -n team | kubectl apply -f -
  moorline rbac clusters/prod --service-account deployer -n shop")]
pub(super) struct Arguments {
    /// A folder of manifests, or one file
    #[arg(required_unless_present = "sync", conflicts_with = "sync")]
    path: Option<PathBuf>,

    /// A Sync of the cluster of KUBECONFIG, whose repository is read
    #[arg(long, value_name = "NAME", conflicts_with_all = ["service_account", "target_namespace"])]
    sync: Option<String>,

    /// The ServiceAccount that acts for the Sync (spec.serviceAccountName); the daemon's own by default
    #[arg(long, default_value = "moorline", value_name = "NAME")]
    service_account: String,

    /// The namespace of the Sync and of the ServiceAccount
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// The namespace of objects that name none; the Sync's own if absent
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    target_namespace: Option<String>,

    #[command(flatten)]
    selection: Selection,
}

/// Where the daemon is, if neither a flag nor the Sync says it.
const NAMESPACE: &str = "moorline";

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    match (&arguments.sync, &arguments.path) {
        (Some(sync), _) => on_cluster(async |connection| of_sync(sync, arguments, connection, streams).await),
        (None, Some(path)) => of_path(path, arguments, streams),
        (None, None) => bail!("name a folder of manifests, or a Sync with --sync"),
    }
}

fn of_path(path: &Path, arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let Some(complete) = manifests::read(path, &arguments.selection, streams)? else {
        return Ok(Exit::Failure);
    };
    let namespace = arguments.namespace.as_deref().unwrap_or(NAMESPACE);
    let target = arguments.target_namespace.as_deref().unwrap_or(namespace);
    let Some(desired) = manifests::desire(complete, target, &Scopes::builtin(), streams) else {
        return Ok(Exit::Failure);
    };
    print(&desired, Plurals::default(), namespace, &arguments.service_account, streams)
}

async fn of_sync(
    sync: &str,
    arguments: &Arguments,
    connection: Connection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let name = SyncName::new(arguments.namespace.as_deref().unwrap_or(&connection.namespace), sync);
    let seen = connection.sync(&name).await?;
    let metrics = Metrics::new()?;
    let cluster = reading(connection, &metrics);
    let inspected = look(&cluster, &metrics, &seen, None).await?;
    let kinds = cluster.kinds();
    let plurals = Plurals::of(kinds.iter().map(|(kind, served)| (kind.clone(), served.plural.clone())));
    let account = inspected.wish.service_account.as_deref().unwrap_or(&arguments.service_account);
    // The Lease is where the daemon is.
    let daemon = seen.status.held_by.as_deref().and_then(|lease| lease.split_once('/'));
    let own = match inspected.wish.service_account {
        Some(_) => &*name.namespace,
        None => daemon.map_or(NAMESPACE, |(namespace, _)| namespace),
    };
    print(&inspected.desired, plurals, own, account, streams)
}

fn print(
    desired: &DesiredSet,
    plurals: Plurals,
    namespace: &str,
    account: &str,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let rights = Rights::of(desired, plurals);
    for kind in &rights.guessed {
        streams.say(&format!(
            "note: no definition of {kind} is at hand, so that the name of its resource is guessed"
        ));
    }
    let role = format!("moorline-{namespace}-{account}").into();
    let subject = Subject { name: account.into(), namespace: namespace.into(), role };
    for (lines, document) in roles(&rights, &subject) {
        streams.data.write_all(b"---\n")?;
        for line in lines {
            writeln!(streams.data, "# {}", harmless(&line))?;
        }
        streams.data.write_all(yaml::write(&document).as_bytes())?;
    }
    Ok(Exit::Done)
}
