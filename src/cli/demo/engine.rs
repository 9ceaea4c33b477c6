//! The daemon of the demo: the one of `moorline run`, on an API server in this process.
//!
//! In: the server, a folder, and the listener of the status page. Out: a daemon that serves all
//! Syncs of that server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::super::listening::show_on;
use super::super::scratch::Scratch;
use crate::api;
use crate::cluster::lease::Permit;
use crate::cluster::{Cluster, Connection};
use crate::helm::{Helm, Strength};
use crate::metrics::Metrics;
use crate::sandbox::Sandbox;
use crate::serve::Health;
use crate::settings::Settings;
use crate::source::{AllowList, Hosts, Repositories};
use crate::sync::keyring::keep_in_memory;
use crate::sync::{Context, Parts, all, look};

/// The namespace of the daemon and of its Syncs.
pub(super) const NAMESPACE: &str = "moorline";

/// A running daemon.
pub(super) struct Engine {
    end: watch::Sender<bool>,
    work: JoinHandle<()>,
}

impl Engine {
    /// Starts the daemon.
    pub(super) async fn start(
        sandbox: &Sandbox,
        scratch: &Scratch,
        page: TcpListener,
    ) -> anyhow::Result<Self> {
        let settings = Settings { data_dir: scratch.path().join("data"), ..Settings::default() };
        let (metrics, health) = (Metrics::new()?, Health::new());
        let (end, ending) = watch::channel(false);
        // No webhook calls arrive: commits are noticed on the disk.
        let (_, calls) = mpsc::channel(1);
        let (board, looks) = show_on(page, ending.clone());
        let connection = Connection::of(sandbox.client(), NAMESPACE);
        let cluster = Cluster::new(connection, metrics.clone(), Permit::always(), &settings);
        let own = api::definition().context("the definition of Syncs")?;
        sandbox.define(&own)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let hosts = Hosts::new("allowedHosts", [])?.with_loopback();
        let parts = Parts {
            sources: (
                Repositories::new(&settings.data_dir, None, hosts)?,
                AllowList::new("remoteBases", [])?,
            ),
            helm: Helm::keeping(&settings.helm, program, settings.data_dir.join(Repositories::RENDERED))
                .behind(Strength::BestEffort),
            metrics,
            health,
            settings,
            namespace: NAMESPACE.into(),
            held_by: None,
            notebook: None,
            // No other tenant exists here whose files it could read.
            disk: Some("/".into()),
            ending,
        };
        keep_in_memory(&cluster, None);
        let context = Arc::new(Context::new(cluster, board, parts));
        let work = tokio::spawn(async move {
            tokio::select! {
                () = all::run(context.clone(), calls) => {}
                () = look(context, looks) => {}
            }
        });
        Ok(Self { end, work })
    }

    /// Stops the daemon; running work gets two seconds to finish.
    pub(super) async fn end(self) {
        self.end.send_replace(true);
        let _ = tokio::time::timeout(Duration::from_secs(2), self.work).await;
    }
}
