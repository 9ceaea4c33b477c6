//! Evaluates the rule of a third-party kind.
//!
//! In: a [`Rule`] and a live object.
//! Out: its health. All checks run, because a status may report a failure in one field and progress
//! in another. Suspended overrides Degraded, which overrides Progressing, which overrides Unknown.
//! An object about which no check has a result is not healthy.

use serde_json::Value;

use super::super::condition::Condition;
use super::super::live::Live;
use super::super::sentence::{of_are, told};
use super::super::{Context, Health, Reports, generic};
use super::rule::{Count, Generation, IfFalse, Reading, Rule, Silence, Switch, Word};

pub(super) fn judge(rule: &Rule, live: Live<'_>, context: &Context) -> Health {
    // A suspended controller does nothing, so its generation may stay old forever.
    if rule.asleep.iter().any(|switch| is_on(switch, live)) {
        return Health::Suspended;
    }
    if rule.mute.iter().any(|switch| is_on(switch, live)) {
        return Health::Healthy;
    }
    if generic::is_silent(live) {
        return match (rule.silence, context.reports) {
            (Silence::Fine, _) | (Silence::Perhaps, Reports::No) => Health::Healthy,
            (Silence::Waits, _) | (Silence::Perhaps, Reports::Perhaps | Reports::Yes) => {
                Health::progressing("its controller has reported nothing yet")
            }
        };
    }
    let unseen = match rule.generation {
        Generation::InStatus => live.unseen(),
        Generation::WhereWritten | Generation::Nowhere => live.stale(),
    };
    unseen.unwrap_or_else(|| worst(rule, live))
}

fn worst(rule: &Rule, live: Live<'_>) -> Health {
    let (mut said, mut worst) = (false, Health::Healthy);
    for reading in rule.readings {
        let Some(found) = read(reading, live) else { continue };
        said |= reading.speaks();
        if weight(&found) > weight(&worst) {
            worst = found;
        }
    }
    match worst {
        Health::Healthy if !said && rule.readings.iter().any(Reading::speaks) => {
            Health::progressing("its status does not say yet how it is")
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

impl Reading {
    /// True if the check can prove an object healthy; the other checks only detect other states.
    fn speaks(&self) -> bool {
        match self {
            Self::Needs(..)
            | Self::Heeds(..)
            | Self::Word(_)
            | Self::Count(_)
            | Self::Flag(..)
            | Self::Odd(_) => true,
            Self::Trouble(_) | Self::Refused(_) | Self::Busy(_) | Self::Rests(_) | Self::Complaint(_) => {
                false
            }
        }
    }
}

/// Runs one check; `None` if the status does not contain the field.
fn read(reading: &Reading, live: Live<'_>) -> Option<Health> {
    match reading {
        Reading::Needs(kind, if_false) => Some(
            needs(live, kind, if_false)
                .unwrap_or_else(|| Health::progressing(format!("{kind} is not reported yet"))),
        ),
        Reading::Heeds(kind, if_false) => needs(live, kind, if_false),
        Reading::Trouble(kinds) => {
            first(live, kinds, Condition::is_true).map(|found| Health::degraded(found.sentence()))
        }
        Reading::Refused(kinds) => {
            let found = kinds.iter().find_map(|kind| needs(live, kind, &IfFalse::Fails));
            found.filter(|found| !matches!(found, Health::Healthy))
        }
        Reading::Busy(kinds) => {
            first(live, kinds, Condition::is_true).map(|found| Health::progressing(found.sentence()))
        }
        Reading::Rests(kinds) => first(live, kinds, Condition::is_true).map(|_| Health::Suspended),
        Reading::Word(word) => by_word(live, word),
        Reading::Count(count) => by_count(live, count),
        Reading::Flag(at, if_false) => flag(live, at, if_false),
        Reading::Complaint(at) => complaint(live, at),
        Reading::Odd(odd) => (odd.judge)(live),
    }
}

/// First condition of these types that passes the test and is not stale.
fn first<'a>(live: Live<'a>, kinds: &[&str], is: fn(&Condition<'a>) -> bool) -> Option<Condition<'a>> {
    let generation = live.generation();
    let fresh = |condition: &Condition<'a>| is(condition) && !condition.is_stale(generation);
    kinds.iter().find_map(|kind| live.condition(kind).filter(fresh))
}

fn needs(live: Live<'_>, kind: &str, if_false: &IfFalse) -> Option<Health> {
    let condition = live.condition(kind)?;
    Some(match &condition {
        _ if condition.is_stale(live.generation()) => {
            Health::progressing(format!("{kind} speaks of an older generation"))
        }
        _ if condition.is_true() => Health::Healthy,
        _ if condition.is_false() && if_false.is_failure(&condition) => {
            Health::degraded(condition.sentence())
        }
        _ => Health::progressing(condition.sentence()),
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

fn by_word(live: Live<'_>, word: &Word) -> Option<Health> {
    let name = word.at.rsplit('.').next().unwrap_or_default();
    let Some(text) =
        live.dotted(word.at).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    else {
        return word.needed.then(|| Health::progressing(format!("its {name} is not reported yet")));
    };
    let is_in = |words: &[&str]| words.contains(&text);
    if is_in(word.well) {
        return Some(Health::Healthy);
    }
    if is_in(word.asleep) {
        return Some(Health::Suspended);
    }
    let said = with(live, word.message, format!("its {name} is {}", told(text)));
    Some(if is_in(word.wrong) {
        Health::degraded(said)
    } else if word.open || is_in(word.busy) {
        Health::progressing(said)
    } else {
        Health::unknown(format!("{said}, and no rule says what that means"))
    })
}

fn by_count(live: Live<'_>, count: &Count) -> Option<Health> {
    let number = |at: &str| match live.dotted(at)? {
        Value::Array(items) => u64::try_from(items.len()).ok(),
        other => other.as_u64(),
    };
    let have = match number(count.have) {
        None if !count.needed => return None,
        have => have.unwrap_or_default(),
    };
    let of = number(count.of).unwrap_or(count.or);
    Some(match have >= of {
        true => Health::Healthy,
        false => Health::progressing(format!("{} {}", of_are(have, of, count.noun), count.be)),
    })
}

fn flag(live: Live<'_>, at: &str, if_false: &IfFalse) -> Option<Health> {
    let is = live.dotted(at)?.as_bool()?;
    let name = at.rsplit('.').next().unwrap_or_default();
    let said = || with(live, "status.message", format!("its {name} is false"));
    Some(match (is, if_false) {
        (true, _) => Health::Healthy,
        (false, IfFalse::Fails | IfFalse::FailsBut(_)) => Health::degraded(said()),
        (false, IfFalse::Waits | IfFalse::ByReason) => Health::progressing(said()),
    })
}

fn complaint(live: Live<'_>, at: &str) -> Option<Health> {
    let text = match live.dotted(at)? {
        Value::String(text) => text,
        Value::Array(texts) => texts.first()?.as_str()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    Some(told(text)).filter(|text| !text.is_empty()).map(Health::degraded)
}

/// Appends the controller's message at a path, if there is one.
pub(super) fn with(live: Live<'_>, at: &str, said: String) -> String {
    let text = match live.dotted(at) {
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Array(texts)) => texts.first().and_then(Value::as_str),
        _ => None,
    };
    match text.map(told).filter(|text| !text.is_empty()) {
        Some(text) => format!("{said} ({text})"),
        None => said,
    }
}

fn is_on(switch: &Switch, live: Live<'_>) -> bool {
    let text = |value: Option<&Value>, wanted: &str| value.and_then(Value::as_str) == Some(wanted);
    match switch {
        Switch::True(at) => live.dotted(at).and_then(Value::as_bool).unwrap_or_default(),
        Switch::Is(at, wanted) => text(live.dotted(at), wanted),
        Switch::Noted(key) => live.text(&["metadata", "annotations", key]).is_some(),
        Switch::Annotation(key, wanted) => text(live.at(&["metadata", "annotations", key]), wanted),
        Switch::Label(key, wanted) => text(live.at(&["metadata", "labels", key]), wanted),
    }
}
