//! How long the API server may lag behind: kinds that it does not serve yet, and a time in which it asks to wait.
//!
//! In: what a pass came to, and the time. Out: which kinds are expected to come, until when; and whether the server has asked to wait
//! for too long. Each kind has a time of its own: one that never comes takes nothing from another that comes later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::prepare::BUSY;
use super::super::schedule::Time;
use crate::object::GroupKind;
use crate::report::Trouble;

/// The longest that a lag of the server is told as progress.
const MAX_LAG: Duration = Duration::from_secs(30);

/// The most kinds with a time of their own. Others are not expected to come, and are told as missing at once.
const MAX_KINDS: usize = 256;

/// What the API server lags behind with.
#[derive(Debug, Default)]
pub(super) struct Lags {
    /// It asks to wait since then.
    busy_since: Option<Time>,
    /// The kinds that it does not know, each with the time since when.
    unknown_since: BTreeMap<GroupKind, Time>,
}

impl Lags {
    /// A server that asks to wait for longer than a moment is told as one that does not serve.
    pub(super) fn bound_busy(&mut self, trouble: Option<&mut Trouble>, now: Time) {
        match trouble.filter(|trouble| trouble.reason == BUSY) {
            Some(trouble) => {
                if now.saturating_sub(*self.busy_since.get_or_insert(now)) > MAX_LAG {
                    trouble.reason = "ClusterUnreachable";
                }
            }
            None => self.busy_since = None,
        }
    }

    /// A kind that the server does not know is told as progress at first: discovery lags behind a definition. Gives the kinds that
    /// are expected to come, and the end of that time for the first of them.
    pub(super) fn bound_unknown(
        &mut self,
        unknown: &BTreeSet<GroupKind>,
        now: Time,
    ) -> (BTreeSet<GroupKind>, Option<Time>) {
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

    fn seconds(count: u64) -> Time {
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
        // The first one has used up its own time, and nothing of the second one's.
        check(130, &["Never", "Soon"], &["Soon"], Some(150));
        check(140, &["Never"], &[], None);
        check(1000, &["Never", "Late"], &["Late"], Some(1030));
        // One that was served in between has a new time.
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
        let mut told = |at, reason| {
            let message = "storage is (re)initializing".to_owned();
            let mut trouble = Trouble { reason, message, problems: Vec::new(), lasting: false };
            lags.bound_busy(Some(&mut trouble), seconds(at));
            assert!(trouble.message.contains("initializing"), "the message stays");
            trouble.reason
        };
        assert_eq!(told(100, BUSY), BUSY);
        assert_eq!(told(130, BUSY), BUSY);
        assert_eq!(told(131, BUSY), "ClusterUnreachable");
        // Another trouble in between, or none, ends the time.
        assert_eq!(told(140, "RightsMissing"), "RightsMissing");
        assert_eq!(told(150, BUSY), BUSY);
        assert_eq!(told(181, BUSY), "ClusterUnreachable");
        lags.bound_busy(None, seconds(182));
        assert_eq!(lags.busy_since, None);
    }
}
