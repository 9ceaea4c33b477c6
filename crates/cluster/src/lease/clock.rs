//! Clock for the term of a Lease.
//!
//! In: a [`Clock`].
//! Out: a [`Moment`]. The machine's clock cannot be set, so a jump of the wall clock neither
//! lengthens nor shortens a term. On Linux it is `CLOCK_BOOTTIME`. `CLOCK_MONOTONIC`, which the
//! standard library and tokio use, runs while a process is stopped (`SIGSTOP`) but not while the
//! machine sleeps: a holder on a laptop that wakes up would believe in a term that another daemon
//! has long taken over. A simulation passes tokio's clock, which it advances itself.

use std::time::Duration;

/// Source of time for a Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The machine's clock.
    Machine,
    /// The clock of tokio's timers, counted from a start.
    Timers(tokio::time::Instant),
}

impl Clock {
    /// Returns the current time.
    pub fn now(self) -> Moment {
        match self {
            Self::Machine => Moment::now(),
            // Zero is reserved: an ended permit has the deadline zero.
            Self::Timers(start) => Moment(start.elapsed() + Duration::from_secs(1)),
        }
    }
}

#[cfg(target_os = "linux")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// A point in time of this machine's clock, counted from an arbitrary start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Returns the current time of the machine's clock.
    pub fn now() -> Self {
        let time = rustix::time::clock_gettime(CLOCK);
        // The clock counts from the start of the machine, so neither part is negative.
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default()))
    }

    /// Returns the moment so long after the clock's start.
    pub const fn after_start(passed: Duration) -> Self {
        Self(passed)
    }

    /// Nanoseconds from the clock's start; enough for five centuries.
    pub(super) fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Time until a later moment; zero if that has passed.
    pub fn time_until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_simulation_moves_the_clock_of_the_timers() {
        let clock = Clock::Timers(tokio::time::Instant::now());
        let before = clock.now();
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(before.time_until(clock.now()), Duration::from_secs(15));
    }

    #[test]
    fn the_clock_goes_on_and_a_past_moment_is_no_wait() {
        let before = Moment::now();
        std::thread::sleep(Duration::from_millis(2));
        let after = Moment::now();
        assert!(before.time_until(after) >= Duration::from_millis(2));
        assert_eq!(after.time_until(before), Duration::ZERO);
        assert_eq!(before + before.time_until(after), after);
    }
}
