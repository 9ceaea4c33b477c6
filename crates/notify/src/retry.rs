//! Decides when a delivery is tried again.
//!
//! In: the result of an attempt, their number, and the time since the first one.
//! Out: [`NextAttempt`]. Pauses double, and every delivery ends.

use std::time::Duration;

/// The first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// Time after the first attempt at which a delivery ends.
const RETRY_END: Duration = Duration::from_secs(3600);
/// The part of a pause that chance adds.
const SPREAD: f64 = 0.25;

/// Result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// The service has it.
    Accepted,
    /// The service does not take it, and would not later.
    Refused,
    /// A person may have to change the Secret or the URL.
    Denied,
    /// The service is away or overloaded.
    Unavailable {
        /// The pause that it asks for.
        retry_after: Option<Duration>,
    },
}

impl AttemptResult {
    /// Returns the result that an HTTP status means.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match status {
            200..300 => Self::Accepted,
            401 | 403 | 404 => Self::Denied,
            408 | 425 | 429 | 500.. => Self::Unavailable { retry_after },
            _ => Self::Refused,
        }
    }
}

/// Step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextAttempt {
    /// Nothing: it is sent.
    Done,
    /// Another attempt after this pause.
    After(Duration),
    /// Nothing: it cannot be sent.
    GiveUp,
}

/// Decides what follows attempt number `attempt`, counted from 1; `chance` is between 0 and 1.
pub fn decide_retry(result: AttemptResult, attempt: u32, since_first: Duration, chance: f64) -> NextAttempt {
    let doubled = PAUSES.0.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    let pause = match result {
        AttemptResult::Accepted => return NextAttempt::Done,
        AttemptResult::Refused => return NextAttempt::GiveUp,
        AttemptResult::Denied => doubled,
        AttemptResult::Unavailable { retry_after } => doubled.max(retry_after.unwrap_or_default()),
    };
    let pause = pause.min(PAUSES.1).mul_f64(1.0 + SPREAD * chance.clamp(0.0, 1.0));
    match since_first + pause > RETRY_END {
        true => NextAttempt::GiveUp,
        false => NextAttempt::After(pause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delivery_ends() {
        for (status, first) in [
            (204, NextAttempt::Done),
            (301, NextAttempt::GiveUp),
            (400, NextAttempt::GiveUp),
            (401, NextAttempt::After(Duration::from_secs(1))),
            (429, NextAttempt::After(Duration::from_secs(30))),
            (503, NextAttempt::After(Duration::from_secs(30))),
        ] {
            let result = AttemptResult::of_status(status, Some(Duration::from_secs(30)));
            assert_eq!(decide_retry(result, 1, Duration::ZERO, 0.0), first, "{status}");
        }
        let (mut at, mut attempts) = (Duration::ZERO, 1);
        let away = AttemptResult::Unavailable { retry_after: Some(Duration::from_secs(u64::MAX)) };
        let slow = AttemptResult::Unavailable { retry_after: None };
        assert_eq!(decide_retry(away, 1, at, 0.0), NextAttempt::After(PAUSES.1));
        while let NextAttempt::After(pause) = decide_retry(slow, attempts, at, 1.0) {
            (at, attempts) = (at + pause, attempts + 1);
        }
        assert!(at <= RETRY_END && (15..30).contains(&attempts), "{attempts} attempts, until {at:?}");
    }
}
