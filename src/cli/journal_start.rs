//! Starts and ends the journal of a daemon.
//!
//! In: the settings. Out: a journal that writes to standard output, to a file and to a collector,
//! and that is off without the setting.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::time::Duration;

use anyhow::Context as _;

use super::election::identity;
use crate::api::JOURNAL_ANNOTATION;
use crate::clock;
use crate::cluster::lease::Leadership;
use crate::cluster::{Cluster, Connection};
use crate::journal::{self, ExportAnswer, Journal, JournalEvent, SendBatch};
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::source::{Collector, Repositories};

/// Longest time at the end of the daemon for the last lines.
const FLUSH: Duration = Duration::from_millis(500);
/// Longest time of an attempt to export a batch.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Pause between two checks if they are written.
const LOOK: Duration = Duration::from_millis(5);

/// Opens the journal of the settings.
pub(super) fn open_journal(
    settings: &Settings,
    connection: &Connection,
    repositories: &Repositories,
    metrics: &Metrics,
) -> anyhow::Result<Journal> {
    if settings.journal.is_empty() {
        return Ok(Journal::default());
    }
    let metrics = metrics.clone();
    let observe = move |event| match event {
        JournalEvent::Written => metrics.journal_line(true),
        JournalEvent::Lost => metrics.journal_line(false),
        JournalEvent::Failed => metrics.journal_failing(true),
        JournalEvent::Recovered => metrics.journal_failing(false),
        JournalEvent::Exported(count) => metrics.journal_exported(true, count),
        JournalEvent::Dropped(count) => metrics.journal_exported(false, count),
    };
    let stdout = settings.prints_journal().then(standard_output).transpose()?;
    let parts = journal::Settings {
        file: settings.journal_file(),
        stdout,
        export: settings.journal_collector().map(|url| send_to(&url, repositories)).transpose()?,
        cluster: connection.server(),
        daemon: identity(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        observe: Box::new(observe),
    };
    Journal::open(parts).context("the journal cannot be started")
}

/// Sends batches to a collector, under the rules for hosts of the daemon.
fn send_to(url: &str, repositories: &Repositories) -> anyhow::Result<SendBatch> {
    let collector = Collector::new(url, repositories).context("the collector of the journal")?;
    Ok(Box::new(move |body| match collector.post(body, clock::now() + ATTEMPT) {
        Ok((status, answer)) => ExportAnswer::Status(status, answer),
        Err(error) => ExportAnswer::Silence(error.to_string()),
    }))
}

/// Continues the journal after its file, or after the head in the Lease if that is newer.
pub(super) fn begin_journal(journal: &Journal, cluster: &Cluster, leadership: Option<&Leadership>) {
    cluster.set_journal(journal.clone());
    let head = leadership.and_then(|held| held.previous_annotations().get(JOURNAL_ANNOTATION));
    journal.start_term(head.and_then(|head| head.parse().ok()));
    if let Some(leadership) = leadership {
        leadership.anchor(journal);
    }
}

/// Standard output without its lock, which the command line holds while the daemon runs.
fn standard_output() -> anyhow::Result<Box<dyn Write + Send>> {
    let own = std::io::stdout().as_fd().try_clone_to_owned().context("standard output is closed")?;
    Ok(Box::new(File::from(own)))
}

/// Waits for the last lines, so that the Lease is released with the last one as head.
pub(super) async fn flush_journal(journal: &Journal) {
    let written = async {
        while !journal.is_flushed() {
            tokio::time::sleep(LOOK).await;
        }
    };
    if tokio::time::timeout(FLUSH, written).await.is_err() {
        tracing::warn!("the last lines of the journal could not be written in time");
    }
}
