//! Delivers records: each with retries and an end, in the lane of its Notifier.
//!
//! In: offered records. Out: requests, and the result of each record for its Sync.
//!
//! A Sync offers one record of a Notifier at a time, so the order of its transitions is kept. A
//! receiver that hangs holds its own turns, until the deadline of its requests. What a service
//! limits holds no place here: it is offered again when the limit ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::Context;
use super::super::status::notifications::{record_delivery, withdraw_offer, withdraw_offer_until};
use super::host_limits::limit_ends;
use super::notifier_status::{NotifierState, report_state};
use super::service_secret::{SecretContent, read_service_secret};
use super::{Delivery, NotificationCenter, Trouble};
use crate::api::NotificationRecord;
use crate::chance::spawn_blocking_deterministic;
use crate::clock;
use crate::lanes::{Lane, LaneWork, run_lanes};
use crate::notifications::{
    AttemptResult, CompiledNotifier, DeliveryAge, DeliveryResult, NextAttempt, RequestError, build_request,
    decide_retry, read_answer,
};
use crate::source::OutboundClient;

/// Deadline of a request.
const DEADLINE: Duration = Duration::from_secs(10);
/// Attempts after which the Notifier reports the problem.
const REPORTED_AFTER: u32 = 3;

/// Delivers records of Syncs.
struct Deliveries {
    context: Arc<Context>,
    client: OutboundClient,
}

/// Delivers what is offered, without end.
pub(super) async fn run_deliveries(context: &Arc<Context>, offered: mpsc::Receiver<Delivery>) {
    let client = OutboundClient::new(&context.sources.repositories);
    run_lanes(&Deliveries { context: context.clone(), client }, offered).await;
}

impl LaneWork for Deliveries {
    type Item = Delivery;

    fn key(item: &Delivery) -> Box<str> {
        item.notifier.clone()
    }

    fn is_known(&self, key: &str) -> bool {
        self.context.reporting.notifications.current(key).is_some()
    }

    fn refuse(&self, item: Delivery) {
        withdraw_offer(&item.recorder, &item.notifier, &item.record.id);
    }

    fn deliver(&self, lane: Arc<Lane>, item: Delivery) -> impl Future<Output = ()> + Send + 'static {
        let (context, client) = (self.context.clone(), self.client.clone());
        async move { deliver(&context, &client, &lane, &item).await }
    }
}

/// Delivers one record, with retries.
async fn deliver(context: &Arc<Context>, client: &OutboundClient, lane: &Lane, delivery: &Delivery) {
    let (begun, mut attempt) = (clock::now(), 1);
    let center = &context.reporting.notifications;
    loop {
        context.cluster.terms().wait_until_leading().await;
        let Some(notifier) = center.current(&delivery.notifier) else {
            // Its records leave the status with it.
            return withdraw_offer(&delivery.recorder, &delivery.notifier, &delivery.record.id);
        };
        let (result, problem) = {
            let Some(_turn) = lane.turn().await else { return };
            if let Some(left) = center.limits.left(&notifier) {
                return offer_after_limit(context, &notifier, left, delivery);
            }
            let (result, problem) = try_once(context, client, &notifier, delivery).await;
            // The next turn has to know it.
            match result {
                AttemptResult::Limited { pause } => (result, limited(center, &notifier, pause, problem)),
                _ => (result, (problem, Trouble::Fails)),
            }
        };
        let age = age_of(&delivery.record, clock::since(begun));
        let next = decide_retry(result, attempt, age, crate::controller::chance());
        if let NextAttempt::AfterLimit(pause) = next {
            report_trouble(context, &notifier, Some(problem)).await;
            return offer_after_limit(context, &notifier, pause, delivery);
        }
        if next == NextAttempt::Done {
            report_trouble(context, &notifier, None).await;
        } else if attempt >= REPORTED_AFTER || next == NextAttempt::GiveUp {
            report_trouble(context, &notifier, Some(problem)).await;
        }
        match next {
            NextAttempt::After(pause) | NextAttempt::AfterLimit(pause) => tokio::time::sleep(pause).await,
            NextAttempt::Done | NextAttempt::GiveUp => {
                let is_sent = next == NextAttempt::Done;
                context.reporting.metrics.notifications(if is_sent { "sent" } else { "given_up" }, 1);
                let (notifier, id) = (delivery.notifier.clone(), delivery.record.id.as_str().into());
                return record_delivery(&delivery.recorder, DeliveryResult { notifier, id, is_sent });
            }
        }
        attempt += 1;
    }
}

/// Notes a limit, and returns the problem with its end.
fn limited(
    center: &NotificationCenter,
    notifier: &CompiledNotifier,
    pause: Duration,
    problem: String,
) -> (String, Trouble) {
    let until = center.limits.note(notifier, pause);
    let problem = format!("{problem}, because the limit of requests is used up until {until}");
    (problem, Trouble::Limited(until))
}

/// Returns the age of a delivery; a clock that was set back makes it a new one.
fn age_of(record: &NotificationRecord, since_first: Duration) -> DeliveryAge {
    let begun = u64::try_from(record.time.0.as_second()).unwrap_or_default();
    let since_transition = clock::wall().saturating_sub(Duration::from_secs(begun));
    DeliveryAge { since_first, since_transition }
}

/// Offers a record again at the end of a limit, or once the Notifier is another one.
fn offer_after_limit(
    context: &Context,
    notifier: &Arc<CompiledNotifier>,
    left: Duration,
    delivery: &Delivery,
) {
    let (notifier, known) = (notifier.clone(), context.reporting.notifications.known.subscribe());
    let wait = async move { limit_ends(known, &notifier, left).await };
    withdraw_offer_until(&delivery.recorder, &delivery.notifier, &delivery.record.id, wait);
}

/// Sends the request of a record once; returns the result, and the problem for people.
async fn try_once(
    context: &Arc<Context>,
    client: &OutboundClient,
    notifier: &Arc<CompiledNotifier>,
    delivery: &Delivery,
) -> (AttemptResult, String) {
    let SecretContent { service, authorities } = match read_service_secret(context, notifier).await {
        Ok(content) => content,
        Err(problem) => return (AttemptResult::Denied, problem),
    };
    let request = match build_request(notifier, &delivery.subject, &delivery.record, &service) {
        Ok(request) => request,
        // Nothing is to be sent.
        Err(RequestError::NoCommit) => return (AttemptResult::Accepted, String::new()),
        Err(error) => return (AttemptResult::Denied, error.to_string()),
    };
    let client = client.clone();
    let by = clock::now() + DEADLINE;
    let sent = spawn_blocking_deterministic(move || client.send(&request, authorities, by)).await;
    let (result, problem) = match sent {
        Ok(Ok(answer)) => {
            let result = AttemptResult::of_status(answer.status, answer.retry_after);
            let result = read_answer(notifier.service, result, &answer.body);
            (result, format!("{} answers with status {}", notifier.service.as_str(), answer.status))
        }
        Ok(Err(error)) => (AttemptResult::Unavailable { retry_after: None }, error.to_string()),
        Err(_) => {
            (AttemptResult::Unavailable { retry_after: None }, "the request was interrupted".to_owned())
        }
    };
    let (sync, id, transition) = (delivery.recorder.name(), &*delivery.record.id, delivery.record.transition);
    match result {
        AttemptResult::Accepted => {
            tracing::debug!(%sync, notifier = &*delivery.notifier, id, %transition, "sent");
        }
        _ => tracing::debug!(%sync, notifier = &*delivery.notifier, id, %transition, problem, "not sent"),
    }
    (result, problem)
}

/// Reports a problem of the service in the status of the Notifier, or its end; each once.
async fn report_trouble(context: &Context, notifier: &CompiledNotifier, problem: Option<(String, Trouble)>) {
    let (problem, trouble) = problem.unzip();
    if !context.reporting.notifications.note_trouble(&notifier.key(), trouble) {
        return;
    }
    let state = match problem {
        None => NotifierState::Ready,
        Some(problem) => {
            tracing::warn!(notifier = notifier.key(), problem, "notifications are not taken");
            NotifierState::DeliveryFailed(problem)
        }
    };
    let id = [notifier.namespace.clone(), notifier.name.clone(), notifier.uid.clone()];
    report_state(context, &id, notifier.generation, state).await;
}
