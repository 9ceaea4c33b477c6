//! Repeats requests of a command while the API server is busy.
//!
//! In: a request, and the wait that a refusal asks for. Out: the first other answer, or the last
//! refusal. The API server answers 429 before it does anything, such as for a moment after a new
//! definition.

use std::time::Duration;

/// Attempts of a request.
const ATTEMPTS: u32 = 6;

/// Shortest wait before the next attempt.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// Longest wait, also if the API server asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Sends a request until the answer is another one than "busy", for which `wait` returns the time
/// that the server asks for.
///
/// # Errors
///
/// The error of the request.
pub async fn while_busy<T, E>(
    wait: impl Fn(&E) -> Option<Duration>,
    mut send: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
    for _ in 1..ATTEMPTS {
        let answer = send().await;
        let Some(wait) = answer.as_ref().err().and_then(&wait) else { return answer };
        tokio::time::sleep(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT)).await;
    }
    send().await
}

/// The wait that a refusal of the client library asks for, if the server is busy.
pub(crate) fn busy_wait(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let asked = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    (status.code == 429).then(|| Duration::from_secs(u64::from(asked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers like a server that is busy for so many requests; returns the attempts and the end.
    async fn asked(busy: u32, code: u16) -> (u32, bool) {
        let mut attempts = 0;
        let answer = while_busy(busy_wait, async || {
            attempts += 1;
            let status = kube::core::Status { code, ..kube::core::Status::default() };
            if attempts <= busy { Err(kube::Error::Api(status.boxed())) } else { Ok(()) }
        });
        let is_answered = answer.await.is_ok();
        (attempts, is_answered)
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_again_and_another_refusal_is_not() {
        assert_eq!(asked(0, 429).await, (1, true));
        assert_eq!(asked(3, 429).await, (4, true));
        assert_eq!(asked(u32::MAX, 429).await, (ATTEMPTS, false));
        assert_eq!(asked(1, 403).await, (1, false));
    }
}
