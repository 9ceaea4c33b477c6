//! Limits how long a lag of the API server counts as progress: kinds that it does not serve yet,
//! and requests to retry later.
//!
//! In: the result of a reconcile, and the time. Out: the kinds that are still expected, with the
//! end of their time; and the time since which the server has been busy. Each kind has its own
//! time: one that never appears takes nothing from another that appears later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::schedule::Uptime;
use crate::object::GroupKind;
use crate::report::{ErrorCause, ReconcileError};

/// Longest time for which a lag of the server is reported as progress.
const MAX_LAG: Duration = Duration::from_secs(30);

/// Most kinds with a time of their own. Further kinds are reported as missing at once.
const MAX_KINDS: usize = 256;

/// Current lags of the API server, each with the time at which it began.
#[derive(Debug, Default)]
pub(super) struct Lags {
    /// The server asks to retry later since then.
    busy_since: Option<Uptime>,
    /// Kinds that the server does not serve, each with the time since when.
    unknown_since: BTreeMap<GroupKind, Uptime>,
}

impl Lags {
    /// Reports a server that asks to retry for longer than [`MAX_LAG`] as unreachable.
    pub(super) fn bound_busy(&mut self, reconcile_error: Option<&mut ReconcileError>, now: Uptime) {
        match reconcile_error.filter(|reconcile_error| reconcile_error.cause == ErrorCause::Progressing) {
            Some(reconcile_error) => {
                if now.saturating_sub(*self.busy_since.get_or_insert(now)) > MAX_LAG {
                    reconcile_error.cause = ErrorCause::ClusterUnreachable;
                }
            }
            None => self.busy_since = None,
        }
    }

    /// Returns the unknown kinds that are still expected, and the end of the time of the first one.
    /// An unknown kind is reported as progress at first, because discovery lags behind a new
    /// CustomResourceDefinition.
    pub(super) fn bound_unknown(
        &mut self,
        unknown: &BTreeSet<GroupKind>,
        now: Uptime,
    ) -> (BTreeSet<GroupKind>, Option<Uptime>) {
        self.unknown_since.retain(|kind, _| unknown.contains(kind));
        for kind in unknown {
            if self.unknown_since.len() < MAX_KINDS && !self.unknown_since.contains_key(kind) {
                self.unknown_since.insert(kind.clone(), now);
            }
        }
        let lagging = self.unknown_since.iter().filter(|(_, since)| now < **since + MAX_LAG);
        let until = lagging.clone().map(|(_, since)| *since + MAX_LAG).min();
        (lagging.map(|(kind, _)| kind.clone()).collect(), until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Uptime {
        Duration::from_secs(count)
    }

    fn kinds(names: &[&str]) -> BTreeSet<GroupKind> {
        names.iter().map(|name| GroupKind::new("example.com", name)).collect()
    }

    #[test]
    fn each_kind_has_a_time_of_its_own() {
        let mut lags = Lags::default();
        let mut check = |at, unknown: &[&str], lagging: &[&str], until: Option<u64>| {
            let told = lags.bound_unknown(&kinds(unknown), seconds(at));
            assert_eq!(told, (kinds(lagging), until.map(seconds)), "at {at} s");
        };
        check(100, &["Never"], &["Never"], Some(130));
        check(120, &["Never", "Soon"], &["Never", "Soon"], Some(130));
        // The first kind has used up its own time, and nothing of the second one's.
        check(130, &["Never", "Soon"], &["Soon"], Some(150));
        check(140, &["Never"], &[], None);
        check(1000, &["Never", "Late"], &["Late"], Some(1030));
        // A kind that was served in between has a new time.
        check(1001, &["Late"], &["Late"], Some(1030));
        check(1002, &["Never", "Late"], &["Late", "Never"], Some(1030));
        check(1030, &[], &[], None);
    }

    #[test]
    fn no_more_kinds_are_remembered_than_there_is_room_for() {
        let mut lags = Lags::default();
        let names: Vec<String> = (0..=MAX_KINDS).map(|at| format!("Kind{at:04}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (lagging, _) = lags.bound_unknown(&kinds(&names), seconds(1));
        assert_eq!(lagging, kinds(&names[..MAX_KINDS]), "the last one is told as missing");
        assert_eq!(lags.bound_unknown(&kinds(&[]), seconds(2)), (kinds(&[]), None));
        assert!(lags.unknown_since.is_empty());
    }

    #[test]
    fn a_server_that_asks_to_wait_is_away_after_half_a_minute() {
        let mut lags = Lags::default();
        let mut told = |at, cause| {
            let message = "storage is (re)initializing".to_owned();
            let mut reconcile_error =
                ReconcileError { cause, message, problems: Vec::new(), permanent: false };
            lags.bound_busy(Some(&mut reconcile_error), seconds(at));
            assert!(reconcile_error.message.contains("initializing"), "the message stays");
            reconcile_error.cause
        };
        assert_eq!(told(100, ErrorCause::Progressing), ErrorCause::Progressing);
        assert_eq!(told(130, ErrorCause::Progressing), ErrorCause::Progressing);
        assert_eq!(told(131, ErrorCause::Progressing), ErrorCause::ClusterUnreachable);
        // Another error in between, or none, ends the time.
        assert_eq!(told(140, ErrorCause::RightsMissing), ErrorCause::RightsMissing);
        assert_eq!(told(150, ErrorCause::Progressing), ErrorCause::Progressing);
        assert_eq!(told(181, ErrorCause::Progressing), ErrorCause::ClusterUnreachable);
        lags.bound_busy(None, seconds(182));
        assert_eq!(lags.busy_since, None);
    }
}
