//! Decides which of several daemons serves a Sync.
//!
//! In: the Lease that the status names in `heldBy`, and the instance label of the Sync. Out: true
//! while another daemon serves it. A daemon of another instance has released the Sync after
//! [`RELEASE_TIME`], and the next one begins.

use std::time::{Duration, Instant};

use super::SyncWorker;
use crate::api::SyncStatus;
use crate::clock;

/// Time that a daemon has to release a Sync that left its instance.
const RELEASE_TIME: Duration = Duration::from_secs(6);

/// Longest pause between two checks meanwhile.
const LOOK: Duration = Duration::from_secs(2);

/// True if another live daemon serves the Sync. The status belongs to that daemon, so nothing
/// is written to it here.
pub(super) async fn is_served_elsewhere(worker: &mut SyncWorker, status: Option<&SyncStatus>) -> bool {
    let holder = status.and_then(|status| status.held_by.as_ref());
    let own = worker.context.reporting.held_by.as_ref();
    let Some(holder) = holder.filter(|holder| Some(*holder) != own) else {
        worker.elsewhere_since = None;
        return false;
    };
    // Without an answer the other daemon counts as alive.
    let held = worker.context.cluster.syncs().is_lease_held(holder).await.unwrap_or(true);
    let is_of_other_instance = own.is_some_and(|own| lease(own) != lease(holder));
    let left = held && is_of_other_instance && is_over(&mut worker.elsewhere_since, clock::now());
    if held && is_of_other_instance {
        worker.max_retry_pause = LOOK;
    }
    worker.context.reporting.lines.is_served_by(&worker.name, holder, held && !left);
    held && !left
}

/// True once the other daemon has had the time to release the Sync since it was first named.
fn is_over(since: &mut Option<Instant>, now: Instant) -> bool {
    now.duration_since(*since.get_or_insert(now)) >= RELEASE_TIME
}

/// Returns the name of a Lease, which identifies an instance in any namespace.
fn lease(held_by: &str) -> &str {
    held_by.rsplit_once('/').map_or(held_by, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_has_some_seconds_to_let_go() {
        let (mut since, now) = (None, Instant::now());
        assert!(!is_over(&mut since, now));
        assert!(!is_over(&mut since, now + RELEASE_TIME / 2));
        assert!(is_over(&mut since, now + RELEASE_TIME));
    }

    #[test]
    fn a_lease_of_the_same_name_is_of_the_same_instance() {
        assert_eq!(lease("ops/moorline-blue"), lease("other/moorline-blue"));
        assert_ne!(lease("ops/moorline-blue"), lease("ops/moorline"));
    }
}
