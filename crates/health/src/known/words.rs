//! Describes a rule in words, and lists all its verdicts.
//!
//! In: a [`Rule`].
//! Out: the sentence for the documentation, and the set of its [`Verdict`]s, which the tests
//! compare with their fixtures. Both are derived from the data that is evaluated, so they cannot
//! disagree with it.

use std::collections::BTreeSet;

use super::rule::{Answer, Generation, IfFalse, Reading, Rule, Silence, Switch};

/// Describes the condition for health, and the settings that suspend an object.
pub(super) fn healthy(rule: &Rule) -> String {
    let mut parts: Vec<String> = rule.readings.iter().filter_map(part).collect();
    if rule.generation == Generation::InStatus {
        parts.push("the newest generation was seen".to_owned());
    }
    let mut text = parts.join("; ");
    if !rule.mute.is_empty() {
        let mute: Vec<String> = rule.mute.iter().map(switch).collect();
        text.push_str(&format!(". At once: {}", mute.join(" or ")));
    }
    let rests = rule.readings.iter().filter_map(rests);
    let rests: Vec<String> = rule.asleep.iter().map(switch).chain(rests).collect();
    if !rests.is_empty() {
        text.push_str(&format!(". Suspended: {}", rests.join(" or ")));
    }
    text
}

fn part(reading: &Reading) -> Option<String> {
    Some(match reading {
        Reading::Needs(kind, _) => format!("`{kind}` is True"),
        Reading::Heeds(kind, _) => format!("`{kind}` is True where it is reported"),
        Reading::Trouble(kinds) | Reading::Busy(kinds) => none_is(kinds, "True"),
        Reading::Refused(kinds) => none_is(kinds, "False"),
        Reading::Rests(_) => return None,
        Reading::Word(word) => {
            let where_it_is = if word.needed { "" } else { " where it is reported" };
            format!("`{}` is {}{where_it_is}", word.at, list(word.well))
        }
        Reading::Count(count) if count.of.is_empty() => format!("`{}` has reached {}", count.have, count.or),
        Reading::Count(count) => {
            let where_it_is = if count.needed { "" } else { " where it is reported" };
            format!("`{}` has reached `{}`{where_it_is}", count.have, count.of)
        }
        Reading::Flag(at, _) => format!("`{at}` is true"),
        Reading::Complaint(at) => format!("`{at}` is empty"),
        Reading::Odd(odd) => odd.words.to_owned(),
    })
}

fn rests(reading: &Reading) -> Option<String> {
    match reading {
        Reading::Rests(kinds) => Some(format!("{} is True", list(kinds))),
        Reading::Word(word) if !word.asleep.is_empty() => {
            Some(format!("`{}` is {}", word.at, list(word.asleep)))
        }
        _ => None,
    }
}

fn switch(switch: &Switch) -> String {
    match switch {
        Switch::True(at) => format!("`{at}` is true"),
        Switch::Is(at, text) => format!("`{at}` is `{text}`"),
        Switch::Noted(key) => format!("the annotation `{key}` is there"),
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
pub(super) fn answers(rule: &Rule) -> BTreeSet<Answer> {
    let mut answers = BTreeSet::from([Answer::Healthy]);
    if rule.silence != Silence::Fine {
        answers.insert(Answer::Progressing);
    }
    if rule.generation != Generation::Nowhere {
        answers.insert(Answer::Stale);
    }
    if !rule.asleep.is_empty() {
        answers.insert(Answer::Suspended);
    }
    rule.readings.iter().for_each(|reading| add(reading, &mut answers));
    answers
}

fn add(reading: &Reading, answers: &mut BTreeSet<Answer>) {
    match reading {
        Reading::Needs(_, if_false) | Reading::Heeds(_, if_false) | Reading::Flag(_, if_false) => {
            answers.insert(Answer::Progressing);
            if !matches!(if_false, IfFalse::Waits) {
                answers.insert(Answer::Degraded);
            }
        }
        Reading::Trouble(_) | Reading::Complaint(_) => {
            answers.insert(Answer::Degraded);
        }
        Reading::Refused(_) => answers.extend([Answer::Degraded, Answer::Progressing]),
        Reading::Busy(_) | Reading::Count(_) => {
            answers.insert(Answer::Progressing);
        }
        Reading::Rests(_) => {
            answers.insert(Answer::Suspended);
        }
        Reading::Word(word) => {
            let may = [
                (Answer::Progressing, word.open || !word.busy.is_empty()),
                (Answer::Degraded, !word.wrong.is_empty()),
                (Answer::Suspended, !word.asleep.is_empty()),
                (Answer::Unknown, !word.open),
            ];
            answers.extend(may.into_iter().filter(|(_, may)| *may).map(|(answer, _)| answer));
        }
        Reading::Odd(odd) => answers.extend(odd.answers),
    }
}
