//! Liveness and readiness of the daemon.
//!
//! In: heartbeats of the daemon's loop, and the reason why it is not ready. Out: the responses of
//! `/healthz` and `/readyz`. Kubernetes restarts a daemon whose liveness probe fails, so a
//! repository or an API server that does not respond never affects it: a restart would not help.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The longest time without a heartbeat. The loop should beat several times as often.
pub const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Handle to the health of one daemon; clones share it.
#[derive(Debug, Clone)]
pub struct DaemonHealth(Arc<ProbeState>);

#[derive(Debug)]
struct ProbeState {
    started_at: Instant,
    /// The last heartbeat, in milliseconds since the start.
    last_beat: AtomicU64,
    ready: watch::Sender<Result<(), String>>,
}

impl Default for DaemonHealth {
    fn default() -> Self {
        Self::new()
    }
}

impl DaemonHealth {
    /// A daemon that is alive and not ready yet.
    pub fn new() -> Self {
        let (ready, _) = watch::channel(Err("the daemon is starting".to_owned()));
        Self(Arc::new(ProbeState { started_at: Instant::now(), last_beat: AtomicU64::new(0), ready }))
    }

    /// Records a heartbeat of the daemon's loop.
    pub fn beat(&self) {
        self.0.last_beat.store(self.age(), Ordering::Relaxed);
    }

    /// Sets the readiness, or the reason why the daemon is not ready.
    pub fn set_readiness(&self, ready: Result<(), String>) {
        // The previous value is not needed.
        let _ = self.0.ready.send_replace(ready);
    }

    /// The response of `/healthz`.
    pub(super) fn liveness(&self) -> Result<(), String> {
        let silence =
            Duration::from_millis(self.age().saturating_sub(self.0.last_beat.load(Ordering::Relaxed)));
        if silence <= MAX_SILENCE {
            return Ok(());
        }
        Err(format!("the daemon's loop has been silent for {} s", silence.as_secs()))
    }

    /// The response of `/readyz`.
    pub(super) fn readiness(&self) -> Result<(), String> {
        self.0.ready.borrow().clone()
    }

    fn age(&self) -> u64 {
        u64::try_from(self.0.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_silent_too_long_is_not_alive() {
        let health = DaemonHealth::new();
        assert_eq!(health.liveness(), Ok(()), "a daemon that just began lives");
        tokio::time::advance(MAX_SILENCE).await;
        assert_eq!(health.liveness(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(health.clone().liveness(), Err("the daemon's loop has been silent for 61 s".to_owned()));
        health.clone().beat();
        assert_eq!(health.liveness(), Ok(()));
    }
}
