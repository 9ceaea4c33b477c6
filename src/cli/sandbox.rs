//! `moorline sandbox`: runs an API server for demonstrations and tests.
//!
//! In: its options. Out: a server on the loopback interface, and a kubeconfig for it, until Ctrl-C.
//! Nothing is left of either afterwards.

use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Streams;
use super::exit::Exit;
use super::run::shutdown_signal;
use super::temporary_folder::TemporaryFolder;
use crate::api;
use crate::cluster::{Connection, connect};
use crate::duration;
use crate::sandbox::{Options, Sandbox};

/// Start a temporary Kubernetes API server for demos and tests
///
/// It keeps objects in memory, behaves like Kubernetes, and runs no containers: workloads become
/// ready after a time that you set. It has no access control, so it listens on localhost. Ctrl-C
/// stops it and removes everything.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline sandbox                        prints the line that makes kubectl use it
  moorline sandbox --ready-after 2s       Deployments and the like are ready after two seconds")]
pub(super) struct SandboxArgs {
    /// Listen address; port 0 picks a free port
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Time until Deployments, StatefulSets, DaemonSets and Jobs get ready, such as 2s [never]
    #[arg(long, value_name = "TIME", value_parser = time)]
    ready_after: Option<Duration>,

    /// Seed of uids and generated names, to make them reproducible
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Connects to the cluster, or starts an API server in this process that knows Syncs. HTTP/2 is
/// offered to the cluster if `http2` is true.
pub(super) async fn connect_or_sandbox(
    sandbox: bool,
    http2: bool,
    streams: &mut Streams<'_>,
) -> anyhow::Result<(Connection, Option<SandboxServer>)> {
    if !sandbox {
        return Ok((connect(None, http2).await?, None));
    }
    let options = Options { seed: random_seed(), readiness: Some(Duration::ZERO), ..Options::default() };
    let server = SandboxServer::start(&options, SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    server.sandbox.define(&api::definition()?)?;
    server.print_kubeconfig(streams)?;
    Ok((Connection::from_client(server.sandbox.client(), "default"), Some(server)))
}

pub(super) fn run(arguments: &SandboxArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let options = Options {
            seed: arguments.seed.unwrap_or_else(random_seed),
            readiness: arguments.ready_after,
            ..Options::default()
        };
        let interrupted = shutdown_signal();
        let mut served = SandboxServer::start(&options, arguments.listen).await?;
        served.print_kubeconfig(streams)?;
        streams.say("the sandbox runs until Ctrl-C");
        tokio::select! {
            ended = served.ended() => ended,
            () = interrupted => Ok(Exit::Done),
        }
    })
}

/// Parses a duration in the format of the settings.
fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| "write it like 500ms, 30s or 1h30m".to_owned())
}

/// A running sandbox and its kubeconfig; both are removed on drop.
pub(super) struct SandboxServer {
    pub(super) sandbox: Sandbox,
    pub(super) scratch: TemporaryFolder,
    kubeconfig: PathBuf,
    serves: JoinHandle<io::Result<()>>,
}

impl SandboxServer {
    pub(super) async fn start(options: &Options, address: SocketAddr) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let scratch = TemporaryFolder::new()?;
        let kubeconfig = scratch.path().join("kubeconfig");
        fs::write(&kubeconfig, crate::sandbox::kubeconfig(address))
            .with_context(|| format!("{}: cannot be written", kubeconfig.display()))?;
        let sandbox = Sandbox::new(options);
        let serves = tokio::spawn(sandbox.clone().serve(listener));
        Ok(Self { sandbox, scratch, kubeconfig, serves })
    }

    /// Prints the line that makes kubectl use the sandbox.
    pub(super) fn print_kubeconfig(&self, streams: &mut Streams<'_>) -> anyhow::Result<()> {
        writeln!(streams.data, "export KUBECONFIG={}", self.kubeconfig.display())?;
        Ok(streams.data.flush()?)
    }

    /// Returns when the server accepts no more connections, which is a failure.
    async fn ended(&mut self) -> anyhow::Result<Exit> {
        (&mut self.serves).await?.context("the sandbox takes no more connections")?;
        Ok(Exit::Failure)
    }
}

impl Drop for SandboxServer {
    fn drop(&mut self) {
        self.serves.abort();
    }
}

/// A random seed.
pub(super) fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
