//! Expressions in the Common Expression Language.
//!
//! In: the text of an expression, and the names and [`Kind`]s of its variables. Out: an [`Expression`] in which every name
//! is known, or why there is none; and its value for values of the variables. Whatever the text and whatever the values, reading
//! and evaluating end soon: the text is measured before it is parsed (`scan.rs`), and every step of an evaluation is
//! counted (`evaluate.rs`).
//!
//! Two [`Language`]s are read: the small one of a Sync's own rules, and that of Kubernetes, as far as definitions use it. Of
//! the latter's library all is known (`call.rs`) but versions, named formats, and zones that have names: who calls these is told
//! so before there are values, and if that cannot be seen before, by [`Fault::Unknown`].
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input; tests may.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod call;
mod calls;
mod compare;
mod each;
mod evaluate;
mod kind;
mod lists;
mod lower;
mod networks;
mod numbers;
mod overloads;
mod pattern;
mod places;
pub mod quantity;
mod read;
mod scan;
#[cfg(test)]
mod tests;
mod texts;
mod things;
mod times;
mod tree;
mod urls;
mod value;

pub use evaluate::{Fault, Meter, Sum, evaluate};
pub use kind::{Kind, Known, Many, Merge};
pub use numbers::number;
pub use pattern::Pattern;
pub use read::{Language, Problem, Refused, Variable, read};
pub use tree::Expression;
pub use urls::Url;
pub use value::Val;
