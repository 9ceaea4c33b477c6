//! Charts, fetched beside the repositories: with the same network, by the same threads, into the same folder.
//!
//! In: which chart is wanted. Out: [`Chart`]. One that is here costs no request. Those who want the same chart at the same time wait for
//! the first of them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use super::super::chart::{self, Cache, Chart, ChartError, ChartRef, Digest};
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::remote::heard;
use super::super::turns::Ask;
use super::Repositories;
use moorline_core::tree::Room;
use moorline_runtime::chance;

/// The folder of charts, beside those of mirrors.
pub(super) const FOLDER: &str = "charts";

/// Charts that are here, and those that are under way.
#[derive(Debug)]
pub(super) struct Charts {
    cache: Cache,
    under_way: Mutex<HashMap<Digest, Weak<tokio::sync::Mutex<()>>>>,
}

impl Charts {
    pub(super) fn new(folder: &Path) -> Self {
        Self { cache: Cache::new(folder), under_way: Mutex::default() }
    }

    /// The turn of those who want this chart.
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
    /// The chart that is wanted: what is here, or else what is fetched. `owner` names the Secret (`namespace/name`, or nothing): what was
    /// fetched with it is here for those who name the same. The login goes to the server that the URL names, and to no other. The
    /// share of the workers is that of the namespace `asker`.
    pub async fn chart(
        &self,
        wanted: &ChartRef,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        by: Instant,
    ) -> Result<Chart, ChartError> {
        self.chart_within(wanted, (owner, asker), credentials, &Room::default(), by).await
    }

    /// True if the chart is on the disk already.
    pub fn has_chart(&self, wanted: &ChartRef, owner: &str) -> bool {
        self.0.charts.cache.has(owner, wanted.digest)
    }

    /// The same as [`Repositories::chart`], in this room.
    pub async fn chart_within(
        &self,
        wanted: &ChartRef,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        room: &Room,
        by: Instant,
    ) -> Result<Chart, ChartError> {
        let work = async {
            let turn = self.0.charts.turn(wanted.digest).lock_owned().await;
            let ask = |server: Option<Arc<str>>| Ask { namespace: asker.into(), server };
            let (house, owner): (_, Box<str>) = (self.0.clone(), owner.into());
            let worker = self.0.turns.take(ask(None)).await;
            let kept = {
                let (house, owner, wanted, room) =
                    (house.clone(), owner.clone(), wanted.clone(), room.clone());
                chance::aside(move || {
                    let _worker = worker;
                    chart::kept((&house.charts.cache, &owner), &wanted, &room)
                })
            };
            if let Some(kept) = kept.await.map_err(|_| Error::Stopped)? {
                return kept;
            }
            let mut worker = self.0.turns.take(ask(Some(wanted.place.server().into()))).await;
            let (wanted, credentials, room) = (wanted.clone(), credentials.clone(), room.clone());
            let done = chance::aside(move || {
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
                let ask = Ask { namespace, server: Some(server.clone().into()) };
                Err(ChartError::from(match self.0.turns.why(&ask) {
                    Some(why) => Error::Waiting { server, why: why.text() },
                    None => Error::Timeout { server, what: "answer" },
                }))
            }
        }
    }
}
