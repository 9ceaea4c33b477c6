//! The records of notifications in a status.
//!
//! In: the status that was written last, the next one, the Notifiers, and what was sent meanwhile.
//! Out: the next status with its records. A record begins as Waiting, in the write that its
//! transition makes anyway; it is `Sent`, or `GivenUp`, in a later one.
//!
//! Of each Notifier the status keeps what waits, the last that was sent, and with `spec.throttle`
//! the last of each transition within that time.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use moorline_api::{NotificationRecord, NotificationState, SyncStatus, TransitionDetails};
use sha2::{Digest, Sha256};

use crate::commit_status::sets_status;
use crate::selection::CompiledNotifier;
use crate::subject::Subject;
use crate::throttle::{is_recent, is_throttled, owed};
use crate::transitions::{Occurrence, detect};

/// Maximum number of records of one Notifier that wait; beyond it the oldest is given up.
pub const MAX_WAITING: usize = 16;
/// Maximum number of records of a status.
pub(crate) const MAX_RECORDS: usize = 128;
/// Number of bytes of the hash that is the id.
const ID_BYTES: usize = 16;

/// Result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryResult {
    /// The Notifier, as namespace/name.
    pub notifier: Box<str>,
    /// The id of the record.
    pub id: Box<str>,
    /// False if it is not tried any more.
    pub is_sent: bool,
}

/// Adds what is to be sent to the next status, and marks what was sent; returns the number of
/// records that were given up for want of room.
pub fn advance(
    subject: &Subject,
    notifiers: &[Arc<CompiledNotifier>],
    prev: &SyncStatus,
    next: &mut SyncStatus,
    told: &[DeliveryResult],
    now: &Time,
) -> usize {
    let own: Vec<&CompiledNotifier> =
        notifiers.iter().map(|notifier| &**notifier).filter(|notifier| notifier.selects(subject)).collect();
    if own.is_empty() {
        (next.notifications, next.announced) = (Vec::new(), None);
        return 0;
    }
    let (announced, occurrences) = detect(prev, next);
    let mut records = prev.notifications.clone();
    for record in &mut records {
        let is_it = |told: &&DeliveryResult| *told.id == *record.id && *told.notifier == *record.notifier;
        let ended = told.iter().find(is_it).filter(|_| record.state == NotificationState::Waiting);
        if let Some(ended) = ended {
            let state = if ended.is_sent { NotificationState::Sent } else { NotificationState::GivenUp };
            (record.state, record.details) = (state, None);
        }
    }
    for (occurrence, notifier) in occurrences.iter().flat_map(|it| own.iter().map(move |own| (it, own))) {
        let is_wanted = !is_throttled(notifier, occurrence.transition, &records, now)
            && wants(notifier, subject, occurrence);
        if is_wanted {
            let record = new_record(subject, notifier, occurrence, (&records, now));
            records.push(record);
        }
    }
    for notifier in &own {
        let owed = owed(notifier, subject, (&announced, next), &records);
        let owed = owed.filter(|owed| !is_throttled(notifier, owed.transition, &records, now));
        let record = owed.map(|owed| new_record(subject, notifier, &owed, (&records, now)));
        records.extend(record);
    }
    next.announced = Some(announced);
    let dropped: usize = own.iter().map(|notifier| bound(notifier, &mut records, now)).sum();
    records.retain(|record| own.iter().any(|notifier| notifier.key() == record.notifier));
    let surplus = records.len().saturating_sub(MAX_RECORDS);
    let lost = drop_surplus(&mut records, surplus);
    next.notifications = records;
    dropped + lost
}

/// Drops the oldest records, ended ones first. Returns the number of those that were not sent.
fn drop_surplus(records: &mut Vec<NotificationRecord>, surplus: usize) -> usize {
    let mut left = surplus;
    records.retain(|record| {
        let is_dropped = left > 0 && record.state != NotificationState::Waiting;
        left -= usize::from(is_dropped);
        !is_dropped
    });
    records.drain(..left);
    left
}

/// Returns the records that are still to be sent, the oldest first.
pub fn waiting(status: &SyncStatus) -> impl Iterator<Item = &NotificationRecord> {
    status.notifications.iter().filter(|record| record.state == NotificationState::Waiting)
}

/// True if a Notifier selects an occurrence; records of earlier ones do not count.
pub(crate) fn wants(notifier: &CompiledNotifier, subject: &Subject, occurrence: &Occurrence) -> bool {
    notifier.is_on(occurrence.transition)
        && (!notifier.service.is_commit_status() || sets_status(notifier, occurrence))
        && notifier.passes(subject, occurrence.transition, &occurrence.details)
}

fn new_record(
    subject: &Subject,
    notifier: &CompiledNotifier,
    occurrence: &Occurrence,
    (records, now): (&[NotificationRecord], &Time),
) -> NotificationRecord {
    let (key, transition) = (notifier.key(), occurrence.transition.to_string());
    let TransitionDetails { revision, digest, message, .. } = &occurrence.details;
    let mut parts = vec![&*subject.uid, &transition, revision, digest, &notifier.uid];
    // A time has whole seconds, in which the same may happen twice.
    let is_twin = |record: &&NotificationRecord| {
        record.notifier == key && record.transition == occurrence.transition && record.time == *now
    };
    let moment = format!("{} {}", now.0, records.iter().filter(is_twin).count());
    match occurrence.repeats {
        true => parts.extend([&*moment, message]),
        false => parts.push(""),
    }
    NotificationRecord {
        id: id(&parts),
        notifier: key,
        transition: occurrence.transition,
        time: now.clone(),
        state: NotificationState::Waiting,
        details: Some(occurrence.details.clone()),
    }
}

/// Returns the id of these parts, with the length of each before it.
fn id(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize()[..ID_BYTES].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Removes records of a Notifier that nobody needs; returns how many of them waited.
fn bound(notifier: &CompiledNotifier, records: &mut Vec<NotificationRecord>, now: &Time) -> usize {
    let key = notifier.key();
    let is_waiting =
        |record: &NotificationRecord| record.notifier == key && record.state == NotificationState::Waiting;
    let surplus = records.iter().filter(|record| is_waiting(record)).count().saturating_sub(MAX_WAITING);
    let mut left = surplus;
    records.retain(|record| {
        let drops = left > 0 && is_waiting(record);
        left -= usize::from(drops);
        !drops
    });
    let (mut seen, mut has_last) = (Vec::new(), false);
    let mut kept: Vec<NotificationRecord> = Vec::with_capacity(records.len());
    for record in records.drain(..).rev() {
        let is_ended = record.notifier == key && record.state != NotificationState::Waiting;
        let is_sent = record.state == NotificationState::Sent;
        let is_newest = is_sent && !seen.contains(&record.transition) && is_recent(notifier, &record, now);
        let keeps = !is_ended || !has_last || is_newest;
        if is_ended {
            has_last = true;
            seen.extend(is_sent.then_some(record.transition));
        }
        if keeps {
            kept.push(record);
        }
    }
    kept.reverse();
    *records = kept;
    surplus
}
