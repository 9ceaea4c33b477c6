//! Logs outages and errors of the API server that no single Sync can report.
//!
//! In: the result of each request.
//! Out: one line when an outage begins, one when it ends, and every few minutes the number of
//! failures; and [`ServerNews`]. Failures of a Sync's own requests are logged by the caller, with
//! the name of the Sync.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use crate::api_error::ApiError;
use moorline_core::grammar;
use moorline_core::log_repeats::{LogDecision, LogRepeats};
use moorline_metrics::RequestClass;
use moorline_runtime::clock;

/// Subject for failures that affect every request.
const SERVER: &str = "the API server";

/// Outage and upgrades of one API server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerNews {
    /// Time since which it has not answered; `None` while it answers.
    pub(super) silent_since: Option<Timestamp>,
    /// Number of upgrades that were seen.
    pub(super) upgrades: u64,
}

/// Current problems of one API server; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct OutageLog(Arc<OutageState>);

#[derive(Debug)]
struct OutageState {
    began: Instant,
    /// True while a problem is open: only then a successful response is news.
    is_open: AtomicBool,
    open: Mutex<LogRepeats>,
    news: watch::Sender<ServerNews>,
}

impl Default for OutageLog {
    fn default() -> Self {
        let began = clock::now();
        let (is_open, open) = (AtomicBool::new(false), Mutex::default());
        Self(Arc::new(OutageState { began, is_open, open, news: watch::Sender::default() }))
    }
}

impl OutageLog {
    /// Records the result of a request.
    pub(super) fn note(&self, class: RequestClass, verb: &str, path: &str, failure: Option<&ApiError>) {
        let request = format_args!("{verb} {path}");
        match failure {
            Some(failure @ (ApiError::Unreachable(_) | ApiError::Timeout(_))) => {
                self.set_silent(true);
                let text = failure.to_string();
                self.warn(SERVER, &text, &format!("{text} ({request})"));
            }
            Some(failure) if class == RequestClass::Watch && failure.code() >= Some(500) => {
                self.answers();
                let code = failure.code().unwrap_or_default();
                self.warn(&request.to_string(), &code.to_string(), &format!("{request}: {code}: {failure}"));
            }
            // Any response shows that the server is up.
            Some(ApiError::Refused(_)) => self.answers(),
            None if self.0.is_open.load(Ordering::Relaxed) => {
                self.answers();
                self.close(&request.to_string());
            }
            Some(_) | None => {}
        }
    }

    fn answers(&self) {
        if self.0.is_open.load(Ordering::Relaxed) {
            self.set_silent(false);
            self.close(SERVER);
        }
    }

    /// Returns the news of the server.
    pub(super) fn news(&self) -> watch::Receiver<ServerNews> {
        self.0.news.subscribe()
    }

    /// Records an upgrade.
    pub(super) fn note_upgrade(&self) {
        self.0.news.send_modify(|news| news.upgrades += 1);
    }

    /// Records the begin or the end of an outage.
    fn set_silent(&self, is_silent: bool) {
        self.0.news.send_if_modified(|news| {
            let changes = news.silent_since.is_some() != is_silent;
            if changes {
                let now = clock::wall();
                let now = i64::try_from(now.as_secs()).ok().and_then(|at| Timestamp::from_second(at).ok());
                news.silent_since = now.filter(|_| is_silent);
            }
            changes
        });
    }

    fn warn(&self, subject: &str, text: &str, line: &str) {
        self.0.is_open.store(true, Ordering::Relaxed);
        match self.lock(|open| open.record(subject, text, self.now())) {
            LogDecision::New(0) => tracing::warn!("{line}"),
            LogDecision::New(counted) => {
                tracing::warn!("{line} (before that {}, not logged)", requests(counted))
            }
            LogDecision::Ongoing(counted) => {
                tracing::warn!("still failing after {}: {line}", requests(counted))
            }
            LogDecision::Suppressed => tracing::debug!("{line}"),
        }
    }

    fn close(&self, subject: &str) {
        let closed = self.lock(|open| {
            let closed = open.close(subject);
            self.0.is_open.store(!open.is_empty(), Ordering::Relaxed);
            closed
        });
        if let Some(counted) = closed {
            tracing::info!("{subject} responds again; {} had failed", requests(counted));
        }
    }

    fn lock<T>(&self, work: impl FnOnce(&mut LogRepeats) -> T) -> T {
        work(&mut self.0.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> Duration {
        clock::since(self.0.began)
    }
}

/// Formats a number of requests that were not logged.
fn requests(counted: u64) -> String {
    grammar::more(counted, "request")
}
