//! Validation of built-in kinds, with the error messages of the API server.
//!
//! In: an object as it would be stored, and its previous state.
//! Out: every [`Cause`] to refuse it; none if it is valid. The rules are in `rules.txt`, which this
//! file evaluates. Rules that the table cannot express are in `immutability.rs` for updates, and
//! otherwise in the files that are named after their subject. The messages match those of the
//! server, because people search for them.

mod conversions;
mod definitions;
mod events;
mod immutability;
mod metadata;
mod name_formats;
mod networks;
mod other_kinds;
mod pods;
mod workloads;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::builtin::Kind;
use super::defaults::Condition;
use super::field_paths::{Path, below};

/// One problem, as `details.causes` of an error lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Reason such as `FieldValueInvalid`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// Validates an object of a built-in kind.
pub(crate) fn validate(kind: &Kind, subresource: &str, old: Option<&Value>, new: &Value) -> Vec<Cause> {
    let mut causes = metadata::causes(kind.kind, new);
    if subresource != "status"
        && let Some(rules) = RULES.kinds.get(&(kind.group, kind.kind))
    {
        Validator { kind, root: new, old }.judge(rules, new, "", &mut causes);
    }
    let mut told = Vec::with_capacity(causes.len());
    for cause in causes {
        if !told.contains(&cause) {
            told.push(cause);
        }
    }
    told
}

/// Validates the metadata of a custom resource.
pub(crate) fn validate_custom(new: &Value) -> Vec<Cause> {
    metadata::causes("", new)
}

/// Returns the error message for an object, and its causes in the format of the response.
#[cfg(test)]
pub(crate) fn refusal(group: &str, kind: &str, name: &str, causes: &[Cause]) -> (String, Value) {
    let all: Vec<_> = causes.iter().map(|it| format!("{}: {}", it.field, it.message)).collect();
    let text = if all.len() == 1 { all.concat() } else { format!("[{}]", all.join(", ")) };
    let dot = if group.is_empty() { "" } else { "." };
    let listed = |it: &Cause| json!({"reason": it.reason, "message": it.message, "field": it.field});
    let message = format!("{kind}{dot}{group} {} is invalid: {text}", Value::from(name));
    (message, causes.iter().map(listed).collect())
}

/// Input of a rule.
struct RuleInput<'a> {
    kind: &'a Kind,
    /// New object.
    root: &'a Value,
    /// Object before the update.
    old: Option<&'a Value>,
    /// Value that the section applies to.
    section: &'a Value,
    /// Value to check and its path; `None` if it is absent.
    value: Option<&'a Value>,
    at: String,
}

type CustomCheck = fn(&RuleInput, &mut Vec<Cause>);

static RULES: LazyLock<ValidationRules> = LazyLock::new(|| ValidationRules::read(include_str!("rules.txt")));

#[derive(Default)]
struct ValidationRules {
    kinds: HashMap<(&'static str, &'static str), Vec<ValidationRule>>,
    shapes: HashMap<&'static str, Vec<ValidationRule>>,
}

struct ValidationRule {
    path: Path,
    field: &'static str,
    check: RuleCheck,
    conditions: Vec<Condition>,
}

enum RuleCheck {
    Required(&'static str),
    OneOf(Vec<&'static str>),
    AtLeast(i64),
    Between(i64, i64),
    Port,
    Named(crate::kinds::validate::name_formats::SyntaxCheck),
    Keys(crate::kinds::validate::name_formats::SyntaxCheck),
    Unique(&'static str),
    Fixed(&'static str),
    Shape(&'static str),
    Own(CustomCheck),
}

struct Validator<'a> {
    kind: &'a Kind,
    root: &'a Value,
    old: Option<&'a Value>,
}

impl Validator<'_> {
    fn judge(&self, rules: &[ValidationRule], section: &Value, place: &str, causes: &mut Vec<Cause>) {
        for rule in rules {
            if !rule.conditions.iter().all(|it| it.holds(section)) {
                continue;
            }
            rule.path.look(section, &mut |holder, inner| {
                let at = match (place, inner) {
                    ("", inner) => inner.to_owned(),
                    (place, "") => place.to_owned(),
                    (place, inner) => format!("{place}.{inner}"),
                };
                let (value, at) = match rule.field {
                    "" => (Some(holder), at),
                    field => (holder.get(field).filter(|it| !it.is_null()), below(&at, field)),
                };
                if let RuleCheck::Shape(shape) = rule.check {
                    let rules = RULES.shapes.get(shape).map_or(&[][..], Vec::as_slice);
                    return self.judge(rules, holder, &at, causes);
                }
                let seen = RuleInput { kind: self.kind, root: self.root, old: self.old, section, value, at };
                rule.check(&seen, causes);
            });
        }
    }
}

impl ValidationRule {
    fn check(&self, seen: &RuleInput, causes: &mut Vec<Cause>) {
        let text = seen.value.and_then(Value::as_str).filter(|it| !it.is_empty());
        let number = seen.value.and_then(Value::as_i64);
        match &self.check {
            RuleCheck::Required(words) => {
                if seen.value.is_none_or(is_empty) {
                    causes.push(required(&seen.at, words));
                }
            }
            RuleCheck::OneOf(all) => {
                let values = match seen.value {
                    Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
                    _ => text.into_iter().collect::<Vec<_>>(),
                };
                let wrong = values.into_iter().filter(|it| !all.contains(it));
                causes.extend(wrong.map(|it| unsupported(&seen.at, it, all)));
            }
            RuleCheck::AtLeast(least) => {
                if number.is_some_and(|it| it < *least) {
                    let words = format!("must be greater than or equal to {least}");
                    causes.push(invalid(&seen.at, seen.value, &words));
                }
            }
            RuleCheck::Between(least, most) => {
                if number.is_some_and(|it| !(*least..=*most).contains(&it)) {
                    let words = format!("must be between {least} and {most}, inclusive");
                    causes.push(invalid(&seen.at, seen.value, &words));
                }
            }
            RuleCheck::Port => port(seen, causes),
            RuleCheck::Named(rule) => {
                let wrong = text.into_iter().flat_map(rule);
                causes.extend(wrong.map(|words| invalid(&seen.at, seen.value, &words)));
            }
            RuleCheck::Keys(rule) => {
                for key in seen.value.and_then(Value::as_object).into_iter().flat_map(|it| it.keys()) {
                    let at = format!("{}[{key}]", seen.at);
                    causes.extend(rule(key).iter().map(|words| invalid(&at, Some(&json!(key)), words)));
                }
            }
            RuleCheck::Unique(field) => unique(seen, field, causes),
            RuleCheck::Fixed(words) => crate::kinds::validate::immutability::fixed(seen, words, causes),
            RuleCheck::Shape(_) => {}
            RuleCheck::Own(check) => check(seen, causes),
        }
    }
}

/// Checks a port: a number, or the name of a container port.
fn port(seen: &RuleInput, causes: &mut Vec<Cause>) {
    match seen.value {
        Some(Value::Number(number)) if !number.as_i64().is_some_and(|it| (1..=65535).contains(&it)) => {
            causes.push(invalid(&seen.at, seen.value, "must be between 1 and 65535, inclusive"));
        }
        Some(Value::String(name)) => {
            causes.extend(
                crate::kinds::validate::name_formats::port_name(name)
                    .iter()
                    .map(|words| invalid(&seen.at, seen.value, words)),
            );
        }
        _ => {}
    }
}

fn unique(seen: &RuleInput, field: &str, causes: &mut Vec<Cause>) {
    let mut known = Vec::new();
    for (index, item) in seen.value.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(value) = item.get(field).filter(|it| !is_empty(it)) else { continue };
        let at = format!("{}[{index}].{field}", seen.at);
        if !known.contains(&value) {
            known.push(value);
        } else if field == "mountPath" {
            causes.push(invalid(&at, Some(value), "must be unique"));
        } else {
            causes.push(Cause {
                reason: "FieldValueDuplicate",
                message: format!("Duplicate value: {value}"),
                field: at,
            });
        }
    }
}

impl ValidationRules {
    fn read(text: &'static str) -> Self {
        let mut rules = Self::default();
        let mut section: &mut Vec<ValidationRule> = &mut Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<_> = line.splitn(3, ' ').collect();
            match words[..] {
                ["KIND", group, kind] => {
                    let group = if group == "core" { "" } else { group };
                    section = rules.kinds.entry((group, kind)).or_default();
                }
                ["SHAPE", shape] => section = rules.shapes.entry(shape).or_default(),
                [path, check] => section.extend(ValidationRule::read(path, check, "")),
                [path, check, rest] => section.extend(ValidationRule::read(path, check, rest)),
                _ => {}
            }
        }
        rules
    }
}

impl ValidationRule {
    fn read(path: &'static str, check: &str, rest: &'static str) -> Option<Self> {
        let (rest, conditions) = match rest.strip_prefix("if ") {
            Some(conditions) => ("", conditions),
            None => rest.split_once(" if ").unwrap_or((rest, "")),
        };
        let number = |at: usize| rest.split(' ').nth(at).and_then(|it| it.parse().ok());
        let check = match check {
            "required" => RuleCheck::Required(rest),
            "one-of" => RuleCheck::OneOf(rest.split(' ').collect()),
            "at-least" => RuleCheck::AtLeast(number(0)?),
            "between" => RuleCheck::Between(number(0)?, number(1)?),
            "port" => RuleCheck::Port,
            "named" => RuleCheck::Named(crate::kinds::validate::name_formats::rule(rest)?),
            "keys" => RuleCheck::Keys(crate::kinds::validate::name_formats::rule(rest)?),
            "unique" => RuleCheck::Unique(rest),
            "fixed" => RuleCheck::Fixed(rest),
            ">" => RuleCheck::Shape(rest),
            "!" => RuleCheck::Own(
                crate::kinds::validate::other_kinds::named(rest)
                    .or_else(|| networks::named(rest))
                    .or_else(|| workloads::named(rest))
                    .or_else(|| pods::named(rest))
                    .or_else(|| definitions::named(rest))
                    .or_else(|| conversions::named(rest))
                    .or_else(|| events::named(rest))
                    .or_else(|| crate::kinds::validate::immutability::named(rest))?,
            ),
            _ => return None,
        };
        let path = Path::of(path);
        let (path, field) = if matches!(check, RuleCheck::Shape(_)) { (path, "") } else { path.split_last() };
        Some(Self { path, field, check, conditions: Condition::all(conditions) })
    }
}

fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Returns the text to check, if it is text and not empty.
fn text<'a>(seen: &RuleInput<'a>) -> Option<&'a str> {
    seen.value.and_then(Value::as_str).filter(|it| !it.is_empty())
}

fn is_empty(it: &Value) -> bool {
    match it {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    }
}

fn with_words(head: String, words: &str) -> String {
    if words.is_empty() { head } else { format!("{head}: {words}") }
}

fn required(at: &str, words: &str) -> Cause {
    let message = with_words("Required value".to_owned(), words);
    Cause { reason: "FieldValueRequired", message, field: at.to_owned() }
}

fn invalid(at: &str, value: Option<&Value>, words: &str) -> Cause {
    let message = with_words(format!("Invalid value: {}", value.unwrap_or(&Value::Null)), words);
    Cause { reason: "FieldValueInvalid", message, field: at.to_owned() }
}

fn forbidden(at: &str, words: &str) -> Cause {
    let message = with_words("Forbidden".to_owned(), words);
    Cause { reason: "FieldValueForbidden", message, field: at.to_owned() }
}

fn unsupported(at: &str, value: &str, all: &[&str]) -> Cause {
    let known: Vec<_> = all.iter().map(|it| Value::from(*it).to_string()).collect();
    let message =
        format!("Unsupported value: {}: supported values: {}", Value::from(value), known.join(", "));
    Cause { reason: "FieldValueNotSupported", message, field: at.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let text = include_str!("rules.txt");
        let heads =
            |line: &str| line.starts_with("KIND ") || line.starts_with("SHAPE ") || line.starts_with('#');
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty() && !heads(line)).collect();
        let read = |line: &&&'static str| {
            let words: Vec<_> = line.splitn(3, ' ').collect();
            ValidationRule::read(words[0], words[1], words.get(2).unwrap_or(&"")).is_none()
        };
        let unread: Vec<_> = lines.iter().filter(read).collect();
        assert!(unread.is_empty(), "{unread:#?}");
        for rule in RULES.kinds.values().chain(RULES.shapes.values()).flatten() {
            if let RuleCheck::Shape(shape) = rule.check {
                assert!(RULES.shapes.contains_key(shape), "{shape}");
            }
        }
    }

    #[test]
    fn a_refusal_lists_its_causes() {
        let causes = [required("spec.a", ""), invalid("spec.b", Some(&json!(0)), "must be more")];
        let (message, details) = refusal("apps", "Deployment", "web", &causes);
        assert_eq!(
            message,
            "Deployment.apps \"web\" is invalid: [spec.a: Required value, spec.b: Invalid value: 0: must be more]"
        );
        assert_eq!(details[1]["reason"], "FieldValueInvalid");
        let (message, _) = refusal("", "Pod", "p", &causes[..1]);
        assert_eq!(message, "Pod \"p\" is invalid: spec.a: Required value");
    }
}
