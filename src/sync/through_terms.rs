//! Keeps the work of a daemon going from one term of its Lease to the next.
//!
//! In: the work, a Lease that is held, and a way to get it again. Out: [`End`]. When the Lease is lost, the work stays as
//! it is and writes nothing. If nobody held the Lease in between, the work goes on under a new permit. If somebody
//! did, the work is dropped: what it saw and decided says nothing any more.

use tokio::sync::Notify;

use crate::cluster::lease::{Leadership, Loss, Terms};

/// Why work has stopped.
#[derive(Debug)]
pub enum End<T> {
    /// It came to its end.
    Done(T),
    /// Another daemon holds the Lease.
    Taken,
    /// This daemon holds the Lease again, and another may have held it in between.
    Interrupted(Box<Leadership>),
}

/// Works under one Lease for as long as no other daemon holds it. `tell` hears of each term that ends, with none, and of
/// each that begins.
pub async fn through_terms<T, E>(
    work: impl Future<Output = T>,
    leadership: &mut Leadership,
    terms: &Terms,
    tell: &dyn Fn(Option<&Leadership>),
    campaign: impl AsyncFn(&(dyn Fn(&str) + Sync)) -> Result<Leadership, E>,
) -> Result<End<T>, E> {
    let mut work = std::pin::pin!(work);
    loop {
        let loss = tokio::select! {
            done = &mut work => return Ok(End::Done(done)),
            loss = leadership.lost() => loss,
        };
        tell(None);
        if matches!(loss, Loss::Taken { .. }) {
            return Ok(End::Taken);
        }
        let taken = Notify::new();
        let waits_for = |_: &str| taken.notify_one();
        let next = tokio::select! {
            biased;
            done = &mut work => return Ok(End::Done(done)),
            () = taken.notified() => return Ok(End::Taken),
            next = campaign(&waits_for) => next?,
        };
        if !next.follows(leadership) {
            return Ok(End::Interrupted(Box::new(next)));
        }
        *leadership = next;
        terms.begin(leadership.permit());
        tell(Some(leadership));
    }
}
