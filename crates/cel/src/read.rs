//! Reads and checks an expression.
//!
//! In: a text, its [`Language`], and the variables.
//! Out: the [`Expression`] and the [`Kind`] of its value, or all errors with their positions. The
//! text is measured before it is parsed, and names are resolved once (`lower.rs`), so an evaluation
//! never looks up a name.

use cel::parser::PrattParser;

use super::lower::Lowering;
use super::tree::Expression;
use crate::size_limit::{Limits, SizeLimitError, check_size};
use crate::static_types::Kind;

/// Recursion limit of the parser. The text was measured before; this limit catches a case that the
/// measure misses.
const MAX_PARSED: u16 = 96;
/// Maximal number of nodes of a tree.
pub(super) const MAX_NODES: usize = 2_048;

/// Supported part of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Language of the health rules of a Sync: operators, macros, and a few functions of texts.
    /// There are no patterns.
    Small,
    /// Language of the validation rules of custom resource definitions.
    Kubernetes,
}

/// A variable of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Name of the variable.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: Kind,
}

/// An error in the text of an expression.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte offset of the error.
    pub offset: usize,
    /// Description of the error.
    pub problem: ExpressionProblem,
}

/// Description of an error in an expression.
#[derive(Debug, PartialEq, Eq)]
pub enum ExpressionProblem {
    /// Syntax error, with the parser's message.
    Syntax(String),
    /// Unknown variable.
    Variable {
        /// Unknown name.
        name: String,
        /// Names of the existing variables.
        others: String,
    },
    /// Unknown function.
    Function(String),
    /// Unknown field.
    Field(String),
    /// A function of the Kubernetes library that is not implemented here.
    Unsupported(String),
    /// No overload of an operator or function for these operands.
    Overload {
        /// Operator or function.
        name: String,
        /// Kinds of the operands.
        given: String,
    },
    /// Wrong kind of a value.
    Kind {
        /// Expected kind.
        wanted: String,
        /// Actual kind.
        found: String,
    },
    /// Any other error.
    Other(String),
}

/// Reads an expression and reports all errors at once, in the order of the text.
pub fn read(
    text: &str,
    language: Language,
    variables: &[Variable],
) -> Result<(Expression, Kind), Vec<ExpressionError>> {
    let refuse = |at: usize, problem: String| {
        vec![ExpressionError { offset: at, problem: ExpressionProblem::Other(problem) }]
    };
    check_size(text, language.limits()).map_err(|SizeLimitError { at, problem }| refuse(at, problem))?;
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
    problems.sort_by_key(|refused| refused.offset);
    Err(problems)
}

impl Language {
    /// Size limits of one expression.
    fn limits(self) -> Limits {
        match self {
            Self::Small => Limits { bytes: 2_048, choices: 16, depth: 96 },
            Self::Kubernetes => Limits { bytes: 16_384, choices: 48, depth: 384 },
        }
    }
}

impl std::fmt::Display for ExpressionProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax(words) | Self::Other(words) => f.write_str(words),
            Self::Variable { name, others } => write!(f, "there is no variable {name:?}, only {others}"),
            Self::Function(name) => write!(f, "there is no function {name:?}"),
            Self::Field(name) => write!(f, "there is no field {name:?}"),
            Self::Overload { name, given } => write!(f, "{name} does not support {given}"),
            Self::Kind { wanted, found } => write!(f, "it is {found}, not {wanted}"),
            Self::Unsupported(name) => write!(f, "the function {name:?} is not supported here"),
        }
    }
}

/// Converts the first error of the parser, with its position.
fn syntax(text: &str, errors: &cel::ParseErrors) -> ExpressionError {
    let Some(first) = errors.errors.first() else {
        return ExpressionError {
            offset: 0,
            problem: ExpressionProblem::Syntax("it is not an expression".to_owned()),
        };
    };
    let (line, column) = first.pos;
    let before = text
        .split_inclusive('\n')
        .take(usize::try_from(line).unwrap_or(1).saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    let rest = text.get(before..).unwrap_or_default();
    // The parser's columns count bytes, from 1.
    let column = usize::try_from(column).unwrap_or_default().saturating_sub(1);
    let within = rest.floor_char_boundary(column);
    ExpressionError { offset: before + within, problem: ExpressionProblem::Syntax(first.msg.clone()) }
}
