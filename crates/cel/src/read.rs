//! Reads an expression.
//!
//! In: a text, the [`Language`] that it is in, and the variables that there are. Out: the [`Expression`] and the [`Kind`] that it
//! gives, or what of it means nothing here, with its place. The text is measured before it is parsed, names are resolved once
//! (`lower.rs`), and an evaluation never looks one up.

use cel::parser::PrattParser;

use super::kind::Kind;
use super::lower::Lowering;
use super::scan::{Limits, TooMuch, scan};
use super::tree::Expression;

/// How often the parser may call itself. The text was measured before; this is for what the measure does not see.
const MAX_PARSED: u16 = 96;
/// Nodes of a tree.
pub(super) const MAX_NODES: usize = 2_048;

/// What may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// What a Sync's rules of health may say: the operators, the macros, and a few functions of texts. There are no patterns.
    Small,
    /// What the definitions of custom resources may say.
    Kubernetes,
}

/// A name that has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// The name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
}

/// Why a text is no expression: the byte at which it goes wrong, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The byte at which it goes wrong.
    pub at: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is no expression, in the words of the parser.
    Syntax(String),
    /// There is no such variable, but others.
    Variable {
        /// The name.
        name: String,
        /// The variables that there are.
        others: String,
    },
    /// There is no such function.
    Function(String),
    /// There is no such field.
    Field(String),
    /// A function that Kubernetes has and this evaluator has not.
    Elsewhere(String),
    /// An operator or a function is not made for what it is given.
    Overload {
        /// The operator or function.
        name: String,
        /// The kinds that it is given.
        given: String,
    },
    /// A value is of another kind than it has to be.
    Kind {
        /// The kind that it has to be.
        wanted: String,
        /// The kind that it is.
        found: String,
    },
    /// Something else.
    Other(String),
}

/// Reads a text; all that is wrong is told at once, in its order.
pub fn read(
    text: &str,
    language: Language,
    variables: &[Variable],
) -> Result<(Expression, Kind), Vec<Refused>> {
    let refuse = |at: usize, problem: String| vec![Refused { at, problem: Problem::Other(problem) }];
    scan(text, language.limits()).map_err(|TooMuch { at, problem }| refuse(at, problem))?;
    if text.trim().is_empty() {
        return Err(refuse(0, "the expression is empty".to_owned()));
    }
    let parser = PrattParser::new()
        .max_recursion_depth(MAX_PARSED)
        .max_expression_node_count(MAX_NODES)
        .enable_optional_syntax(language == Language::Kubernetes);
    let tree = parser.parse(text).map_err(|errors| vec![syntax(text, &errors)])?;
    let mut lowering = Lowering::new(text, language, variables);
    let lowered = lowering.lower(&tree, 0);
    let mut problems = lowering.problems;
    if problems.is_empty() {
        return Ok((Expression(lowered.expression), lowered.kind));
    }
    problems.sort_by_key(|refused| refused.at);
    Err(problems)
}

impl Language {
    /// How much one expression may be.
    fn limits(self) -> Limits {
        match self {
            Self::Small => Limits { bytes: 2_048, choices: 16, depth: 96 },
            Self::Kubernetes => Limits { bytes: 16_384, choices: 48, depth: 384 },
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(words) | Self::Other(words) => f.write_str(words),
            Self::Variable { name, others } => write!(f, "there is no variable {name:?}, only {others}"),
            Self::Function(name) => write!(f, "there is no function {name:?}"),
            Self::Field(name) => write!(f, "there is no field {name:?}"),
            Self::Overload { name, given } => write!(f, "{name} is not made for {given}"),
            Self::Kind { wanted, found } => write!(f, "it is {found}, not {wanted}"),
            Self::Elsewhere(name) => write!(f, "the function {name:?} is not known here"),
        }
    }
}

/// The first error of the parser, with its place.
fn syntax(text: &str, errors: &cel::ParseErrors) -> Refused {
    let Some(first) = errors.errors.first() else {
        return Refused { at: 0, problem: Problem::Syntax("it is no expression".to_owned()) };
    };
    let (line, column) = first.pos;
    let before = text
        .split_inclusive('\n')
        .take(usize::try_from(line).unwrap_or(1).saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    let rest = text.get(before..).unwrap_or_default();
    // The parser's columns are bytes, from 1.
    let column = usize::try_from(column).unwrap_or_default().saturating_sub(1);
    let within = rest.floor_char_boundary(column);
    Refused { at: before + within, problem: Problem::Syntax(first.msg.clone()) }
}
