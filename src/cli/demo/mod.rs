//! `moorline demo`: runs everything on this machine, without a cluster.
//!
//! In: nothing, or the user's own repository. Out: until Ctrl-C, an API server in this process, a
//! repository in a temporary folder, the daemon between them, and the status page. Nothing is left
//! afterwards.

mod daemon;
mod setup;
mod tour;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;

use super::exit::Exit;
use super::repository_url::require_repository;
use super::run::shutdown_signal;
use super::sandbox::{SandboxServer, random_seed};
use super::{Streams, logs};
use crate::sandbox::Options;
use crate::settings::{LogFormat, LogLevel};
use daemon::DemoDaemon;
use setup::DemoSetup;

/// Run a demo on this machine, without a cluster
///
/// Everything runs in this process and a temporary folder. Use kubectl, `moorline status` and git
/// as usual. Ctrl-C stops the demo and removes everything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline demo                                        a small example shop
  moorline demo --tour                                 a guided tour: a commit, a hand edit, a held prune
  moorline demo --url https://example.com/repo --path clusters/a    your own repository")]
pub(super) struct DemoArgs {
    /// A repository instead of the shop: https://..., or a folder of this machine
    #[arg(long, conflicts_with = "tour")]
    url: Option<String>,

    /// The folder of manifests in that repository
    #[arg(long, default_value = ".", requires = "url")]
    path: String,

    /// Run the guided tour
    #[arg(long)]
    tour: bool,

    /// Pause of the tour after each step, in seconds
    #[arg(long, default_value_t = 4, requires = "tour", value_name = "SECONDS")]
    pace: u64,

    /// Address of the status page; port 0 picks a free port
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    page: SocketAddr,

    /// Log what the daemon does
    #[arg(long)]
    verbose: bool,
}

/// Time until the workloads of the shop become ready.
const READY_AFTER: Duration = Duration::from_millis(1500);

pub(super) fn run(arguments: &DemoArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let level = if arguments.verbose { LogLevel::Info } else { LogLevel::Error };
    logs::init(LogFormat::Text, level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(run_demo(arguments, streams));
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

async fn run_demo(arguments: &DemoArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    arguments.url.as_deref().map_or(Ok(()), require_repository)?;
    // From here on Ctrl-C ends the demo in order, and the temporary files are removed.
    let interrupted = shutdown_signal();
    let page = TcpListener::bind(arguments.page)
        .await
        .with_context(|| format!("--page: cannot listen on {}", arguments.page))?;
    let options = Options { seed: random_seed(), readiness: Some(READY_AFTER), ..Options::default() };
    let server = SandboxServer::start(&options, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    writeln!(streams.data, "http://{}", page.local_addr()?)?;
    server.print_kubeconfig(streams)?;
    let (sandbox, scratch) = (&server.sandbox, &server.scratch);
    let setup = match &arguments.url {
        Some(url) => DemoSetup::from_url(url, &arguments.path),
        None => DemoSetup::example_shop(scratch)?,
    };
    let engine = DemoDaemon::start(sandbox, scratch, page).await?;
    setup.apply_syncs(sandbox)?;
    introduction(&setup).iter().for_each(|line| streams.say(line));
    let story = async {
        if arguments.tour {
            tour::walk(&setup, sandbox, Duration::from_secs(arguments.pace), streams).await?;
        }
        std::future::pending::<anyhow::Result<()>>().await
    };
    let done = tokio::select! {
        result = story => result,
        () = setup.poll_on_commit(sandbox) => Ok(()),
        () = interrupted => Ok(()),
    };
    engine.end().await;
    done.map(|()| Exit::Done)
}

/// Lines that say what there is to see and to try.
fn introduction(setup: &DemoSetup) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        "Open the address above in a browser, or paste the line below it into another terminal, and try:"
            .to_owned(),
        "  kubectl get syncs -A                                  the Syncs and their status".to_owned(),
    ];
    if let Some(folder) = setup.folder() {
        lines.push(
            "  kubectl -n shop scale deployment web --replicas=9     a hand edit is repaired within milliseconds"
                .to_owned(),
        );
        lines.push(format!("  cd {folder}     the repository: commit there to change the cluster"));
    }
    lines.push("Ctrl-C stops the demo and removes everything.".to_owned());
    lines
}
