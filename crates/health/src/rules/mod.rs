//! Health rules that a Sync defines for kinds: `spec.health.rules`.
//!
//! In: the rules, each a kind with up to three expressions in the Common Expression Language over
//! the variable `object`, the whole live object.
//! Out: [`Rules`], or every [`RuleError`] at once, each with its rule, field and position; and for
//! an object the [`Health`] by the rule of its kind. There is one variable and no `self`: an
//! expression means the same in every field.
//!
//! An object that is being deleted is Progressing, and so is one whose status belongs to an older
//! generation, regardless of the rule. Otherwise `degraded` is evaluated first, then `progressing`,
//! then `healthy`: the first that is true decides. If none is true, the object is healthy if the
//! rule has no `healthy`, else Progressing. An expression that reads a missing field is not true: a
//! new object has no status yet. Any other evaluation error makes the health Unknown.
//!
//! Bounds: the text has at most 2,048 bytes and is measured before it is parsed, names and
//! functions are resolved when the Sync is read (`crates/cel` does both), and an evaluation ends
//! after 100,000 steps with Unknown. There are no patterns: `matches` would be a second language
//! with costs of its own.

use std::fmt;

use serde_json::{Map, Value};

use super::Health;
use crate::message::quote;
use crate::object_view::ObjectView;
use moorline_cel::{
    CelValue, EvaluationError, Expression, ExpressionError, ExpressionProblem, Kind, Language, NumberError,
    StepBudget, Variable,
};
use moorline_cel::{evaluate, read};
use moorline_core::object::GroupKind;

/// Maximal number of rules of one Sync.
pub const MAX_RULES: usize = 64;
/// Maximal number of steps of one evaluation, which takes milliseconds.
const MAX_STEPS: usize = 100_000;
/// The only variable. The type of a live object is not known in advance.
const OBJECT: Variable = Variable { name: "object", kind: Kind::Any };

/// Source of one rule, from the spec of the Sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSource<'a> {
    /// API group of the kind, empty for the core group.
    pub group: &'a str,
    /// Kind of the objects.
    pub kind: &'a str,
    /// Expression that is true for a healthy object.
    pub healthy: Option<&'a str>,
    /// Expression that is true for a failed object.
    pub degraded: Option<&'a str>,
    /// Expression that is true for an object in progress.
    pub progressing: Option<&'a str>,
}

/// Error in a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.health.rules[{rule}] ({kind}){place}: {problem}")]
pub struct RuleError {
    /// Index of the rule, from 0.
    pub rule: usize,
    /// Kind that the rule judges.
    pub kind: String,
    /// Position of the error in the rule.
    pub place: RulePosition,
    /// Description of the error.
    pub problem: String,
}

/// Position in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RulePosition {
    /// The rule as a whole.
    Rule,
    /// Line and column of an expression, from 1; columns count characters.
    Expression {
        /// `healthy`, `degraded` or `progressing`.
        field: &'static str,
        /// Line of the expression's text.
        line: usize,
        /// Character in that line.
        column: usize,
    },
}

/// Compiled rules of a Sync.
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
    /// Compiles the rules of a Sync and reports all errors at once.
    pub fn compile(written: &[RuleSource<'_>]) -> Result<Self, Vec<RuleError>> {
        let (mut rules, mut errors): (Vec<Rule>, Vec<RuleError>) = (Vec::new(), Vec::new());
        for (place, rule) in written.iter().enumerate() {
            let kind = GroupKind::new(rule.group, rule.kind);
            let refuse = |problem: &str| RuleError {
                rule: place,
                kind: kind.to_string(),
                place: RulePosition::Rule,
                problem: problem.to_owned(),
            };
            let mut compile = |field: &'static str, text: Option<&str>| {
                let found = text.map(|text| compile_expression(text).map_err(|refused| (text, refused)));
                found.transpose().unwrap_or_else(|(text, ExpressionError { offset: at, problem })| {
                    let place_in_text = position(field, text, at);
                    errors.push(RuleError {
                        rule: place,
                        kind: kind.to_string(),
                        place: place_in_text,
                        problem: match problem {
                            ExpressionProblem::Syntax(words) => quote(&words),
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
                errors.push(refuse("a Sync may have at most 64 health rules"));
                break;
            }
            if rule.healthy.or(rule.degraded).or(rule.progressing).is_none() {
                errors.push(refuse("it has no expression: healthy, degraded or progressing"));
            }
            if rules.iter().any(|other| other.kind == kind) {
                errors.push(refuse("another rule has the same kind"));
            }
            rules.push(Rule { kind, degraded, progressing, healthy });
        }
        if errors.is_empty() { Ok(Self(rules)) } else { Err(errors) }
    }

    /// True if a rule exists for this kind, so that the status of its objects has to be read.
    pub fn cover(&self, kind: &GroupKind) -> bool {
        self.0.iter().any(|rule| rule.kind == *kind)
    }

    /// Returns the health of an object by the rule for its kind; `None` without such a rule.
    #[must_use]
    pub fn evaluate(&self, kind: &GroupKind, body: &Map<String, Value>) -> Option<Health> {
        let rule = self.0.iter().find(|rule| rule.kind == *kind)?;
        let live = ObjectView::new(body);
        Some(live.deletion_progress().or_else(|| live.stale_status()).unwrap_or_else(|| rule.evaluate(body)))
    }
}

impl Rule {
    fn evaluate(&self, body: &Map<String, Value>) -> Health {
        let ask = |field: &'static str, expression: &Option<Expression>| match expression {
            None => Ok(false),
            Some(expression) => match evaluate_bool(expression, body) {
                Ok(holds) => Ok(holds),
                Err(EvaluationError::MissingField(_)) => Ok(false),
                Err(fault) => Err(Health::unknown(format!(
                    "the rule's {field} has no value: {}",
                    describe_error(&fault)
                ))),
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

/// Appends the object's own message: that of the condition `Ready`, or of the status.
fn with_message(body: &Map<String, Value>, sentence: &str) -> String {
    let live = ObjectView::new(body);
    let ready = live.condition("Ready").map(|ready| ready.reason_and_message());
    let message =
        ready.or_else(|| live.text(&["status", "message"]).map(quote)).filter(|message| !message.is_empty());
    match message {
        // A Secret has no status; if one has a message, it is not quoted, because it could reveal
        // the content.
        Some(message) if !is_secret(live) => format!("{sentence} ({message})"),
        Some(_) | None => sentence.to_owned(),
    }
}

fn is_secret(live: ObjectView<'_>) -> bool {
    live.text(&["kind"]) == Some("Secret")
}

/// Converts a byte offset to a line and a column.
fn position(field: &'static str, text: &str, at: usize) -> RulePosition {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    RulePosition::Expression { field, line, column }
}

impl fmt::Display for RulePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule => Ok(()),
            Self::Expression { field, line, column } => write!(f, " {field}:{line}:{column}"),
        }
    }
}

/// Describes the reason for which an expression has no value.
fn describe_error(fault: &EvaluationError) -> String {
    match fault {
        EvaluationError::MissingField(field) => format!("there is no field {}", quote(field)),
        EvaluationError::WrongType(what) => format!("{what} does not support the types of its operands"),
        EvaluationError::Number(NumberError::TooLarge) => "a number is too large".to_owned(),
        EvaluationError::Number(NumberError::ByZero | NumberError::RestOfZero) => {
            "a number is divided by zero".to_owned()
        }
        EvaluationError::Number(NumberError::NoIndex(_)) => "an index is out of range".to_owned(),
        EvaluationError::Number(NumberError::NoNumber) => "a text is not a number".to_owned(),
        EvaluationError::Unsupported => "it calls a function that is not supported here".to_owned(),
        EvaluationError::OutOfSteps => {
            format!("its evaluation takes more than {MAX_STEPS} steps for this object")
        }
    }
}

/// Compiles the text of one expression.
fn compile_expression(text: &str) -> Result<Expression, ExpressionError> {
    match read(text, Language::Small, &[OBJECT]) {
        Ok((expression, _)) => Ok(expression),
        // Reports only the first error: the others may be consequences of it.
        Err(refused) => Err(refused
            .into_iter()
            .next()
            .unwrap_or(ExpressionError { offset: 0, problem: ExpressionProblem::Other(String::new()) })),
    }
}

/// Evaluates an expression for one object to true or false.
fn evaluate_bool(expression: &Expression, object: &Map<String, Value>) -> Result<bool, EvaluationError> {
    let object = [CelValue::JsonMap(object, &OBJECT.kind)];
    evaluate(expression, &object, true, &mut StepBudget::new(MAX_STEPS))?.into_bool("the whole expression")
}

#[cfg(test)]
mod tests;
