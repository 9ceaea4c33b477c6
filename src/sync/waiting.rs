//! Waiting for what may not be there, as the arms of a `select` do.
//!
//! In: a future or a time, or none. Out: its end; without one, nothing ever comes.

use std::time::Instant;

use futures::future::BoxFuture;

/// Waits for a future that may not be there.
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
