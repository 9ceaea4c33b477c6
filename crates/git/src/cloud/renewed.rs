//! A short-lived value that is renewed before it expires.
//!
//! In: a function that gets a new value.
//! Out: the value. One renewal runs at a time, and all callers share its result, also a failure.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use moorline_runtime::clock;

use crate::error::Error;

/// Maximum time before its end at which a value is renewed.
const RENEWED_BEFORE: Duration = Duration::from_secs(5 * 60);

/// A value with a short life is renewed after this part of it.
const RENEWED_BEFORE_PART: u32 = 5;

/// Time for which a failure is shared, so that many Syncs do not repeat it at once.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Minimum time between renewals because a server refused a value.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// A value, and its renewal.
pub(super) struct Renewed<T> {
    state: Mutex<RenewalState<T>>,
    /// Notified at the end of each renewal.
    news: Condvar,
}

struct RenewalState<T> {
    held: Option<Held<T>>,
    /// True while a caller renews.
    is_renewing: bool,
    /// The last failure, unless a renewal succeeded after it.
    failed: Option<(Instant, Error)>,
    /// Time of the last renewal because of a refused value.
    refused: Option<Instant>,
}

struct Held<T> {
    value: Arc<T>,
    renewed_from: Instant,
    valid_until: Instant,
}

impl<T> Default for Renewed<T> {
    fn default() -> Self {
        let state = RenewalState { held: None, is_renewing: false, failed: None, refused: None };
        Self { state: Mutex::new(state), news: Condvar::new() }
    }
}

impl<T> Renewed<T> {
    /// Returns a value that is not to be renewed yet. `renew` returns one with its lifetime.
    pub(super) fn get(
        &self,
        by: Instant,
        renew: impl FnOnce() -> Result<(T, Duration), Error>,
    ) -> Result<Arc<T>, Error> {
        let mut state = self.lock();
        loop {
            let now = clock::now();
            let valid = state.held.as_ref().filter(|held| now < held.valid_until);
            let paused = state.failed.as_ref().filter(|(at, _)| clock::since(*at) < FAILURE_PAUSE);
            match (valid, paused) {
                (Some(held), _) if now < held.renewed_from => return Ok(held.value.clone()),
                // An old value is as good as a new one until its end.
                (Some(held), Some(_)) => return Ok(held.value.clone()),
                (Some(held), None) if state.is_renewing => return Ok(held.value.clone()),
                (None, Some((_, error))) => return Err(error.clone()),
                (_, None) if !state.is_renewing => break,
                (_, None) => {}
            }
            let left = by.saturating_duration_since(now);
            if left.is_zero() {
                return Err(Error::Slow);
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        state.is_renewing = true;
        drop(state);
        let turn = RenewalTurn(self);
        let found = renew();
        let mut state = self.lock();
        let found = match found {
            Ok((value, lifetime)) => {
                let (now, margin) = (clock::now(), RENEWED_BEFORE.min(lifetime / RENEWED_BEFORE_PART));
                let (value, renewed_from) = (Arc::new(value), now + lifetime.saturating_sub(margin));
                state.failed = None;
                state.held = Some(Held { value: value.clone(), renewed_from, valid_until: now + lifetime });
                Ok(value)
            }
            Err(error) => {
                state.failed = Some((clock::now(), error.clone()));
                let valid = state.held.as_ref().filter(|held| clock::now() < held.valid_until);
                valid.map(|held| held.value.clone()).ok_or(error)
            }
        };
        drop((state, turn));
        found
    }

    /// Drops a value that a server refused; false if one was dropped for that just now.
    pub(super) fn refuse(&self) -> bool {
        let mut state = self.lock();
        if state.refused.is_some_and(|at| clock::since(at) < REFUSED_PAUSE) {
            return false;
        }
        state.refused = Some(clock::now());
        state.held.take().is_some()
    }

    /// True if a value is held that has not expired, or one is being fetched.
    pub(super) fn is_alive(&self) -> bool {
        let state = self.lock();
        state.is_renewing || state.held.as_ref().is_some_and(|held| clock::now() < held.valid_until)
    }

    fn lock(&self) -> MutexGuard<'_, RenewalState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of the caller that renews; the others go on when it ends, however it ends.
struct RenewalTurn<'a, T>(&'a Renewed<T>);

impl<T> Drop for RenewalTurn<'_, T> {
    fn drop(&mut self) {
        self.0.lock().is_renewing = false;
        self.0.news.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_fetched_once_and_a_failure_is_shared() {
        let (cell, by) = (Renewed::<u8>::default(), clock::now() + Duration::from_secs(60));
        let life = Duration::from_secs(600);
        assert_eq!(*cell.get(by, || Ok((1, life))).unwrap(), 1);
        assert_eq!(*cell.get(by, || Ok((2, life))).unwrap(), 1);
        assert!(cell.refuse() && !cell.refuse(), "one refused value a minute is fetched again");
        assert_eq!(*cell.get(by, || Ok((3, life))).unwrap(), 3);
        let failing = Renewed::<u8>::default();
        assert!(failing.get(by, || Err(Error::Stopped)).is_err() && !failing.is_alive());
        assert!(failing.get(by, || Ok((1, life))).is_err(), "the failure is shared for a while");
        // One that has expired when it comes is fetched each time.
        let expired = Renewed::<u8>::default();
        assert_eq!(*expired.get(by, || Ok((1, Duration::ZERO))).unwrap(), 1);
        assert_eq!(*expired.get(by, || Ok((2, Duration::ZERO))).unwrap(), 2);
    }
}
