//! Holds objects while the webhook that would admit them has no ready backend.
//!
//! In: a step that is about to be sent.
//! Out: a hold, while no backend serves a webhook that the API server would call for the object.
//!
//! Backends are read once per reconcile, and only if something guarded is sent. A held object is
//! retried when the backend is ready, and periodically. A webhook that this Sync does not apply is
//! only noticed when it fails a write: the object then waits for its Service for a minute, and is
//! reported as failed after that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::cluster::{ApiError, unreachable_webhook};
use crate::controller::apply::{ApplyContext, failed};
use crate::controller::memory::SyncMemory;
use crate::controller::schedule::Uptime;
use crate::object::ObjectId;
use crate::plan::{
    Action, AdmissionRequest, BackendState, Change, FailureReason, Hold, Outcome, Step, UnservedWebhook,
    Webhooks, backend_state, may_wait_for_service,
};

/// Longest time that a webhook with a ready backend may fail before the object counts as failed.
/// The address of a Pod reaches the API server some time after the Pod is ready.
const MAX_LAG: Duration = Duration::from_secs(30);

/// The same limit for a backend of another Sync, which may be applied at this moment.
const MAX_LAG_OF_OTHERS: Duration = Duration::from_secs(60);

/// Time for which objects that are verified one after the other share one read of the backends.
const FRESH: Duration = Duration::from_secs(10);

/// Webhooks of a desired set and the state of their backends during one reconcile.
#[derive(Debug, Default)]
pub(crate) struct WebhookBackends {
    webhooks: OnceLock<Webhooks>,
    states: tokio::sync::Mutex<BTreeMap<ObjectId, BackendState>>,
    /// Objects whose webhook has failed for too long.
    late: BTreeSet<ObjectId>,
}

/// Deadlines until which the webhooks of objects may fail.
#[derive(Debug, Default)]
pub(crate) struct WebhookFailures {
    until: BTreeMap<ObjectId, Uptime>,
    /// Backends that verifications share, with the time at which they were created.
    shared: Option<(Uptime, Arc<WebhookBackends>)>,
}

impl WebhookFailures {
    /// Starts a reconcile with unread backends: its desired set may differ from the one verified
    /// before.
    pub(crate) fn backends(&mut self, now: Uptime) -> WebhookBackends {
        self.shared = None;
        self.known(now)
    }

    /// Returns the backends for verifying an object of the last reconcile.
    pub(crate) fn shared(&mut self, now: Uptime) -> Arc<WebhookBackends> {
        match &self.shared {
            Some((begun, backends)) if now.saturating_sub(*begun) < FRESH => backends.clone(),
            _ => {
                let backends = Arc::new(self.known(now));
                self.shared = Some((now, backends.clone()));
                backends
            }
        }
    }

    fn known(&self, now: Uptime) -> WebhookBackends {
        let late = self.until.iter().filter(|(_, until)| **until <= now);
        WebhookBackends { late: late.map(|(id, _)| id.clone()).collect(), ..WebhookBackends::default() }
    }

    /// Records the outcomes of objects.
    pub(crate) fn learn(&mut self, outcomes: &BTreeMap<ObjectId, Outcome>, now: Uptime) {
        for (id, outcome) in outcomes {
            match outcome {
                Outcome::Held(Hold::WebhookUnserved(why)) if why.state == BackendState::Unreached => {
                    let is_ours = !why.backend.is_kind("", "Service");
                    let lag = if is_ours { MAX_LAG } else { MAX_LAG_OF_OTHERS };
                    self.until.entry(id.clone()).or_insert(now + lag);
                }
                Outcome::Failed(why) if why.reason == FailureReason::WebhookFailed => {}
                _ => drop(self.until.remove(id)),
            }
        }
    }

    /// Returns the time until the webhook of an object counts as failed; it is retried then at the
    /// latest.
    pub(crate) fn left(&self, id: &ObjectId, now: Uptime) -> Duration {
        self.until.get(id).map_or(Duration::MAX, |until| until.saturating_sub(now))
    }
}

/// Returns the hold of a step if a webhook guards it and no backend of that webhook is ready.
pub(crate) async fn guarded(work: &ApplyContext<'_>, step: &Step) -> Option<Hold> {
    for (webhook, backends) in guardians(work, step) {
        let mut first = None;
        let mut serves = false;
        for backend in backends {
            let state = backend_state_of(work, &backend).await;
            serves |= state == BackendState::Ready;
            first = first.or(Some((backend, state)));
        }
        if let Some((backend, state)) = first.filter(|_| !serves) {
            return Some(Hold::WebhookUnserved(Box::new(UnservedWebhook { backend, webhook, state })));
        }
    }
    None
}

/// Turns a refused write into an outcome. A webhook whose backend became ready a moment ago may
/// still fail, and so may a webhook of another Sync: the object waits for both.
pub(crate) fn refusal(work: &ApplyContext<'_>, step: &Step, failure: &ApiError) -> Outcome {
    let backend =
        unreachable_webhook(failure).filter(|_| !work.backends.late.contains(&step.id)).and_then(|it| {
            let guardian = guardians(work, step).into_iter().find(|(webhook, _)| **webhook == *it.webhook);
            let backend = match guardian {
                Some((_, all)) => all.into_iter().next()?,
                None => behind_service(work, step, it.service?)?,
            };
            Some((backend, it.webhook))
        });
    let Some((backend, webhook)) = backend else {
        return failed(failure, work.desired.is_redacted(&step.id, work.recorded(&step.id)));
    };
    let webhook = webhook.into();
    Outcome::Held(Hold::WebhookUnserved(Box::new(UnservedWebhook {
        backend,
        webhook,
        state: BackendState::Unreached,
    })))
}

/// Returns the Service of a webhook, if the object may wait for its backend.
fn behind_service(work: &ApplyContext<'_>, step: &Step, (namespace, name): (&str, &str)) -> Option<ObjectId> {
    let service = ObjectId::new("", "Service", namespace, name).ok()?;
    let object = work.desired.get(&step.id)?;
    may_wait_for_service(object, &service, work.desired).then_some(service)
}

/// Returns the webhooks in the cluster that guard a step, each with the workloads that serve
/// it.
fn guardians(work: &ApplyContext<'_>, step: &Step) -> Vec<(Box<str>, Vec<ObjectId>)> {
    let creates = match step.action {
        Action::Create | Action::ReplaceHookRuns { .. } | Action::Update(Change::RerunHook) => true,
        Action::Adopt { .. } | Action::Update(_) => false,
        Action::HandOver { .. } | Action::Prune { .. } => return Vec::new(),
    };
    let webhooks = work.backends.webhooks.get_or_init(|| Webhooks::from_set(work.desired));
    if webhooks.is_empty() {
        return Vec::new();
    }
    let kinds = work.cluster.kinds();
    let (Some(object), Some(served)) = (work.desired.get(&step.id), kinds.get(&step.id.group_kind())) else {
        return Vec::new();
    };
    let request = AdmissionRequest { object, plural: &served.plural, creates, owner: work.owner };
    let is_there = |id: &ObjectId| {
        work.cluster.read_observed(work.owner, |set| set.get(id).is_some_and(|it| !it.deleting))
    };
    let guarding = webhooks.guarding_webhooks(request, work.desired, is_there);
    guarding.into_iter().map(|it| (it.webhook.into(), it.backends.to_vec())).collect()
}

/// Reads the state of a backend. A backend that cannot be read counts as ready.
async fn backend_state_of(work: &ApplyContext<'_>, id: &ObjectId) -> BackendState {
    let mut states = work.backends.states.lock().await;
    if let Some(known) = states.get(id) {
        return *known;
    }
    let state = match work.cluster.objects().read_whole(id, None).await {
        Ok(live) => backend_state(id, live.as_ref().map(|live| &live.body)),
        Err(_) => BackendState::Ready,
    };
    states.insert(id.clone(), state);
    state
}

/// Retries the objects that wait for these backends; returns true if there are any.
pub(crate) fn retry_behind(memory: &mut SyncMemory, ready: &BTreeSet<ObjectId>) -> bool {
    let before = memory.retries.len();
    memory.retries.retain(|_, failing| {
        let waits = failing.unserved();
        !waits.is_some_and(|why| ready.contains(&why.backend))
    });
    memory.retries.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Failure;

    const AT: fn(u64) -> Uptime = Duration::from_secs;

    fn id(text: &str) -> ObjectId {
        ObjectId::parse(text).unwrap()
    }

    fn outcomes(outcome: Outcome) -> BTreeMap<ObjectId, Outcome> {
        [(id("example.com/Boat|a/x"), outcome)].into()
    }

    #[test]
    fn a_webhook_that_fails_for_longer_than_a_lag_is_a_failure() {
        let unserved = |state| {
            let backend = id("apps/Deployment|a/hook");
            Outcome::Held(Hold::WebhookUnserved(Box::new(UnservedWebhook {
                backend,
                webhook: "check".into(),
                state,
            })))
        };
        let failed = |reason| Outcome::Failed(Failure { reason, message: String::new(), manifest: false });
        let mut unreached = WebhookFailures::default();
        let late = |unreached: &mut WebhookFailures, second| !unreached.backends(AT(second)).late.is_empty();
        unreached.learn(&outcomes(unserved(BackendState::NotReady)), AT(0));
        assert!(!late(&mut unreached, 100), "a backend that is not ready yet is waited for");
        unreached.learn(&outcomes(unserved(BackendState::Unreached)), AT(100));
        unreached.learn(&outcomes(unserved(BackendState::Unreached)), AT(120));
        assert!(!late(&mut unreached, 129));
        assert_eq!(unreached.left(&id("example.com/Boat|a/x"), AT(129)), AT(1));
        assert!(late(&mut unreached, 130));
        unreached.learn(&outcomes(failed(FailureReason::WebhookFailed)), AT(131));
        assert!(late(&mut unreached, 132), "it stays a failure");
        unreached.learn(&outcomes(Outcome::Created), AT(140));
        assert!(!late(&mut unreached, 140));
        assert_eq!(unreached.left(&id("example.com/Boat|a/x"), AT(140)), Duration::MAX);
    }

    #[test]
    fn a_webhook_of_others_may_fail_for_a_minute() {
        let (backend, webhook) = (id("/Service|a/hook"), "check".into());
        let why = UnservedWebhook { backend, webhook, state: BackendState::Unreached };
        let mut unreached = WebhookFailures::default();
        unreached.learn(&outcomes(Outcome::Held(Hold::WebhookUnserved(Box::new(why)))), AT(5));
        assert!(unreached.backends(AT(64)).late.is_empty());
        assert!(!unreached.backends(AT(65)).late.is_empty());
    }

    #[test]
    fn verifications_share_what_was_read_for_a_while() {
        let mut unreached = WebhookFailures::default();
        let first = unreached.shared(AT(0));
        assert!(Arc::ptr_eq(&first, &unreached.shared(AT(9))));
        let second = unreached.shared(AT(10));
        assert!(!Arc::ptr_eq(&first, &second));
        drop(unreached.backends(AT(11)));
        assert!(!Arc::ptr_eq(&second, &unreached.shared(AT(12))), "a pass may be about another set");
    }
}
