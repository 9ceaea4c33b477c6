//! Builds the conditions of a Sync.
//!
//! In: the previous conditions, and the verdict. Out: the new conditions; the time of each is that
//! of its last change of status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::health_condition::HealthCondition;
use super::{MAX_MESSAGE, ReadyVerdict, StatusInputs, bounded};
use crate::api::{ConditionType, Reason};

pub(super) fn conditions(
    before: &[Condition],
    verdict: &ReadyVerdict,
    wellness: Option<&HealthCondition>,
    facts: &StatusInputs<'_>,
) -> Vec<Condition> {
    let truth = |is: bool| if is { "True" } else { "False" };
    let condition = |type_: ConditionType, status: &str, reason: &str, message: &str| {
        let type_ = type_.to_string();
        let known = before.iter().find(|known| known.type_ == type_ && known.status == status);
        Condition {
            last_transition_time: known.map_or(facts.now.clone(), |known| known.last_transition_time.clone()),
            message: bounded(message),
            observed_generation: facts.generation,
            reason: reason.to_owned(),
            status: status.to_owned(),
            type_,
        }
    };
    let message = with_next_try(verdict);
    let (reason, message) = (verdict.reason.as_str(), message.as_str());
    let is_pending = facts.reconcile.as_ref().is_some_and(|pass| pass.pending);
    let known = |type_: ConditionType| before.iter().find(|known| known.type_ == type_.to_string());
    // Until the comparison is complete, earlier drift is kept: without it the condition would flap.
    let differs = known(ConditionType::Ready).filter(|ready| {
        Reason::parse(&ready.reason) == Some(Reason::FieldsDiffer) && verdict.ready && is_pending
    });
    let ready = match differs {
        Some(ready) => condition(ConditionType::Ready, "False", &ready.reason, &ready.message),
        None => condition(ConditionType::Ready, truth(verdict.ready), reason, message),
    };
    let mut conditions = vec![ready];
    if verdict.reconciling {
        conditions.push(condition(ConditionType::Reconciling, "True", reason, message));
    }
    if verdict.stalled {
        conditions.push(condition(ConditionType::Stalled, "True", reason, message));
    }
    if let Some(HealthCondition { status, reason, message }) = wellness {
        conditions.push(condition(ConditionType::Healthy, status, reason, message));
    }
    if verdict.drifted.is_none() && is_pending {
        conditions.extend(known(ConditionType::Drifted).cloned());
    }
    if let Some(drifted) = &verdict.drifted {
        let reason = Reason::FieldsDiffer.to_string();
        conditions.push(condition(ConditionType::Drifted, "True", &reason, drifted));
    }
    conditions
}

/// The message with the time of the next attempt for a refused object. A long message is cut first.
fn with_next_try(verdict: &ReadyVerdict) -> String {
    let refused = Reason::parse(&verdict.reason) == Some(Reason::ApplyFailed);
    let Some(at) = verdict.next_try.filter(|_| refused) else { return verdict.message.clone() };
    let next = format!("; next retry at {}", at.strftime("%H:%M:%S UTC"));
    let room = MAX_MESSAGE - next.len() - 1;
    match verdict.message.char_indices().nth(room) {
        None => verdict.message.clone() + &next,
        Some((end, _)) => format!("{}…{next}", &verdict.message[..end]),
    }
}
