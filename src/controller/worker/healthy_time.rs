//! Measures for how long the applied objects of a Sync have been healthy without interruption.
//!
//! In: the digest of the applied objects, and their health. Out: a [`HealthySpan`] for the Syncs
//! that wait for it by `healthyFor`. Other objects and any unhealthy object start it again; an
//! object that is being read after a write does not. After a restart it follows from the status.

use std::time::{Duration, Instant};

use crate::api::{ConditionType, SyncStatus};
use crate::controller::peers::healthy_span::HealthySpan;
use crate::health::HealthSummary;

/// The time of uninterrupted health, as far as this daemon knows it.
#[derive(Debug, Default)]
pub(super) struct HealthyTime {
    /// Digest of the objects that were last applied completely.
    applied: Option<Box<str>>,
    span: Option<HealthySpan>,
    /// The health was known once, so that the status says nothing more about the past.
    is_restored: bool,
}

impl HealthyTime {
    /// Notes the objects of a reconcile; `is_applied` if all of them are applied.
    pub(super) fn note_objects(&mut self, digest: Option<Box<str>>, is_applied: bool) {
        if digest.is_some() && digest != self.applied {
            (self.applied, self.span) = (None, None);
        }
        if is_applied {
            self.applied = digest;
        }
    }

    /// Notes the health. Returns the span if all objects are known to be healthy; that of a
    /// suspended Sync is not read.
    pub(super) fn observe(
        &mut self,
        summary: Option<&HealthSummary>,
        is_suspended: bool,
        (now, wall): (Instant, Duration),
        status: impl FnOnce() -> SyncStatus,
    ) -> Option<HealthySpan> {
        let is_unhealthy = summary.is_some_and(|all| all.degraded + all.unknown + all.progressing > 0);
        if is_suspended || is_unhealthy {
            (self.span, self.is_restored) = (None, true);
            return None;
        }
        let digest = self.applied.as_deref()?;
        if !summary?.is_healthy() {
            return None;
        }
        let is_restored = std::mem::replace(&mut self.is_restored, true);
        let span = self.span.get_or_insert_with(|| {
            match (!is_restored).then(|| healthy_since(&status(), digest)).flatten() {
                Some(began) => HealthySpan::resume(now, wall, began),
                None => HealthySpan::begin(now, wall),
            }
        });
        Some(span.clone())
    }
}

/// Returns the time since 1970 from which a status shows these objects applied and healthy.
fn healthy_since(status: &SyncStatus, digest: &str) -> Option<Duration> {
    let type_ = ConditionType::Healthy.to_string();
    let healthy = status.conditions.iter().find(|it| it.type_ == type_ && it.status == "True")?;
    // Once another set is being applied, the status names none.
    if status.revision.as_ref()?.applied_digest.as_deref() != Some(digest) {
        return None;
    }
    let same = status.history.iter().take_while(|entry| entry.digest.as_deref() == Some(digest));
    let applied = same.last()?.time.0;
    // Times of a status have whole seconds: the next one is certainly not too early.
    let since = applied.max(healthy.last_transition_time.0).as_second().checked_add(1)?;
    u64::try_from(since).ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(applied: &str, healthy: (&str, i64), history: &[(&str, i64)]) -> SyncStatus {
        let time = |second: i64| jiff::Timestamp::from_second(second).unwrap().to_string();
        let entry = |(digest, at): &(&str, i64)| {
            let digest = (!digest.is_empty()).then_some(digest);
            json!({"revision": "main@1", "time": time(*at), "result": "Applied", "digest": digest})
        };
        let history: Vec<_> = history.iter().map(entry).collect();
        let condition = json!({"type": "Healthy", "status": healthy.0, "reason": "Healthy", "message": "",
            "lastTransitionTime": time(healthy.1)});
        serde_json::from_value(json!({
            "conditions": [condition], "history": history, "revision": {"appliedDigest": applied},
        }))
        .unwrap()
    }

    #[test]
    fn the_status_tells_since_when_these_objects_are_healthy() {
        for (applied, healthy, history, expect) in [
            ("a", ("True", 100), &[("a", 90)][..], Some(101)),
            ("a", ("True", 50), &[("a", 90)], Some(91)),
            ("a", ("Unknown", 50), &[("a", 90)], None),
            ("a", ("True", 50), &[], None),
            // Commits that change no object prolong it.
            ("a", ("True", 50), &[("a", 90), ("a", 80), ("b", 70), ("a", 60)], Some(81)),
            // A refused commit, or one that was rolled back, may have changed some.
            ("a", ("True", 50), &[("", 90), ("a", 60)], None),
            ("b", ("True", 50), &[("b", 90), ("a", 60)], None),
            ("", ("True", 50), &[("a", 90)], None),
        ] {
            let since = healthy_since(&status(applied, healthy, history), "a");
            assert_eq!(since, expect.map(Duration::from_secs), "{applied} {healthy:?} {history:?}");
        }
    }

    /// An event, and the second from which the objects count as healthy after it.
    enum Event {
        Applied(&'static str),
        Failed(&'static str),
        Health(HealthSummary),
        Suspended,
    }

    #[test]
    fn other_objects_and_unhealthy_ones_begin_anew_and_a_read_does_not() {
        use Event::{Applied, Failed, Health, Suspended};
        let none = HealthSummary { objects: 1, ..HealthSummary::default() };
        let healthy = || Health(none.clone());
        let unread = || Health(HealthSummary { unread: 1, ..none.clone() });
        let degraded = || Health(HealthSummary { degraded: 1, unread: 1, ..none.clone() });
        let (start, wall) = (Instant::now(), Duration::from_secs(1_000));
        for (name, known, events) in [
            ("begins", None, vec![(Applied("a"), None), (healthy(), Some(1)), (healthy(), Some(1))]),
            (
                "a read",
                None,
                vec![(Applied("a"), None), (healthy(), Some(1)), (unread(), None), (healthy(), Some(1))],
            ),
            (
                "degraded",
                None,
                vec![(Applied("a"), None), (healthy(), Some(1)), (degraded(), None), (healthy(), Some(3))],
            ),
            ("same objects", None, vec![(Applied("a"), None), (healthy(), Some(1)), (Applied("a"), Some(1))]),
            (
                "other objects",
                None,
                vec![(Applied("a"), None), (healthy(), Some(1)), (Applied("b"), Some(2))],
            ),
            (
                "half of others",
                None,
                vec![
                    (Applied("a"), None),
                    (healthy(), Some(1)),
                    (Failed("b"), None),
                    (Applied("a"), Some(3)),
                ],
            ),
            ("a failure", None, vec![(Applied("a"), None), (healthy(), Some(1)), (Failed("a"), Some(1))]),
            (
                "suspended",
                None,
                vec![(Applied("a"), None), (healthy(), Some(1)), (Suspended, None), (healthy(), Some(3))],
            ),
            (
                "after a restart",
                Some(900),
                vec![(Applied("a"), None), (unread(), None), (healthy(), Some(-99))],
            ),
            ("other objects after it", Some(900), vec![(Applied("b"), None), (healthy(), Some(1))]),
            (
                "degraded after it",
                Some(900),
                vec![(Applied("a"), None), (degraded(), None), (healthy(), Some(2))],
            ),
        ] {
            let (mut time, mut last) = (HealthyTime::default(), None);
            for (second, (event, expect)) in (0_u64..).zip(events) {
                let is_suspended = matches!(event, Suspended);
                match event {
                    Applied(digest) => time.note_objects(Some(digest.into()), true),
                    Failed(digest) => time.note_objects(Some(digest.into()), false),
                    Health(summary) => last = Some(summary),
                    Suspended => {}
                }
                let passed = Duration::from_secs(second);
                let status =
                    || known.map_or_else(SyncStatus::default, |at| status("a", ("True", at), &[("a", at)]));
                let span = time.observe(last.as_ref(), is_suspended, (start + passed, wall + passed), status);
                let hour = Duration::from_secs(3600);
                let end = expect.map(|at: i64| {
                    (start + hour)
                        .checked_add(Duration::from_secs(at.unsigned_abs()))
                        .filter(|_| at >= 0)
                        .or((start + hour).checked_sub(Duration::from_secs(at.unsigned_abs())))
                });
                assert_eq!(span.map(|span| span.end(hour)), end.flatten(), "{name}, event {second}");
            }
        }
    }
}
