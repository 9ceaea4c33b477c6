//! Charts, fetched with the same network, workers and folder as the repositories.
//!
//! In: a chart reference.
//! Out: a [`Chart`]. A cached chart costs no request. Concurrent requests for the same chart wait
//! for the first one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use super::super::chart::{self, Chart, ChartCache, ChartError, ChartRef, Digest};
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::remote::heard;
use super::Repositories;
use crate::worker_pool::WorkerRequest;
use moorline_core::tree::MemoryLimit;
use moorline_runtime::chance;

/// Folder of charts, next to those of mirrors.
pub(super) const FOLDER: &str = "charts";

/// Cached charts, and fetches in progress.
#[derive(Debug)]
pub(super) struct ChartStore {
    cache: ChartCache,
    under_way: Mutex<HashMap<Digest, Weak<tokio::sync::Mutex<()>>>>,
}

impl ChartStore {
    pub(super) fn new(folder: &Path) -> Self {
        Self { cache: ChartCache::new(folder), under_way: Mutex::default() }
    }

    /// Returns the lock for fetches of this chart.
    fn turn(&self, digest: Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|_, turn| turn.strong_count() > 0);
        let known = under_way.get(&digest).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let turn = Arc::default();
            under_way.insert(digest, Arc::downgrade(&turn));
            turn
        })
    }
}

impl Repositories {
    /// Returns a chart from the cache, or fetches it. `owner` names the Secret (`namespace/name`,
    /// or empty): cached charts are shared by those that name the same Secret. The login is sent
    /// only to the server in the URL. `asker` is the namespace whose share of the workers is used.
    pub async fn chart(
        &self,
        wanted: &ChartRef,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        by: Instant,
    ) -> Result<Chart, ChartError> {
        self.chart_within(wanted, (owner, asker), credentials, &MemoryLimit::default(), by).await
    }

    /// True if the chart is in the cache.
    pub fn has_chart(&self, wanted: &ChartRef, owner: &str) -> bool {
        self.0.charts.cache.has(owner, wanted.digest)
    }

    /// As [`Repositories::chart`], within the memory of `room`.
    pub async fn chart_within(
        &self,
        wanted: &ChartRef,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        room: &MemoryLimit,
        by: Instant,
    ) -> Result<Chart, ChartError> {
        let work = async {
            let turn = self.0.charts.turn(wanted.digest).lock_owned().await;
            let ask = |server: Option<Arc<str>>| WorkerRequest { namespace: asker.into(), server };
            let (house, owner): (_, Box<str>) = (self.0.clone(), owner.into());
            let worker = self.0.turns.take(ask(None)).await;
            let kept = {
                let (house, owner, wanted, room) =
                    (house.clone(), owner.clone(), wanted.clone(), room.clone());
                chance::spawn_blocking_deterministic(move || {
                    let _worker = worker;
                    chart::kept((&house.charts.cache, &owner), &wanted, &room)
                })
            };
            if let Some(kept) = kept.await.map_err(|_| Error::Stopped)? {
                return kept;
            }
            let mut worker = self.0.turns.take(ask(Some(wanted.place.server().into()))).await;
            let (wanted, credentials, room) = (wanted.clone(), credentials.clone(), room.clone());
            let done = chance::spawn_blocking_deterministic(move || {
                let cache = (&house.charts.cache, &*owner);
                let chart = chart::fetch(cache, &house.network, &wanted, &credentials, (&room, by));
                worker.heard(match &chart {
                    Err(ChartError::Server(error)) => heard(Some(error)),
                    Ok(_) | Err(_) => heard(None),
                });
                drop(turn);
                chart
            });
            done.await.map_err(|_| Error::Stopped)?
        };
        match tokio::time::timeout_at(by.into(), work).await {
            Ok(done) => done,
            Err(_) => {
                let (namespace, server) = (asker.into(), wanted.place.server());
                let ask = WorkerRequest { namespace, server: Some(server.clone().into()) };
                Err(ChartError::from(match self.0.turns.why(&ask) {
                    Some(why) => Error::Waiting { server, why: why.text() },
                    None => Error::Timeout { server, what: "answer" },
                }))
            }
        }
    }
}
