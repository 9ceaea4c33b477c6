//! Tree of an expression for evaluation, in which every name is resolved.
//!
//! In: the nodes that `lower.rs` creates.
//! Out: [`Expression`], which `evaluate.rs` evaluates.

use super::pattern::Pattern;
use crate::functions::Function;
use crate::macros::MacroCall;
use crate::static_types::Kind;

/// An expression that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(pub(super) Node);

impl Expression {
    /// True if this variable occurs in the expression.
    pub fn uses(&self, variable: usize) -> bool {
        self.0.uses(variable)
    }
}

/// Node of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// Variable of the expression, by index.
    Variable(usize),
    /// Variable of a macro, by its index among those of the enclosing macros.
    Local(usize),
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// A type by its name, such as `string`.
    Type(&'static str),
    List(Vec<Node>),
    /// Map literal: keys and values.
    Map(Vec<[Node; 2]>),
    /// `of.name` and `of.?name`.
    Field {
        of: Box<Node>,
        name: Box<str>,
        optional: bool,
    },
    /// `has(of.name)`.
    Has {
        of: Box<Node>,
        name: Box<str>,
    },
    /// `condition ? yes : no`.
    Choice(Box<[Node; 3]>),
    /// Operator with one operand.
    One(Unary, Box<Node>),
    /// `&&` with `false` as the deciding operand, `||` with `true`.
    Logic {
        decisive: bool,
        operands: Vec<Node>,
    },
    /// Any other operator with two operands.
    Two(Binary, Box<[Node; 2]>),
    /// Match of a text with a constant pattern.
    Matches(Box<Node>, Pattern),
    /// Call of a function by name.
    Call(Function, Vec<Node>),
    /// Macro that the parser expands: a loop over `range` with an accumulator and an item as the
    /// two newest variables.
    Fold(Box<Fold>),
    /// Macro that the parser does not expand.
    Each(Box<MacroCall>),
}

/// Loop over a list, or over the keys of a map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    pub(super) range: Node,
    pub(super) start: Node,
    pub(super) go_on: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    /// True unless its operand is false: `all` and `exists` use it to skip an error while a later
    /// item may decide.
    NotFalse,
    Size,
    Int,
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Arithmetic(Arithmetic),
    In,
    Index,
    OptionalIndex,
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Node {
    /// True if this variable occurs in the node.
    fn uses(&self, variable: usize) -> bool {
        let any = |parts: &[Self]| parts.iter().any(|part| part.uses(variable));
        match self {
            Self::Variable(place) => *place == variable,
            Self::List(parts) | Self::Logic { operands: parts, .. } | Self::Call(_, parts) => any(parts),
            Self::Map(entries) => entries.iter().any(|entry| any(entry)),
            Self::Field { of, .. } | Self::Has { of, .. } | Self::One(_, of) | Self::Matches(of, _) => {
                of.uses(variable)
            }
            Self::Choice(parts) => any(&**parts),
            Self::Two(_, parts) => any(&**parts),
            Self::Fold(fold) => {
                let Fold { range, start, go_on, step, result } = &**fold;
                [range, start, go_on, step, result].iter().any(|part| part.uses(variable))
            }
            Self::Each(each) => each.range.uses(variable) || any(&each.parts),
            Self::Local(_)
            | Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::Type(_) => false,
        }
    }
}

impl Unary {
    /// Kind of the result.
    pub(super) fn result_kind(self, operand: &Kind) -> Kind {
        match self {
            Self::Not | Self::NotFalse => Kind::Bool,
            Self::Minus => operand.clone(),
            Self::Size | Self::Int => Kind::Int,
            Self::Text => Kind::Text,
        }
    }
}

impl Binary {
    /// Kind of the result.
    pub(super) fn result_kind(self, left: &Kind, right: &Kind) -> Kind {
        match self {
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::In
            | Self::Contains
            | Self::StartsWith
            | Self::EndsWith => Kind::Bool,
            Self::Index => left.element_kind(),
            Self::OptionalIndex => match left.element_kind() {
                kind @ Kind::Optional(_) => kind,
                kind => Kind::Optional(kind.into()),
            },
            Self::Arithmetic(Arithmetic::Subtract) if (left, right) == (&Kind::Time, &Kind::Time) => {
                Kind::Span
            }
            Self::Arithmetic(_) => match (left, right) {
                (Kind::Time, _) | (_, Kind::Time) => Kind::Time,
                (left, right) => left.clone().unify(right.clone()),
            },
        }
    }
}
