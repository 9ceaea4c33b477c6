//! The clock that every wait and every deadline is measured by.
//!
//! In: nothing. Out: the present. It is the clock that tokio's timers go by, so that a test which moves those moves
//! all deadlines with them. In production it is the machine's own, as in the standard library.

use std::time::{Duration, Instant};

/// The present.
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// How long ago a moment was; nothing if it is to come.
pub fn since(moment: Instant) -> Duration {
    now().saturating_duration_since(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_goes_as_tokio_says_also_on_threads_that_block() {
        let begun = now();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(since(begun), Duration::from_secs(3600));
        let there = tokio::task::spawn_blocking(move || since(begun)).await.unwrap();
        assert_eq!(there, Duration::from_secs(3600));
        assert_eq!(since(now() + Duration::from_secs(1)), Duration::ZERO);
    }
}
