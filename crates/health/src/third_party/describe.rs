//! Describes a rule in words, and lists all its verdicts.
//!
//! In: a [`Rule`].
//! Out: the sentence for the documentation, and the set of its [`Verdict`]s, which the tests
//! compare with their fixtures. Both are derived from the data that is evaluated, so they cannot
//! disagree with it.

use std::collections::BTreeSet;

use super::rule::{Check, Generation, IfFalse, MissingStatus, Rule, Switch, Verdict};

/// Describes the condition for health, and the settings that suspend an object.
pub(super) fn describe_rule(rule: &Rule) -> String {
    let mut parts: Vec<String> = rule.checks.iter().filter_map(describe_check).collect();
    if rule.generation == Generation::InStatus {
        parts.push("the newest generation is observed".to_owned());
    }
    let mut text = parts.join("; ");
    if !rule.unreported_with.is_empty() {
        let mute: Vec<String> = rule.unreported_with.iter().map(switch).collect();
        text.push_str(&format!(". Healthy immediately: {}", mute.join(" or ")));
    }
    let rests = rule.checks.iter().filter_map(describe_suspension);
    let rests: Vec<String> = rule.suspended_by.iter().map(switch).chain(rests).collect();
    if !rests.is_empty() {
        text.push_str(&format!(". Suspended: {}", rests.join(" or ")));
    }
    text
}

fn describe_check(reading: &Check) -> Option<String> {
    Some(match reading {
        Check::Required(kind, _) => format!("`{kind}` is True"),
        Check::IfReported(kind, _) => format!("`{kind}` is True where it is reported"),
        Check::FailedIfTrue(kinds) | Check::ProgressingIfTrue(kinds) => none_is(kinds, "True"),
        Check::FailedIfFalse(kinds) => none_is(kinds, "False"),
        Check::SuspendedIfTrue(_) => return None,
        Check::Phase(word) => {
            let where_it_is = if word.needed { "" } else { " where it is reported" };
            format!("`{}` is {}{where_it_is}", word.path, list(word.healthy))
        }
        Check::Reached(count) if count.wanted.is_empty() => {
            format!("`{}` has reached {}", count.actual, count.default_wanted)
        }
        Check::Reached(count) => {
            let where_it_is = if count.needed { "" } else { " where it is reported" };
            format!("`{}` has reached `{}`{where_it_is}", count.actual, count.wanted)
        }
        Check::BoolField(at, _) => format!("`{at}` is true"),
        Check::ErrorText(at) => format!("`{at}` is empty"),
        Check::Custom(odd) => odd.description.to_owned(),
    })
}

fn describe_suspension(reading: &Check) -> Option<String> {
    match reading {
        Check::SuspendedIfTrue(kinds) => Some(format!("{} is True", list(kinds))),
        Check::Phase(word) if !word.suspended.is_empty() => {
            Some(format!("`{}` is {}", word.path, list(word.suspended)))
        }
        _ => None,
    }
}

fn switch(switch: &Switch) -> String {
    match switch {
        Switch::True(at) => format!("`{at}` is true"),
        Switch::Is(at, text) => format!("`{at}` is `{text}`"),
        Switch::HasAnnotation(key) => format!("the annotation `{key}` is set"),
        Switch::Annotation(key, value) => format!("the annotation `{key}` is `{value}`"),
        Switch::Label(key, value) => format!("the label `{key}` is `{value}`"),
    }
}

fn none_is(kinds: &[&str], status: &str) -> String {
    match kinds {
        [kind] => format!("`{kind}` is not {status}"),
        _ => format!("none of {} is {status}", list(kinds)),
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
}

/// Returns all verdicts that the rule can give for any object.
pub(super) fn possible_verdicts(rule: &Rule) -> BTreeSet<Verdict> {
    let mut answers = BTreeSet::from([Verdict::Healthy]);
    if rule.missing_status != MissingStatus::Healthy {
        answers.insert(Verdict::Progressing);
    }
    if rule.generation != Generation::Nowhere {
        answers.insert(Verdict::Stale);
    }
    if !rule.suspended_by.is_empty() {
        answers.insert(Verdict::Suspended);
    }
    rule.checks.iter().for_each(|reading| add(reading, &mut answers));
    answers
}

fn add(reading: &Check, answers: &mut BTreeSet<Verdict>) {
    match reading {
        Check::Required(_, if_false) | Check::IfReported(_, if_false) | Check::BoolField(_, if_false) => {
            answers.insert(Verdict::Progressing);
            if !matches!(if_false, IfFalse::Waits) {
                answers.insert(Verdict::Degraded);
            }
        }
        Check::FailedIfTrue(_) | Check::ErrorText(_) => {
            answers.insert(Verdict::Degraded);
        }
        Check::FailedIfFalse(_) => answers.extend([Verdict::Degraded, Verdict::Progressing]),
        Check::ProgressingIfTrue(_) | Check::Reached(_) => {
            answers.insert(Verdict::Progressing);
        }
        Check::SuspendedIfTrue(_) => {
            answers.insert(Verdict::Suspended);
        }
        Check::Phase(word) => {
            let may = [
                (Verdict::Progressing, word.is_free_text || !word.progressing.is_empty()),
                (Verdict::Degraded, !word.failed.is_empty()),
                (Verdict::Suspended, !word.suspended.is_empty()),
                (Verdict::Unknown, !word.is_free_text),
            ];
            answers.extend(may.into_iter().filter(|(_, may)| *may).map(|(answer, _)| answer));
        }
        Check::Custom(odd) => answers.extend(odd.verdicts),
    }
}
