//! Evaluator for the Common Expression Language of Kubernetes, with a limit on steps.
//!
//! In: the text of an expression, and the names and [`Kind`]s of its variables.
//! Out: an [`Expression`] in which every name is resolved, or the errors; and its value for given
//! values of the variables. For any text and any values, reading and evaluating end soon: the text
//! is measured before it is parsed (`size_limit.rs`), and every step of an evaluation is counted
//! (`evaluate.rs`).
//!
//! There are two [`Language`]s: the small one for the health rules of a Sync, and that of
//! Kubernetes, as far as definitions of custom resources use it. Of its library everything is
//! implemented (`functions.rs`) except versions, named formats and named time zones. A call of
//! these is an error when the expression is read or, if it is only visible then, during the
//! evaluation ([`EvaluationError::Unsupported`]).
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod arithmetic;
mod compare;
mod conversions;
mod evaluate;
mod functions;
mod lists;
mod lower;
mod lower_calls;
mod macros;
mod networks;
mod overloads;
mod pattern;
pub mod quantity;
mod read;
mod size_limit;
mod spans;
mod static_types;
mod strings;
#[cfg(test)]
mod tests;
mod times;
mod tree;
mod urls;
mod value;

pub use crate::arithmetic::format_number;
pub use crate::static_types::{FieldKind, Kind, ListKind, ListType};
pub use evaluate::{EvaluationError, NumberError, StepBudget, evaluate};
pub use pattern::Pattern;
pub use read::{ExpressionError, ExpressionProblem, Language, Variable, read};
pub use tree::Expression;
pub use urls::Url;
pub use value::CelValue;
