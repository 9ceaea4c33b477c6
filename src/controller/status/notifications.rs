//! Records of notifications in the status of a Sync: added with a transition, offered once they are
//! written, and marked when they are sent.
//!
//! In: the next status, and results of deliveries. Out: the status with its records, and offers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{StatusRecorder, StatusState, now};
use crate::api::{AnnouncedState, SyncStatus};
use crate::controller::notifications::{Delivery, FirstList};
use crate::notifications::{
    DeliveryResult, HostedRepository, Subject, advance, known_before, owed_in, waiting,
};

/// Pause before records that found no room are offered again.
const OFFERED_AGAIN: Duration = Duration::from_secs(5);
/// Shortest wait for the end of a throttle.
const SOON: Duration = Duration::from_secs(1);

/// Notifications of one Sync, beside those in its status.
#[derive(Default)]
pub(super) struct Notifications {
    subject: Arc<Subject>,
    /// Results that are not written yet.
    told: Vec<DeliveryResult>,
    /// Records that are being sent, or were and are not marked yet: Notifier and id.
    offered: BTreeSet<(Box<str>, Box<str>)>,
    /// The known state before the first status that was written while Notifiers were not known. It
    /// is for a Sync whose status has none.
    base: Option<AnnouncedState>,
    /// True if the last status was made while Notifiers were awaited: their list changes it.
    is_late: bool,
}

impl Notifications {
    /// Returns the state of a Sync that was created again: its metadata are known already.
    pub(super) fn renewed(&self) -> Self {
        Self { subject: self.subject.clone(), ..Self::default() }
    }

    /// Returns the labels of the Sync.
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        self.subject.labels.clone()
    }
}

/// Records the Sync as notifications name it, before its status is observed.
/// Returns true if other labels were known before.
pub(crate) fn set_subject(recorder: &StatusRecorder, sync: &Value) -> bool {
    let text = |pointer: &str| sync.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let labels = sync.pointer("/metadata/labels").cloned().unwrap_or_default();
    let subject = Subject {
        cluster: recorder.0.reporting.notifications.cluster_name.clone(),
        namespace: recorder.0.name.namespace.clone(),
        name: recorder.0.name.name.clone(),
        uid: text("/metadata/uid").into(),
        labels: serde_json::from_value(labels).unwrap_or_default(),
        repository: HostedRepository::of_url(text("/spec/source/git/url")),
    };
    let mut state = recorder.lock();
    let known = &state.notifications.subject;
    let is_relabelled = !known.uid.is_empty() && known.labels != subject.labels;
    if **known != subject {
        state.notifications.subject = Arc::new(subject);
    }
    is_relabelled
}

/// Adds what is to be sent to the next status, and marks what was sent.
pub(super) fn announce(recorder: &StatusRecorder, state: &mut StatusState, next: &mut SyncStatus) {
    let center = &recorder.0.reporting.notifications;
    state.notifications.is_late = center.first_list() == FirstList::Awaited;
    let has_any = !next.notifications.is_empty() || next.announced.is_some();
    // The metadata of a Sync that was created again are known before its status is.
    if state.uid.is_empty() || state.notifications.subject.uid != state.uid {
        return;
    }
    let Some(notifiers) = center.notifiers() else {
        let written = &state.persisted_status;
        let base = &mut state.notifications.base;
        match center.first_list() {
            FirstList::Awaited if written.announced.is_none() => {
                base.get_or_insert_with(|| known_before(written));
            }
            _ => *base = None,
        }
        // An earlier version wrote fewer fields; later this status no longer says them.
        if next.announced.is_some() {
            next.announced = Some(known_before(written));
        }
        return;
    };
    if notifiers.is_empty() && !has_any {
        state.notifications.base = None;
        return;
    }
    let mut prev = state.persisted_status.clone();
    if prev.announced.is_none() && state.notifications.base.is_some() {
        Arc::make_mut(&mut prev).announced.clone_from(&state.notifications.base);
    }
    let Notifications { subject, told, .. } = &state.notifications;
    let dropped = advance(subject, &notifiers, &prev, next, told, &now());
    if next.announced.is_none() {
        // No Notifier selects this Sync.
        state.notifications.base = None;
    }
    if dropped > 0 {
        recorder.0.reporting.metrics.notifications("dropped", dropped as u64);
    }
}

/// Waits for the first list of Notifiers, if the last status was made without it; without end
/// otherwise.
pub(super) async fn late_list(recorder: &StatusRecorder) {
    if !recorder.lock().notifications.is_late {
        return std::future::pending().await;
    }
    recorder.0.reporting.notifications.list_arrives().await;
    // The status is made again, once.
    recorder.lock().notifications.is_late = false;
}

/// Forgets what the written status has.
pub(super) fn forget_written(state: &mut StatusState) {
    if state.persisted_status.announced.is_some() {
        state.notifications.base = None;
    }
    let open: BTreeSet<(Box<str>, Box<str>)> = waiting(&state.persisted_status)
        .map(|record| (record.notifier.as_str().into(), record.id.as_str().into()))
        .collect();
    let notifications = &mut state.notifications;
    notifications.told.retain(|told| open.contains(&(told.notifier.clone(), told.id.clone())));
    notifications.offered.retain(|offered| open.contains(offered));
}

/// Offers the records of the written status: of each Notifier the oldest one.
pub(super) fn offer_waiting(recorder: &StatusRecorder) {
    let mut state = recorder.lock();
    if state.notifications.subject.uid != state.uid {
        return;
    }
    let mut busy: BTreeSet<Box<str>> =
        state.notifications.offered.iter().map(|(notifier, _)| notifier.clone()).collect();
    let written = state.persisted_status.clone();
    for record in waiting(&written) {
        let notifier: Box<str> = record.notifier.as_str().into();
        if !busy.insert(notifier.clone()) {
            continue;
        }
        let delivery = Delivery {
            notifier: notifier.clone(),
            subject: state.notifications.subject.clone(),
            record: record.clone(),
            recorder: recorder.clone(),
        };
        if recorder.0.reporting.notifications.offer(delivery) {
            state.notifications.offered.insert((notifier, record.id.as_str().into()));
        }
    }
}

/// Returns the time after which records are offered again, if some found no room.
pub(super) fn offered_again(state: &StatusState) -> Option<Duration> {
    let is_offered =
        |notifier: &str| state.notifications.offered.iter().any(|(known, _)| **known == *notifier);
    waiting(&state.persisted_status).any(|record| !is_offered(&record.notifier)).then_some(OFFERED_AGAIN)
}

/// Returns the time after which something that a throttle left out is sent.
pub(super) fn owed_after(recorder: &StatusRecorder, state: &StatusState) -> Option<Duration> {
    let notifiers = recorder.0.reporting.notifications.notifiers().filter(|all| !all.is_empty())?;
    let owed = owed_in(&state.notifications.subject, &notifiers, &state.persisted_status, &now())?;
    // A time has whole seconds.
    Some(owed.max(SOON))
}

/// Records the result of a delivery.
pub(crate) fn record_delivery(recorder: &StatusRecorder, told: DeliveryResult) {
    recorder.lock().notifications.told.push(told);
    recorder.0.changed.notify_one();
}

/// Records that a record found no room: it is offered again after a pause.
pub(crate) fn withdraw_offer(recorder: &StatusRecorder, notifier: &str, id: &str) {
    withdraw_offer_until(recorder, notifier, id, tokio::time::sleep(OFFERED_AGAIN));
}

/// Records that a record was not sent: it is offered again at the end of a wait.
pub(crate) fn withdraw_offer_until(
    recorder: &StatusRecorder,
    notifier: &str,
    id: &str,
    wait: impl Future<Output = ()> + Send + 'static,
) {
    let (recorder, offered) = (recorder.clone(), (notifier.into(), id.into()));
    tokio::spawn(async move {
        wait.await;
        recorder.lock().notifications.offered.remove(&offered);
        recorder.0.changed.notify_one();
    });
}
