//! Verifies one object that may differ from Git.
//!
//! In: an object, and the method of verification.
//! Out: an [`Outcome`], and if a reconcile has to follow.
//!
//! A Sync that repairs drift applies the object, which verifies and repairs it in one request. A
//! Sync that only reports drift compares the live object with the result of a dry-run apply.

use std::collections::{BTreeSet, VecDeque};

use super::{ApplyContext, failed};
use crate::controller::memory::SyncMemory;
use crate::controller::memory::compare_failures::VerifyMethod;
use crate::controller::schedule::{RetryPolicy, Uptime};
use crate::desired::DesiredSet;
use crate::object::ObjectId;
use crate::observed::{Observed, ObservedSet, Suspicion, Verification};
use crate::plan::{Action, Change, Hold, Outcome, Plan, Step, changed_fields};

/// Attempts to compare an object that changes between the two requests.
const MAX_COMPARISONS: usize = 3;

/// Returns the objects that the plan only verifies, those under the strongest suspicion first;
/// empty while the Sync is suspended.
pub(crate) fn to_verify(
    plan: &Plan,
    observed: &ObservedSet,
    suspended: bool,
) -> VecDeque<(ObjectId, VerifyMethod)> {
    if suspended {
        return VecDeque::new();
    }
    let unverified = plan.steps().filter(|step| step.action == Action::Update(Change::Unverified));
    let applied = unverified.map(|step| (step.id.clone(), VerifyMethod::Apply));
    let open = plan.held.iter().filter(|(id, hold)| match hold {
        Hold::Unverified => true,
        Hold::DriftReported(_) => observed.get(id).is_some_and(|seen| !is_compared(seen)),
        _ => false,
    });
    let compared = open.map(|(id, _)| (id.clone(), VerifyMethod::Compare));
    order_by_suspicion(applied.chain(compared).collect(), observed).into()
}

/// Sorts verifications: the strongest suspicion first, the daily verification last. An object
/// without evidence was written after the list.
fn order_by_suspicion(
    mut found: Vec<(ObjectId, VerifyMethod)>,
    observed: &ObservedSet,
) -> Vec<(ObjectId, VerifyMethod)> {
    found.sort_by_key(|(id, _)| {
        let seen = observed.get(id);
        let suspicion = seen.and_then(Observed::suspicion).unwrap_or(Suspicion::NewerWriter);
        (seen.is_some_and(|seen| seen.overdue), suspicion)
    });
    found
}

/// Returns true if the drift of this version was found by a comparison, or is none that a
/// comparison could find.
fn is_compared(seen: &Observed) -> bool {
    let known = seen.baseline.as_ref().map(|baseline| &baseline.resource_version);
    !matches!(seen.verification, Verification::Drifted(_)) || known == Some(&seen.resource_version)
}

fn is_open(seen: &Observed, how: VerifyMethod) -> bool {
    match how {
        VerifyMethod::Apply => seen.verification == Verification::Unverified,
        VerifyMethod::Compare => match seen.verification {
            Verification::Unverified | Verification::MaybeDrifted => true,
            Verification::Drifted(_) => !is_compared(seen),
            Verification::Verified | Verification::Believed => false,
        },
    }
}

/// Verifies one object when the rate limit allows it; `None` if there is nothing to verify any
/// more.
pub(crate) async fn verify(work: &ApplyContext<'_>, id: &ObjectId, how: VerifyMethod) -> Option<Outcome> {
    work.context.settings.verify_turn().await;
    let open =
        work.cluster.read_observed(work.owner, |set| set.get(id).is_some_and(|seen| is_open(seen, how)));
    if !open || work.stop.is_cancelled() {
        return None;
    }
    match how {
        VerifyMethod::Apply => {
            work.step(&Step { id: id.clone(), action: Action::Update(Change::Unverified) }).await
        }
        VerifyMethod::Compare => Some(
            compare(work, id)
                .await
                .unwrap_or_else(|failure| failed(&failure, work.desired.is_redacted(id, None))),
        ),
    }
}

async fn compare(work: &ApplyContext<'_>, id: &ObjectId) -> Result<Outcome, crate::cluster::ApiError> {
    let Some(wanted) = work.desired.get(id) else { return Ok(Outcome::Kept) };
    for _ in 0..MAX_COMPARISONS {
        // If it is gone, its watch reports that.
        let Some(live) = work.cluster.objects().read_whole(id, Some(&wanted.version)).await? else { break };
        let would_be = work
            .cluster
            .objects()
            .dry_run_apply(wanted, work.owner, &work.field_conflicts.yielded(wanted))
            .await?;
        if live.metadata("resourceVersion") != would_be.metadata("resourceVersion") {
            continue;
        }
        let known = work.cluster.objects().record_comparison(
            work.owner,
            &live,
            changed_fields(&live.body, &would_be.body),
        );
        return Ok(match known.map(|known| known.verification) {
            Some(Verification::Drifted(drift)) => Outcome::Held(Hold::DriftReported(drift)),
            Some(
                Verification::Verified
                | Verification::Believed
                | Verification::Unverified
                | Verification::MaybeDrifted,
            )
            | None => Outcome::Kept,
        });
    }
    Ok(Outcome::Held(Hold::Unverified))
}

/// Records the outcome of a verification; returns true if a reconcile has to report or do
/// something.
pub(crate) fn record_verification(
    memory: &mut SyncMemory,
    id: &ObjectId,
    outcome: &Outcome,
    desired: &DesiredSet,
    now: Uptime,
    chance: f64,
    pauses: RetryPolicy,
) -> bool {
    let outcomes = [(id.clone(), outcome.clone())].into_iter().collect();
    memory.record_outcomes(&outcomes, desired, now, chance, pauses);
    memory.compare_failures.learn(id, outcome, now, chance, pauses);
    memory.contention.learn(&outcomes, desired, now);
    match outcome {
        Outcome::Failed(_) | Outcome::Held(_) => true,
        // Results of comparisons are reported once all of them are known.
        _ => memory.comparing && memory.unverified.is_empty(),
    }
}

/// Queues verifications, except for objects that failed recently. Returns the number of
/// comparisons that are throttled because the objects are written to all the time.
pub(crate) fn enqueue_verification(
    memory: &mut SyncMemory,
    found: VecDeque<(ObjectId, VerifyMethod)>,
    now: Uptime,
) -> usize {
    memory.unverified = found;
    let compared: BTreeSet<&ObjectId> =
        memory.unverified.iter().filter(|(_, how)| *how == VerifyMethod::Compare).map(|(id, _)| id).collect();
    memory.compare_failures.retain(|id| compared.contains(id));
    let failing = &memory.retries;
    memory.unverified.retain(|(id, _)| failing.get(id).is_none_or(|known| !known.waits(now)));
    let incomparable = &memory.compare_failures;
    memory.unverified.retain(|(id, how)| *how == VerifyMethod::Apply || !incomparable.waits(id, now));
    let (restless, before) = (&mut memory.noisy_objects, memory.unverified.len());
    memory.unverified.retain(|(id, how)| *how == VerifyMethod::Apply || !restless.waits(id, now));
    let spared = before - memory.unverified.len();
    memory.comparing = memory.unverified.iter().any(|(_, how)| *how == VerifyMethod::Compare);
    spared
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::SyncName;
    use crate::object::{Object, Origin};

    #[test]
    fn the_strongest_suspicion_is_verified_first() {
        let owner = SyncName::new("ops", "web");
        let mut observed = ObservedSet::default();
        let suspicions = [
            None,
            Some(Suspicion::Unclear),
            Some(Suspicion::FieldsDiffer),
            Some(Suspicion::EntryUnusual),
            Some(Suspicion::NewerWriter),
            Some(Suspicion::MetadataDiffers),
            Some(Suspicion::NewerWriterAndDifference),
        ];
        // The first is due by the daily round; an event came before the last was judged.
        let suspicions = suspicions.into_iter().chain([None]);
        for (at, suspicion) in suspicions.enumerate() {
            let entry =
                json!({"manager": owner.manager(), "operation": "Apply", "time": "2026-01-01T00:00:00Z"});
            let Value::Object(body) = json!({"metadata": {"name": at.to_string(), "managedFields": [entry]}})
            else {
                unreachable!("a mapping")
            };
            let id = ObjectId::new("", "ConfigMap", "shop", &at.to_string()).unwrap();
            let origin = Origin { file: "".into(), document: 0, line: 1, item: None };
            let object = Object { id: id.clone(), version: "v1".into(), body, origin };
            let mut seen = Observed::first_listed(&object, &owner);
            match suspicion {
                Some(suspicion) => seen.judge(Some(suspicion)),
                None if at > 0 => seen.unverify(),
                None => {
                    seen.judge(None);
                    seen.mark_overdue();
                }
            }
            observed.insert(id, seen);
        }
        let found = observed.iter().map(|(id, _)| (id.clone(), VerifyMethod::Apply)).collect();
        let order = order_by_suspicion(found, &observed);
        let names: Vec<&str> = order.iter().map(|(id, _)| id.name()).collect();
        assert_eq!(names, ["6", "2", "5", "4", "7", "3", "1", "0"]);
    }
}
