//! Rule for all kinds without one of their own.
//!
//! In: a live object of any kind.
//! Out: its health, by the conventions that most controllers share: the observed generation,
//! conditions with common names, the value of `phase` or `state`, and last a plain `ready`.
//!
//! An object without a status is healthy only if no status is expected of its kind: a custom
//! resource is often applied long before its controller processes it.

use super::condition::Condition;
use super::{Context, Health, Reports};
use crate::message::quote;
use crate::object_view::ObjectView;

/// Conditions that are true in case of a failure.
const FAILURE_CONDITIONS: [&str; 6] = ["Stalled", "Failed", "Failure", "Degraded", "Error", "ErrorOccurred"];
/// Conditions that are all true for a healthy object; those that exist count.
const HEALTHY_CONDITIONS: [&str; 4] = ["Ready", "Available", "Healthy", "Synced"];
/// Conditions of objects that run to completion. They count if none of the above exists.
const COMPLETION_CONDITIONS: [&str; 4] = ["Succeeded", "Complete", "Completed", "Finished"];

/// Known values of `phase` and `state`, in lower case.
const WELL_WORDS: [&str; 24] = [
    "accepted",
    "active",
    "available",
    "bound",
    "complete",
    "completed",
    "created",
    "deployed",
    "enabled",
    "established",
    "finished",
    "healthy",
    "installed",
    "ok",
    "online",
    "provisioned",
    "ready",
    "reconciled",
    "released",
    "running",
    "succeeded",
    "success",
    "synced",
    "valid",
];
const ON_ITS_WAY_WORDS: [&str; 26] = [
    "applying",
    "binding",
    "bootstrapping",
    "building",
    "configuring",
    "creating",
    "deleting",
    "deploying",
    "inprogress",
    "in-progress",
    "initializing",
    "installing",
    "migrating",
    "new",
    "pending",
    "processing",
    "progressing",
    "provisioning",
    "queued",
    "reconciling",
    "restarting",
    "scaling",
    "starting",
    "terminating",
    "updating",
    "waiting",
];
const WRONG_WORDS: [&str; 14] = [
    "crashloopbackoff",
    "degraded",
    "denied",
    "error",
    "errored",
    "failed",
    "failing",
    "failure",
    "invalid",
    "lost",
    "rejected",
    "stalled",
    "unavailable",
    "unhealthy",
];
const SUSPENDED_WORDS: [&str; 5] = ["disabled", "hibernated", "paused", "stopped", "suspended"];
/// Longer than any of the values above.
const MAX_WORD: usize = 32;

pub(super) fn generic(live: ObjectView<'_>, context: &Context) -> Health {
    // The controller of a suspended object does nothing, so its generation may stay old forever.
    if ["suspend", "suspended", "paused"].iter().any(|field| live.is_true(&["spec", field])) {
        return Health::Suspended;
    }
    if let Some(stale) = live.stale_status() {
        return stale;
    }
    if has_no_report(live) {
        return match context.reports {
            Reports::No => Health::Healthy,
            Reports::Perhaps | Reports::Yes => {
                Health::progressing("its controller has not reported a status yet")
            }
        };
    }
    health_from_conditions(live)
        .or_else(|| health_from_phase(live))
        .or_else(|| by_flag(live))
        .unwrap_or(Health::Healthy)
}

/// True if the controller has not reported anything: no status, or only the defaults that every
/// object gets.
pub(super) fn has_no_report(live: ObjectView<'_>) -> bool {
    let silent = |(field, value): (&String, &serde_json::Value)| match field.as_str() {
        "conditions" => value.as_array().is_none_or(Vec::is_empty),
        _ => value.is_null(),
    };
    let status = live.field(&["status"]).and_then(serde_json::Value::as_object);
    status.is_none_or(|status| status.iter().all(silent))
}

/// Health by the conditions; `None` if none of them is known.
fn health_from_conditions(live: ObjectView<'_>) -> Option<Health> {
    let generation = live.generation();
    // Collected once: they are searched many times, and each field of each is a lookup in a map.
    let all: Vec<Condition<'_>> = live.conditions().collect();
    let condition = |kind: &str| all.iter().find(|condition| condition.kind == kind);
    let fresh = |condition: &Condition<'_>| !condition.is_stale(generation);
    let wrong =
        |condition: &Condition<'_>| condition.is_true() && FAILURE_CONDITIONS.contains(&condition.kind);
    if let Some(wrong) = all.iter().find(|condition| fresh(condition) && wrong(condition)) {
        return Some(Health::degraded(wrong.describe()));
    }
    if let Some(reconciling) = condition("Reconciling").filter(|it| it.is_true() && fresh(it)) {
        return Some(Health::progressing(reconciling.describe()));
    }
    let mut any = false;
    let mut waits = None;
    for condition in HEALTHY_CONDITIONS.iter().filter_map(|kind| condition(kind)) {
        any = true;
        if condition.is_stale(generation) {
            waits = waits
                .or_else(|| Some(format!("{} was reported for an older generation", quote(condition.kind))));
        } else if condition.is_false() && condition.reason_is_failure() {
            return Some(Health::degraded(condition.describe()));
        } else if !condition.is_true() {
            waits = waits.or_else(|| Some(condition.describe()));
        }
    }
    match (any, waits) {
        (true, None) => Some(Health::Healthy),
        (true, Some(why)) => Some(Health::progressing(why)),
        (false, _) => COMPLETION_CONDITIONS
            .iter()
            .find_map(|kind| condition(kind))
            .map(|done| health_from_completion(done, generation)),
    }
}

/// Health by a condition of completion: `Succeeded` with status False is a failure; `Complete` with
/// status False is not complete yet.
fn health_from_completion(condition: &Condition<'_>, generation: Option<u64>) -> Health {
    let failed = condition.is_false() && (condition.kind == "Succeeded" || condition.reason_is_failure());
    match condition {
        _ if condition.is_stale(generation) => {
            Health::progressing(format!("{} was reported for an older generation", quote(condition.kind)))
        }
        _ if condition.is_true() => Health::Healthy,
        _ if failed => Health::degraded(condition.describe()),
        _ => Health::progressing(condition.describe()),
    }
}

/// Health by the value of `phase` or `state`; `None` if neither is set.
fn health_from_phase(live: ObjectView<'_>) -> Option<Health> {
    let (field, text) = ["phase", "state"].into_iter().find_map(|field| {
        let text = live.text(&["status", field])?.trim();
        (!text.is_empty()).then_some((field, text))
    })?;
    let said = format!("its {field} is {}", quote(text));
    let word = text.to_ascii_lowercase();
    let (word, phrase) = (word.as_str(), word.len() > MAX_WORD);
    Some(match word {
        _ if !phrase && WELL_WORDS.contains(&word) => Health::Healthy,
        _ if !phrase && SUSPENDED_WORDS.contains(&word) => Health::Suspended,
        _ if !phrase && ON_ITS_WAY_WORDS.contains(&word) => Health::progressing(with_message(said, live)),
        // Matches values such as `CreateFailed` and `SyncError`.
        _ if WRONG_WORDS.contains(&word) || word.ends_with("failed") || word.ends_with("error") => {
            Health::degraded(with_message(said, live))
        }
        _ => Health::unknown(format!("{said}, a value that no health rule knows")),
    })
}

/// Health by a plain `ready` or `readyToUse`; `None` if neither is set.
fn by_flag(live: ObjectView<'_>) -> Option<Health> {
    let mut flags = ["ready", "readyToUse"].into_iter();
    let (name, is) = flags.find_map(|name| Some((name, live.field(&["status", name])?.as_bool()?)))?;
    Some(if is {
        Health::Healthy
    } else {
        Health::progressing(with_message(format!("its {name} is false"), live))
    })
}

/// Appends the message or reason that the controller wrote beside the value.
fn with_message(said: String, live: ObjectView<'_>) -> String {
    let message = ["message", "reason"]
        .iter()
        .find_map(|field| live.text(&["status", field]).filter(|message| !message.trim().is_empty()));
    match message {
        Some(message) => format!("{said} ({})", quote(message)),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Context, Reports, may_report};
    use crate::test_fixtures::{check_in, kind};

    fn check(status: &str, expect: &str) {
        let json = format!(r#"{{"metadata": {{"generation": 3}}, "status": {{{status}}}}}"#);
        check_in(&Context { reports: Reports::Yes, binding: None }, "Widget.example.com", &json, expect);
    }

    fn conditions(conditions: &[(&str, &str, &str)]) -> String {
        let conditions = conditions.iter().map(|(kind, status, reason)| {
            format!(r#"{{"type": "{kind}", "status": "{status}", "reason": "{reason}"}}"#)
        });
        format!(r#""observedGeneration": 3, "conditions": [{}]"#, conditions.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn silence_is_healthy_only_where_nobody_expects_a_word() {
        let silent = "Progressing: its controller has not reported a status yet";
        for json in ["{}", r#"{"status": {}}"#, r#"{"status": {"conditions": []}}"#, r#"{"status": null}"#] {
            for (reports, expect) in
                [(Reports::No, "Healthy"), (Reports::Perhaps, silent), (Reports::Yes, silent)]
            {
                check_in(&Context { reports, binding: None }, "Widget.example.com", json, expect);
            }
        }
        assert!(may_report(&kind("Widget.example.com")));
        check(r#""observedGeneration": 3"#, "Healthy");
    }

    #[test]
    fn a_generation_that_is_not_the_newest_says_nothing() {
        let old = "Progressing: the controller has observed generation 2, but the object is at generation 3";
        for status in [r#""observedGeneration": 2, "phase": "Ready""#, r#""observedGeneration": "2""#] {
            check(status, old);
        }
        check(&conditions(&[("Ready", "True", "")]).replace("3", "2"), old);
        check(&conditions(&[("Stalled", "True", "")]).replace("3", "2"), old);
        let one = |kind: &str| {
            format!(r#""conditions": [{{"type": "{kind}", "status": "True", "observedGeneration": 2}}]"#)
        };
        check(&one("Ready"), "Progressing: Ready was reported for an older generation");
        check(&one("Succeeded"), "Progressing: Succeeded was reported for an older generation");
        check(&one("Failed"), "Healthy");
        check(&one("Reconciling"), "Healthy");
        // A missing observed generation does not count as an old one.
        check(r#""conditions": [{"type": "Ready", "status": "True"}]"#, "Healthy");
    }

    #[test]
    fn conditions_by_their_usual_names() {
        let check = |all: &[(&str, &str, &str)], expect: &str| check(&conditions(all), expect);
        for kind in ["Ready", "Available", "Healthy", "Synced", "Succeeded", "Complete"] {
            check(&[(kind, "True", "")], "Healthy");
            check(&[(kind, "Unknown", "Trying")], &format!("Progressing: {kind} is Unknown (Trying)"));
        }
        for kind in ["Stalled", "Failed", "Degraded", "Error"] {
            check(&[("Ready", "True", ""), (kind, "True", "R")], &format!("Degraded: {kind} is True (R)"));
            check(&[("Ready", "True", ""), (kind, "False", "R")], "Healthy");
        }
        check(&[("Reconciling", "True", "R"), ("Ready", "True", "")], "Progressing: Reconciling is True (R)");
        check(&[("Reconciling", "False", "R"), ("Ready", "True", "")], "Healthy");
        check(&[("Stalled", "True", "R"), ("Reconciling", "True", "")], "Degraded: Stalled is True (R)");
        check(&[("Ready", "False", "Waits")], "Progressing: Ready is False (Waits)");
        check(&[("Ready", "False", "BuildFailed")], "Degraded: Ready is False (BuildFailed)");
        check(
            &[("Ready", "True", ""), ("Synced", "False", "ReconcileError")],
            "Degraded: Synced is False (ReconcileError)",
        );
        check(&[("Succeeded", "False", "R")], "Degraded: Succeeded is False (R)");
        check(&[("Complete", "False", "R")], "Progressing: Complete is False (R)");
        // An object that keeps running after its first success.
        check(&[("Ready", "True", ""), ("Complete", "False", "R")], "Healthy");
        check(&[("Initialized", "False", "R")], "Healthy");
    }

    #[test]
    fn words() {
        let check = |word: &str, expect: &str| check(&format!(r#""phase": "{word}""#), expect);
        for word in ["Running", "Active", "Bound", "READY", "succeeded"] {
            check(word, "Healthy");
        }
        for word in ["Pending", "Provisioning", "Creating"] {
            check(word, &format!("Progressing: its phase is {word}"));
        }
        for word in ["Failed", "Error", "CreateFailed", "SyncError"] {
            check(word, &format!("Degraded: its phase is {word}"));
        }
        check("Paused", "Suspended");
        check("Sideways", "Unknown: its phase is Sideways, a value that no health rule knows");
        check("", "Healthy");
    }

    #[test]
    fn words_stand_back_behind_conditions() {
        check(r#""state": "Creating", "message": "a disk""#, "Progressing: its state is Creating (a disk)");
        check(r#""phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]"#, "Healthy");
        check(
            r#""phase": "Failed", "conditions": [{"type": "Initialized", "status": "True"}]"#,
            "Degraded: its phase is Failed",
        );
    }

    #[test]
    fn flags_stand_back_behind_words() {
        check(r#""ready": true"#, "Healthy");
        check(r#""readyToUse": false, "message": "m""#, "Progressing: its readyToUse is false (m)");
        check(r#""ready": false, "phase": "Failed""#, "Degraded: its phase is Failed");
        check(r#""ready": "false""#, "Healthy");
    }

    #[test]
    fn what_is_suspended_looks_at_nothing() {
        for field in ["suspend", "suspended", "paused"] {
            let json = format!(
                r#"{{"metadata": {{"generation": 3}}, "spec": {{"{field}": true}}, "status": {{"observedGeneration": 2}}}}"#
            );
            check_in(&Context::default(), "Widget.example.com", &json, "Suspended");
        }
        let json = r#"{"spec": {"paused": "true"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#;
        check_in(&Context::default(), "Widget.example.com", json, "Healthy");
    }

    #[test]
    fn the_rule_fits_kinds_that_come_with_kubernetes() {
        check_in(&Context::default(), "PersistentVolume", r#"{"status": {"phase": "Released"}}"#, "Healthy");
        let failed = r#"{"status": {"phase": "Failed", "message": "m"}}"#;
        check_in(&Context::default(), "PersistentVolume", failed, "Degraded: its phase is Failed (m)");
    }
}
