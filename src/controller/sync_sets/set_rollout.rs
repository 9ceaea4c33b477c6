//! Tells about the roll-out of a set: in its status, and in words.
//!
//! In: the stage that is not over. Out: its status, a sentence, and the time until it may be over.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::set_status::list_names;
use crate::api::RolloutStatus;
use crate::clock;
use crate::sync_set::{RolloutState, SetPlan};

/// Maximum number of names in the status.
const MAX_AWAITED: usize = 20;

/// Returns the time until the stage of a plan has been healthy for long enough.
pub(super) fn end_of_stage(plan: &SetPlan) -> Option<Duration> {
    let open = plan.rollout.as_ref()?.state.as_ref()?;
    open.until.map(|until| until.saturating_sub(clock::wall()))
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
    let RolloutState { stage, of, waiting_for, why, until, is_stopped, held } = open;
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
