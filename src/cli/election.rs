//! The election of the daemon that writes.
//!
//! In: a claim on a Lease. Out: the Lease, once no other daemon holds it. A daemon that waits for it stands by: it is
//! ready, and passes the calls of webhooks on.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::cluster::Connection;
use crate::cluster::lease::{Claim, Leadership, LeaseError, Timings};
use crate::metrics::Metrics;
use crate::report::board::Stance;
use crate::serve::Health;
use crate::serve::hooks::{Called, repository_name};
use crate::settings::Settings;
use crate::sync::Board;
use crate::sync::gone::RUN;

/// One daemon's way to the Lease; the same in every term.
pub(super) struct Election {
    pub(super) connection: Connection,
    pub(super) claim: Claim,
    pub(super) timings: Timings,
    pub(super) metrics: Metrics,
    pub(super) health: Health,
    pub(super) board: Board,
    pub(super) ending: watch::Receiver<bool>,
}

impl Election {
    /// Gets the Lease, however long that takes.
    pub(super) async fn campaign(&self, waits_for: &(dyn Fn(&str) + Sync)) -> Result<Leadership, LeaseError> {
        self.connection.campaign(self.metrics.clone(), self.claim.clone(), self.timings, waits_for).await
    }

    /// Stands by until the Lease is held; none if the daemon is asked to end before.
    pub(super) async fn wait(&self) -> anyhow::Result<Option<Leadership>> {
        let waits_for = |leader: &str| self.board.stand(Stance::StandsBy(Some(leader.into())));
        // A daemon that stands by is ready to take its turn.
        self.health.ready(Ok(()));
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

/// Between two heartbeats of a daemon that stands by.
const BEAT: Duration = Duration::from_secs(10);

/// The name of the Lease: of a run of one repository by the name under which it owns objects, else of the instance.
pub(super) fn lease_name(run: Option<&str>, settings: &Settings) -> String {
    match (run, &settings.instance) {
        (Some(name), _) => format!("{RUN}{name}"),
        (None, Some(instance)) => format!("moorline-{instance}"),
        (None, None) => "moorline".to_owned(),
    }
}

pub(super) fn timings(settings: &Settings) -> Timings {
    Timings {
        duration: settings.lease_duration,
        renew_deadline: settings.lease_renew_deadline,
        retry: settings.lease_retry_period,
        request: (settings.lease_duration.saturating_sub(settings.lease_renew_deadline)).mul_f64(0.8),
    }
}

/// This process and no other, also on a machine where several run.
pub(super) fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let chance = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}_{}_{}", host.as_deref().unwrap_or("moorline"), std::process::id(), chance.as_nanos())
}

/// Passes calls on to the daemon that leads, as an annotation of the Syncs that they are about.
pub(super) async fn pass_on(connection: &Connection, called: &mut mpsc::Receiver<Called>) {
    while let Some(names) = called.recv().await {
        match connection.call(|url| repository_name(url).is_some_and(|name| names.contains(&name))).await {
            Ok(syncs) => tracing::debug!(syncs, "a webhook was passed on"),
            Err(error) => tracing::warn!(%error, "a webhook could not be passed on"),
        }
    }
    std::future::pending().await
}
