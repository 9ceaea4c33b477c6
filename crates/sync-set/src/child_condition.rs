//! The condition of a Sync of a set, as a roll-out judges it.
//!
//! In: the Sync as the API server has it, and the field manager of the set.
//! Out: [`ChildCondition`]. A status of an older generation says nothing about the newest spec, and
//! neither does one of a Sync that stays ready while a change window holds something newer.

use jiff::Timestamp;
use moorline_core::sanitize::sanitize;
use serde_json::Value;

/// Maximum number of characters of a reason.
const MAX_REASON: usize = 300;

/// Condition of a Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChildCondition {
    /// It is ready and healthy with its newest spec.
    Settled(SettledTimes),
    /// It is not ready or not healthy yet.
    Unsettled(String),
    /// It is degraded, or needs a person.
    Degraded(String),
    /// A person, or the template, has suspended it.
    Suspended,
}

/// Times of a Sync that is ready and healthy, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettledTimes {
    /// The last write of the set, or the last change of a condition if that was later.
    pub(crate) since: i64,
    /// The last write of the set.
    pub(crate) written: i64,
}

impl ChildCondition {
    /// Reads the condition of a Sync.
    pub(crate) fn of(sync: &Value, manager: &str) -> Self {
        if sync.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
            return Self::Suspended;
        }
        let observed = sync.pointer("/status/observedGeneration");
        if observed.is_none() || observed != sync.pointer("/metadata/generation") {
            return Self::Unsettled("its newest spec is not applied yet".to_owned());
        }
        let (ready, healthy) = (condition(sync, "Ready"), condition(sync, "Healthy"));
        let has =
            |condition: Option<&Value>, status: &str| condition.is_some_and(|it| it["status"] == status);
        let stalled = condition(sync, "Stalled").filter(|it| it["status"] == "True");
        if let Some(why) = healthy.filter(|it| it["status"] == "False").or(stalled) {
            return Self::Degraded(condition_text(why));
        }
        if let Some(window) = sync.pointer("/status/heldByWindow").filter(|window| window.is_object()) {
            let by = sanitize(window["by"].as_str().unwrap_or("a change window"));
            return Self::Unsettled(format!("its newest revision or spec is held by {by}"));
        }
        match (ready, healthy) {
            (Some(ready), Some(healthy)) if has(Some(ready), "True") && has(Some(healthy), "True") => {
                let written = written_at(sync, manager);
                let Some(since) = [since(ready), since(healthy), written].into_iter().flatten().max() else {
                    return Self::Unsettled("its conditions have no times".to_owned());
                };
                // Times have whole seconds: the next one is certainly not too early.
                let after = |at: Timestamp| at.as_second().saturating_add(1);
                Self::Settled(SettledTimes { since: after(since), written: after(written.unwrap_or(since)) })
            }
            (Some(ready), _) if !has(Some(ready), "True") => Self::Unsettled(condition_text(ready)),
            (_, Some(healthy)) => Self::Unsettled(condition_text(healthy)),
            (_, None) => Self::Unsettled("its health is not known yet".to_owned()),
        }
    }
}

fn condition<'a>(sync: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = sync.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == type_)
}

fn condition_text(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let all = format!("{}: {}", text("reason"), text("message"));
    sanitize(&all).chars().take(MAX_REASON).collect()
}

fn since(condition: &Value) -> Option<Timestamp> {
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

/// Returns the time at which the set wrote the Sync last.
fn written_at(sync: &Value, manager: &str) -> Option<Timestamp> {
    let entries = sync.pointer("/metadata/managedFields").and_then(Value::as_array);
    let is_own = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
    let entries = entries.into_iter().flatten().filter(is_own);
    entries.filter_map(|entry| entry["time"].as_str()?.parse::<Timestamp>().ok()).max()
}
