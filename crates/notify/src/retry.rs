//! Decides when a delivery is tried again.
//!
//! In: the result of an attempt, their number, and the time since the first one.
//! Out: [`NextAttempt`]. Pauses double, and every delivery ends. A limit of requests is waited for
//! until the time that the service names.

use std::time::Duration;

/// The first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// Time after the first attempt at which a delivery ends.
const RETRY_END: Duration = Duration::from_secs(3600);
/// The longest limit that a service may name.
pub const MAX_LIMIT: Duration = Duration::from_secs(3600);
/// Time after the transition at which a delivery ends that a service limits again and again.
const LIMITED_END: Duration = Duration::from_secs(6 * 3600);
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
    /// The login has used up its limit of requests.
    Limited {
        /// The time until the end of the limit.
        pause: Duration,
    },
}

impl AttemptResult {
    /// Returns the result that an HTTP status means, with the pause that the service names.
    pub fn of_status(status: u16, retry_after: Option<Duration>) -> Self {
        match (status, retry_after) {
            (200..300, _) => Self::Accepted,
            (403 | 429, Some(pause)) => Self::Limited { pause: pause.min(MAX_LIMIT) },
            (401 | 403 | 404, _) => Self::Denied,
            (408 | 425 | 429 | 500.., _) => Self::Unavailable { retry_after },
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
    /// Another delivery, once the limit of the service has ended.
    AfterLimit(Duration),
    /// Nothing: it cannot be sent.
    GiveUp,
}

/// Age of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryAge {
    /// Time since its first attempt.
    pub since_first: Duration,
    /// Time since the transition.
    pub since_transition: Duration,
}

/// Decides what follows attempt number `attempt`, counted from 1; `chance` is between 0 and 1.
pub fn decide_retry(result: AttemptResult, attempt: u32, age: DeliveryAge, chance: f64) -> NextAttempt {
    let doubled = PAUSES.0.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    let pause = match result {
        AttemptResult::Accepted => return NextAttempt::Done,
        AttemptResult::Refused => return NextAttempt::GiveUp,
        AttemptResult::Denied => doubled,
        AttemptResult::Limited { .. } if age.since_transition > LIMITED_END => return NextAttempt::GiveUp,
        AttemptResult::Limited { pause } => return NextAttempt::AfterLimit(pause),
        AttemptResult::Unavailable { retry_after } => doubled.max(retry_after.unwrap_or_default()),
    };
    let pause = pause.min(PAUSES.1).mul_f64(1.0 + SPREAD * chance.clamp(0.0, 1.0));
    match age.since_first + pause > RETRY_END {
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
            (403, NextAttempt::AfterLimit(Duration::from_secs(30))),
            (429, NextAttempt::AfterLimit(Duration::from_secs(30))),
            (503, NextAttempt::After(Duration::from_secs(30))),
        ] {
            let result = AttemptResult::of_status(status, Some(Duration::from_secs(30)));
            assert_eq!(decide_retry(result, 1, DeliveryAge::default(), 0.0), first, "{status}");
        }
        for (status, first) in [(403, Duration::from_secs(1)), (429, Duration::from_secs(1))] {
            let result = AttemptResult::of_status(status, None);
            assert_eq!(decide_retry(result, 1, DeliveryAge::default(), 0.0), NextAttempt::After(first));
        }
        let (mut at, mut attempts) = (Duration::ZERO, 1);
        let away = AttemptResult::Unavailable { retry_after: Some(Duration::from_secs(u64::MAX)) };
        let slow = AttemptResult::Unavailable { retry_after: None };
        let age = |since_first| DeliveryAge { since_first, ..DeliveryAge::default() };
        assert_eq!(decide_retry(away, 1, age(at), 0.0), NextAttempt::After(PAUSES.1));
        while let NextAttempt::After(pause) = decide_retry(slow, attempts, age(at), 1.0) {
            (at, attempts) = (at + pause, attempts + 1);
        }
        assert!(at <= RETRY_END && (15..30).contains(&attempts), "{attempts} attempts, until {at:?}");
    }

    #[test]
    fn a_limit_is_waited_for_without_a_back_off_and_ends_too() {
        let limited = AttemptResult::of_status(403, Some(Duration::from_secs(1799)));
        let age = |since_first, since_transition| DeliveryAge { since_first, since_transition };
        for (attempt, since, expect) in [
            (1, Duration::ZERO, NextAttempt::AfterLimit(Duration::from_secs(1799))),
            (9, RETRY_END * 2, NextAttempt::AfterLimit(Duration::from_secs(1799))),
            (9, LIMITED_END, NextAttempt::AfterLimit(Duration::from_secs(1799))),
            (9, LIMITED_END + Duration::from_secs(1), NextAttempt::GiveUp),
        ] {
            assert_eq!(decide_retry(limited, attempt, age(since, since), 1.0), expect, "{since:?}");
        }
        let forever = AttemptResult::of_status(429, Some(Duration::MAX));
        let next = decide_retry(forever, 1, age(Duration::ZERO, Duration::ZERO), 1.0);
        assert_eq!(next, NextAttempt::AfterLimit(MAX_LIMIT));
    }
}
