//! Compiles the CEL rules of a schema.
//!
//! In: a structural schema.
//! Out: a tree of [`RuleNode`]s that contains only the places with rules; and a [`Problem`] for
//! each invalid rule, with its path in the definition.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::schema::Problem;
use super::cel_types::{escaped, is_embedded, kind};
use super::old_self::is_keyed;
use moorline_cel::{self as expression, Expression, ExpressionError, Kind, Language, Variable, read};

/// Index of `oldSelf` among the variables.
const OLD: usize = 1;

/// A place in a schema that has rules, itself or below.
#[derive(Debug)]
pub(super) struct RuleNode {
    /// CEL type of `self`.
    pub(super) kind: Kind,
    pub(super) rules: Vec<CelRule>,
    pub(super) fields: BTreeMap<Box<str>, RuleNode>,
    /// Rules of map values or list items.
    pub(super) inner: Option<Box<RuleNode>>,
}

/// A compiled rule.
#[derive(Debug)]
pub(super) struct CelRule {
    pub(super) condition: Expression,
    pub(super) message_expression: Option<Expression>,
    /// Message if the rule generates none.
    pub(super) message: String,
    /// Text of the rule that the error quotes when it fails to evaluate.
    pub(super) shown: String,
    pub(super) reason: String,
    /// Field path relative to the value.
    pub(super) field: String,
    pub(super) uses_old: bool,
    pub(super) old_is_optional: bool,
}

/// State of the compilation.
#[derive(Debug, Default)]
pub(super) struct RuleCompiler {
    path: String,
    /// Path below which the old value is unknown.
    lost: Option<String>,
    pub(super) problems: Vec<Problem>,
}

impl RuleCompiler {
    /// Returns a compiler for a schema at a path.
    pub(super) fn at(path: String) -> Self {
        Self { path, ..Self::default() }
    }

    /// Compiles the rules of a whole schema.
    pub(super) fn root(&mut self, schema: &Value) -> Option<RuleNode> {
        self.place(schema, kind(schema, true)?)
    }

    fn place(&mut self, schema: &Value, kind_of_it: Kind) -> Option<RuleNode> {
        let lost = self.lost.clone();
        let mut fields = BTreeMap::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let known = match (&kind_of_it, escaped(name)) {
                (Kind::Fields(fields), Some(escaped)) => {
                    fields.get(&*escaped).map(|known| known.kind.clone())
                }
                (_, _) => kind(property, is_embedded(property)),
            };
            let Some(known) = known else { continue };
            let place = self.below(&format!(".properties[{name}]"), property, known);
            fields.extend(place.map(|place| (Box::from(name.as_str()), place)));
        }
        let mut inner = None;
        for part in ["additionalProperties", "items"] {
            let Some(values) = schema.get(part).filter(|values| values.is_object()) else { continue };
            if part == "items" && !is_keyed(schema) {
                self.lost.get_or_insert_with(|| self.path.clone());
            }
            let known = kind(values, is_embedded(values));
            inner = inner.or(known.and_then(|known| self.below(&format!(".{part}"), values, known)));
            self.lost.clone_from(&lost);
        }
        let mut rules = Vec::new();
        for (at, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
            rules.extend(self.rule(rule, &format!(".x-kubernetes-validations[{at}]"), &kind_of_it));
        }
        let some = !rules.is_empty() || !fields.is_empty() || inner.is_some();
        some.then(|| RuleNode { kind: kind_of_it, rules, fields, inner: inner.map(Box::new) })
    }

    fn below(&mut self, step: &str, schema: &Value, kind: Kind) -> Option<RuleNode> {
        let length = self.path.len();
        self.path.push_str(step);
        let place = self.place(schema, kind);
        self.path.truncate(length);
        place
    }

    fn rule(&mut self, rule: &Value, step: &str, kind: &Kind) -> Option<CelRule> {
        let part = |name: &str| rule[name].as_str().unwrap_or_default();
        let old_is_optional = rule["optionalOldSelf"] == true;
        let old = if old_is_optional { Kind::Optional(kind.clone().into()) } else { kind.clone() };
        let variables =
            [Variable { name: "self", kind: kind.clone() }, Variable { name: "oldSelf", kind: old }];
        let mut find = |field: &str, before: &str, wanted: &Kind| {
            let is_wanted = |found: &Kind| [wanted, &Kind::Any].contains(&found);
            let words = match read(part(field), Language::Kubernetes, &variables) {
                Ok((expression, found)) if is_wanted(&found) => return Some(expression),
                Ok(_) => not_of(wanted).to_owned(),
                Err(refused) => {
                    let told: Vec<String> = refused.iter().map(|it| words(it, part(field))).collect();
                    format!("{before}compilation failed: {}", told.join("\n"))
                }
            };
            let message = format!("Invalid value: {}: {words}", shown(rule));
            self.problems.push(Problem::new(
                "FieldValueInvalid",
                &format!("{}{step}.{field}", self.path),
                message,
            ));
            None
        };
        let holds = find("rule", "", &Kind::Bool)?;
        let says = match part("messageExpression") {
            "" => None,
            _ => Some(find("messageExpression", "messageExpression ", &Kind::Text)?),
        };
        let uses_old = holds.uses(OLD);
        self.of_old(rule, step, uses_old);
        let text =
            [part("message"), part("rule")].into_iter().find(|text| !text.is_empty())?.trim().to_owned();
        Some(CelRule {
            message: if part("message").is_empty() { format!("failed rule: {text}") } else { text.clone() },
            shown: text,
            condition: holds,
            message_expression: says,
            reason: part("reason").to_owned(),
            field: below(part("fieldPath")),
            uses_old,
            old_is_optional,
        })
    }

    /// Refuses `oldSelf` where the old value is unknown, and `optionalOldSelf` without `oldSelf`.
    fn of_old(&mut self, rule: &Value, step: &str, uses_old: bool) {
        let problem = match (&self.lost, rule.get("optionalOldSelf")) {
            (Some(lost), _) if uses_old => (
                "rule",
                &rule["rule"],
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}"),
            ),
            (_, Some(given)) if !uses_old && !given.is_null() => {
                ("optionalOldSelf", given, "may not be set if oldSelf is not used in rule".to_owned())
            }
            (_, _) => return,
        };
        let (field, value, words) = problem;
        let path = format!("{}{step}.{field}", self.path);
        let message = format!("Invalid value: {value}: {words}");
        self.problems.push(Problem::new("FieldValueInvalid", &path, message));
    }
}

fn not_of(wanted: &Kind) -> &'static str {
    match wanted {
        Kind::Bool => "cel expression must evaluate to a bool",
        _ => "messageExpression must evaluate to a string",
    }
}

/// Formats a rule as the server prints it.
fn shown(rule: &Value) -> String {
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    let shown = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json!(text("rule")),
        json!(text("message")),
        json!(text("messageExpression")),
        rule["reason"],
        json!(text("fieldPath")),
        rule["optionalOldSelf"],
    );
    // Go escapes JSON for HTML.
    shown.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// Formats a compile error and its position as the CEL compiler does.
fn words(refused: &ExpressionError, text: &str) -> String {
    let words = match &refused.problem {
        expression::ExpressionProblem::Variable { name, .. }
        | expression::ExpressionProblem::Function(name) => {
            format!("undeclared reference to '{name}' (in container '')")
        }
        expression::ExpressionProblem::Overload { name, given } => {
            format!("found no matching overload for '{name}' applied to '{given}'")
        }
        expression::ExpressionProblem::Kind { wanted, found } => {
            format!("expected type '{wanted}' but found '{found}'")
        }
        expression::ExpressionProblem::Field(name) => format!("undefined field '{name}'"),
        expression::ExpressionProblem::Unsupported(name) => {
            format!("the sandbox does not support the function {name:?} of Kubernetes")
        }
        expression::ExpressionProblem::Syntax(words) | expression::ExpressionProblem::Other(words) => {
            words.clone()
        }
    };
    let before = text.get(..refused.offset).unwrap_or(text);
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let source = text.split('\n').nth(line).unwrap_or_default();
    format!("ERROR: <input>:{}:{}: {words}\n | {source}\n | {}^", line + 1, column + 1, ".".repeat(column))
}

/// Formats a relative field path for messages: `.a['b']` becomes `a.b`.
fn below(path: &str) -> String {
    let plain = path.trim().replace("['", ".").replace("']", "");
    plain.trim_start_matches('.').to_owned()
}
