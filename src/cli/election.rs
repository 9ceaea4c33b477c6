//! Leader election: decides the one daemon that writes.
//!
//! In: a claim on a Lease. Out: the Lease, once no other daemon holds it. A daemon that waits is on
//! standby: it is ready, and forwards webhook calls to the leader.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::api::SyncSetSpec;
use crate::cluster::Connection;
use crate::cluster::lease::{Leadership, LeaseClaim, LeaseError, LeaseTimings};
use crate::controller::Board;
use crate::controller::apply::stale_owner::RUN;
use crate::metrics::Metrics;
use crate::report::board::DaemonRole;
use crate::serve::DaemonHealth;
use crate::settings::Settings;
use crate::source::webhook_call::{RepositoryNames, repository_name};
use crate::sync_set::repository_addresses;

/// One daemon's election; used again for every term.
pub(super) struct Election {
    pub(super) connection: Connection,
    pub(super) claim: LeaseClaim,
    pub(super) timings: LeaseTimings,
    pub(super) metrics: Metrics,
    pub(super) health: DaemonHealth,
    pub(super) board: Board,
    pub(super) ending: watch::Receiver<bool>,
}

impl Election {
    /// Acquires the Lease, however long that takes.
    pub(super) async fn campaign(&self, waits_for: &(dyn Fn(&str) + Sync)) -> Result<Leadership, LeaseError> {
        self.connection.acquire_lease(self.metrics.clone(), self.claim.clone(), self.timings, waits_for).await
    }

    /// Waits on standby until the Lease is acquired; `None` if the daemon is stopped before.
    pub(super) async fn wait(&self) -> anyhow::Result<Option<Leadership>> {
        let waits_for = |leader: &str| self.board.stand(DaemonRole::Standby(Some(leader.into())));
        // A daemon on standby is ready to take over: an unready one would fail its Deployment's
        // rollout.
        self.health.set_readiness(Ok(()));
        let beats = async {
            loop {
                self.health.beat();
                tokio::time::sleep(BEAT).await;
            }
        };
        let mut ending = self.ending.clone();
        tokio::select! {
            won = self.campaign(&waits_for) => Ok(Some(won?)),
            _ = ending.wait_for(|ending| *ending) => Ok(None),
            () = beats => Ok(None),
        }
    }
}

/// Heartbeat interval of a daemon on standby.
const BEAT: Duration = Duration::from_secs(10);

/// Name of the Lease: from the name of the run for `run --url`, else from the instance.
pub(super) fn lease_name(run: Option<&str>, settings: &Settings) -> String {
    match (run, &settings.instance) {
        (Some(name), _) => format!("{RUN}{name}"),
        (None, Some(instance)) => format!("moorline-{instance}"),
        (None, None) => "moorline".to_owned(),
    }
}

pub(super) fn timings(settings: &Settings) -> LeaseTimings {
    LeaseTimings {
        duration: settings.lease_duration,
        renew_deadline: settings.lease_renew_deadline,
        retry: settings.lease_retry_period,
        request: (settings.lease_duration.saturating_sub(settings.lease_renew_deadline)).mul_f64(0.8),
    }
}

/// Identity of this process, unique also on a machine where several run.
pub(super) fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let chance = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}_{}_{}", host.as_deref().unwrap_or("moorline"), std::process::id(), chance.as_nanos())
}

/// Forwards webhook calls to the leader, as an annotation on the Syncs and SyncSets that they
/// concern.
pub(super) async fn forward_webhooks(connection: &Connection, called: &mut mpsc::Receiver<RepositoryNames>) {
    while let Some(names) = called.recv().await {
        let is_called = |url: &str| repository_name(url).is_some_and(|name| names.contains(&name));
        let is_set_called = |spec: &SyncSetSpec| repository_addresses(spec).iter().any(|url| is_called(url));
        let syncs = connection.request_polls(is_called).await;
        let sets = connection.request_set_polls(is_set_called).await;
        match syncs.and_then(|syncs| Ok((syncs, sets?))) {
            Ok((syncs, sets)) => tracing::debug!(syncs, sets, "a webhook call was forwarded"),
            Err(error) => tracing::warn!(%error, "a webhook call could not be forwarded"),
        }
    }
    std::future::pending().await
}
