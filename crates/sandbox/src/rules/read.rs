//! Reads the rules of a schema.
//!
//! In: a structural schema. Out: a tree of [`Place`]s, only as far as there are rules; and a [`Problem`] for each rule that cannot
//! be used, with its place in the definition.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::schema::Problem;
use super::kinds::{escaped, is_embedded, kind};
use super::since::is_keyed;
use moorline_cel::{self as expression, Expression, Kind, Language, Refused, Variable, read};

/// The position of `oldSelf` among the variables.
const OLD: usize = 1;

/// A place in a schema with rules in it or below it.
#[derive(Debug)]
pub(super) struct Place {
    /// What `self` is.
    pub(super) kind: Kind,
    pub(super) rules: Vec<Rule>,
    pub(super) fields: BTreeMap<Box<str>, Place>,
    /// The values of a mapping, or the items of a list.
    pub(super) inner: Option<Box<Place>>,
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) holds: Expression,
    pub(super) says: Option<Expression>,
    /// What is said where the rule says nothing itself.
    pub(super) message: String,
    /// What is said of a rule that has no answer.
    pub(super) shown: String,
    pub(super) reason: String,
    /// Below the value.
    pub(super) field: String,
    pub(super) uses_old: bool,
    pub(super) old_is_optional: bool,
}

/// What is known while rules are read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    path: String,
    /// Below this, nobody can tell what a value was.
    lost: Option<String>,
    pub(super) problems: Vec<Problem>,
}

impl Reading {
    /// Reads a schema that stands at a path.
    pub(super) fn at(path: String) -> Self {
        Self { path, ..Self::default() }
    }

    /// The rules of a whole schema.
    pub(super) fn root(&mut self, schema: &Value) -> Option<Place> {
        self.place(schema, kind(schema, true)?)
    }

    fn place(&mut self, schema: &Value, kind_of_it: Kind) -> Option<Place> {
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
        some.then(|| Place { kind: kind_of_it, rules, fields, inner: inner.map(Box::new) })
    }

    fn below(&mut self, step: &str, schema: &Value, kind: Kind) -> Option<Place> {
        let length = self.path.len();
        self.path.push_str(step);
        let place = self.place(schema, kind);
        self.path.truncate(length);
        place
    }

    fn rule(&mut self, rule: &Value, step: &str, kind: &Kind) -> Option<Rule> {
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
        Some(Rule {
            message: if part("message").is_empty() { format!("failed rule: {text}") } else { text.clone() },
            shown: text,
            holds,
            says,
            reason: part("reason").to_owned(),
            field: below(part("fieldPath")),
            uses_old,
            old_is_optional,
        })
    }

    /// Who asks for what a value was has to have an answer.
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

/// A rule as the server prints it.
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
    // Go writes JSON so that it may stand in HTML.
    shown.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}

/// What is wrong with an expression, and where, as the server's compiler shows it.
fn words(refused: &Refused, text: &str) -> String {
    let words = match &refused.problem {
        expression::Problem::Variable { name, .. } | expression::Problem::Function(name) => {
            format!("undeclared reference to '{name}' (in container '')")
        }
        expression::Problem::Overload { name, given } => {
            format!("found no matching overload for '{name}' applied to '{given}'")
        }
        expression::Problem::Kind { wanted, found } => {
            format!("expected type '{wanted}' but found '{found}'")
        }
        expression::Problem::Field(name) => format!("undefined field '{name}'"),
        expression::Problem::Elsewhere(name) => {
            format!("the sandbox does not know the function {name:?}, which Kubernetes has")
        }
        expression::Problem::Syntax(words) | expression::Problem::Other(words) => words.clone(),
    };
    let before = text.get(..refused.at).unwrap_or(text);
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let source = text.split('\n').nth(line).unwrap_or_default();
    format!("ERROR: <input>:{}:{}: {words}\n | {source}\n | {}^", line + 1, column + 1, ".".repeat(column))
}

/// A path below a value, as messages have it: `.a['b']` is `a.b`.
fn below(path: &str) -> String {
    let plain = path.trim().replace("['", ".").replace("']", "");
    plain.trim_start_matches('.').to_owned()
}
