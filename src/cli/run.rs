//! `moorline run`: the daemon.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use super::Streams;
use super::exit::Exit;
use crate::api::SyncName;
use crate::cluster::lease::Permit;
use crate::cluster::{Cluster, connect};
use crate::metrics::Metrics;
use crate::render;
use crate::source::{Address, Credentials, Reference, Repositories};
use crate::sync::{Context, single, wish::Wish};

/// Follow a Git repository and hold the cluster to it
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The repository: https://…, or a folder of this machine
    #[arg(long)]
    url: String,

    /// The folder of manifests in the repository
    #[arg(long, default_value = "")]
    path: String,

    /// The name under which objects are owned
    #[arg(long, default_value = "default")]
    name: String,

    /// The namespace under which objects are owned, and to which those go that name none
    #[arg(long, short)]
    namespace: Option<String>,

    /// Where mirrors of repositories are kept
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// How often the repository is asked, in seconds
    #[arg(long, default_value_t = 30)]
    interval: u64,
}

pub(super) fn run(arguments: &Arguments, _: &mut Streams<'_>) -> anyhow::Result<Exit> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(follow(arguments))
}

async fn follow(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (client, standing) = connect(None).await?;
    let namespace = arguments.namespace.clone().unwrap_or_else(|| standing.to_string());
    for (flag, broken) in
        [("namespace", render::namespace_rule(&namespace)), ("name", render::sync_name_rule(&arguments.name))]
    {
        if let Some(rule) = broken {
            bail!("--{flag}: {rule}");
        }
    }
    let address = Address::any(&arguments.url)?;
    let data = arguments.data.clone().unwrap_or_else(|| std::env::temp_dir().join("moorline"));
    let repositories = Repositories::new(&data, None)?;
    let repository = repositories.repository(&address, "", &Credentials::default())?;
    let owner = SyncName::new(&namespace, &arguments.name);
    let interval = Duration::from_secs(arguments.interval);
    let wish = Wish::plain(address, Reference::Head, &arguments.path, &namespace, interval);
    let cluster = Cluster::new(client, Metrics::new()?, Permit::always(), 16, Duration::from_secs(30));
    let (end, ending) = tokio::sync::watch::channel(false);
    let pauses = (Duration::from_secs(1), Duration::from_secs(60), Duration::from_secs(600));
    let context = Arc::new(Context::new(cluster, ending, pauses));
    let signal = async {
        interrupted().await;
        end.send_replace(true);
        std::future::pending::<()>().await
    };
    tokio::select! {
        () = single::run(context, owner, wish, repository) => {}
        () = signal => {}
    }
    Ok(Exit::Done)
}

/// Waits until somebody asks this process to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
