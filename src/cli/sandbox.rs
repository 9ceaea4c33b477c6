//! `moorline sandbox`: a throw-away API server.
//!
//! In: how it is to be. Out: a server on the loopback, and a kubeconfig by which others find it, until somebody ends it;
//! then nothing is left of either.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;

use super::Streams;
use super::exit::Exit;
use super::run::interrupted;
use super::scratch::Scratch;
use crate::sandbox::{Options, Sandbox};
use crate::settings::duration;

/// Start a throw-away Kubernetes API server, for demonstrations and tests
///
/// It keeps objects in memory, answers as Kubernetes does, and runs no containers: workloads become ready after a time
/// that you set. Everybody who reaches it may do everything, so it listens on the loopback. Ctrl-C ends it, and nothing is
/// left of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline sandbox                        prints the line that makes kubectl use it
  moorline sandbox --ready-after 2s       Deployments and the like are ready after two seconds")]
pub(super) struct Arguments {
    /// Where it listens; port 0 is any that is free
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// After how long Deployments, StatefulSets, DaemonSets and Jobs are ready, such as 2s; never without it
    #[arg(long, value_name = "TIME", value_parser = time)]
    ready_after: Option<Duration>,

    /// What uids and generated names come from: the same seed gives the same
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(arguments, streams))
}

async fn serve(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let options = Options {
        seed: arguments.seed.unwrap_or_else(chance),
        readiness: arguments.ready_after,
        ..Options::default()
    };
    let listener = listen(arguments.listen).await?;
    let interrupted = interrupted();
    let scratch = Scratch::new()?;
    let kubeconfig = kubeconfig(&scratch, listener.local_addr()?)?;
    writeln!(streams.data, "export KUBECONFIG={}", kubeconfig.display())?;
    streams.data.flush()?;
    streams.say("the sandbox runs until Ctrl-C");
    tokio::select! {
        ended = Sandbox::new(&options).serve(listener) => ended.context("the sandbox takes no more connections")?,
        () = interrupted => {}
    }
    Ok(Exit::Done)
}

/// A time as settings write it.
fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| "write it like 500ms, 30s or 1h30m".to_owned())
}

/// A socket for an API server.
pub(super) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// A file by which clients find the server.
pub(super) fn kubeconfig(scratch: &Scratch, address: SocketAddr) -> anyhow::Result<PathBuf> {
    let path = scratch.path().join("kubeconfig");
    fs::write(&path, crate::sandbox::kubeconfig(address))
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}

/// A seed that nobody asked for.
pub(super) fn chance() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}
