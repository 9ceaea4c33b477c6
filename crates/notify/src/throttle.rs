//! Throttles notifications, and corrects the last one when the throttle ends.
//!
//! In: a Notifier, its records, and the state of the Sync.
//! Out: true if a notification is left out, and the notification that corrects an earlier one. A
//! throttle may leave out a recovery, or a failure after a recovery. The last notification is then
//! wrong, and the current state is sent when the throttle ends.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use moorline_api::{AnnouncedState, NotificationRecord, NotificationState, SyncStatus, Transition};

use crate::records::wants;
use crate::selection::CompiledNotifier;
use crate::subject::Subject;
use crate::transitions::{Occurrence, still_degraded, still_failed, well_again};

/// True if the transition was sent, or is to be sent, within the time of the throttle. One that was
/// given up does not count.
pub(crate) fn is_throttled(
    notifier: &CompiledNotifier,
    transition: Transition,
    records: &[NotificationRecord],
    now: &Time,
) -> bool {
    throttling(notifier, transition, records).any(|record| is_recent(notifier, record, now))
}

/// Returns the records that a throttle counts.
fn throttling<'a>(
    notifier: &CompiledNotifier,
    transition: Transition,
    records: &'a [NotificationRecord],
) -> impl Iterator<Item = &'a NotificationRecord> {
    let key = notifier.key();
    records.iter().filter(move |record| {
        let counts = record.state != NotificationState::GivenUp;
        counts && record.notifier == key && record.transition == transition
    })
}

/// True if a record is within the time of the throttle.
pub(crate) fn is_recent(notifier: &CompiledNotifier, record: &NotificationRecord, now: &Time) -> bool {
    let age = now.0.duration_since(record.time.0);
    notifier.throttle().is_some_and(|throttle| !age.is_negative() && age.unsigned_abs() < throttle)
}

/// Returns the transition that the last notification of trouble or its end contradicts; none
/// without a throttle. A notification that was given up contradicts nothing.
pub(crate) fn owed(
    notifier: &CompiledNotifier,
    subject: &Subject,
    (state, status): (&AnnouncedState, &SyncStatus),
    records: &[NotificationRecord],
) -> Option<Occurrence> {
    notifier.throttle()?;
    let key = notifier.key();
    let is_of_trouble = |record: &&NotificationRecord| {
        let group = [Transition::Failed, Transition::Degraded, Transition::Recovered];
        record.notifier == key && group.contains(&record.transition)
    };
    let of_trouble: Vec<_> = records.iter().rev().filter(is_of_trouble).collect();
    // Nobody received what was given up, and it is not sent again.
    let received = of_trouble.iter().position(|record| record.state != NotificationState::GivenUp)?;
    let last = of_trouble.get(received)?.transition;
    let tells_same = |one, other| (one == Transition::Recovered) == (other == Transition::Recovered);
    let is_given_up = |truth: &Occurrence| {
        of_trouble.iter().take(received).any(|record| tells_same(record.transition, truth.transition))
    };
    let is_well = state.failed.is_empty() && state.degraded.is_empty();
    let truths = match last {
        Transition::Recovered => [
            (!state.degraded.is_empty()).then(|| still_degraded(state, status)),
            (!state.failed.is_empty()).then(|| still_failed(state, status)),
        ],
        was => [is_well.then(|| well_again(state, status, was)), None],
    };
    truths.into_iter().flatten().find(|truth| !is_given_up(truth) && wants(notifier, subject, truth))
}

/// Returns the time until something that is owed may be sent; none if nothing is owed.
pub fn owed_in(
    subject: &Subject,
    notifiers: &[Arc<CompiledNotifier>],
    status: &SyncStatus,
    now: &Time,
) -> Option<Duration> {
    let state = status.announced.as_ref()?;
    let of_one = |notifier: &Arc<CompiledNotifier>| {
        let owed = owed(notifier, subject, (state, status), &status.notifications)?;
        let counted = throttling(notifier, owed.transition, &status.notifications);
        // A record of the future, after the clock was set back, holds nothing back.
        let last = counted.filter(|record| is_recent(notifier, record, now)).map(|record| record.time.0);
        let due = last.max().unwrap_or(Timestamp::MIN).checked_add(notifier.throttle()?).ok()?;
        Some(Duration::try_from(due.duration_since(now.0)).unwrap_or_default())
    };
    notifiers.iter().filter(|notifier| notifier.selects(subject)).filter_map(of_one).min()
}
