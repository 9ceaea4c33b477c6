//! Waits for what may not be there.
//!
//! In: an optional future or time. Out: its result; without one, the wait never ends.

use std::time::Instant;

use futures::future::BoxFuture;

/// Waits for an optional future; without one it waits forever.
pub(super) async fn running<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Waits until an optional time; without one it waits forever.
pub(super) async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
