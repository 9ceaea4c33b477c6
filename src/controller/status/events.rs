//! Kubernetes Events about a Sync.
//!
//! In: changes and transitions. Out: an Event in the form of the API server. Events are for people;
//! no program reads them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{ConditionType, Reason, SyncName, SyncStatus};
use crate::object::ObjectId;
use crate::observed::Drift;
use crate::plan::{Change, Outcome};
use crate::token_bucket::TokenBucket;

/// Most bytes of a note that the API server accepts.
const MAX_NOTE: usize = 1000;

/// Rate limits by namespace: a noisy one does not use up the budget of another.
#[derive(Debug)]
pub(crate) struct Allowances {
    each: (u32, u32),
    known: Mutex<HashMap<Box<str>, TokenBucket>>,
}

impl Allowances {
    pub(crate) fn new(each: (u32, u32)) -> Self {
        Self { each, known: Mutex::default() }
    }

    /// True if one more may be written about a Sync of this namespace.
    pub(crate) fn take(&self, namespace: &str) -> bool {
        self.limited(namespace, TokenBucket::take)
    }

    /// Reserves one more, and returns the time until it may be written; none if that is too long.
    /// Thousands of Syncs of a namespace wait for their turns without asking again.
    pub(crate) fn turn(&self, namespace: &str) -> Option<Duration> {
        self.limited(namespace, |bucket| bucket.reserve(LONGEST))
    }

    fn limited<T>(&self, namespace: &str, take: impl FnOnce(&TokenBucket) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_NAMESPACES {
            // A limit with its full burst equals a new one.
            known.retain(|_, bucket| !bucket.is_whole());
        }
        let new = || TokenBucket::new(self.each);
        take(known.entry(namespace.into()).or_insert_with(new))
    }
}

/// Longest wait of an Event for its turn. Later ones are left out: the status says the same.
const LONGEST: Duration = Duration::from_secs(60);
/// Most namespaces before unused limits are removed.
const MAX_NAMESPACES: usize = 1024;

/// Builds an Event about a Sync.
pub(crate) fn event(sync: &SyncName, uid: &str, type_: &str, reason: &str, note: &str) -> Value {
    let note = note.char_indices().take_while(|(at, char)| at + char.len_utf8() <= MAX_NOTE);
    let note: String = note.map(|(_, char)| char).collect();
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": format!("{}-", sync.name), "namespace": &*sync.namespace},
        "regarding": {
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "namespace": &*sync.namespace, "name": &*sync.name, "uid": uid,
        },
        "type": type_, "reason": reason, "note": note, "action": "Sync",
        "reportingController": "moorline.dev/moorline", "reportingInstance": "moorline",
        "eventTime": time(),
    })
}

/// Returns the time in microseconds, as Events have it.
fn time() -> String {
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
    format!("{now:.6}")
}

/// Returns type, reason and note of the Event about a change of the condition Ready, if there is
/// one.
pub(crate) fn transition(before: &SyncStatus, next: &SyncStatus) -> Option<(&'static str, String, String)> {
    let ready = |status: &SyncStatus| {
        let ready = status.conditions.iter().find(|it| it.type_ == ConditionType::Ready.to_string())?;
        Some((ready.status.clone(), ready.reason.clone(), ready.message.clone()))
    };
    let (status, reason, message) = ready(next)?;
    let same = ready(before).is_some_and(|(before, why, _)| (&before, &why) == (&status, &reason));
    let known = Reason::parse(&reason);
    match status.as_str() {
        _ if same => None,
        // A reconcile that has begun is not reported yet.
        _ if matches!(known, Some(Reason::Progressing | Reason::Deleting)) => None,
        "True" => Some(("Normal", reason, message)),
        // No person is needed: the Sync continues when the other one is ready.
        _ if known == Some(Reason::DependencyNotReady) => Some(("Normal", reason, message)),
        _ => Some(("Warning", reason, message)),
    }
}

/// Describes the repaired fields of an object and their author, if there was a repair.
pub(crate) fn repair(id: &ObjectId, outcome: &Outcome) -> Option<String> {
    let drift = repaired_drift(outcome)?;
    let fields = if drift.fields.is_empty() { String::new() } else { drift.fields.join(", ") + " " };
    Some(format!("{id}: {fields}changed by {}", drift.author()))
}

/// Returns the drift that was repaired, if any. If no watch event showed the change, the drift has
/// no details: the apply of an unchanged manifest has changed the object.
pub(crate) fn repaired_drift(outcome: &Outcome) -> Option<Drift> {
    match outcome {
        Outcome::Updated(Change::Drifted(drift)) => Some(Drift::clone(drift)),
        Outcome::Updated(Change::EntryLost | Change::Unverified | Change::MaybeDrifted) => {
            Some(Drift::default())
        }
        Outcome::Updated(Change::Committed | Change::RerunHook)
        | Outcome::Created
        | Outcome::Adopted(_)
        | Outcome::Recreated
        | Outcome::Kept
        | Outcome::HandedOver(_)
        | Outcome::Pruned { .. }
        | Outcome::Held(_)
        | Outcome::Failed(_) => None,
    }
}

/// True if the object was written.
pub(crate) fn was_written(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Created | Outcome::Adopted(_) | Outcome::Updated(_) | Outcome::Recreated => true,
        Outcome::Kept
        | Outcome::HandedOver(_)
        | Outcome::Pruned { .. }
        | Outcome::Held(_)
        | Outcome::Failed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_noisy_namespace_takes_nothing_of_another() {
        let allowances = Allowances::new((3, 1));
        let taken = (0..100).filter(|_| allowances.take("noisy")).count();
        assert_eq!(taken, 3);
        assert!(allowances.take("quiet"));
        tokio::time::advance(std::time::Duration::from_secs(2)).await;
        assert_eq!((0..100).filter(|_| allowances.take("noisy")).count(), 2);
        for at in 0..2 * MAX_NAMESPACES {
            assert!(allowances.take(&format!("team-{at}")));
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        assert!(allowances.known.lock().unwrap().len() <= MAX_NAMESPACES);
    }

    #[test]
    fn a_change_of_readiness_is_reported_once() {
        let said = |status: &str, reason: &str| {
            let ready = serde_json::json!({"type": "Ready", "status": status, "reason": reason, "message": "why", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value::<SyncStatus>(serde_json::json!({"conditions": [ready]})).unwrap()
        };
        let check = |before: &SyncStatus, next: &SyncStatus, expect: Option<&str>| {
            let told = transition(before, next).map(|(type_, reason, _)| format!("{type_} {reason}"));
            assert_eq!(told.as_deref(), expect);
        };
        let (applied, contested) = (said("True", "Applied"), said("False", "Contested"));
        check(&applied, &contested, Some("Warning Contested"));
        check(&contested, &applied, Some("Normal Applied"));
        check(&applied, &applied, None);
        check(&applied, &said("Unknown", "Progressing"), None);
    }

    #[test]
    fn a_repair_is_reported_with_the_known_fields() {
        let id = ObjectId::parse("/ConfigMap|shop/web").unwrap();
        let drift = |fields: &[&str], manager: Option<&str>| {
            let fields = fields.iter().map(|&field| field.to_owned()).collect();
            Change::Drifted(Box::new(Drift { fields, manager: manager.map(str::to_owned), time: None }))
        };
        for (change, expect) in [
            (drift(&[".data.a", ".data.b"], Some("kubectl")), Some(".data.a, .data.b changed by kubectl")),
            (drift(&[], None), Some("changed by an unknown manager")),
            (Change::EntryLost, Some("changed by an unknown manager")),
            (Change::Unverified, Some("changed by an unknown manager")),
            (Change::MaybeDrifted, Some("changed by an unknown manager")),
            (Change::Committed, None),
        ] {
            let told = repair(&id, &Outcome::Updated(change));
            assert_eq!(told, expect.map(|expect| format!("{id}: {expect}")));
        }
        assert_eq!(repair(&id, &Outcome::Kept), None);
    }
}
