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

use crate::api;
use crate::cli::listeners::start_page_on;
use crate::cli::temporary_folder::TemporaryFolder;
use crate::cluster::lease::WritePermit;
use crate::cluster::{Cluster, Connection};
use crate::controller::key_manager::use_temporary_keys;
use crate::controller::{Context, ContextOptions, manager, serve_live_objects};
use crate::helm::{Helm, IsolationLevel};
use crate::metrics::Metrics;
use crate::sandbox::Sandbox;
use crate::serve::DaemonHealth;
use crate::settings::Settings;
use crate::source::{AllowList, HostPolicy, Repositories};

/// The namespace of the daemon and of its Syncs.
pub(super) const NAMESPACE: &str = "moorline";

/// A running daemon.
pub(super) struct DemoDaemon {
    end: watch::Sender<bool>,
    work: JoinHandle<()>,
}

impl DemoDaemon {
    /// Starts the daemon.
    pub(super) async fn start(
        sandbox: &Sandbox,
        scratch: &TemporaryFolder,
        listener: TcpListener,
    ) -> anyhow::Result<Self> {
        let settings = Settings { data_dir: scratch.path().join("data"), ..Settings::default() };
        let (metrics, health) = (Metrics::new()?, DaemonHealth::new());
        let (end, ending) = watch::channel(false);
        // No webhook calls arrive: commits are noticed on the disk.
        let (_, calls) = mpsc::channel(1);
        let (board, page) = start_page_on(listener, None, ending.clone());
        let connection = Connection::from_client(sandbox.client(), NAMESPACE);
        let cluster = Cluster::new(connection, metrics.clone(), WritePermit::unlimited(), &settings);
        let own = api::definition().context("the definition of Syncs")?;
        sandbox.define(&own)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let hosts = HostPolicy::new("allowedHosts", [])?.with_loopback();
        let parts = ContextOptions {
            sources: (
                Repositories::new(&settings.data_dir, None, hosts)?,
                AllowList::new("remoteBases", [])?,
            ),
            helm: Helm::with_disk_cache(
                &settings.helm,
                program,
                settings.data_dir.join(Repositories::RENDERED),
            )
            .with_isolation(IsolationLevel::BestEffort),
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
        use_temporary_keys(&cluster, None);
        let context = Arc::new(Context::new(cluster, board, parts));
        let work = tokio::spawn(async move {
            tokio::select! {
                () = manager::run(context.clone(), calls) => {}
                () = serve_live_objects(context, page.looks) => {}
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
