//! What a Sync says itself of how the objects of a kind are.
//!
//! In: `spec.health.rules`, each a kind with up to three expressions in the Common Expression Language over the variable
//! `object`, the whole live object. Out: [`Rules`], or every [`RuleError`] at once, each with its rule, its field and its
//! place; and for an object the [`Health`] that the rule for its kind gives. There is one variable and no `self`: a rule reads
//! the same in every field, and nobody has to guess which of two names is meant.
//!
//! An object that is being deleted, and one whose status speaks of an older generation, is Progressing whatever its rule says.
//! Else `degraded` is asked first, then `progressing`, then `healthy`: the first that is true gives its name. Where none is
//! true, the object is healthy if the rule has no `healthy`, and else it is Progressing. What an expression looks for and does
//! not find makes it not true: a fresh object has no status yet. Anything else that has no value makes the health Unknown.
//!
//! Bounds: the text has at most 2,048 bytes and is measured before it is parsed, names and functions are resolved when the
//! Sync is read (`crates/cel` does both), and an evaluation ends after 100,000 steps, which is Unknown. There are no
//! patterns: `matches` would be a second language with costs of its own.

use std::fmt;

use serde_json::{Map, Value};

use super::Health;
use super::live::Live;
use super::sentence::told;
use moorline_cel::{Expression, Fault, Kind, Language, Meter, Problem, Refused, Sum, Val, Variable};
use moorline_cel::{evaluate, read};
use moorline_core::object::GroupKind;

/// Rules of one Sync.
pub const MAX_RULES: usize = 64;
/// Steps of one evaluation; milliseconds at most.
const MAX_STEPS: usize = 100_000;
/// Of a live object nothing is known before it is seen.
const OBJECT: Variable = Variable { name: "object", kind: Kind::Any };

/// One rule as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    /// The group of the kind, empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// True where an object is as it should be.
    pub healthy: Option<&'a str>,
    /// True where it failed.
    pub degraded: Option<&'a str>,
    /// True where it is on its way.
    pub progressing: Option<&'a str>,
}

/// Why a rule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.health.rules[{rule}] ({kind}){place}: {problem}")]
pub struct RuleError {
    /// The position of the rule, from 0.
    pub rule: usize,
    /// The kind that it is for.
    pub kind: String,
    /// Where in the rule it goes wrong.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
}

/// Where in a rule something goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The rule as a whole.
    Rule,
    /// A line and a column of an expression, from 1; columns are characters.
    Expression {
        /// `healthy`, `degraded` or `progressing`.
        field: &'static str,
        /// The line of the expression's text.
        line: usize,
        /// The character in that line.
        column: usize,
    },
}

/// The rules of a Sync, ready to be asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules(Vec<Rule>);

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    kind: GroupKind,
    degraded: Option<Expression>,
    progressing: Option<Expression>,
    healthy: Option<Expression>,
}

impl Rules {
    /// Reads the rules of a Sync; all that is wrong with them is told at once.
    pub fn compile(written: &[Written<'_>]) -> Result<Self, Vec<RuleError>> {
        let (mut rules, mut errors): (Vec<Rule>, Vec<RuleError>) = (Vec::new(), Vec::new());
        for (place, rule) in written.iter().enumerate() {
            let kind = GroupKind::new(rule.group, rule.kind);
            let refuse = |problem: &str| RuleError {
                rule: place,
                kind: kind.to_string(),
                place: Place::Rule,
                problem: problem.to_owned(),
            };
            let mut compile = |field: &'static str, text: Option<&str>| {
                let found = text.map(|text| expression(text).map_err(|refused| (text, refused)));
                found.transpose().unwrap_or_else(|(text, Refused { at, problem })| {
                    let place_in_text = position(field, text, at);
                    errors.push(RuleError {
                        rule: place,
                        kind: kind.to_string(),
                        place: place_in_text,
                        problem: match problem {
                            Problem::Syntax(words) => told(&words),
                            problem => problem.to_string(),
                        },
                    });
                    None
                })
            };
            let degraded = compile("degraded", rule.degraded);
            let progressing = compile("progressing", rule.progressing);
            let healthy = compile("healthy", rule.healthy);
            if place >= MAX_RULES {
                errors.push(refuse("a Sync has too many rules: 64 are read"));
                break;
            }
            if rule.healthy.or(rule.degraded).or(rule.progressing).is_none() {
                errors.push(refuse("it has no expression: healthy, degraded or progressing"));
            }
            if rules.iter().any(|other| other.kind == kind) {
                errors.push(refuse("another rule is for the same kind"));
            }
            rules.push(Rule { kind, degraded, progressing, healthy });
        }
        if errors.is_empty() { Ok(Self(rules)) } else { Err(errors) }
    }

    /// True where a rule is for this kind, so that its objects' statuses have to be read.
    pub fn cover(&self, kind: &GroupKind) -> bool {
        self.0.iter().any(|rule| rule.kind == *kind)
    }

    /// How an object is by the rule for its kind; none where there is no rule.
    #[must_use]
    pub fn judge(&self, kind: &GroupKind, body: &Map<String, Value>) -> Option<Health> {
        let rule = self.0.iter().find(|rule| rule.kind == *kind)?;
        let live = Live::new(body);
        Some(live.deletion().or_else(|| live.stale()).unwrap_or_else(|| rule.judge(body)))
    }
}

impl Rule {
    fn judge(&self, body: &Map<String, Value>) -> Health {
        let ask = |field: &'static str, expression: &Option<Expression>| match expression {
            None => Ok(false),
            Some(expression) => match holds(expression, body) {
                Ok(holds) => Ok(holds),
                Err(Fault::Missing(_)) => Ok(false),
                Err(fault) => {
                    Err(Health::unknown(format!("the rule's {field} has no value: {}", why(&fault))))
                }
            },
        };
        let judged = || {
            if ask("degraded", &self.degraded)? {
                return Ok(Health::degraded(with_message(body, "the rule's degraded is true")));
            }
            if ask("progressing", &self.progressing)? {
                return Ok(Health::progressing(with_message(body, "the rule's progressing is true")));
            }
            if self.healthy.is_none() || ask("healthy", &self.healthy)? {
                return Ok(Health::Healthy);
            }
            Ok(Health::progressing(with_message(body, "the rule's healthy is not true")))
        };
        judged().unwrap_or_else(|unknown: Health| unknown)
    }
}

/// The sentence, and what the object itself says: the message of `Ready`, or of the status.
fn with_message(body: &Map<String, Value>, sentence: &str) -> String {
    let live = Live::new(body);
    let ready = live.condition("Ready").map(|ready| ready.says());
    let message =
        ready.or_else(|| live.text(&["status", "message"]).map(told)).filter(|message| !message.is_empty());
    match message {
        // A Secret has no status; one that has would not be repeated.
        Some(message) if !is_secret(live) => format!("{sentence} ({message})"),
        Some(_) | None => sentence.to_owned(),
    }
}

fn is_secret(live: Live<'_>) -> bool {
    live.text(&["kind"]) == Some("Secret")
}

/// The line and the column of a byte.
fn position(field: &'static str, text: &str, at: usize) -> Place {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Place::Expression { field, line, column }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule => Ok(()),
            Self::Expression { field, line, column } => write!(f, " {field}:{line}:{column}"),
        }
    }
}

/// Why an expression has no value.
fn why(fault: &Fault) -> String {
    match fault {
        Fault::Missing(field) => format!("there is no field {}", told(field)),
        Fault::Kinds(what) => format!("{what} is not made for what it is given"),
        Fault::Number(Sum::TooLarge) => "a number is too large".to_owned(),
        Fault::Number(Sum::ByZero | Sum::RestOfZero) => "a number is divided by zero".to_owned(),
        Fault::Number(Sum::NoIndex(_)) => "an index is none of the list's".to_owned(),
        Fault::Number(Sum::NoNumber) => "a text is no number".to_owned(),
        Fault::Unknown => "it calls what is not known here".to_owned(),
        Fault::TooMuch => format!("it takes more than {MAX_STEPS} steps with this object"),
    }
}

/// The expression that a text is.
fn expression(text: &str) -> Result<Expression, Refused> {
    match read(text, Language::Small, &[OBJECT]) {
        Ok((expression, _)) => Ok(expression),
        // The first is enough: the others may come of it.
        Err(refused) => Err(refused
            .into_iter()
            .next()
            .unwrap_or(Refused { at: 0, problem: Problem::Other(String::new()) })),
    }
}

/// What an expression is, of one object: true or false.
fn holds(expression: &Expression, object: &Map<String, Value>) -> Result<bool, Fault> {
    let object = [Val::Map(object, &OBJECT.kind)];
    evaluate(expression, &object, true, &mut Meter::new(MAX_STEPS))?.truth("the whole expression")
}

#[cfg(test)]
mod tests;
