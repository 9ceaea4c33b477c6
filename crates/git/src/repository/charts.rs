//! Charts, fetched with the same network, workers and folder as the repositories.
//!
//! In: a chart request, or a chart reference.
//! Out: a [`ChartVersion`]; a [`Chart`]. A cached chart costs no request. Concurrent requests for
//! the same chart wait for the first one, and those that ask one repository for versions share its
//! answer.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::super::chart::{
    self, Chart, ChartCache, ChartError, ChartPlace, ChartRef, ChartRequest, ChartVersion, Digest, KnownIndex,
};
use super::super::credentials::Credentials;
use super::super::error::Error;
use super::super::remote::heard;
use super::super::signature::TrustedKeys;
use super::Repositories;
use super::signature_check::verify_chart;
use crate::worker_pool::WorkerRequest;
use moorline_core::tree::MemoryLimit;
use moorline_runtime::{chance, clock};

/// Folder of charts, next to those of mirrors.
pub(super) const FOLDER: &str = "charts";

/// Cached charts, and fetches in progress.
#[derive(Debug)]
pub(super) struct ChartStore {
    cache: ChartCache,
    under_way: Mutex<HashMap<Digest, Weak<tokio::sync::Mutex<()>>>>,
    /// Answers of each repository, by its URL and the Secret that is sent to it.
    servers: Mutex<HashMap<Box<str>, Arc<tokio::sync::Mutex<AskedServer>>>>,
}

/// Answers of one repository of charts, or about one chart of a registry.
#[derive(Debug, Default)]
struct AskedServer {
    index: KnownIndex,
    /// Start of the last request that was answered.
    asked: Option<Instant>,
    /// The last answers about a registry, by the version that was asked for.
    answers: HashMap<Box<str>, (Instant, ChartVersion)>,
}

/// Age up to which the index of a repository is new enough for a dependency.
const SHARED: Duration = Duration::from_secs(60);

/// Maximum number of repositories of charts whose answers are kept.
const MAX_SERVERS: usize = 256;

/// Maximum number of answers that are kept of one chart in a registry.
const MAX_ANSWERS: usize = 64;

impl ChartStore {
    pub(super) fn new(folder: &Path) -> Self {
        Self { cache: ChartCache::new(folder), under_way: Mutex::default(), servers: Mutex::default() }
    }

    /// Returns what is known of a repository.
    fn server(&self, url: &str, owner: &str) -> Arc<tokio::sync::Mutex<AskedServer>> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= MAX_SERVERS {
            servers.retain(|_, server| Arc::strong_count(server) > 1);
        }
        servers.entry(format!("{owner}\n{url}").into()).or_default().clone()
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

    /// Returns the version that `wanted` means now. An answer that is not older than `fresh` is
    /// shared. `known` is the version that was taken up before: if it has other content now, that
    /// is an error.
    pub async fn chart_version(
        &self,
        wanted: &ChartRequest,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        (known, fresh): (Option<&ChartVersion>, Duration),
        by: Instant,
    ) -> Result<ChartVersion, ChartError> {
        let work = async {
            let mut server = self.0.charts.server(&wanted.index_key(), owner).lock_owned().await;
            let begun = clock::now();
            let is_fresh = move |asked: Instant| begun.saturating_duration_since(asked) < fresh;
            if let Some((asked, found)) = server.answers.get(&*wanted.answer_key())
                && is_fresh(*asked)
            {
                return Ok(found.clone());
            }
            let ask = WorkerRequest { namespace: asker.into(), server: Some(wanted.server().into()) };
            let mut worker = self.0.turns.take(ask).await;
            let (house, owner): (_, Box<str>) = (self.0.clone(), owner.into());
            let (wanted, credentials) = (wanted.clone(), credentials.clone());
            let done = chance::spawn_blocking_deterministic(move || {
                let is_known = server.asked.is_some_and(is_fresh);
                let cache = (&house.charts.cache, &*owner);
                let state = (&mut server.index, is_known);
                let found = chart::find_version(cache, &house.network, &wanted, &credentials, state, by);
                worker.heard(match &found {
                    Err(ChartError::Server(error)) => heard(Some(error)),
                    Ok(_) | Err(_) => heard(None),
                });
                if found.is_ok() && !is_known {
                    server.asked = Some(begun);
                }
                if let Some(found) = found.as_ref().ok().filter(|_| wanted.is_in_registry()) {
                    if server.answers.len() >= MAX_ANSWERS {
                        server.answers.clear();
                    }
                    server.answers.insert(wanted.answer_key(), (begun, found.clone()));
                }
                found
            });
            done.await.map_err(|_| Error::Stopped)?
        };
        let found = match tokio::time::timeout_at(by.into(), work).await {
            Ok(found) => found?,
            Err(_) => return Err(self.late(asker, wanted.server())),
        };
        match known.filter(|known| wanted.is_moved(known, &found)) {
            None => Ok(found),
            Some(known) => Err(ChartError::Moved {
                chart: known.short().into(),
                taken: known.digest.to_string().into(),
                found: found.digest.to_string().into(),
            }),
        }
    }

    /// Checks that a version of a chart in a registry is signed by one who is trusted. An accepted
    /// signature is kept, and costs no request the next time.
    pub async fn verify_chart(
        &self,
        (wanted, version): (&ChartRequest, &ChartVersion),
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        keys: &Arc<TrustedKeys>,
        by: Instant,
    ) -> Result<(), ChartError> {
        let work = verify_chart(&self.0, (wanted, version), (owner, asker), credentials, keys, by);
        match tokio::time::timeout_at(by.into(), work).await {
            Ok(done) => done,
            Err(_) => Err(self.late(asker, wanted.server())),
        }
    }

    /// Returns a dependency at an exact version. Its digest is recorded when it is fetched first,
    /// so that from then on no request is sent, and the content stays the same.
    pub async fn dependency(
        &self,
        wanted: &ChartRequest,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        memory_limit: &MemoryLimit,
        by: Instant,
    ) -> Result<Chart, ChartError> {
        let cache = &self.0.charts.cache;
        let key = format!("{} {}", wanted.place(), wanted.answer_key());
        let chart = match cache.recorded(owner, &key).and_then(|known| wanted.at(&known)) {
            Some(chart) => chart,
            None => {
                let asked = (owner, asker);
                let shared = (None, SHARED);
                let found = self.chart_version(wanted, asked, credentials, shared, by).await?;
                cache.record(owner, &key, &found);
                wanted.at(&found).ok_or(Error::Stopped)?
            }
        };
        self.chart_within(&chart, (owner, asker), credentials, memory_limit, by).await
    }

    /// True if the dependency is in the cache.
    pub fn has_dependency(&self, wanted: &ChartRequest, owner: &str) -> bool {
        let key = format!("{} {}", wanted.place(), wanted.answer_key());
        let known = self.0.charts.cache.recorded(owner, &key).and_then(|known| wanted.at(&known));
        known.is_some_and(|chart| self.has_chart(&chart, owner))
    }

    /// True if the chart is in the cache.
    pub fn has_chart(&self, wanted: &ChartRef, owner: &str) -> bool {
        self.0.charts.cache.has(owner, wanted.digest)
    }

    /// As [`Repositories::chart`], within `memory_limit`.
    pub async fn chart_within(
        &self,
        wanted: &ChartRef,
        (owner, asker): (&str, &str),
        credentials: &Credentials,
        memory_limit: &MemoryLimit,
        by: Instant,
    ) -> Result<Chart, ChartError> {
        let work = async {
            let turn = self.0.charts.turn(wanted.digest).lock_owned().await;
            let ask = |server: Option<Arc<str>>| WorkerRequest { namespace: asker.into(), server };
            let (house, owner): (_, Box<str>) = (self.0.clone(), owner.into());
            let worker = self.0.turns.take(ask(None)).await;
            let kept = {
                let (house, owner, wanted, memory_limit) =
                    (house.clone(), owner.clone(), wanted.clone(), memory_limit.clone());
                chance::spawn_blocking_deterministic(move || {
                    let _worker = worker;
                    chart::kept((&house.charts.cache, &owner), &wanted, &memory_limit)
                })
            };
            if let Some(kept) = kept.await.map_err(|_| Error::Stopped)? {
                return kept;
            }
            let listed = match &wanted.place {
                ChartPlace::Repository { url, name, version } if wanted.was_taken_up => {
                    let known = house.charts.server(url.trim_end_matches('/'), &owner);
                    let known = known.lock().await;
                    known.index.entry(name, version)
                }
                ChartPlace::Repository { .. } | ChartPlace::Registry { .. } => None,
            };
            let mut worker = self.0.turns.take(ask(Some(wanted.place.server().into()))).await;
            let (wanted, credentials, memory_limit) =
                (wanted.clone(), credentials.clone(), memory_limit.clone());
            let done = chance::spawn_blocking_deterministic(move || {
                let cache = (&house.charts.cache, &*owner);
                let chart =
                    chart::fetch(cache, &house.network, (&wanted, listed), &credentials, (&memory_limit, by));
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
            Err(_) => Err(self.late(asker, wanted.place.server())),
        }
    }

    /// Returns the error for a server that has not answered in time.
    fn late(&self, asker: &str, server: Box<str>) -> ChartError {
        let ask = WorkerRequest { namespace: asker.into(), server: Some(server.clone().into()) };
        ChartError::from(match self.0.turns.why(&ask) {
            Some(why) => Error::Waiting { server, why: why.text() },
            None => Error::Timeout { server, what: "answer" },
        })
    }
}
