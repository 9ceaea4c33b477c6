//! Evaluates the rule of a third-party kind.
//!
//! In: a [`Rule`] and a live object.
//! Out: its health. All checks run, because a status may report a failure in one field and progress
//! in another. Suspended overrides Degraded, which overrides Progressing, which overrides Unknown.
//! An object about which no check has a result is not healthy.

use serde_json::Value;

use super::super::condition::Condition;
use super::super::{Context, Health, Reports, generic};
use super::rule::{Check, CountCheck, Generation, IfFalse, MissingStatus, PhaseCheck, Rule, Switch};
use crate::message::{count_of_are, quote};
use crate::object_view::ObjectView;

pub(super) fn evaluate(rule: &Rule, live: ObjectView<'_>, context: &Context) -> Health {
    // A suspended controller does nothing, so its generation may stay old forever.
    if rule.suspended_by.iter().any(|switch| is_on(switch, live)) {
        return Health::Suspended;
    }
    if rule.unreported_with.iter().any(|switch| is_on(switch, live)) {
        return Health::Healthy;
    }
    if generic::has_no_report(live) {
        return match (rule.missing_status, context.reports) {
            (MissingStatus::Healthy, _) | (MissingStatus::ByKind, Reports::No) => Health::Healthy,
            (MissingStatus::Progressing, _) | (MissingStatus::ByKind, Reports::Perhaps | Reports::Yes) => {
                Health::progressing("its controller has not reported a status yet")
            }
        };
    }
    let unseen = match rule.generation {
        Generation::InStatus => live.unobserved_status(),
        Generation::WhereWritten | Generation::Nowhere => live.stale_status(),
    };
    unseen.unwrap_or_else(|| worst(rule, live))
}

fn worst(rule: &Rule, live: ObjectView<'_>) -> Health {
    let (mut said, mut worst) = (false, Health::Healthy);
    for reading in rule.checks {
        let Some(found) = run_check(reading, live) else { continue };
        said |= reading.can_prove_health();
        if weight(&found) > weight(&worst) {
            worst = found;
        }
    }
    match worst {
        Health::Healthy if !said && rule.checks.iter().any(Check::can_prove_health) => {
            Health::progressing("its status does not report its health yet")
        }
        worst => worst,
    }
}

fn weight(health: &Health) -> u8 {
    match health {
        Health::Healthy => 0,
        Health::Unknown { .. } => 1,
        Health::Progressing { .. } => 2,
        Health::Degraded { .. } => 3,
        Health::Suspended => 4,
    }
}

impl Check {
    /// True if the check can prove an object healthy; the other checks only detect other states.
    fn can_prove_health(&self) -> bool {
        match self {
            Self::Required(..)
            | Self::IfReported(..)
            | Self::Phase(_)
            | Self::Reached(_)
            | Self::BoolField(..)
            | Self::Custom(_) => true,
            Self::FailedIfTrue(_)
            | Self::FailedIfFalse(_)
            | Self::ProgressingIfTrue(_)
            | Self::SuspendedIfTrue(_)
            | Self::ErrorText(_) => false,
        }
    }
}

/// Runs one check; `None` if the status does not contain the field.
fn run_check(reading: &Check, live: ObjectView<'_>) -> Option<Health> {
    match reading {
        Check::Required(kind, if_false) => Some(
            check_condition(live, kind, if_false)
                .unwrap_or_else(|| Health::progressing(format!("{kind} is not reported yet"))),
        ),
        Check::IfReported(kind, if_false) => check_condition(live, kind, if_false),
        Check::FailedIfTrue(kinds) => {
            first(live, kinds, Condition::is_true).map(|found| Health::degraded(found.describe()))
        }
        Check::FailedIfFalse(kinds) => {
            let found = kinds.iter().find_map(|kind| check_condition(live, kind, &IfFalse::Fails));
            found.filter(|found| !matches!(found, Health::Healthy))
        }
        Check::ProgressingIfTrue(kinds) => {
            first(live, kinds, Condition::is_true).map(|found| Health::progressing(found.describe()))
        }
        Check::SuspendedIfTrue(kinds) => first(live, kinds, Condition::is_true).map(|_| Health::Suspended),
        Check::Phase(word) => check_phase(live, word),
        Check::Reached(count) => check_count(live, count),
        Check::BoolField(at, if_false) => flag(live, at, if_false),
        Check::ErrorText(at) => complaint(live, at),
        Check::Custom(odd) => (odd.judge)(live),
    }
}

/// First condition of these types that passes the test and is not stale.
fn first<'a>(live: ObjectView<'a>, kinds: &[&str], is: fn(&Condition<'a>) -> bool) -> Option<Condition<'a>> {
    let generation = live.generation();
    let fresh = |condition: &Condition<'a>| is(condition) && !condition.is_stale(generation);
    kinds.iter().find_map(|kind| live.condition(kind).filter(fresh))
}

fn check_condition(live: ObjectView<'_>, kind: &str, if_false: &IfFalse) -> Option<Health> {
    let condition = live.condition(kind)?;
    Some(match &condition {
        _ if condition.is_stale(live.generation()) => {
            Health::progressing(format!("{kind} was reported for an older generation"))
        }
        _ if condition.is_true() => Health::Healthy,
        _ if condition.is_false() && if_false.is_failure(&condition) => {
            Health::degraded(condition.describe())
        }
        _ => Health::progressing(condition.describe()),
    })
}

impl IfFalse {
    fn is_failure(&self, condition: &Condition<'_>) -> bool {
        match self {
            Self::Waits => false,
            Self::Fails => true,
            Self::FailsBut(reasons) => !reasons.contains(&condition.reason),
            Self::ByReason => condition.reason_is_failure(),
        }
    }
}

fn check_phase(live: ObjectView<'_>, word: &PhaseCheck) -> Option<Health> {
    let name = word.path.rsplit('.').next().unwrap_or_default();
    let Some(text) =
        live.field_by_path(word.path).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    else {
        return word.needed.then(|| Health::progressing(format!("its {name} is not reported yet")));
    };
    let is_in = |words: &[&str]| words.contains(&text);
    if is_in(word.healthy) {
        return Some(Health::Healthy);
    }
    if is_in(word.suspended) {
        return Some(Health::Suspended);
    }
    let said = with_message(live, word.message, format!("its {name} is {}", quote(text)));
    Some(if is_in(word.failed) {
        Health::degraded(said)
    } else if word.is_free_text || is_in(word.progressing) {
        Health::progressing(said)
    } else {
        Health::unknown(format!("{said}, a value that no health rule knows"))
    })
}

fn check_count(live: ObjectView<'_>, count: &CountCheck) -> Option<Health> {
    let number = |at: &str| match live.field_by_path(at)? {
        Value::Array(items) => u64::try_from(items.len()).ok(),
        other => other.as_u64(),
    };
    let have = match number(count.actual) {
        None if !count.needed => return None,
        have => have.unwrap_or_default(),
    };
    let of = number(count.wanted).unwrap_or(count.default_wanted);
    Some(match have >= of {
        true => Health::Healthy,
        false => Health::progressing(format!("{} {}", count_of_are(have, of, count.noun), count.be)),
    })
}

fn flag(live: ObjectView<'_>, at: &str, if_false: &IfFalse) -> Option<Health> {
    let is = live.field_by_path(at)?.as_bool()?;
    let name = at.rsplit('.').next().unwrap_or_default();
    let said = || with_message(live, "status.message", format!("its {name} is false"));
    Some(match (is, if_false) {
        (true, _) => Health::Healthy,
        (false, IfFalse::Fails | IfFalse::FailsBut(_)) => Health::degraded(said()),
        (false, IfFalse::Waits | IfFalse::ByReason) => Health::progressing(said()),
    })
}

fn complaint(live: ObjectView<'_>, at: &str) -> Option<Health> {
    let text = match live.field_by_path(at)? {
        Value::String(text) => text,
        Value::Array(texts) => texts.first()?.as_str()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    Some(quote(text)).filter(|text| !text.is_empty()).map(Health::degraded)
}

/// Appends the controller's message at a path, if there is one.
pub(super) fn with_message(live: ObjectView<'_>, at: &str, said: String) -> String {
    let text = match live.field_by_path(at) {
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Array(texts)) => texts.first().and_then(Value::as_str),
        _ => None,
    };
    match text.map(quote).filter(|text| !text.is_empty()) {
        Some(text) => format!("{said} ({text})"),
        None => said,
    }
}

fn is_on(switch: &Switch, live: ObjectView<'_>) -> bool {
    let text = |value: Option<&Value>, wanted: &str| value.and_then(Value::as_str) == Some(wanted);
    match switch {
        Switch::True(at) => live.field_by_path(at).and_then(Value::as_bool).unwrap_or_default(),
        Switch::Is(at, wanted) => text(live.field_by_path(at), wanted),
        Switch::HasAnnotation(key) => live.text(&["metadata", "annotations", key]).is_some(),
        Switch::Annotation(key, wanted) => text(live.field(&["metadata", "annotations", key]), wanted),
        Switch::Label(key, wanted) => text(live.field(&["metadata", "labels", key]), wanted),
    }
}
