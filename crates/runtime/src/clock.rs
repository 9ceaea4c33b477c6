//! The clock of every wait and every deadline.
//!
//! In: nothing.
//! Out: the current time. It is the clock of tokio's timers, so a test that advances those advances
//! all deadlines with them. In production it is the monotonic clock of the standard library.

use std::time::{Duration, Instant, SystemTime};

/// Returns the current time.
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns the time elapsed since a moment; zero if it is in the future.
pub fn since(moment: Instant) -> Duration {
    now().saturating_duration_since(moment)
}

/// Returns the time since 1970, by the same clock: a test that advances the timers advances it.
pub fn wall() -> Duration {
    let (system, waits) = (Instant::now(), now());
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (wall + waits.saturating_duration_since(system)).saturating_sub(system.saturating_duration_since(waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_goes_as_tokio_says_also_on_threads_that_block() {
        let (begun, day) = (now(), wall());
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!((wall() - day).as_secs().div_ceil(60), 60, "the time of day goes with it");
        assert_eq!(since(begun), Duration::from_secs(3600));
        let there = tokio::task::spawn_blocking(move || since(begun)).await.unwrap();
        assert_eq!(there, Duration::from_secs(3600));
        assert_eq!(since(now() + Duration::from_secs(1)), Duration::ZERO);
    }
}
