//! Continues the work of a daemon from one term of its Lease to the next.
//!
//! In: the work, a Lease that is held, and a function that acquires it again. Out: [`End`]. When
//! the Lease is lost, the work is paused and writes nothing. If no other daemon held the Lease in
//! between, the work continues under a new permit. If another one did, the work is dropped: its
//! observations and decisions are outdated.

use tokio::sync::Notify;

use crate::cluster::lease::{Leadership, LeaseLoss, Terms};

/// Reason why the work has ended.
#[derive(Debug)]
pub enum End<T> {
    /// It is complete.
    Done(T),
    /// Another daemon holds the Lease.
    Taken,
    /// This daemon holds the Lease again, and another one may have held it in between.
    Interrupted(Box<Leadership>),
}

/// Runs `work` for as long as no other daemon holds the Lease. `tell` is called with none at the
/// end of each term, and with the new leadership at the start of the next one.
///
/// # Guarantees
///
/// The work writes only under a permit of the current term, and continues only if no other daemon
/// held the Lease since the last one.
///
/// # Cancellation
///
/// Dropping the future drops the work. The Lease stays with `leadership`.
///
/// # Errors
///
/// Returns the error of `campaign`, with the work dropped.
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
            loss = leadership.wait_until_lost() => loss,
        };
        tell(None);
        if matches!(loss, LeaseLoss::Taken { .. }) {
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
        if !next.follows_without_gap(leadership) {
            return Ok(End::Interrupted(Box::new(next)));
        }
        *leadership = next;
        terms.start_term(leadership.permit());
        tell(Some(leadership));
    }
}
