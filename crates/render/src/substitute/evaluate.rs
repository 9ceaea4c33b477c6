//! Evaluates a template with variables to a text.
//!
//! In: a [`Template`], [`Variables`], and a limit on the output. Out: the text, and whether it
//! contains a value from a Secret.

use super::error::VariableError;
use super::expression::{Expression, Occurrence, Operator, Part, Template};
use super::pattern::{MAX_PATTERN, match_length};
use super::variables::Variables;

/// Bytes of values that may be processed for one object; no API server accepts an object of that
/// size.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// A text after substitution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SubstitutedText {
    pub(super) text: String,
    /// Contains a value from a Secret.
    pub(super) contains_secret: bool,
}

/// Substitutes variables and counts the output.
pub(super) struct Evaluation<'a> {
    pub(super) variables: &'a Variables,
    /// Bytes that may still be produced.
    pub(super) remaining_bytes: usize,
}

impl Evaluation<'_> {
    pub(super) fn evaluate(&mut self, template: &Template) -> Result<SubstitutedText, VariableError> {
        let mut made = SubstitutedText::default();
        for part in &template.0 {
            match part {
                Part::Text(text) => self.adds(&mut made.text, text)?,
                Part::Expression(expression) => {
                    let found = self.expression(expression)?;
                    self.adds(&mut made.text, &found.text)?;
                    made.contains_secret |= found.contains_secret;
                }
            }
        }
        Ok(made)
    }

    fn adds(&mut self, to: &mut String, text: &str) -> Result<(), VariableError> {
        self.spends(text.len())?;
        to.push_str(text);
        Ok(())
    }

    fn spends(&mut self, bytes: usize) -> Result<(), VariableError> {
        self.remaining_bytes =
            self.remaining_bytes.checked_sub(bytes).ok_or(VariableError::TooLong { most: MAX_BYTES })?;
        Ok(())
    }

    fn expression(&mut self, expression: &Expression) -> Result<SubstitutedText, VariableError> {
        let Expression { name, operator } = expression;
        let known = self.variables.get(name);
        if let Operator::Default { also_empty, text } = operator {
            return match known {
                Some(known) if !(known.text.is_empty() && *also_empty) => {
                    Ok(SubstitutedText { text: known.text.to_string(), contains_secret: known.is_secret })
                }
                Some(_) | None => self.evaluate(text),
            };
        }
        let Some(known) = known else {
            return Err(VariableError::Unknown { name: name.clone(), nearest: self.variables.nearest(name) });
        };
        let (value, secret) = (&*known.text, known.is_secret);
        self.spends(value.len())?;
        let made = match operator {
            Operator::Value | Operator::Default { .. } => value.to_owned(),
            Operator::Length => value.chars().count().to_string(),
            Operator::Case { upper, all } => cased(value, *upper, *all),
            Operator::Slice { from, length } => {
                return self.slice(name, (value, secret), from, length.as_ref());
            }
            Operator::Trim { end, longest, pattern } => {
                let pattern = self.evaluate(pattern)?;
                if pattern.text.chars().count() > MAX_PATTERN {
                    return Err(VariableError::LongPattern { name: name.clone(), most: MAX_PATTERN });
                }
                let text = trimmed(value, &pattern.text, *end, *longest);
                return Ok(SubstitutedText { text, contains_secret: secret || pattern.contains_secret });
            }
            Operator::Replace { which, text, other } => {
                let (text, other) = (self.evaluate(text)?, self.evaluate(other)?);
                let secret = secret || text.contains_secret || other.contains_secret;
                return Ok(SubstitutedText {
                    text: self.replaced(value, &text.text, &other.text, *which)?,
                    contains_secret: secret,
                });
            }
        };
        Ok(SubstitutedText { text: made, contains_secret: secret })
    }

    fn slice(
        &mut self,
        name: &str,
        (value, secret): (&str, bool),
        from: &Template,
        length: Option<&Template>,
    ) -> Result<SubstitutedText, VariableError> {
        let mut secret = secret;
        let mut number = |template: &Template| {
            let found = self.evaluate(template)?;
            secret |= found.contains_secret;
            found.text.trim().parse::<i64>().map_err(|_| VariableError::NoNumber { name: name.to_owned() })
        };
        let from = number(from)?;
        let length = length.map(&mut number).transpose()?;
        let size = value.chars().count();
        let skipped = match usize::try_from(from) {
            Ok(from) => from,
            // A negative offset counts from the end.
            Err(_) => size.saturating_sub(usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        let taken = match length.map(usize::try_from) {
            None => usize::MAX,
            Some(Ok(length)) => length,
            Some(Err(_)) => return Err(VariableError::NoNumber { name: name.to_owned() }),
        };
        Ok(SubstitutedText {
            text: value.chars().skip(skipped).take(taken).collect(),
            contains_secret: secret,
        })
    }

    fn replaced(
        &self,
        value: &str,
        text: &str,
        other: &str,
        which: Occurrence,
    ) -> Result<String, VariableError> {
        // An empty text would match everywhere.
        if text.is_empty() {
            return Ok(value.to_owned());
        }
        let made = match which {
            Occurrence::First => value.replacen(text, other, 1),
            Occurrence::All => {
                // Checked before the text is built: many short matches, each replaced by a long
                // text, would exhaust memory.
                let grown = value.matches(text).count().saturating_mul(other.len());
                if grown > self.remaining_bytes {
                    return Err(VariableError::TooLong { most: MAX_BYTES });
                }
                value.replace(text, other)
            }
            Occurrence::Beginning => match value.strip_prefix(text) {
                Some(rest) => format!("{other}{rest}"),
                None => value.to_owned(),
            },
            Occurrence::End => match value.strip_suffix(text) {
                Some(rest) => format!("{rest}{other}"),
                None => value.to_owned(),
            },
        };
        Ok(made)
    }
}

fn cased(value: &str, upper: bool, all: bool) -> String {
    let changed = |text: &str| if upper { text.to_uppercase() } else { text.to_lowercase() };
    let first = value.chars().next().map_or(0, char::len_utf8);
    match all {
        true => changed(value),
        false => changed(&value[..first]) + &value[first..],
    }
}

fn trimmed(value: &str, pattern: &str, end: bool, longest: bool) -> String {
    let chars: Vec<char> = value.chars().collect();
    let gone = match_length(&chars, pattern, end, longest).unwrap_or_default();
    match end {
        true => chars[..chars.len() - gone].iter().collect(),
        false => chars[gone..].iter().collect(),
    }
}
