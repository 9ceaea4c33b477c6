//! Tells about the roll-out of a set: in its status, and in words; and measures its stages.
//!
//! In: the stage that is not over. Out: its status, a sentence, and the time until it may be over.
//! A step of the time of day ends no stage early, and prolongs none.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::set_status::list_names;
use crate::api::RolloutStatus;
use crate::sync_set::{RolloutState, SetPlan};

/// Maximum number of names in the status.
const MAX_AWAITED: usize = 20;

/// The ages of times in statuses, each by the monotonic clock since it was first seen.
#[derive(Debug, Default)]
pub(super) struct StageClock {
    /// The moment at which a time since 1970 was first seen, and its age at that moment.
    seen: BTreeMap<Duration, (Instant, Duration)>,
    /// The times that this pass has asked about.
    asked: BTreeMap<Duration, (Instant, Duration)>,
}

impl StageClock {
    /// Begins a pass. Times that the last one has not asked about are forgotten.
    pub(super) fn begin_pass(&mut self) {
        self.seen = std::mem::take(&mut self.asked);
    }

    /// Returns the time that has passed since a time since 1970; now is a moment, and the time
    /// since 1970 by the clock of this machine.
    pub(super) fn age(&mut self, since: Duration, (now, wall): (Instant, Duration)) -> Duration {
        let known = self.seen.get(&since).copied();
        let (seen, earlier) = known.unwrap_or_else(|| (now, wall.saturating_sub(since)));
        self.asked.insert(since, (seen, earlier));
        earlier + now.saturating_duration_since(seen)
    }
}

/// Returns the time until the stage of a plan has been healthy for long enough.
pub(super) fn end_of_stage(plan: &SetPlan) -> Option<Duration> {
    plan.rollout.as_ref()?.state.as_ref()?.left
}

/// Returns the status of a stage that is not over.
pub(super) fn rollout_status(open: &RolloutState) -> RolloutStatus {
    RolloutStatus {
        stage: i32::try_from(open.stage).unwrap_or(i32::MAX),
        waiting_for: open.waiting_for.iter().take(MAX_AWAITED).cloned().collect(),
        until: open.until.and_then(timestamp).map(Time),
    }
}

/// Says in one sentence what a roll-out waits for.
pub(crate) fn describe_rollout(open: &RolloutState) -> String {
    let RolloutState { stage, of, waiting_for, why, until, is_stopped, held, left: _ } = open;
    let held = match held {
        0 => String::new(),
        1 => "; 1 Sync waits for it".to_owned(),
        held => format!("; {held} Syncs wait for it"),
    };
    let first = waiting_for.first().map(String::as_str).unwrap_or_default();
    match (is_stopped, until.and_then(timestamp)) {
        (true, _) => format!(
            "the roll-out stops at stage {stage} of {of}: the Sync {first} is degraded: {why}; nothing further is written until it is healthy or the template changes{held}"
        ),
        (false, Some(until)) => format!("stage {stage} of {of} has to stay healthy until {until}{held}"),
        (false, None) => {
            format!("stage {stage} of {of} waits for {}; {first}: {why}{held}", list_names(waiting_for))
        }
    }
}

fn timestamp(time: Duration) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(time.as_secs()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_time_of_day_ends_no_stage_early_and_prolongs_none() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut clock = StageClock::default();
        let mut age = |passed: u32, since: u32, wall: u32| {
            clock.begin_pass();
            clock.age(since * second, (start + passed * second, wall * second)).as_secs()
        };
        assert_eq!(age(0, 900, 1_000), 100, "what it was before this daemon started");
        assert_eq!(age(10, 900, 9_000), 110, "the time of day was set forward");
        assert_eq!(age(20, 900, 500), 120, "it was set back");
        assert_eq!(age(30, 9_000, 510), 0, "a later time begins again, also one of the future");
        assert_eq!(age(40, 9_000, 520), 10);
        assert_eq!(age(50, 900, 1_500), 600, "what was not asked about is forgotten");
    }
}
