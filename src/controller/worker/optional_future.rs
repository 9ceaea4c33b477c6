//! Optional futures and deadlines for the arms of a `select!`.
//!
//! In: a future or a time, or none. Out: its end; without one, the arm never completes.

use std::time::Instant;

use futures::future::BoxFuture;

/// Waits for an optional future; without one it waits forever.
pub(crate) async fn running<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

pub(crate) async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
