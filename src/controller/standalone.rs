//! Serves one Sync that has no resource, for `moorline run --url`.
//!
//! In: a spec from the command line. Out: log lines. The engine is the same as for Syncs with a
//! resource.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::Context;
use super::credentials::ChartLogin;
use super::reconcile::request::ReconcileRequest;
use super::spec::ValidatedSpec;
use super::worker::run_reconciler;
use crate::api::SyncName;
use crate::cluster::{ServerEvent, watch_server};
use crate::report::board::{DaemonRole, HOME_CLUSTER};
use crate::source::webhook_call::{RepositoryNames, repository_name};
use crate::source::{Credentials, RefWatch, Repository};

/// Serves one Sync until the daemon ends.
pub async fn run(
    context: Arc<Context>,
    owner: SyncName,
    valid_spec: ValidatedSpec,
    repository: Repository,
    mut called: mpsc::Receiver<RepositoryNames>,
) {
    let own_name = repository_name(&valid_spec.address.to_string());
    let local = valid_spec.address.local_path().map(RefWatch::new).and_then(|watch| {
        // Polling goes on as well, so that without a watch a commit is only detected later.
        watch.inspect_err(|error| tracing::warn!(%error, "new commits are detected by polling only")).ok()
    });
    let order = ReconcileRequest {
        // Only the path and the release name decide what a commit renders to; no other field can be
        // set.
        render_spec: format!("{}|{}", valid_spec.path, owner.name).into(),
        valid_spec: Arc::new(valid_spec),
        repository,
        credentials: Credentials::default(),
        permission: None,
        chart_login: ChartLogin::default(),
        chart_permission: None,
        mounts: Arc::default(),
        keys: None,
        chart_keys: None,
        namespace: owner.namespace.clone(),
        home: context.cluster.clone(),
        cluster: context.cluster.clone(),
        approved: None,
        approver: None,
        window_override: None,
        hold: None,
        moves_to: None,
        predecessor: None,
        request: None,
        spec_revision: 0,
        refused: None,
    };
    context.peers.add_run(&owner);
    context.reporting.board.stand(DaemonRole::Serving);
    let _home = context.reporting.board.follow_cluster(HOME_CLUSTER, &context.cluster);
    let aware = context.clone();
    let _server = watch_server(&context.cluster, &context.process.namespace, move |event| match event {
        ServerEvent::Rewound => aware.relist_all(),
        ServerEvent::Upgraded => aware.distrust_all(),
        ServerEvent::Namespace(_) => {}
    });
    let (send, receive) = watch::channel(Arc::new(order));
    let nudges = async {
        match &local {
            Some(local) => loop {
                local.changed().await;
                send.send_modify(|_| {});
            },
            None => std::future::pending().await,
        }
    };
    let calls = async {
        while let Some(names) = called.recv().await {
            if own_name.as_ref().is_some_and(|own| names.contains(own)) {
                send.send_modify(|_| {});
            }
        }
        std::future::pending().await
    };
    let mut beat = tokio::time::interval(crate::controller::manager::BEAT);
    let beats = async {
        loop {
            beat.tick().await;
            context.reporting.health.beat();
        }
    };
    context.reporting.health.set_readiness(Ok(()));
    tokio::select! {
        () = run_reconciler(context.clone(), owner, receive, None) => {}
        () = nudges => {}
        () = calls => {}
        () = beats => {}
    }
}
