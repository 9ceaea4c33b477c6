//! Evaluates CEL rules and collects the violations.
//!
//! In: the rules of a schema, an object, and its previous state.
//! Out: [`RuleViolations`]. A rule is evaluated for every value that it belongs to. A rule that
//! uses `oldSelf` is evaluated only if the old value is known. A violation by an unchanged value is
//! only a warning; a rule that fails to evaluate always refuses the object.

use serde_json::Value;

use super::super::schema::{Problem, shown};
use super::compile::{CelRule, RuleNode};
use super::old_self::{OldSelf, counterpart};
use moorline_cel::{CelValue, EvaluationError, NumberError, StepBudget, evaluate};

/// Maximum number of steps of one evaluation.
const MAX_STEPS: usize = 1_000_000;
/// Maximum number of steps of all evaluations for one object.
const MAX_STEPS_OF_ALL: usize = 10_000_000;
/// Maximum size of a message that a rule generates, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// Violations of the rules by an object.
#[derive(Debug, Default)]
pub(crate) struct RuleViolations {
    pub(crate) problems: Vec<Problem>,
    /// Violations that existed before the write.
    pub(crate) warnings: Vec<String>,
}

/// State of the evaluation for one object.
pub(super) struct Evaluator {
    path: String,
    broken: RuleViolations,
    /// Remaining steps for all rules.
    left: usize,
    /// True after a rule exceeded its steps: no further rules are evaluated.
    is_over: bool,
}

impl Evaluator {
    pub(super) fn new() -> Self {
        Self {
            path: String::new(),
            broken: RuleViolations::default(),
            left: MAX_STEPS_OF_ALL,
            is_over: false,
        }
    }

    pub(super) fn into_broken(self) -> RuleViolations {
        self.broken
    }

    /// Evaluates the rules of a value and of everything in it. Null is skipped.
    pub(super) fn value<'a>(
        &mut self,
        place: &'a RuleNode,
        schema: &'a Value,
        old: Option<&'a Value>,
        new: &'a Value,
        since: OldSelf<'a>,
    ) {
        if new.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &place.rules {
            self.rule(place, rule, schema, old, new, since);
        }
        match new {
            Value::Object(map) => {
                for (name, value) in map {
                    let before = old.and_then(|old| old.get(name));
                    if let Some(inner) = &place.inner {
                        let step = format!("[{name}]");
                        self.below(
                            &step,
                            inner,
                            &schema["additionalProperties"],
                            before,
                            value,
                            since.field(name),
                        );
                    }
                    if let Some(field) = place.fields.get(&**name) {
                        let step = if self.path.is_empty() { name.clone() } else { format!(".{name}") };
                        let schema = &schema["properties"][name];
                        self.below(&step, field, schema, before, value, since.field(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(inner) = &place.inner else { return };
                for (at, item) in items.iter().enumerate() {
                    let before = counterpart(schema, old, item);
                    self.below(&format!("[{at}]"), inner, &schema["items"], before, item, since.item(at));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn below<'a>(
        &mut self,
        step: &str,
        place: &'a RuleNode,
        schema: &'a Value,
        old: Option<&'a Value>,
        new: &'a Value,
        since: OldSelf<'a>,
    ) {
        let length = self.path.len();
        self.path.push_str(step);
        self.value(place, schema, old, new, since);
        self.path.truncate(length);
    }

    fn rule<'a>(
        &mut self,
        place: &'a RuleNode,
        rule: &'a CelRule,
        schema: &Value,
        old: Option<&'a Value>,
        new: &'a Value,
        since: OldSelf<'_>,
    ) {
        if self.is_over || rule.uses_old && old.is_none() && !rule.old_is_optional {
            return;
        }
        let of = |value: &'a Value| CelValue::from_json(value, &place.kind);
        let before = match (old, rule.old_is_optional) {
            (old, true) => CelValue::optional(old.map(of)),
            (Some(old), false) => of(old),
            (None, false) => CelValue::Null,
        };
        let variables = [of(new), before];
        let answer = self.evaluate(&rule.condition, &variables);
        let of_type = schema["type"].as_str().unwrap_or_default();
        let words = match answer {
            Ok(CelValue::Bool(true)) => return,
            Ok(_) => {
                let said =
                    rule.message_expression.as_ref().and_then(|says| self.evaluate(says, &variables).ok());
                let said = said.and_then(message).unwrap_or_else(|| rule.message.clone());
                let value = (!["object", "array"].contains(&of_type)).then(|| shown(new));
                return self.tell(rule, value, &said, since);
            }
            Err(fault) => without_answer(&fault, &rule.shown),
        };
        let problem = Problem::new(
            "FieldValueInvalid",
            self.path_or_nil(),
            format!("Invalid value: {of_type:?}: {words}"),
        );
        self.broken.problems.push(problem);
    }

    fn evaluate<'a>(
        &mut self,
        expression: &'a moorline_cel::Expression,
        variables: &[CelValue<'a>],
    ) -> Result<CelValue<'a>, EvaluationError> {
        let given = self.left.min(MAX_STEPS);
        let mut meter = StepBudget::new(given);
        let answer = evaluate(expression, variables, false, &mut meter);
        self.left -= given - meter.remaining();
        self.is_over = self.is_over || answer == Err(EvaluationError::OutOfSteps);
        answer
    }

    /// Reports a violation, as a problem or as a warning.
    fn tell(&mut self, rule: &CelRule, value: Option<String>, said: &str, since: OldSelf<'_>) {
        let of_value = |what: &str| match &value {
            Some(value) => format!("{what}: {value}"),
            None => what.to_owned(),
        };
        let (reason, message) = match &*rule.reason {
            "FieldValueForbidden" => ("FieldValueForbidden", format!("Forbidden: {said}")),
            "FieldValueRequired" => ("FieldValueRequired", format!("Required value: {said}")),
            "FieldValueDuplicate" => ("FieldValueDuplicate", of_value("Duplicate value")),
            _ => ("FieldValueInvalid", format!("{}: {said}", of_value("Invalid value"))),
        };
        let path = match (&*self.path, &*rule.field) {
            (_, "") => self.path_or_nil().to_owned(),
            ("", field) => field.to_owned(),
            (path, field) => format!("{path}.{field}"),
        };
        if !rule.uses_old && since.is_unchanged() {
            self.broken.warnings.push(format!("{path}: {message}"));
        } else {
            self.broken.problems.push(Problem::new(reason, &path, message));
        }
    }

    fn path_or_nil(&self) -> &str {
        if self.path.is_empty() { "<nil>" } else { &self.path }
    }
}

/// Returns the message that a rule generated, if it is valid.
fn message(said: CelValue<'_>) -> Option<String> {
    let CelValue::Text(text) = said else { return None };
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')).then(|| text.to_owned())
}

/// Returns the message for a rule that failed to evaluate.
fn without_answer(fault: &EvaluationError, rule: &str) -> String {
    let why = match fault {
        EvaluationError::MissingField(name) if name.contains(' ') => name.to_string(),
        EvaluationError::MissingField(name) => format!("no such key: {name}"),
        EvaluationError::WrongType(_) => {
            return format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
            );
        }
        EvaluationError::Number(NumberError::TooLarge) => "integer overflow".to_owned(),
        EvaluationError::Number(NumberError::ByZero) => "division by zero".to_owned(),
        EvaluationError::Number(NumberError::RestOfZero) => "modulus by zero".to_owned(),
        EvaluationError::Number(NumberError::NoIndex(at)) => format!("index out of bounds: {at}"),
        EvaluationError::Number(NumberError::NoNumber) => "the text cannot be converted".to_owned(),
        EvaluationError::Unsupported => {
            "the rule uses a function that the sandbox does not support".to_owned()
        }
        EvaluationError::OutOfSteps => {
            return format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
            );
        }
    };
    format!("{why} evaluating rule: {rule}")
}
