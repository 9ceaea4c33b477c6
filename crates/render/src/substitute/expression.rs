//! Parses the grammar of variables in a text.
//!
//! In: a text from a manifest. Out: a [`Template`], or a [`VariableError`]. Unknown syntax is
//! refused: a shell script that was not meant for substitution must not be changed in part.

use super::error::VariableError;

/// Deepest nesting of expressions.
const MAX_DEPTH: usize = 16;

/// A text with expressions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(pub(super) Vec<Part>);

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Literal text.
    Text(String),
    /// An expression to be replaced.
    Expression(Expression),
}

/// A variable, and the operation on its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) name: String,
    pub(super) operator: Operator,
}

/// Operation on the value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operator {
    /// `${v}`: the value unchanged.
    Value,
    /// `${#v}`: the number of characters.
    Length,
    /// `${v^}`, `${v^^}`, `${v,}`, `${v,,}`: upper or lower case, of the first character or of all.
    Case { upper: bool, all: bool },
    /// `${v:-text}`, `${v:=text}`, `${v=text}`: a default, also for an empty value; `${v-text}`
    /// only for a missing one.
    Default { also_empty: bool, text: Template },
    /// `${v:from}` and `${v:from:length}`: a part of the value.
    Slice { from: Template, length: Option<Template> },
    /// `${v#pattern}`, `${v##pattern}`, `${v%pattern}`, `${v%%pattern}`: the value without a match
    /// at its beginning or end.
    Trim { end: bool, longest: bool, pattern: Template },
    /// `${v/text/other}` and its variants: a text replaced by another.
    Replace { which: Occurrence, text: Template, other: Template },
}

/// Occurrences of a text that are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    First,
    All,
    Beginning,
    End,
}

impl Template {
    /// Parses a text.
    pub(super) fn read(text: &str) -> Result<Self, VariableError> {
        let mut reader = ExpressionParser { rest: text, depth: 0 };
        reader.template(Until::End)
    }

    /// True if the text contains an expression.
    pub(super) fn has_expressions(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Expression(_)))
    }

    /// True if the whole text is one expression.
    pub(super) fn is_one_expression(&self) -> bool {
        matches!(self.0.as_slice(), [Part::Expression(_)])
    }
}

/// True for valid names of variables.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// End of the text that is being parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end of the whole text.
    End,
    /// Before `}`.
    Brace,
    /// Before `:` or `}`.
    Colon,
    /// Before `/` or `}`; `\/` and `\\` stand for the second character.
    Slash,
    /// Before `}`, and `\/` and `\\` stand for the second character.
    Replacement,
}

struct ExpressionParser<'a> {
    rest: &'a str,
    depth: usize,
}

impl ExpressionParser<'_> {
    fn template(&mut self, until: Until) -> Result<Template, VariableError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        while let Some(first) = self.rest.chars().next() {
            let is_end = match until {
                Until::End => false,
                Until::Brace | Until::Replacement => first == '}',
                Until::Colon => matches!(first, ':' | '}'),
                Until::Slash => matches!(first, '/' | '}'),
            };
            if is_end {
                return Ok(template_of(parts, text));
            }
            if self.takes("$$") {
                text.push('$');
            } else if self.takes("${") {
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(Part::Expression(self.expression()?));
            } else if matches!(until, Until::Slash | Until::Replacement)
                && (self.rest.starts_with("\\/") || self.rest.starts_with("\\\\"))
            {
                text.extend(self.rest.chars().nth(1));
                self.rest = &self.rest[2..];
            } else {
                text.push(first);
                self.rest = &self.rest[first.len_utf8()..];
            }
        }
        match until {
            Until::End => Ok(template_of(parts, text)),
            Until::Brace | Until::Colon | Until::Slash | Until::Replacement => Err(VariableError::Unclosed),
        }
    }

    /// Parses the expression after `${`, up to its closing brace.
    fn expression(&mut self) -> Result<Expression, VariableError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(VariableError::TooDeep { most: MAX_DEPTH });
        }
        let is_length = self.takes("#");
        let name = self.name()?;
        let operator = if is_length { Operator::Length } else { self.operator(&name)? };
        self.depth -= 1;
        match self.takes("}") {
            true => Ok(Expression { name, operator }),
            false if self.rest.is_empty() => Err(VariableError::Unclosed),
            false => Err(VariableError::UnknownOperator { name }),
        }
    }

    fn name(&mut self) -> Result<String, VariableError> {
        let inner = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = self.rest.find(|char| !inner(char)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if !is_name(name) {
            return Err(VariableError::NoName);
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn operator(&mut self, name: &str) -> Result<Operator, VariableError> {
        for (sign, also_empty) in [(":-", true), (":=", true), ("=", true), ("-", false)] {
            if self.takes(sign) {
                return Ok(Operator::Default { also_empty, text: self.template(Until::Brace)? });
            }
        }
        for (sign, upper, all) in
            [("^^", true, true), ("^", true, false), (",,", false, true), (",", false, false)]
        {
            if self.takes(sign) {
                return Ok(Operator::Case { upper, all });
            }
        }
        for (sign, end, longest) in
            [("##", false, true), ("#", false, false), ("%%", true, true), ("%", true, false)]
        {
            if self.takes(sign) {
                return Ok(Operator::Trim { end, longest, pattern: self.template(Until::Brace)? });
            }
        }
        for (sign, which) in [
            ("//", Occurrence::All),
            ("/#", Occurrence::Beginning),
            ("/%", Occurrence::End),
            ("/", Occurrence::First),
        ] {
            if self.takes(sign) {
                return self.replacement(name, which);
            }
        }
        if self.rest.starts_with(":?") || self.rest.starts_with(":+") {
            return Err(VariableError::UnknownOperator { name: name.to_owned() });
        }
        match self.takes(":") {
            true => self.slice(),
            false => Ok(Operator::Value),
        }
    }

    fn slice(&mut self) -> Result<Operator, VariableError> {
        let from = self.template(Until::Colon)?;
        let length = if self.takes(":") { Some(self.template(Until::Brace)?) } else { None };
        Ok(Operator::Slice { from, length })
    }

    fn replacement(&mut self, name: &str, which: Occurrence) -> Result<Operator, VariableError> {
        let text = self.template(Until::Slash)?;
        // Without the second slash, one tool removes the text and another reads on into the
        // following text.
        if !self.takes("/") {
            return Err(VariableError::NoReplacement { name: name.to_owned() });
        }
        if text.0.is_empty() {
            return Err(VariableError::EmptyText { name: name.to_owned() });
        }
        Ok(Operator::Replace { which, text, other: self.template(Until::Replacement)? })
    }

    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn template_of(mut parts: Vec<Part>, text: String) -> Template {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Template(parts)
}
