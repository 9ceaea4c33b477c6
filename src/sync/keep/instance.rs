//! The daemon that serves a Sync, where there are several.
//!
//! In: the Lease that the status names in `heldBy`, and the label of the Sync. Out: true while another daemon serves it. A daemon
//! of another instance than the label names has let go of the Sync after [`LETS_GO`], and the next one begins.

use std::time::{Duration, Instant};

use super::Keeper;
use crate::api::SyncStatus;
use crate::clock;

/// So long a daemon has to let go of a Sync that left its instance.
const LETS_GO: Duration = Duration::from_secs(6);

/// The longest pause between two looks meanwhile.
const LOOK: Duration = Duration::from_secs(2);

impl Keeper {
    /// True if another daemon that lives serves the Sync. Nothing is written about that: the status is the other's.
    pub(super) async fn is_served_elsewhere(&mut self, status: Option<&SyncStatus>) -> bool {
        let holder = status.and_then(|status| status.held_by.as_ref());
        let own = self.context.held_by.as_ref();
        let Some(holder) = holder.filter(|holder| Some(*holder) != own) else {
            self.elsewhere_since = None;
            return false;
        };
        // Without an answer the other daemon counts as alive.
        let held = self.context.cluster.is_held(holder).await.unwrap_or(true);
        let is_of_other_instance = own.is_some_and(|own| lease(own) != lease(holder));
        let left = held && is_of_other_instance && is_over(&mut self.elsewhere_since, clock::now());
        if held && is_of_other_instance {
            self.patience = LOOK;
        }
        self.context.is_served_by(&self.name, holder, held && !left);
        held && !left
    }
}

/// True once a daemon has had the time to let go since it was named first.
fn is_over(since: &mut Option<Instant>, now: Instant) -> bool {
    now.duration_since(*since.get_or_insert(now)) >= LETS_GO
}

/// The name of a Lease, which stands for an instance in whatever namespace.
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
        assert!(!is_over(&mut since, now + LETS_GO / 2));
        assert!(is_over(&mut since, now + LETS_GO));
    }

    #[test]
    fn a_lease_of_the_same_name_is_of_the_same_instance() {
        assert_eq!(lease("ops/moorline-blue"), lease("other/moorline-blue"));
        assert_ne!(lease("ops/moorline-blue"), lease("ops/moorline"));
    }
}
