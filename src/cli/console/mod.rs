//! `moorline console`: the pages of the console on this machine, with the rights of the user.
//!
//! In: the kubeconfig. Out: a page on the loopback interface that reads and writes Syncs as the
//! user. No token leaves this process but to the API server, and no daemon is asked.

mod person;
mod sync_board;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::Streams;
use super::exit::Exit;
use super::listeners::{PageRequests, page_channels};
use super::operate::{namespace, on_cluster};
use super::signals::shutdown_signal;
use crate::cluster::Connection;
use crate::controller::console::reviews::answer_questions;
use crate::report::board::StatusBoard;
use crate::serve::{Door, StatusPage, serve_console};

/// Show Syncs on a page of this machine, and act on them, with your own rights
///
/// Reads and writes Syncs with the kubeconfig, as kubectl does. Only the browser that opens the
/// printed address first is served. Objects and logs are on the console of the daemon.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline console            all Syncs, or those of the namespace of the kubeconfig
  moorline console -n shop    the Syncs of one namespace")]
pub(super) struct ConsoleArgs {
    /// Only the Syncs of this namespace
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// The port on 127.0.0.1 [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
}

pub(super) fn run(arguments: &ConsoleArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let caller = connection.caller().await;
        let caller = caller.ok_or_else(|| anyhow!("the API server does not say who you are"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], arguments.port));
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let door =
            Door::new(&caller, address.port()).ok_or_else(|| anyhow!("there are no random numbers"))?;
        streams.say(&format!("the console of {caller} is at http://{address}{}", door.entrance()));
        serve(connection, arguments.namespace.clone(), listener, door).await
    })
}

/// Serves until the process is stopped.
async fn serve(
    connection: Connection,
    namespace: Option<String>,
    listener: TcpListener,
    door: Door,
) -> anyhow::Result<Exit> {
    let (want, access, requests) = page_channels();
    let PageRequests { looks, questions, actions } = requests;
    let (end, ending) = watch::channel(false);
    let (board, newest) = watch::channel(Arc::<StatusBoard>::default());
    let page = StatusPage::new(newest, want, ending.clone(), true).with_console(access);
    let router = door.before(page);
    let mut stop = ending;
    let served = serve_console(listener, router, async move {
        let _ = stop.wait_for(|ending| *ending).await;
    });
    let own = connection.clone();
    let ask = move |asked| person::review(own.clone(), asked);
    tokio::select! {
        served = served => served?,
        () = answer_questions(ask, questions) => {}
        () = person::serve_actions(connection.clone(), actions) => {}
        () = person::refuse_looks(looks) => {}
        () = sync_board::follow(connection, namespace, board) => {}
        () = shutdown_signal() => {}
    }
    end.send_replace(true);
    Ok(Exit::Done)
}
