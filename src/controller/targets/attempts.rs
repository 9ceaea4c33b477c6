//! Lets the Syncs of one cluster share an attempt to connect to it.
//!
//! In: attempts of many Syncs at the same time. Out: one attempt for each cluster at a time. Those
//! who have waited for it do not try again: they get its error, or use its connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::clock;
use crate::cluster::remote::RemoteAccess;
use crate::report::ReconcileError;

/// Attempts in progress, by the marks of their clusters.
#[derive(Default)]
pub(super) struct Attempts(Mutex<HashMap<Box<str>, Arc<Turn>>>);

/// The turn to connect to one cluster, with the last attempt of those who share it.
type Turn = tokio::sync::Mutex<Option<LastAttempt>>;

struct LastAttempt {
    access: RemoteAccess,
    ended: Instant,
    failure: Option<ReconcileError>,
}

impl Attempts {
    /// Connects with an access, or waits for an attempt with the same access that ends after this
    /// call; none if that has succeeded.
    pub(super) async fn share<T, F: Future<Output = Result<T, ReconcileError>>>(
        &self,
        mark: &str,
        access: &RemoteAccess,
        connect: impl FnOnce() -> F,
    ) -> Result<Option<T>, ReconcileError> {
        let asked = clock::now();
        let turn = self.turn(mark);
        let mut last = turn.lock().await;
        // An attempt that was in progress already counts as well: it waits for the same answer.
        if let Some(last) = last.as_ref().filter(|last| last.access == *access && last.ended >= asked) {
            return last.failure.clone().map_or(Ok(None), Err);
        }
        let found = connect().await;
        let failure = found.as_ref().err().cloned();
        *last = Some(LastAttempt { access: access.clone(), ended: clock::now(), failure });
        found.map(Some)
    }

    fn turn(&self, mark: &str) -> Arc<Turn> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(mark) {
            return turn.clone();
        }
        // Those that nobody waits for are not needed any more.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(mark.into()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;
    use crate::report::ErrorCause;

    fn access(token: &str) -> RemoteAccess {
        let (authorities, server_name, client) = (None, None, None);
        let server = "https://east.example.com".parse().unwrap();
        RemoteAccess { server, authorities, server_name, token: Some(token.to_owned()), client }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_syncs_of_a_cluster_try_once() {
        let (all, tries, begun) = (Attempts::default(), AtomicUsize::new(0), tokio::time::Instant::now());
        let attempt = async |token: &str, fails: bool| {
            let error = ReconcileError {
                cause: ErrorCause::ClusterUnreachable,
                message: String::new(),
                problems: Vec::new(),
                permanent: false,
            };
            let connect = || async {
                tries.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(5)).await;
                if fails { Err(error) } else { Ok(()) }
            };
            all.share("m", &access(token), connect).await
        };
        let failed = join_all((0..100).map(|_| attempt("one", true))).await;
        assert!(failed.iter().all(Result::is_err));
        assert_eq!((tries.load(Ordering::Relaxed), begun.elapsed()), (1, Duration::from_secs(5)));
        tokio::time::advance(Duration::from_millis(1)).await;
        let (again, others) =
            tokio::join!(attempt("one", false), join_all((0..9).map(|_| attempt("one", true))));
        assert!(again.unwrap().is_some() && others.iter().all(|found| matches!(found, Ok(None))));
        tokio::time::advance(Duration::from_millis(1)).await;
        let _ = tokio::join!(attempt("one", false), attempt("two", false));
        assert_eq!(tries.load(Ordering::Relaxed), 4, "another access is an attempt of its own");
    }
}
