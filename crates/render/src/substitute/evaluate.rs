//! Evaluates a template with variables to a text.
//!
//! In: a [`Template`], [`Variables`], and a limit on the output. Out: the text, and whether it
//! contains a value from a Secret.

use super::expression::{Expression, Operator, Part, Template, Which};
use super::fault::Fault;
use super::pattern::{MAX_PATTERN, fitting};
use super::variables::Variables;

/// Bytes of values that may be processed for one object; no API server accepts an object of that
/// size.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// A text after substitution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Text {
    pub(super) text: String,
    /// Contains a value from a Secret.
    pub(super) secret: bool,
}

/// Substitutes variables and counts the output.
pub(super) struct Evaluation<'a> {
    pub(super) variables: &'a Variables,
    /// Bytes that may still be produced.
    pub(super) left: usize,
}

impl Evaluation<'_> {
    pub(super) fn text(&mut self, template: &Template) -> Result<Text, Fault> {
        let mut made = Text::default();
        for part in &template.0 {
            match part {
                Part::Text(text) => self.adds(&mut made.text, text)?,
                Part::Expression(expression) => {
                    let found = self.expression(expression)?;
                    self.adds(&mut made.text, &found.text)?;
                    made.secret |= found.secret;
                }
            }
        }
        Ok(made)
    }

    fn adds(&mut self, to: &mut String, text: &str) -> Result<(), Fault> {
        self.spends(text.len())?;
        to.push_str(text);
        Ok(())
    }

    fn spends(&mut self, bytes: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or(Fault::TooLong { most: MAX_BYTES })?;
        Ok(())
    }

    fn expression(&mut self, expression: &Expression) -> Result<Text, Fault> {
        let Expression { name, operator } = expression;
        let known = self.variables.get(name);
        if let Operator::Default { also_empty, text } = operator {
            return match known {
                Some(known) if !(known.text.is_empty() && *also_empty) => {
                    Ok(Text { text: known.text.to_string(), secret: known.secret })
                }
                Some(_) | None => self.text(text),
            };
        }
        let Some(known) = known else {
            return Err(Fault::Unknown { name: name.clone(), nearest: self.variables.nearest(name) });
        };
        let (value, secret) = (&*known.text, known.secret);
        self.spends(value.len())?;
        let made = match operator {
            Operator::Value | Operator::Default { .. } => value.to_owned(),
            Operator::Length => value.chars().count().to_string(),
            Operator::Case { upper, all } => cased(value, *upper, *all),
            Operator::Slice { from, length } => {
                return self.slice(name, (value, secret), from, length.as_ref());
            }
            Operator::Trim { end, longest, pattern } => {
                let pattern = self.text(pattern)?;
                if pattern.text.chars().count() > MAX_PATTERN {
                    return Err(Fault::LongPattern { name: name.clone(), most: MAX_PATTERN });
                }
                let text = trimmed(value, &pattern.text, *end, *longest);
                return Ok(Text { text, secret: secret || pattern.secret });
            }
            Operator::Replace { which, text, other } => {
                let (text, other) = (self.text(text)?, self.text(other)?);
                let secret = secret || text.secret || other.secret;
                return Ok(Text { text: self.replaced(value, &text.text, &other.text, *which)?, secret });
            }
        };
        Ok(Text { text: made, secret })
    }

    fn slice(
        &mut self,
        name: &str,
        (value, secret): (&str, bool),
        from: &Template,
        length: Option<&Template>,
    ) -> Result<Text, Fault> {
        let mut secret = secret;
        let mut number = |template: &Template| {
            let found = self.text(template)?;
            secret |= found.secret;
            found.text.trim().parse::<i64>().map_err(|_| Fault::NoNumber { name: name.to_owned() })
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
            Some(Err(_)) => return Err(Fault::NoNumber { name: name.to_owned() }),
        };
        Ok(Text { text: value.chars().skip(skipped).take(taken).collect(), secret })
    }

    fn replaced(&self, value: &str, text: &str, other: &str, which: Which) -> Result<String, Fault> {
        // An empty text would match everywhere.
        if text.is_empty() {
            return Ok(value.to_owned());
        }
        let made = match which {
            Which::First => value.replacen(text, other, 1),
            Which::All => {
                // Checked before the text is built: many short matches, each replaced by a long
                // text, would exhaust memory.
                let grown = value.matches(text).count().saturating_mul(other.len());
                if grown > self.left {
                    return Err(Fault::TooLong { most: MAX_BYTES });
                }
                value.replace(text, other)
            }
            Which::Beginning => match value.strip_prefix(text) {
                Some(rest) => format!("{other}{rest}"),
                None => value.to_owned(),
            },
            Which::End => match value.strip_suffix(text) {
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
    let gone = fitting(&chars, pattern, end, longest).unwrap_or_default();
    match end {
        true => chars[..chars.len() - gone].iter().collect(),
        false => chars[gone..].iter().collect(),
    }
}
