//! Whether the daemon lives and is ready, as its probes are told.
//!
//! In: beats from the daemon's loop, and what keeps it from being ready. Out: an answer for `/healthz` and one for
//! `/readyz`. A probe that fails makes Kubernetes start the daemon anew, so a repository or an API server that
//! does not answer is no matter of health: starting anew would not help.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// How long the daemon's loop may be silent. It should beat several times as often.
pub const MAX_SILENCE: Duration = Duration::from_secs(60);

/// A handle on the health of one daemon; clones tell of the same.
#[derive(Debug, Clone)]
pub struct Health(Arc<Told>);

#[derive(Debug)]
struct Told {
    begun: Instant,
    /// The last beat, in milliseconds since the beginning.
    beat: AtomicU64,
    ready: watch::Sender<Result<(), String>>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// A daemon that lives and is not ready yet.
    pub fn new() -> Self {
        let (ready, _) = watch::channel(Err("the daemon is starting".to_owned()));
        Self(Arc::new(Told { begun: Instant::now(), beat: AtomicU64::new(0), ready }))
    }

    /// The daemon's loop goes round.
    pub fn beat(&self) {
        self.0.beat.store(self.age(), Ordering::Relaxed);
    }

    /// Whether the daemon is ready, else a sentence why not.
    pub fn ready(&self, ready: Result<(), String>) {
        // What was told before counts no more.
        let _ = self.0.ready.send_replace(ready);
    }

    /// The answer for `/healthz`.
    pub(super) fn lives(&self) -> Result<(), String> {
        let silence = Duration::from_millis(self.age().saturating_sub(self.0.beat.load(Ordering::Relaxed)));
        if silence <= MAX_SILENCE {
            return Ok(());
        }
        Err(format!("the daemon's loop has been silent for {} s", silence.as_secs()))
    }

    /// The answer for `/readyz`.
    pub(super) fn is_ready(&self) -> Result<(), String> {
        self.0.ready.borrow().clone()
    }

    fn age(&self) -> u64 {
        u64::try_from(self.0.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_silent_too_long_is_not_alive() {
        let health = Health::new();
        assert_eq!(health.lives(), Ok(()), "a daemon that just began lives");
        tokio::time::advance(MAX_SILENCE).await;
        assert_eq!(health.lives(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(health.clone().lives(), Err("the daemon's loop has been silent for 61 s".to_owned()));
        health.clone().beat();
        assert_eq!(health.lives(), Ok(()));
    }
}
