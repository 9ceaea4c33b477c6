//! Resources whose kinds are not served yet, and the time limit for webhooks that wait for them.
//!
//! In: resources that the last reconcile could not send because their kind is not served.
//! Out: the resources that were awaited for long enough, and the time at which the next one will
//! be.
//!
//! A CRD that never serves its kind delays a webhook for a minute, and not forever.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::controller::schedule::Uptime;
use crate::object::ObjectId;

/// Longest time that a webhook configuration or an APIService waits for a kind.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Time at which each awaited resource was first seen missing.
#[derive(Debug, Default)]
pub(crate) struct AwaitedResources(BTreeMap<ObjectId, Uptime>);

impl AwaitedResources {
    /// Returns the resources that delay nothing any more.
    pub(crate) fn late(&self, now: Uptime) -> BTreeSet<ObjectId> {
        let late = self.0.iter().filter(|(_, since)| now.saturating_sub(**since) >= MAX_WAIT);
        late.map(|(id, _)| id.clone()).collect()
    }

    /// Replaces the awaited resources; known ones keep their start time.
    pub(crate) fn learn(&mut self, resources: impl Iterator<Item = ObjectId>, now: Uptime) {
        let mut known = std::mem::take(&mut self.0);
        self.0 =
            resources.map(|id| (known.remove(&id).unwrap_or(now), id)).map(|(at, id)| (id, at)).collect();
    }

    /// Returns the time at which the next resource delays nothing any more.
    pub(crate) fn next(&self, now: Uptime) -> Option<Uptime> {
        self.0.values().map(|since| *since + MAX_WAIT).filter(|due| *due > now).min()
    }

    /// Returns the time until the next resource delays nothing any more; `Duration::MAX` if there
    /// is none.
    pub(crate) fn left(&self, now: Uptime) -> Duration {
        self.next(now).map_or(Duration::MAX, |due| due.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_awaited_for_a_minute_once() {
        let at = Duration::from_secs;
        let id = |name: &str| ObjectId::parse(&format!("example.com/Boat|a/{name}")).unwrap();
        let mut awaited = AwaitedResources::default();
        assert_eq!((awaited.next(at(0)), awaited.left(at(0))), (None, Duration::MAX));
        awaited.learn([id("a")].into_iter(), at(5));
        awaited.learn([id("a"), id("b")].into_iter(), at(30));
        assert_eq!((awaited.next(at(30)), awaited.left(at(30))), (Some(at(65)), at(35)));
        assert!(awaited.late(at(64)).is_empty());
        assert_eq!(awaited.late(at(65)), [id("a")].into());
        assert_eq!(awaited.next(at(65)), Some(at(90)));
        // A kind that was served and is gone again starts a new minute.
        awaited.learn([id("b")].into_iter(), at(70));
        awaited.learn([id("a"), id("b")].into_iter(), at(80));
        assert_eq!(awaited.late(at(100)), [id("b")].into());
    }
}
